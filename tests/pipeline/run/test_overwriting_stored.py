"""Runs that begin anew in a store where another one is."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.remote.objects import objects_at
from pipeline.run.progress import Progress
from schemas.errors import BicliqueError, InputError
from tests.support.bucket import Asked, Gone, Killer
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


def test_the_ledger_of_the_old_run_is_not_read(machines: Machines, source: Path) -> None:
    mine(machines, source, min_left=2)
    machines.change()
    machines.bucket.well()
    assert mine(machines, source, overwrite=True).complete
    assert [key for key in machines.bucket.whats("get", "head") if "/ledger/1/" in key] == []


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


@pytest.mark.parametrize("listing", ["true", "empty", "of the old run alone"])
def test_a_listing_that_lags_lets_another_run_take_the_place(machines: Machines, source: Path, listing: str) -> None:
    """What it leaves out stays and counts nowhere; what it names though it is gone is no error."""
    if listing == "empty":
        machines.bucket.stop_listing()
    mine(machines, source, min_left=2)
    old = {key for key in machines.there() if key.startswith(("bicliques/", "ledger/"))}
    if listing == "of the old run alone":
        machines.bucket.stop_listing()
    for _ in range(2):
        machines.change()
        assert mine(machines, source, overwrite=True).complete
        machines.change()
        assert pipeline.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]
    assert (old <= machines.there().keys()) == (listing == "empty")
    if listing == "true":
        check_whole(machines)


def state_of(machines: Machines, few: int) -> str:
    """Which run is there, the old one of so many bicliques, or the new one. It can be read."""
    if objects_at(machines.url).size("options.json") is None:
        with pytest.raises(InputError, match=r"it has sessions/1\.json; name another place, or begin anew"):
            pipeline.open_run(machines.url)
        return "none"
    there = pipeline.open_run(machines.url)
    return "old" if len(there) == few and there.complete else "new"


def changes_of(machines: Machines, source: Path) -> list[Asked]:
    """The changes that a run makes when it takes the place of another one, in their order."""
    machines.bucket.well()
    assert mine(machines, source, overwrite=True).complete
    return [asked for asked in machines.bucket.asked if asked.changes]


def moments(changes: list[Asked], most: int | None) -> list[int]:
    """Numbers of changes: all, or about so many, and one each of when the old run, none and the new one is there."""
    if most is None:
        return list(range(1, len(changes) + 1))
    options = [at for at, asked in enumerate(changes, 1) if asked.key.endswith("/options.json")]
    return sorted({1, sum(options) // 2, len(changes), *range(1, len(changes), max(1, len(changes) // most))})


@pytest.mark.parametrize("most", [3, pytest.param(None, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("before", [True, False])
def test_cut_off_while_another_run_takes_the_place(
    machines: Machines, source: Path, most: int | None, before: bool
) -> None:
    """Either run is there, or none. The same command goes on from any machine."""
    states = set()
    few = len(mine(machines, source, min_left=2))
    there = machines.there()
    for at in moments(changes_of(machines, source), most):
        machines.put_all(there)
        machines.change()
        machines.bucket.fault = Gone(at, before)
        with suppress(BicliqueError):  # it may have made fewer changes, or the last one is no harm
            mine(machines, source, overwrite=True)
        machines.bucket.well()
        machines.change()
        states.add(state_of(machines, few))
        assert mine(machines, source, overwrite=True).complete
        check_whole(machines)
    assert states == {"old", "none", "new"}
    assert objects_at(machines.url).size("sessions/1.json") is not None


def test_killed_while_another_run_takes_the_place(machines: Machines, source: Path, tmp_path: Path) -> None:
    """The same with processes that are killed."""
    words = ["mine", str(source), "-o", machines.url, "--quiet", "--workers", "0", "--no-report", "--overwrite"]
    few = len(mine(machines, source, min_left=2))
    there = machines.there()
    changes = changes_of(machines, source)
    states = set()
    with sweeping(machines.variables) as sweeper:
        for number, at in enumerate(moments(changes, 2)):
            machines.put_all(there)
            machines.bucket.fault = Killer(tmp_path / "pid", at, before=number % 2 == 0)
            code = sweeper.run(tmp_path, words)
            machines.bucket.well()
            machines.change()
            assert code in (0, -signal.SIGKILL), (tmp_path / "err").read_text()
            states.add(state_of(machines, few))
            assert mine(machines, source, overwrite=True).complete
            check_whole(machines)
    assert states == {"old", "none", "new"}
