"""The same call on the same input goes on, or returns the run that is there; `overwrite` begins anew."""

import errno
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

import bicliques as bq
from bicliques.pipeline.api import preparing, same_run, steps
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.run import lock
from bicliques.pipeline.run.lock import locked, open_lock
from bicliques.pipeline.run.names import LOCK_FILE, MANIFEST_FILE, OPTIONS_FILE, STAGING
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.runs import OWN, QUIET, random_edges, write_edges

EDGES = random_edges(20, 15, 0.4, 1)


def files(folder: Path) -> dict[str, int]:
    """When each file was written. Only the lock is taken again by whoever looks."""
    found = {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    return {name: at for name, at in found.items() if not name.endswith(LOCK_FILE)}


def identity(folder: Path) -> str:
    return bq.open_run(folder)._mined.identity


@pytest.mark.parametrize("call", [bq.mine, bq.largest])
def test_a_finished_run_is_returned_and_left_alone(call, source, tmp_path):
    out = tmp_path / "out"
    first = call(source, out, min_left=2, **QUIET)
    before = files(out)
    again = call(source, out, min_left=2, engine="auto", **QUIET)
    assert (len(again), again.complete, again.manifest) == (len(first), True, first.manifest)
    assert files(out) == before


@pytest.fixture
def read_only(monkeypatch):
    """No lock can be made, as in a folder of somebody else. The tests may run as root, who may write everywhere."""

    def refuse(file: Path, flags: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(file))
        return open_lock(file, flags)

    monkeypatch.setattr(lock, "open_lock", refuse)


@pytest.fixture(scope="module")
def complete_run(tmp_path_factory):
    """The source of a complete run, its folder, and the options of the call that made it."""
    folder = tmp_path_factory.mktemp("complete")
    given, options = write_edges(folder / "g.parquet", EDGES), {"per_vertex": True} | QUIET
    bq.mine(given, folder / "out", **options)
    return given, folder / "out", options


def test_a_finished_run_that_cannot_be_locked_is_returned(complete_run, request):
    given, out, options = complete_run
    count, before = len(bq.open_run(out)), files(out)
    request.getfixturevalue("read_only")
    for again in (bq.mine(given, out, **options), bq.resume(out, **QUIET)):
        assert (len(again), again.complete) == (count, True)
    with pytest.raises(ResourceError, match=r"cannot write .*run\.lock \(Permission denied\)"):
        bq.mine(given, out, overwrite=True, **options)
    assert files(out) == before


DAMAGED = ["manifest.json", "graph/*", "plan/*", "steps/mine.json", "summary/*", "vertices/left.parquet", "bicliques/*"]


@pytest.mark.parametrize("damaged", [*DAMAGED, STAGING])
def test_a_run_that_has_to_be_mended_is_locked(damaged, complete_run, tmp_path, request):
    out = Path(shutil.copytree(complete_run[1], tmp_path / "out"))
    if damaged == STAGING:
        (out / f"{STAGING}12345678").mkdir()  # left of reading
    else:
        next(out.glob(damaged)).unlink()
    request.getfixturevalue("read_only")
    with pytest.raises(ResourceError, match=r"cannot write .*run\.lock \(Permission denied\)"):
        bq.resume(out, **QUIET)


def test_a_run_at_work_or_on_its_way_out_is_not_taken_for_complete(complete_run, tmp_path, monkeypatch):
    out = Path(shutil.copytree(complete_run[1], tmp_path / "out"))
    with locked(out / LOCK_FILE), pytest.raises(InputError, match="is being worked on by"):
        bq.resume(out, **QUIET)
    assert preparing.is_complete_as_it_is(Run.at(out))
    look = preparing.why_not_whole

    def look_later(run: Run, manifest) -> str | None:
        out.rename(tmp_path / ".out.removed")  # as another process does that begins anew there
        return look(run, manifest)

    monkeypatch.setattr(preparing, "why_not_whole", look_later)
    assert not preparing.is_complete_as_it_is(Run.at(out))
    assert (tmp_path / ".out.removed" / MANIFEST_FILE).exists()


def test_an_unfinished_run_goes_on_with_the_limits_of_the_call(source, tmp_path):
    out = tmp_path / "out"
    wanted = bq.count(source, fingerprint=True, **OWN)
    assert len(bq.mine(source, out, max_results=5, **QUIET)) == 5
    run = identity(out)
    assert len(bq.mine(source, out, max_results=20, **QUIET)) == 20
    done = bq.mine(source, out, **QUIET)
    assert (len(done), done.manifest.fingerprint, identity(out)) == (wanted.count, wanted.fingerprint, run)


def test_a_page_that_is_missing_is_made(source, tmp_path):
    bq.mine(source, tmp_path / "out", **QUIET)
    assert not (tmp_path / "out" / "report.html").exists()
    bq.mine(source, tmp_path / "out", **QUIET | {"report": True})
    assert (tmp_path / "out" / "report.html").exists()


OBJECTS = [
    pd.DataFrame({"user": [1, 1, 2], "film": ["a", "b", "a"]}),
    [(1, "a"), (1, "b"), (2, "a")],
    {1: {"a", "b"}, 2: {"a"}},
]


@pytest.mark.parametrize("given", OBJECTS, ids=lambda given: type(given).__name__)
def test_an_object_in_memory_is_compared_by_its_edges(given, tmp_path):
    out = tmp_path / "out"
    bq.mine(given, out, **QUIET)
    run = identity(out)
    bq.mine(given, out, **QUIET)
    assert identity(out) == run
    other = given | {3: {"c"}} if isinstance(given, dict) else given[:2]
    with pytest.raises(InputError, match=r"has changed since .*out read it; name another output folder"):
        bq.mine(other, out, **QUIET)
    assert identity(out) == run


@pytest.mark.parametrize("kind", [list, iter, pd.DataFrame])
def test_an_object_in_memory_is_read_if_the_run_had_not_read_it(kind, tmp_path):
    edges, out = [(1, "a"), (1, "b"), (2, "a")], tmp_path / "out"
    bq.mine(kind(edges), tmp_path / "whole", **QUIET)
    out.mkdir()
    shutil.copy(tmp_path / "whole" / OPTIONS_FILE, out)  # all that a run has until its input is read
    with pytest.raises(InputError, match="cannot be read again"):
        bq.resume(out, **QUIET)
    assert len(bq.mine(kind(edges), out, **QUIET)) == 2
    assert identity(out) == identity(tmp_path / "whole"), "it goes on, and no other is begun"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"min_left": 3}, "a run with min_left=1, not with min_left=3"),
        ({"ids": "dense"}, "with ids='labels', not with ids='dense'"),
    ],
)
def test_another_run_is_refused_with_what_is_different(options, reason, source, tmp_path):
    out = tmp_path / "out"
    bq.mine(source, out, **QUIET)
    before = files(out)
    with pytest.raises(
        InputError, match=f"{reason}; name another output folder, .* begin anew there with overwrite=True"
    ):
        bq.mine(source, out, **options, **QUIET)
    assert files(out) == before


def test_input_that_has_changed_is_refused(source, tmp_path):
    bq.mine(source, tmp_path / "out", **QUIET)
    write_edges(source, EDGES[1:])
    with pytest.raises(InputError, match=r"g\.parquet has changed since .*out read it"):
        bq.mine(source, tmp_path / "out", **QUIET)


def test_standard_input_is_not_taken_for_the_same(tmp_path, monkeypatch):
    text = tmp_path / "in.el"
    text.write_text("1 2\n1 3\n")
    for code in (0, 2):
        with text.open() as stream:
            monkeypatch.setattr("sys.stdin", stream)
            assert (
                main(["mine", "-", "--format", "snap", "-o", str(tmp_path / "out"), "--quiet", "--no-report"]) == code
            )


def test_overwrite_begins_anew(source, tmp_path):
    out = tmp_path / "out"
    bq.mine(source, out, overwrite=True, **QUIET)  # nothing is there yet
    run = identity(out)
    bq.mine(source, out, overwrite=True, **QUIET)
    assert identity(out) != run
    few = bq.mine(source, out, overwrite=True, min_left=3, **QUIET)
    assert (few.complete, len(few)) == (True, bq.count(source, min_left=3, **OWN).count)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "out"]


@pytest.mark.parametrize("wrong", ["source", "label"])
def test_a_run_stays_if_the_one_that_should_replace_it_cannot_begin(wrong, source, tmp_path):
    out = tmp_path / "out"
    bq.mine(source, out, **QUIET)
    before = files(out)
    given = tmp_path / "nothing.csv" if wrong == "source" else source
    labels = ["12345"] if wrong == "label" else []
    with pytest.raises(InputError):
        bq.mine(given, out, overwrite=True, containing_left=labels, **QUIET)
    assert files(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "out"]


def test_a_run_that_fails_later_replaces_the_old_one_and_can_be_resumed(source, tmp_path, monkeypatch):
    out = tmp_path / "out"
    bq.mine(source, out, **QUIET)
    run = identity(out)

    def fail(*_):
        raise ResourceError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(steps, "complete_run", fail)
        with pytest.raises(ResourceError, match="no room"):
            bq.mine(source, out, overwrite=True, **QUIET)
    assert identity(out) != run
    assert sorted(path.name for path in tmp_path.iterdir()) == ["g.parquet", "out"]
    assert bq.resume(out, **QUIET).complete


def test_files_of_others_and_runs_at_work_are_not_overwritten(source, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty; name another one"):
        bq.mine(source, full, overwrite=True, **QUIET)
    out = tmp_path / "out"
    bq.mine(source, out, **QUIET)
    (out / "note.txt").write_text("mine")
    with pytest.raises(InputError, match=r"note\.txt is not of the run, so the run stays"):
        bq.mine(source, out, overwrite=True, **QUIET)
    (out / "note.txt").unlink()
    with locked(out / LOCK_FILE), pytest.raises(InputError, match="is being worked on by"):
        bq.mine(source, out, overwrite=True, **QUIET)
    assert bq.open_run(out).complete


def test_a_damaged_run_is_not_gone_on_with(source, tmp_path):
    out = tmp_path / "out"
    bq.mine(source, out, **QUIET)
    (out / "options.json").write_text("{")
    with pytest.raises(InputError, match="is not empty; name another one"):
        bq.mine(source, out, **QUIET)


def test_the_command_does_the_same(source, tmp_path, capsys):
    words = ["mine", str(source), "-o", str(tmp_path / "out"), "--quiet", "--no-report", "--workers", "0"]
    assert main([*words, "--max-results", "5"]) == 3
    assert main(words) == 0
    assert main(words) == 0
    assert main([*words, "--min-left", "2"]) == 2
    assert main([*words, "--min-left", "2", "--overwrite"]) == 0
    capsys.readouterr()
    assert main(["mine", str(source), "--dry-run", "--overwrite"]) == 2
    assert "no use for --overwrite" in capsys.readouterr().err


def test_a_run_as_source_is_compared_by_what_it_has_read(source, tmp_path):
    bq.mine(source, tmp_path / "whole", **QUIET)
    some = bq.mine(tmp_path / "whole", tmp_path / "some", min_left=3, **QUIET)
    assert len(bq.mine(tmp_path / "whole", tmp_path / "some", min_left=3, **QUIET)) == len(some)
    with pytest.raises(InputError, match="is the source and the output"):
        bq.mine(tmp_path / "some", tmp_path / "some", overwrite=True, **QUIET)
    (tmp_path / "link").symlink_to(tmp_path / "some")
    for another_spelling in (tmp_path / "link", tmp_path / "whole" / ".." / "some"):
        with pytest.raises(InputError, match="some is the source and the output; name another output folder"):
            bq.mine(another_spelling, tmp_path / "some", overwrite=True, **QUIET)
    assert bq.open_run(tmp_path / "some").complete
    assert same_run.is_there_already(tmp_path / "nothing", some._mined.options, source) is False
    assert os.listdir(tmp_path / "some" / "bicliques")  # noqa: PTH208
