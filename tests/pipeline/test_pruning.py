"""Old runs go; running ones, unfinished ones and what is no run stay."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

import pipeline
from pipeline import cli
from pipeline.lock import locked
from schemas.errors import InputError
from tests.runs import random_edges, write_edges

EDGES = random_edges(12, 9, 0.4, 1)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A complete run, and one that is not."""
    folder = tmp_path_factory.mktemp("model")
    source = write_edges(folder / "g.parquet", EDGES)
    pipeline.mine(source, folder / "complete", workers=0, progress=False)
    pipeline.mine(source, folder / "stopped", workers=0, progress=False, max_results=3)
    return folder / "complete", folder / "stopped"


@pytest.fixture
def runs(model: tuple[Path, Path], tmp_path: Path) -> Path:
    """Runs a (oldest) to f (newest); b and e are not complete."""
    place = tmp_path / "runs"
    for k, name in enumerate("abcdef"):
        shutil.copytree(model[name in "be"], place / name)
        for file in ("options.json", "manifest.json", "ledger", "steps"):
            if (place / name / file).exists():
                os.utime(place / name / file, (1e9 + k, 1e9 + k))
    return place


def left(place: Path) -> str:
    return "".join(sorted(path.name for path in place.iterdir()))


def test_a_dry_run_first(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["prune", str(runs), "--keep", "2"]) == 0
    text = capsys.readouterr().out
    assert left(runs) == "abcdef"
    assert [line.split()[0] for line in text.splitlines()[:6]] == ["stays", "stays", "stays", "would", "stays", "would"]
    assert "would remove 2 of 6 runs" in text
    assert "--remove" in text


def test_the_newest_complete_ones_stay(runs: Path) -> None:
    pruning = pipeline.prune(runs, keep=2, remove=True)
    assert left(runs) == "bdef"
    assert [run.path.name for run in pruning.runs if run.verdict == "remove"] == ["c", "a"]
    assert pruning.bytes > 0
    assert len(pipeline.open_run(runs / "f")) == len(pipeline.open_run(runs / "d")) > 0


def test_unfinished_ones_go_when_asked_and_old(runs: Path) -> None:
    pipeline.prune(runs, keep=2, unfinished=True, remove=True)
    assert left(runs) == "def", "e is newer than a complete run that stays"


def test_without_a_complete_run_nothing_goes(runs: Path) -> None:
    for name in "acdf":
        shutil.rmtree(runs / name)
    pipeline.prune(runs, keep=1, unfinished=True, remove=True)
    assert left(runs) == "be"


def test_a_running_one_stays(runs: Path) -> None:
    with locked(runs / "a" / "run.lock"), locked(runs / "b" / "run.lock"):
        pruning = pipeline.prune(runs, keep=1, unfinished=True, remove=True)
        assert left(runs) == "abf"
    assert "running: process" in {run.path.name: run.reason for run in pruning.runs}["a"]


def test_one_that_somebody_begins_to_work_on_meanwhile_stays(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from pipeline import pruning

    judge, ready, done = pruning._judge, threading.Event(), threading.Event()

    def work() -> None:
        with locked(runs / "a" / "run.lock"):
            ready.set()
            done.wait(30)

    def judge_then_work(*arguments: object) -> object:
        verdicts = judge(*arguments)  # type: ignore[arg-type]
        (runs / "c" / "manifest.json").touch()
        threading.Thread(target=work).start()
        ready.wait(30)
        return verdicts

    monkeypatch.setattr(pruning, "_judge", judge_then_work)
    found = pipeline.prune(runs, keep=1, remove=True)
    done.set()
    assert left(runs) == "abcef"
    reasons = {run.path.name: run.reason for run in found.runs}
    assert "is being worked on" in reasons["a"]
    assert reasons["c"] == "somebody has just worked on it"


def test_what_is_no_run_stays(runs: Path, tmp_path: Path) -> None:
    (runs / "letters").mkdir()
    (runs / "letters" / "one.txt").write_text("dear")
    (runs / "note.txt").write_text("mine")
    (tmp_path / "far").mkdir()
    shutil.copytree(runs / "a", tmp_path / "far" / "run")
    (runs / "link").symlink_to(tmp_path / "far" / "run")
    header = json.loads((runs / "a" / "options.json").read_text()) | {"schema_version": 99}
    (runs / "a" / "options.json").write_text(json.dumps(header))
    pipeline.prune(runs, keep=1, remove=True)
    assert sorted(path.name for path in runs.iterdir()) == ["a", "b", "e", "f", "letters", "link", "note.txt"]
    assert (tmp_path / "far" / "run" / "manifest.json").exists()


def test_what_a_killed_prune_left_goes(runs: Path) -> None:
    (runs / "a").rename(runs / ".a.removed")
    pipeline.prune(runs, keep=7)
    assert (runs / ".a.removed").exists()
    pipeline.prune(runs, keep=7, remove=True)
    assert left(runs) == "bcdef"


def test_odd_wishes_are_refused(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match="at least 1, not 0"):
        pipeline.prune(runs, keep=0)
    with pytest.raises(InputError, match="is a run itself; name the folder above it"):
        pipeline.prune(runs / "a")
    assert cli.main(["prune", str(runs / "nothing")]) == 2
    assert "is not a folder" in capsys.readouterr().err
