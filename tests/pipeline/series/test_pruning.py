"""Old runs of a series are removed, by the day that they stand for. Everything else stays."""

import json
import os
import shutil
import threading
import uuid
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.cli import main
from bicliques.pipeline.run.files import read_json, write_json
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.lock import locked
from bicliques.pipeline.series import pruning
from bicliques.pipeline.series.pruning import Pruning, prune_after
from bicliques.schemas.errors import InputError
from tests.pipeline.series.several import change, copy, left, reasons
from tests.support.runs import QUIET, random_edges, write_edges

EDGES = random_edges(12, 9, 0.4, 1)


def half_removed(run: Path) -> Path:
    """The rest of a run whose removal was interrupted by a kill."""
    identity = RunFolder(run).run_id()
    away = run.rename(run.with_name(f".{run.name}.{identity}.removed"))
    shutil.rmtree(away / "bicliques")
    return away


def test_a_dry_run_first(runs, capsys):
    assert main.main(["prune", str(runs), "--keep", "2"]) == 0
    text = capsys.readouterr().out
    assert left(runs) == "abcdef"
    assert [line.split()[0] for line in text.splitlines()[:6]] == ["stays", "stays", "stays", "would", "stays", "would"]
    assert "would remove 2 of 6 runs" in text
    assert "--remove" in text


def test_prune_keeps_the_newest_complete_runs(runs):
    pruning = bq.prune(runs, keep=2, remove=True)
    assert left(runs) == "bdef"
    assert [run.path.name for run in pruning.chosen] == ["c", "a"]
    assert pruning.bytes > 0
    assert len(bq.open_run(runs / "f")) == len(bq.open_run(runs / "d")) > 0


def test_a_backfilled_day_is_as_old_as_the_day_it_stands_for(model, tmp_path):
    source, nights = write_edges(tmp_path / "s.parquet", EDGES), tmp_path / "bf"
    for day in ("2026-11-21", "2026-11-22", "2026-11-23", "2026-10-01"):  # the last one is mined last
        bq.mine(source, nights / day, **QUIET)
    found = bq.prune(nights, keep=2, remove=True)
    assert {path.name for path in nights.iterdir()} == {"2026-11-22", "2026-11-23"}
    assert [run.path.name for run in found.chosen] == ["2026-11-21", "2026-10-01"]


def test_times_of_files_do_not_matter(runs, tmp_path):
    """A copy of the folder has other times, and a clock may have been ahead."""
    for k, name in enumerate("fedcba"):
        for file in ("manifest.json", "options.json", "ledger", "steps", "."):
            if (runs / name / file).exists():
                os.utime(runs / name / file, (2e9 + k, 2e9 + k))
    assert [run.path.name for run in bq.prune(runs, keep=1).chosen] == ["d", "c", "a"]


def test_runs_of_another_source_are_neither_counted_nor_removed(runs, model):
    for k in (1, 2, 3):
        copy(model[0], runs / f"other{k}", f"2026-02-0{k}", series="/in/other.csv")
    copy(model[0], runs / "once", "2025-01-01", series="/in/once.csv")
    found = bq.prune(runs, keep=2, remove=True)
    assert {run.path.name for run in found.chosen} == {"a", "c", "other1"}
    assert (runs / "once").exists()


def test_sources_that_differ_in_the_day_are_one_series(runs, model):
    for k, series in enumerate(("/in/2026-03-01.csv", "/in/2026-03-02.csv", "/in/{date}.csv"), start=1):
        copy(model[0], runs / f"day{k}", f"2026-03-0{k}", series=series)
    found = bq.prune(runs, keep=1)
    assert [run.path.name for run in found.runs if run.series == "/in/{date}.csv"] == ["day3", "day2", "day1"]
    assert {"day1", "day2", "a", "c", "d"} == {run.path.name for run in found.chosen}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_each_of_several_series_has_a_heading(n, runs, model, capsys):
    for k in range(1, n):
        copy(model[0], runs / f"other{k}", "2026-02-01", series=f"/in/other{k}.csv")
    main.main(["prune", str(runs), "--keep", "2"])
    headings = [line for line in capsys.readouterr().out.splitlines() if line.endswith(":")]
    assert len(headings) == (0 if n == 1 else n)


def test_runs_of_an_object_in_memory_stay(runs):
    for name in "acdf":
        change(runs / name, series=None)
    found = bq.prune(runs, keep=1, remove=True)
    assert left(runs) == "abcdef"
    assert "nobody knows which runs it follows: its input was an object in memory" in reasons(found)["a"]


def test_unfinished_runs_older_than_a_kept_run_are_removed_on_request(runs):
    bq.prune(runs, keep=2, unfinished=True, remove=True)
    assert left(runs) == "def", "e is newer than a complete run that stays"


def test_without_a_complete_run_nothing_is_removed(runs):
    for name in "acdf":
        shutil.rmtree(runs / name)
    bq.prune(runs, keep=1, unfinished=True, remove=True)
    assert left(runs) == "be"


def test_prune_keeps_a_run_whose_lock_is_held(runs):
    with locked(runs / "a" / "run.lock"), locked(runs / "b" / "run.lock"):
        pruning = bq.prune(runs, keep=1, unfinished=True, remove=True)
        assert left(runs) == "abf"
    assert "running: process" in reasons(pruning)["a"]


def test_a_run_that_is_resumed_during_a_prune_stays(runs, model, monkeypatch):
    from bicliques.pipeline.series import pruning

    carry_out, ready, done = pruning.carry_out, threading.Event(), threading.Event()

    def work():
        with locked(runs / "a" / "run.lock"):
            ready.set()
            done.wait(30)

    def work_then_carry_out(found: Pruning) -> Pruning:
        shutil.copy(model[0] / "manifest.json", runs / "b")
        threading.Thread(target=work).start()
        ready.wait(30)
        return carry_out(found)

    monkeypatch.setattr(pruning, "carry_out", work_then_carry_out)
    found = bq.prune(runs, keep=1, unfinished=True, remove=True)
    done.set()
    assert left(runs) == "abf"
    assert "is being worked on" in reasons(found)["a"]
    assert reasons(found)["b"] == "somebody has just worked on it"


def test_prune_keeps_folders_and_links_that_are_no_runs(runs, tmp_path):
    (runs / "letters").mkdir()
    (runs / "letters" / "one.txt").write_text("dear")
    (runs / "note.txt").write_text("mine")
    (tmp_path / "far").mkdir()
    shutil.copytree(runs / "a", tmp_path / "far" / "run")
    (runs / "link").symlink_to(tmp_path / "far" / "run")
    write_json(runs / "a" / "options.json", read_json(runs / "a" / "options.json") | {"schema_version": 99})
    bq.prune(runs, keep=1, remove=True)
    assert sorted(path.name for path in runs.iterdir()) == ["a", "b", "e", "f", "letters", "link", "note.txt"]
    assert (tmp_path / "far" / "run" / "manifest.json").exists()


def test_a_folder_of_the_user_stays_whatever_it_is_called(runs):
    names = [".mydata.removed", f".a.{uuid.uuid4().hex}.removed", f".b.{uuid.uuid4().hex}.removed"]
    for name in names:
        (runs / name).mkdir()
        (runs / name / "thesis.txt").write_text("mine")
    shutil.copy(runs / "a" / "options.json", runs / names[2])  # the identity of another run
    bq.prune(runs, keep=1, remove=True)
    assert [(runs / name / "thesis.txt").exists() for name in names] == [True, True, True]


def test_a_run_with_a_file_of_somebody_else_is_said_to_stay(runs):
    goes = [run.path.name for run in bq.prune(runs, keep=1).chosen]
    assert "a" in goes
    (runs / "a" / "thesis.txt").write_text("mine")
    found = bq.prune(runs, keep=1)
    assert [run.path.name for run in found.chosen] == [name for name in goes if name != "a"]
    assert [run.reason for run in found.runs if run.path.name == "a" and f"{runs}/a/thesis.txt" in run.reason]


def test_stray_files_and_links_do_not_stop_a_prune(runs, tmp_path):
    (runs / ".x.removed").touch()
    (runs / f".x.{uuid.uuid4().hex}.removed").touch()
    (runs / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "thesis.txt").touch()
    (runs / f".y.{uuid.uuid4().hex}.removed").symlink_to(tmp_path / "far")
    (runs / "odd").mkdir()
    (runs / "odd" / "options.json").symlink_to(runs / "a" / "options.json")
    assert bq.prune(runs, keep=2, remove=True).problems == ()
    assert {path.name for path in runs.iterdir() if path.name[0] != "."} == {"b", "d", "e", "f", "dangling", "odd"}
    assert (tmp_path / "far" / "thesis.txt").exists()


def test_control_characters_in_a_name_are_escaped(runs, capsys):
    (runs / "a").rename(runs / "a\n\x1b[2J")
    assert main.main(["prune", str(runs), "--keep", "1"]) == 0
    assert r"a\n\x1b[2J'" in capsys.readouterr().out


def test_a_half_removed_run_is_listed_and_removed(runs, capsys):
    away = half_removed(runs / "a")
    empty = runs / f".z.{uuid.uuid4().hex}.removed"
    empty.mkdir()
    assert main.main(["prune", str(runs)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [path.name in line for path, line in zip((away, empty), lines[-3:-1], strict=True) if "would go" in line]
    assert "would remove 2 of 7 runs" in lines[-1]
    assert away.exists()
    bq.prune(runs, remove=True)
    assert left(runs) == "bcdef"


def test_prune_names_a_user_file_in_a_half_removed_run_until_it_is_moved(runs):
    away = half_removed(runs / "a")
    (away / "ledger" / "thesis.txt").write_text("mine")
    for _ in range(2):
        problem = f"{away}/ledger/thesis.txt is not of the run, so the run stays; move it away"
        assert bq.prune(runs, remove=True).problems == (problem,)
    (away / "ledger" / "thesis.txt").rename(runs.parent / "thesis.txt")
    assert bq.prune(runs, remove=True).problems == ()
    assert not away.exists()


def test_the_next_prune_finishes_a_removal_killed_at_any_step(runs, monkeypatch):
    class Killed(BaseException):
        pass

    steps, monkey = 0, monkeypatch

    def deadly(call, after: int):
        def wrapped(*arguments, **options):
            nonlocal steps
            steps += 1
            if steps > after:
                raise Killed
            return call(*arguments, **options)

        return wrapped

    for after in range(100):
        place = runs.parent / f"runs{after}"
        for name in "af":
            shutil.copytree(runs / name, place / name)
        steps = 0
        with monkey.context() as patch:
            for owner, name in ((os, "unlink"), (os, "rmdir"), (pruning, "flush")):
                patch.setattr(owner, name, deadly(getattr(owner, name), after))
            try:
                bq.prune(place, keep=1, remove=True)
            except Killed:
                half = [path for path in place.iterdir() if path.name[0] == "."]
                assert len(half) <= 1
            else:
                assert after > 8
                return
        bq.prune(place, keep=1, remove=True)
        assert left(place) == "f", after
    raise AssertionError("a removal has fewer steps")


def test_others_are_removed_if_one_run_cannot_be(runs, monkeypatch, capsys):
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name == "c":
            raise PermissionError(13, "Permission denied", str(path))
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", refuse)
        assert main.main(["prune", str(runs), "--keep", "1", "--remove"]) == 1
    out, err = capsys.readouterr()
    assert left(runs) == "bcef"
    assert f"{runs / 'c'} cannot be removed (Permission denied)" in err
    assert "removed 2 of 6 runs" in out


@pytest.mark.parametrize("json_too", [False, True])
def test_prune_names_a_run_before_it_removes_it(runs, monkeypatch, capsys, json_too):
    """Ctrl-C leaves a record of the removed runs, and does not say that nothing was done."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("bicliques.pipeline.series.pruning.remove_run", stop)
    assert main.main(["prune", str(runs), "--keep", "1", "--remove", *["--json"] * json_too]) == 130
    out, err = capsys.readouterr()
    record = err if json_too else out
    assert [line.split()[-2] for line in record.splitlines() if line.startswith("goes")]
    assert {name for name in "abcdef" if f"{runs / name}  (" in record} == set("abcdef")
    assert "stopped; the same command removes the rest" in err


def test_prune_prints_json_on_request(runs, capsys):
    assert main.main(["prune", str(runs), "--keep", "1", "--remove", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["removed"], found["problems"], len(found["runs"])) == (True, [], 6)
    assert [Path(run["path"]).name for run in found["runs"] if run["verdict"] == "remove"] == ["d", "c", "a"]


def test_a_complete_run_removes_older_runs_of_its_series(runs, model):
    copy(model[0], runs / "other1", "2020-01-01", series="/in/other.csv")
    copy(model[0], runs / "other2", "2020-01-02", series="/in/other.csv")
    half_removed(copy(model[0], runs / "g", "2020-01-01", series="/in/other.csv"))
    found = prune_after(runs / "f", keep=1)
    assert {path.name for path in runs.iterdir()} == {"b", "e", "f", "other1", "other2"}
    assert "other1" not in reasons(found)


def test_a_run_that_is_not_the_newest_removes_nothing(runs):
    found = prune_after(runs / "d", keep=1)
    assert left(runs) == "abcdef"
    assert reasons(found)["a"] == "f is newer than d, and only the newest run removes others"
    change(runs / "f", date="2020-01-01")  # a backfill, made last
    prune_after(runs / "f", keep=1)
    assert left(runs) == "abcdef"


def test_a_run_never_removes_itself(runs):
    shutil.copytree(runs / "f", runs / "g")  # as old as f to the millisecond
    prune_after(runs / "f", keep=1)
    assert "f" in left(runs)


def test_prune_refuses_to_keep_none_or_to_look_into_a_run(runs, capsys):
    with pytest.raises(InputError, match="at least 1, not 0"):
        bq.prune(runs, keep=0)
    with pytest.raises(InputError, match="is a run itself; name the folder above it"):
        bq.prune(runs / "a")
    assert main.main(["prune", str(runs / "nothing")]) == 2
    assert "is not a folder" in capsys.readouterr().err


def test_a_run_set_aside_comes_back_unless_something_is_in_its_place(model, tmp_path):
    for state in ("nothing", "an empty folder", "a file", "a folder with a file"):
        run = shutil.copytree(model[0], tmp_path / state)
        away = pruning.set_aside(run)
        assert not run.exists()
        if "folder" in state:
            run.mkdir()
        if "file" in state:
            (run / "mine" if "folder" in state else run).write_text("text")
        pruning.put_back(away, run)
        assert away.exists() == ("file" in state), state
        assert (run / "manifest.json").exists() == ("file" not in state), state
