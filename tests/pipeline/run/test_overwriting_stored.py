"""Runs that begin anew in a store where another one is."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.remote.objects import objects_at
from pipeline.run.progress import Progress
from schemas.errors import BicliqueError, InputError
from tests.support.bucket import Killer
from tests.support.forks import sweeping
from tests.support.runs import answer
from tests.support.stored import EDGES, Machines, check_whole, taken_over


def mine(machines: Machines, source: Path, **options: Any) -> pipeline.Results:
    return pipeline.mine(source, machines.url, workers=0, progress=False, report=False, **options)


@pytest.mark.parametrize("before", ["complete", "begun", "nothing"])
def test_another_run_takes_the_place(machines: Machines, source: Path, before: str) -> None:
    if before != "nothing":
        mine(machines, source, min_left=2, per_vertex=True, max_results=None if before == "complete" else 40)
    old = machines.there()
    machines.put("bicliques/others.txt", b"of somebody else")
    machines.change()
    assert mine(machines, source, overwrite=True).complete
    assert machines.there()["bicliques/others.txt"] == b"of somebody else"
    machines.bucket.delete("nights/ü 1/bicliques/others.txt")
    check_whole(machines)
    new = machines.there()
    assert not [key for key in old if key.startswith(("bicliques/", "vertices/")) and key in new]
    assert pipeline.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]
    again = mine(machines, source)
    assert again.manifest.created == pipeline.open_run(machines.url).manifest.created, "it is left alone"


def test_the_same_run_begins_anew(machines: Machines, source: Path) -> None:
    first = mine(machines, source).manifest
    second = mine(machines, source, overwrite=True).manifest
    assert (second.fingerprint, second.parts != first.parts) == (first.fingerprint, True)
    check_whole(machines)


def test_the_old_run_stays_if_the_new_one_cannot_begin(machines: Machines, source: Path, tmp_path: Path) -> None:
    mine(machines, source)
    there = machines.there()
    bad = tmp_path / "bad.csv"
    bad.write_text("a,b\n1\n")
    with pytest.raises(InputError):
        mine(machines, bad, overwrite=True)
    with pytest.raises(BicliqueError):
        mine(machines, source, overwrite=True, containing_left=["nobody"])
    assert machines.there() == there
    assert mine(machines, source).complete
    check_whole(machines)


def test_what_is_not_replaced(machines: Machines, source: Path) -> None:
    mine(machines, source, max_results=60)
    refused = []

    def look(progress: Progress) -> None:
        if progress.step == "mine" and not refused:
            machines.change()
            with pytest.raises(InputError, match=r"is being worked on by process \d+"):
                mine(machines, source, overwrite=True)
            refused.append(1)

    pipeline.resume(machines.url, workers=0, progress=look, max_results=None, report=False)
    assert refused
    check_whole(machines)
    machines.empty()
    machines.put("_published.json", b"{}")
    with pytest.raises(InputError, match="holds what was published of a run"):
        mine(machines, source, overwrite=True)


def test_the_driver_of_the_old_run_adds_nothing(
    machines: Machines, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was believed dead, and wakes up when the place has another run."""
    done = taken_over(machines, monkeypatch, lambda: mine(machines, source, overwrite=True).complete)
    with pytest.raises(BicliqueError):
        mine(machines, source, min_left=2)
    assert done
    check_whole(machines)
    machines.change()
    assert pipeline.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]


@pytest.mark.parametrize("every", [16])
def test_killed_while_another_run_takes_the_place(
    machines: Machines, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    """Either run is there, or none. The same command goes on from any machine."""
    words = ["mine", str(source), "-o", machines.url, "--quiet", "--workers", "0", "--no-report", "--overwrite"]
    states = set()
    few = len(mine(machines, source, min_left=2))
    before = machines.there()
    with sweeping(machines.variables) as sweeper:
        for at in range(1, 200, every):
            machines.empty()
            for key, data in before.items():
                machines.put(key, data)
            killer = Killer(tmp_path / "pid", at, before=at % 2 == 0)
            machines.bucket.fault = killer
            code = sweeper.run(tmp_path, words)
            machines.bucket.well()
            machines.change()
            if code == 0:
                break
            assert code == -signal.SIGKILL, (tmp_path / "err").read_text()
            if objects_at(machines.url).size("options.json") is None:
                with pytest.raises(InputError, match=r"it has sessions/1\.json; name another place, or begin anew"):
                    pipeline.open_run(machines.url)
                states.add("none")
            else:
                there = pipeline.open_run(machines.url)
                states.add("old" if len(there) == few and there.complete else "new")
            assert mine(machines, source, overwrite=True).complete
            check_whole(machines)
    assert states == {"old", "none", "new"}
    assert objects_at(machines.url).size("sessions/1.json") is not None
