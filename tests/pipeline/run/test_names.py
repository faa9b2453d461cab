"""The files in the folder of a run: our names are known, files of users stay, and links are not followed."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.run import names
from bicliques.pipeline.run.files import create, whole_file
from bicliques.pipeline.run.labels import LABEL_FILES
from bicliques.pipeline.run.new_run import new_run
from bicliques.pipeline.series.pruning import carry_out, prune, survey
from bicliques.pipeline.series.runs import mark_complete
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.runs import answer, manifest_pair, random_edges, write_edges

EDGES = random_edges(30, 20, 0.3, 1)
EXPECTED = answer(EDGES)
TEXT = "years of work"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run that stopped, and a complete one."""
    place = tmp_path_factory.mktemp("model")
    source = write_edges(place / "g.parquet", EDGES)
    bq.mine(source, place / "stopped", workers=0, progress=False, max_results=40)
    bq.mine(source, place / "complete", workers=0, progress=False, per_vertex=True)
    return place / "stopped", place / "complete"


@pytest.fixture
def stopped(model: tuple[Path, Path], tmp_path: Path) -> Path:
    return shutil.copytree(model[0], tmp_path / "runs" / "out")


@pytest.fixture
def complete(model: tuple[Path, Path], tmp_path: Path) -> Path:
    return shutil.copytree(model[1], tmp_path / "complete")


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    """A file of the user, far from any run."""
    (tmp_path / "far").mkdir()
    file = tmp_path / "far" / "thesis.txt"
    file.write_text(TEXT)
    return file


def resume(out: Path) -> Any:
    return bq.resume(out, workers=0, max_results=None, progress=False)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_file_of_a_run_has_a_name_that_is_known(stopped: Path, complete: Path) -> None:
    assert names.stranger_in(stopped) is None
    mark_complete(complete)
    assert names.stranger_in(complete) is None
    assert {path.name for path in complete.iterdir() if path.is_dir()} == set(names.FOLDERS) - {
        "pending",
        "changes",
        "communities",
    }
    assert all(names.is_ours(Path("graph") / name) for name in LABEL_FILES.values())
    (complete / ".ingest-0a_b1c2d").mkdir()  # of a process that was killed while it read the input
    names.remove_ours(complete)
    assert list(complete.iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("bicliques", "part-000001-0123456789ab-0.parquet.bak"),
        ("bicliques", "mine.parquet"),
        ("pending", ".part-of-a-letter.tmp"),
        ("bicliques", ".part-000099-deadbeef0000-1.tmp"),
        ("bicliques", "part-١٢٣٤٥٦-0123456789ab-0.parquet"),
        ("ledger", "notes.json"),
        ("ledger", "007.json"),
        ("ledger", ".notes.json.tmp"),
        ("graph", "mine.csv"),
        ("elsewhere", "1.json"),
    ],
)
def test_an_unknown_name_is_not_a_file_of_a_run(tmp_path: Path, folder: str, name: str) -> None:
    assert not names.is_ours(tmp_path / folder / name)


@pytest.mark.parametrize("name", names.FOLDERS)
@pytest.mark.parametrize("state", ["stopped", "complete"])
def test_a_link_in_place_of_a_folder_is_never_followed_to_write_or_delete(model, tmp_path, name, state):
    run, far = tmp_path / "runs" / "out", tmp_path / "far"
    shutil.copytree(model[state == "complete"], run)
    shutil.copytree(run / name, far) if (run / name).exists() else far.mkdir()
    (far / "part-000099-deadbeef0000-0.parquet").write_text(TEXT)
    (far / "99.json").write_text(TEXT)
    shutil.rmtree(run / name, ignore_errors=True)
    (run / name).symlink_to(far)
    before = snapshot(far)
    words = f"{run / name} is a link, and nothing is written or deleted through one; put the folder"
    for work in (resume, bq.report, steps.ingest, steps.build, steps.plan, steps.mine, steps.prove):
        with pytest.raises(InputError, match=words):
            work(run)
    found = prune(tmp_path / "runs", 1, remove=True)
    assert [old.verdict for old in found.runs] == ["keep"]
    assert snapshot(far) == before


def test_a_run_with_something_else_in_it_is_not_pruned(model: tuple[Path, Path], tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for name in "abcdef":
        shutil.copytree(model[1], runs / name)
    (runs / "a" / "notes").mkdir()
    (runs / "b" / "bicliques" / "notes.txt").write_text(TEXT)
    far = shutil.move(runs / "c" / "bicliques", tmp_path / "far")
    (runs / "c" / "bicliques").symlink_to(far)
    found = survey(runs, 1)
    assert {old.path.name: old.reason for old in found.runs if old.path.name in "abc"} == {
        "a": f"{runs}/a/notes is not of the run, so the run stays; move it away",
        "b": f"{runs}/b/bicliques/notes.txt is not of the run, so the run stays; move it away",
        "c": f"{runs}/c/bicliques is a link, so the run stays; move it away",
    }
    assert [old.path.name for old in found.chosen] == ["e", "d"]
    (runs / "d" / "ledger" / "notes.json").write_text(TEXT)  # after somebody has looked
    done = carry_out(found)
    assert done.problems == ()
    assert sorted(path.name for path in runs.iterdir()) == ["a", "b", "c", "d", "f"]


def test_files_of_the_user_in_a_run_stay(stopped: Path) -> None:
    theirs = [stopped / folder / "notes.txt" for folder in names.FOLDERS if (stopped / folder).exists()]
    theirs += [stopped / "notes.txt", stopped / "ledger" / "notes.json", stopped / "ledger" / ".x.json.tmp"]
    theirs += [stopped / "bicliques" / "part-1.parquet.bak", stopped / ".ingest-mine" / "a.csv"]
    theirs += [stopped / "ledger" / "notes" / "folder.txt", stopped / "bicliques" / ".ipynb_checkpoints" / "x"]
    for file in theirs:
        file.parent.mkdir(exist_ok=True)
        file.write_text(TEXT)
    for step in ("build", "plan"):  # which are done anew
        (stopped / "steps" / f"{step}.json").unlink()
    left = stopped / ".ingest-ab12_d34" / "edges"
    left.mkdir(parents=True)
    (left / "edges.parquet").write_text("half")
    ours = [stopped / "pending" / ".part-000099-deadbeef0000-1.tmp", stopped / "ledger" / ".99.json.tmp"]
    for file in ours:
        file.write_text("half")
    for _ in range(2):  # the second time it is complete
        assert resume(stopped).complete
        assert manifest_pair(stopped) == EXPECTED
    assert bq.verify(stopped, progress=False).count == EXPECTED[0]
    assert [file for file in theirs if not file.exists() or file.read_text() != TEXT] == []
    assert [file for file in (*ours, left.parent) if file.exists()] == []


@pytest.mark.parametrize("state", ["stopped", "complete"])
def test_a_foreign_parquet_file_among_the_parts_is_named_and_stays(model, tmp_path, state, capsys):
    run = shutil.copytree(model[state == "complete"], tmp_path / "out")
    manifest = run / "manifest.json"
    file = run / "bicliques" / "mine.parquet"
    file.write_text(TEXT)
    for _ in range(2):
        assert main.main(["resume", str(run), "--workers", "0", "--quiet", "--max-results", "none"]) == 1
        assert capsys.readouterr().err == (
            f"bicliques: {file} is not of this run, and would be read as a part of it; move it away, then continue "
            f"with: bicliques resume {run}\n"
        )
    assert file.read_text() == TEXT
    if state == "complete":
        assert manifest.exists()
        for command in ("verify", "status"):
            assert main.main([command, str(run)]) == 1
            assert "move it away" in capsys.readouterr().err
    file.rename(tmp_path / "mine.parquet")
    assert resume(run).complete
    assert manifest_pair(run) == EXPECTED


@pytest.mark.parametrize(
    "name",
    [
        *("run.lock", ".options.json.tmp", ".manifest.json.tmp", ".report.html.tmp"),
        *("steps/.mine.json.tmp", "ledger/.1.json.tmp", "steps/.build.json.tmp", "summary/.sizes.parquet.tmp"),
    ],
)
@pytest.mark.first(4)
def test_a_link_in_the_place_of_a_file_is_not_followed(stopped: Path, thesis: Path, name: str) -> None:
    link = stopped / name
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(thesis)
    (stopped / "steps" / "build.json").unlink()
    if name == "run.lock":
        with pytest.raises(InputError, match=r"run.lock is a link or no file, and so no lock of a run; delete it"):
            resume(stopped)
        found = prune(stopped.parent, 1, unfinished=True, remove=True)
        assert "run.lock is a link" in found.runs[0].reason
        with pytest.raises(InputError, match="is a link or no file"):
            bq.status(stopped)
        link.unlink()
    assert resume(stopped).complete
    assert thesis.read_text() == TEXT
    assert not link.is_symlink()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_a_lock_that_is_no_file_is_an_error(stopped: Path, kind: str) -> None:
    (stopped / "run.lock").mkdir() if kind == "folder" else os.mkfifo(stopped / "run.lock")
    for work in (resume, bq.status):
        with pytest.raises(InputError, match="is a link or no file"):
            work(stopped)


def test_a_new_file_is_new(tmp_path: Path, thesis: Path) -> None:
    for target in (thesis, tmp_path / "nowhere"):
        (tmp_path / "new").symlink_to(target)
        with create(tmp_path / "new") as file:
            file.write(b"new")
        assert not (tmp_path / "new").is_symlink()
        (tmp_path / "new").unlink()
    os.link(thesis, tmp_path / "new")
    with create(tmp_path / "new") as file:
        file.write(b"new")
    assert thesis.read_text() == TEXT


def test_a_file_is_made_even_if_another_process_removes_the_one_before(tmp_path, monkeypatch):
    (tmp_path / "new").touch()
    real = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        real(path)
        real(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    create(tmp_path / "new").close()
    assert (tmp_path / "new").exists()


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(Path, "unlink", refuse)
        raise OSError(30, "Read-only file system")

    def write() -> None:
        with whole_file(tmp_path / "a") as file:
            file.write(b"new")

    (tmp_path / "a").write_text("old")
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(ResourceError, match=r"cannot write .*/a \(Read-only file system\)"):
        write()
    assert (tmp_path / "a").read_text() == "old"


@pytest.mark.parametrize(
    ("left", "taken"),
    [
        ([".options.json.tmp"], True),
        (["run.lock", ".options.json.tmp"], True),
        ([".ingest-ab12_d34/edges/edges.parquet", "edges/"], True),
        ([".ingest-ab12_d34/notes.txt"], False),
        (["edges/notes.txt"], False),
        ([".ingest-mine/"], False),
        ([".report.html.tmp"], False),
    ],
    ids=str,
)
def test_leftovers_of_a_run_that_never_began_block_nothing(tmp_path: Path, left: list[str], taken: bool) -> None:
    out = tmp_path / "out"
    for name in left:
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).mkdir(exist_ok=True) if name.endswith("/") else (out / name).write_text("")
    if taken:
        source = write_edges(tmp_path / "g.parquet", EDGES)
        assert len(bq.mine(source, out, workers=0, progress=False)) == EXPECTED[0]
        assert names.stranger_in(out) is None
        assert not list(out.glob(".*"))
        return
    with pytest.raises(InputError, match="is not empty; name another one"), new_run(out):
        raise AssertionError("it was taken")
    assert all((out / name).exists() for name in left)


def test_a_file_is_flushed_before_its_rename_and_its_folder_after(tmp_path, monkeypatch):
    calls: list[tuple[str, str]] = []
    moves: list[tuple[int, Path, Path]] = []
    fsync, replace, rename = os.fsync, os.replace, os.rename

    def flushed(descriptor: int) -> None:
        calls.append(("flush", os.readlink(f"/proc/self/fd/{descriptor}")))  # noqa: PTH115
        fsync(descriptor)

    def named(source: Any, target: Any) -> None:
        calls.append((os.path.abspath(source), os.path.abspath(target)))  # noqa: PTH100
        replace(source, target)

    def moved(source: Any, target: Any) -> None:
        moves.append((len(calls), Path(source), Path(target)))
        rename(source, target)

    source = write_edges(tmp_path / "g.parquet", EDGES)
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", flushed)
        patch.setattr(os, "replace", named)
        patch.setattr(os, "rename", moved)
        bq.mine(source, out, workers=0, progress=False)
    parts = [f"pending/{path.name}" for path in (out / "bicliques").iterdir()]
    summary = [f"summary/{path.name}" for path in (out / "summary").iterdir()]
    assert parts
    assert len(summary) == 4
    for name in (*parts, *summary, "ledger/0.json", "options.json", "manifest.json", "report.html", "steps/plan.json"):
        target = str(out / name)
        given = [k for k, (_, to) in enumerate(calls) if to == target]
        assert given, name
        for at in given:
            assert calls[at - 1] == ("flush", calls[at][0]) or ("flush", calls[at][0]) in calls[:at], name
            assert ("flush", str(out / name).rpartition("/")[0]) in calls[at + 1 : at + 3], name
    assert sorted(source for _, source, _ in moves) == sorted(out / name for name in parts)
    for at, _, target in moves:
        assert target.parent == out / "bicliques"
        assert ("flush", str(out / "ledger")) in calls[:at], "a part counts before its entry is safe"
        assert ("flush", str(out / "bicliques")) in calls[at:], "the manifest may outlive the name of a part"


def test_a_folder_whose_name_is_not_utf_8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    out = tmp_path / os.fsdecode(b"\xffout")
    assert main.main(["mine", str(source), "-o", str(out), "--quiet"]) == 2
    assert "out is not UTF-8, and pyarrow cannot write there; name another one" in capsys.readouterr().err
    assert not out.exists()
    for suffix in (".parquet", ".arrow"):
        odd = Path(shutil.copy(source, tmp_path / os.fsdecode(b"\xff" + suffix.encode())))
        assert main.main(["count", str(odd), "--quiet"]) == 2
        assert "is not UTF-8, and pyarrow opens no such file; rename it" in capsys.readouterr().err


def test_a_url_in_the_place_of_a_folder_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    for url in ("abfs://bucket/out", "gs://b/o", "file:///tmp/out"):
        words = f"{url} is a URL, and results are written to this machine; name a folder, and copy it afterwards"
        with pytest.raises(InputError, match=words):
            bq.mine(source, url, progress=False)
        with pytest.raises(InputError, match=words):
            bq.mine(source, Path(url), progress=False)
        assert main.main(["mine", str(source), "-o", url, "--quiet"]) == 2
        assert capsys.readouterr().err == f"bicliques: {words}\n"
    assert not Path("gs:").exists()
