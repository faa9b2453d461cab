"""A name that begins with ~ is below the home folder at every door, and no library takes another name for one."""

import os
import pwd
import shutil
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.api.table import RECORDS
from bicliques.pipeline.cli import main
from bicliques.pipeline.cli.commands import parser
from bicliques.pipeline.run.folder import RunFolder
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import LabelFiles
from bicliques.schemas.values import at_home
from tests.support.commands import run
from tests.support.runs import OWN, QUIET

NEW = [("new1", "p"), ("new2", "p"), ("new2", "q"), ("new3", "q"), ("new3", "r")]
OLD = [("old1", "x"), ("old1", "y"), ("old2", "x")]
#: Bicliques of the graphs above.
N_NEW, N_OLD = 4, 2
ALONE = ("--workers", "0", "--quiet")


def csv(path: Path, edges: list[tuple[str, str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{left},{right}\n" for left, right in [("user", "item"), *edges]))
    return path


def parquet(path: Path, edges: list[tuple[str, str]]) -> Path:
    import pyarrow as pa

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table([*map(list, zip(*edges, strict=True))], ["user", "item"]), str(path.absolute()))
    return path


def seen(folder: Path) -> dict[str, tuple[int, bytes]]:
    """All files of a folder: when they were written, and their bytes."""
    each = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in each}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The home folder. The current folder is another one, in which nothing is called ~."""
    for name in ("home", "here"):
        (tmp_path / name).mkdir()
    # compiled code is found where it was kept before
    monkeypatch.setenv("XDG_CACHE_HOME", os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "home"


@pytest.fixture
def foreign(home):
    """What is in a complete run of another graph, which is where ~/out leads to."""
    bq.mine(OLD, home / "out", **QUIET)
    for path in seen(home / "out"):
        os.utime(path, (1e9, 1e9))
    return seen(home / "out")


def count(source, **options) -> int:
    return bq.count(source, **OWN, **options).count


def labels(results: bq.Results) -> set[str]:
    return {label for left, _ in results for label in left}


def test_commands_read_and_write_below_the_home_folder(home, capsys):
    csv(home / "g.csv", NEW)
    (home / "labels.txt").write_text("new2\n")
    steps = {
        "mine": ("~/g.csv", "--output=~/runs/1", *ALONE),
        "look": ("~/g.csv",),
        "count": ("~/g.csv", "--per-vertex=~/tables", "--folder=~", "--containing-left-from=~/labels.txt", *ALONE),
        "cliques": ("~/g.csv", "--folder=~", *ALONE),
        "largest": ("~/g.csv", "--output=~/largest", *ALONE),
        "resume": ("~/runs/1", "--quiet"),
        "show": ("~/runs/1",),
        "status": ("~/runs/1",),
        "verify": ("~/runs/1", "--quiet"),
        "sample": ("~/runs/1",),
        "sizes": ("~/runs/1",),
        "report": ("~/runs/1",),
        "cover": ("~/runs/1", "-o", "~/cover.parquet"),
        "communities": ("~/runs/1", "--at=1x1"),
        "explain": ("~/runs/1",),
        "plot": ("~/runs/1", "-o", "~/one.svg"),
        "export": ("~/runs/1", "-o", "~/rows.csv"),
        "diff": ("~/runs/1", "~/runs/1", "-o", "~/diff", "--quiet"),
        "refresh": ("~/runs/1", "~/g.csv", "-o", "~/today", *ALONE),
        "publish": ("~/runs/1", "~/published", "--quiet"),
        "prune": ("~/runs",),
        "generate": ("-o", "~/graph", "--n-left=3", "--n-right=3", "--edges=3", "--quiet"),
        "demo": ("-o", "~/demo", "--quiet"),
    }
    for command, words in steps.items():
        code, _, error = run(capsys, command, *words)
        assert code == 0, f"{command}: {error}"
    made = {"runs", "tables", "largest", "cover.parquet", "rows.csv", "diff", "published", "graph", "demo", "one.svg"}
    made |= {"today"}
    assert {path.name for path in home.iterdir() if path.name[0] != "."} == made | {"g.csv", "labels.txt"}
    assert os.listdir() == []  # noqa: PTH208 - and no folder that is called ~
    commands = parser()._subparsers._group_actions[0].choices
    assert {*steps, "formats", "completion"} == {*commands}


def test_no_option_of_a_command_makes_a_path_of_its_own():
    commands = parser()._subparsers._group_actions[0].choices
    named = {"OUT", "OLD", "NEW", "DIR", "FILE", "FOLDER", "GRAPH"}
    kinds = {
        (name, action.dest): getattr(action.type, "__name__", "")
        for name, command in commands.items()
        for action in command._actions
        if action.metavar in named or action.type is Path
    }
    assert len(kinds) > 30
    assert {place for place, kind in kinds.items() if kind != "local_path"} == set()


def test_python_reads_and_writes_below_the_home_folder(home):
    csv(home / "g.csv", NEW)
    results = bq.mine("~/g.csv", "~/runs/1", **QUIET)
    bq.largest(Path("~/g.csv"), Path("~/largest"), **QUIET)
    assert bq.verify("~/runs/1", progress=False).count == len(bq.open_run("~/runs/1")) == N_NEW
    assert bq.resume("~/runs/1", progress=False, report=False).complete
    assert bq.status("~/runs/1").state == "complete"
    assert bq.report("~/runs/1").is_relative_to(home)
    results.export("csv", "~/rows.csv")
    results.plot(results[0].id).save("~/one.svg")
    bq.diff("~/runs/1", "~/runs/1", "~/diff", progress=False)
    assert len(bq.Difference("~/diff").gone) == 0
    assert bq.refresh("~/runs/1", "~/g.csv", "~/runs/2", **QUIET).complete
    bq.publish("~/runs/1", "~/published", progress=False)
    bq.generate("~/graph", n_left=3, n_right=3, edges=3)
    assert bq.Generated("~/graph").edges == 3
    assert [each.path.name for each in bq.prune("~/runs").runs] == ["2", "1"]
    assert len(list(bq.maximal_bicliques("~/g.csv", folder="~", workers=0))) == N_NEW
    assert bq.count("~/g.csv", per_vertex="~/tables", folder="~", **OWN).count == N_NEW
    assert bq.dry_run("~/g.csv", **OWN).input["n_edges"] == len(NEW)
    assert bq.look("~/g.csv").n_edges == len(NEW)
    made = {"runs", "largest", "rows.csv", "one.svg", "diff", "published", "graph", "tables"}
    assert {path.name for path in home.iterdir() if path.name[0] != "."} == made | {"g.csv"}
    assert os.listdir() == []  # noqa: PTH208


def test_sources_of_every_kind_are_found_below_the_home_folder(home):
    csv(home / "g.csv", NEW)
    for name, edges in (("1", NEW[:2]), ("2", NEW[2:])):
        csv(home / f"data/{name}.csv", edges)
        parquet(home / f"tables/{name}.parquet", edges)
    bq.mine(NEW, home / "run", **QUIET)
    each = ["~/g.csv", "~/data", "~/data/*.csv", "~/tables/*.parquet", "~/run", ["~/data/1.csv", "~/data/2.csv"]]
    assert [count(source) for source in each] == len(each) * [N_NEW]
    assert count(["~/data/1.csv", str(home / "data/2.csv")]) == N_NEW
    results = bq.mine("~/run", "~/again", **QUIET)
    assert len(results) == N_NEW
    assert bq.mine("~/run", "~/again", **QUIET).manifest == results.manifest
    with pytest.raises(InputError, match="is the source and the output"):
        bq.mine("~/run", "~/run", overwrite=True, **QUIET)


def test_settings_name_paths_below_the_home_folder(home, capsys, monkeypatch):
    csv(home / "g.csv", NEW)
    (home / "labels.txt").write_text("new3\n")
    Path("bicliques.toml").write_text('[count]\nper_vertex = "~/tables"\ncontaining_left_from = "~/labels.txt"\n')
    monkeypatch.setenv("BICLIQUES_FOLDER", "~")
    code, output, error = run(capsys, "count", "~/g.csv", "--workers", "0", "--json")
    assert (code, '"count": 2' in output) == (0, True), error
    assert (home / "tables/left.parquet").is_file()
    assert os.listdir() == ["bicliques.toml"]  # noqa: PTH208


def mine_by_command(output: str) -> str:
    csv(Path("g.csv"), NEW)
    code = main.main(["mine", "g.csv", f"--output={output}", "--no-report", *ALONE])
    assert code in (0, 2)
    return "" if code == 0 else "refused"


def mine_in_python(output: str) -> str:
    try:
        bq.mine(NEW, output, **QUIET)
    except InputError:
        return "refused"
    return ""


DOORS = pytest.mark.parametrize("door", [mine_by_command, mine_in_python], ids=["command", "python"])


@DOORS
def test_another_run_at_home_is_refused_and_stays_as_it_is(home, foreign, door):
    assert door("~/out") == "refused"
    assert seen(home / "out") == foreign
    assert not Path("~").exists()


@DOORS
@pytest.mark.parametrize("output", ["./~/out", "././/~/out", "/~/out"])
@pytest.mark.first(2)
def test_a_folder_that_is_called_tilde_has_all_of_its_run(home, foreign, door, output):
    place = os.path.normpath(f"{Path.cwd()}/{output}")
    assert door(output if output[0] == "." else place) == ""
    results = bq.open_run(place)
    assert labels(results) == {"new1", "new2", "new3"}
    assert bq.verify(place, progress=False).count == N_NEW
    assert seen(home / "out") == foreign


def test_steps_below_a_folder_that_is_called_tilde_go_nowhere_else(home, foreign, capsys):
    """Each call gets the name that Arrow would take for that of the other run."""
    before = seen(home)
    parquet(Path("~/g.parquet"), NEW)
    parquet(home / "g.parquet", OLD)
    before |= seen(home)
    steps = (
        ("mine", "./~/g.parquet", "-o", "./~/out", *ALONE),
        ("verify", "./~/out", "--quiet"),
        ("diff", "./~/out", "./~/out", "-o", "./~/changes", "--quiet"),
        ("cover", "./~/out", "-o", "./~/cover.parquet"),
        ("export", "./~/out", "-o", "./~/rows.csv"),
        ("publish", "./~/out", "./~/published", "--quiet"),
        ("generate", "-o", "./~/graph", "--n-left=3", "--n-right=3", "--edges=3", "--quiet"),
        ("count", "./~/graph", *ALONE),
        ("count", "./~/g.parquet", "--per-vertex=./~/tables", "--folder=./~", *ALONE),
    )
    for words in steps:
        code, _, error = run(capsys, *words)
        assert code == 0, f"{words}: {error}"
    assert seen(home) == before
    assert labels(bq.open_run("./~/out")) == {"new1", "new2", "new3"}
    assert bq.Difference("./~/changes").gone.dataset().count_rows() == 0
    assert bq.open_run("./~/out").dataset().count_rows() == N_NEW


@pytest.mark.parametrize("source", [".", "*", "*/*.parquet", "**/*.parquet", "./~", "./~/*.parquet", "./~/g.parquet"])
@pytest.mark.first(4)
def test_files_that_are_found_in_a_folder_called_tilde_are_read_there(home, source):
    parquet(Path("~/g.parquet"), NEW)
    parquet(home / "g.parquet", OLD)
    assert count(source) == N_NEW
    shutil.rmtree(home)
    assert count(source) == N_NEW


def test_a_folder_that_has_the_name_of_a_user_is_read_where_it_is(home):
    user = pwd.getpwuid(os.getuid()).pw_name
    parquet(Path(f"~{user}/g.parquet"), NEW)
    assert count("*/g.parquet") == count(f"./~{user}/g.parquet") == N_NEW


def test_a_user_has_a_home_folder():
    user = pwd.getpwuid(os.getuid())
    assert at_home(f"~{user.pw_name}/x") == f"{user.pw_dir.rstrip('/')}/x"


@pytest.mark.parametrize("words", [("count", "~nobody-there/g.csv"), ("mine", "g.csv", "-o", "~nobody-there/out")])
def test_an_unknown_user_is_one_sentence(home, capsys, words):
    csv(Path("g.csv"), NEW)
    code, output, error = run(capsys, *words)
    given = words[-1]
    assert (code, output) == (2, "")
    assert error == (
        f"bicliques: {given} cannot be found, because there is no home folder for ~nobody-there; "
        f"write ./{given} or a whole path\n"
    )
    assert os.listdir() == ["g.csv"]  # noqa: PTH208


def test_without_a_home_folder_it_is_one_sentence(monkeypatch, home):
    def unknown(uid: int):
        raise KeyError(uid)

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for call in (lambda: bq.mine(NEW, "~/out", **QUIET), lambda: count("~/g.csv"), lambda: bq.open_run("~")):
        with pytest.raises(InputError, match=r"^~.* because there is no home folder for ~; write \./~"):
            call()
    assert os.listdir() == []  # noqa: PTH208


def test_a_tilde_elsewhere_is_a_letter(home):
    for name in ("a~.csv", "in/~/g.csv", "g.csv~", "~old.csv"):
        csv(Path(name), NEW)
    assert [count(name, format="csv") for name in ("a~.csv", "in/~/g.csv", "g.csv~", "~old.csv")] == 4 * [N_NEW]
    assert bq.mine(NEW, "in/~/out", **QUIET).path == Path("in/~/out")
    assert list(home.iterdir()) == []


def test_a_run_has_no_name_that_arrow_takes_for_another(home):
    assert RunFolder(Path("~/out")).path == Path.cwd() / "~/out"
    assert RunFolder(Path("out/~")).path == Path("out/~")


def test_no_other_field_of_the_options_is_a_path():
    """One that is added goes through `local_path` or `as_path`, and into the tests above."""
    paths = {each.name for kind in RECORDS for each in fields(kind) if "PathLike" in str(each.type)}
    sources = {"added", "removed"}
    assert paths == {"folder", "per_vertex_folder", *sources, *(each.name for each in fields(LabelFiles))}


def test_edge_lists_that_are_compared_lie_below_the_home_folder(home):
    csv(home / "g.csv", NEW)
    how = {**OWN}
    assert len(bq.diff("~/g.csv", None, "~/changes", added="~/g.csv", **how).new) == 0
    assert len(bq.diff("~/g.csv", "~/g.csv", "~/same", **how).gone) == 0
    assert {path.name for path in home.iterdir() if path.name[0] != "."} == {"g.csv", "changes", "same"}
