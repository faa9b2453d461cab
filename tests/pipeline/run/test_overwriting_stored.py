"""Runs that begin anew in a store where another one is."""

from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.run.bucket import Bucket
from bicliques.pipeline.run.progress import Progress
from bicliques.schemas.errors import BicliqueError, InputError
from tests.support.runs import answer
from tests.support.stored import EDGES, Machines, check_whole, taken_over


def mine(machines: Machines, source: Path, **options: Any) -> bq.Results:
    return bq.mine(source, machines.url, workers=0, progress=False, report=False, **options)


@pytest.mark.parametrize("before", ["complete", "begun", pytest.param("nothing", marks=pytest.mark.exhaustive)])
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
    assert bq.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]
    again = mine(machines, source)
    assert again.manifest.created == bq.open_run(machines.url).manifest.created, "it is left alone"


def test_the_same_run_begins_anew(machines: Machines, source: Path) -> None:
    first = mine(machines, source).manifest
    second = mine(machines, source, overwrite=True).manifest
    assert (second.fingerprint, second.parts != first.parts) == (first.fingerprint, True)
    check_whole(machines)


def test_the_sessions_of_the_old_run_are_gone_before_anything_is_mined(machines, source, monkeypatch):
    """Otherwise the seconds of a run that is killed before its first session ends are those of the old one, too."""
    mine(machines, source)
    assert "steps/mine.json" in machines.there()
    keep, there = Bucket.keep_steps, set[str]()

    def keep_and_look(bucket: Bucket) -> None:
        keep(bucket)
        there.update(machines.there())

    monkeypatch.setattr(Bucket, "keep_steps", keep_and_look)
    assert mine(machines, source, overwrite=True).complete
    assert ("steps/plan.json" in there, "steps/mine.json" in there) == (True, False)


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


def test_a_resume_that_failed_gives_no_right_to_replace(machines: Machines, source: Path) -> None:
    """It comes after a new run that could not begin. Then another machine replaces the run, and is cut off."""
    mine(machines, source, max_results=60)
    with pytest.raises(BicliqueError):
        mine(machines, source, overwrite=True, containing_left=["nobody"])
    machines.bucket.fault = lambda asked: (
        "refuse" if asked.what in ("get", "head") and "/labels/" in asked.key else None
    )
    with pytest.raises(BicliqueError, match="cannot be read"):
        bq.resume(machines.url, workers=0, progress=False, report=False)
    machines.bucket.well()
    first = machines.number
    machines.change()
    machines.bucket.fault = lambda asked: "refuse" if asked.what == "put" and "/steps/" in asked.key else None
    with pytest.raises(BicliqueError, match="cannot be written"):
        mine(machines, source, overwrite=True, min_left=2)
    machines.bucket.well()
    there = machines.there()
    assert ("sessions/2.json" in there, "options.json" in there) == (True, False)
    machines.number = first - 1
    machines.change()
    with pytest.raises(InputError, match=r"sessions/2\.json is of another run"):
        bq.resume(machines.url, workers=0, progress=False, report=False)
    assert "sessions/3.json" not in machines.there()


def test_what_is_not_replaced(machines: Machines, source: Path) -> None:
    mine(machines, source, max_results=60)
    refused = []

    def look(progress: Progress) -> None:
        if progress.step == "mine" and not refused:
            machines.change()
            with pytest.raises(InputError, match=r"is being worked on by process \d+"):
                mine(machines, source, overwrite=True)
            refused.append(1)

    bq.resume(machines.url, workers=0, progress=look, max_results=None, report=False)
    assert refused
    check_whole(machines)
    machines.empty()
    machines.put("_published.json", b"{}")
    with pytest.raises(InputError, match="holds what was published of a run"):
        mine(machines, source, overwrite=True)


def test_the_driver_of_the_old_run_adds_nothing(machines, source, monkeypatch):
    """It was believed dead, and wakes up when the place has another run."""
    done = taken_over(machines, monkeypatch, lambda: mine(machines, source, overwrite=True).complete)
    with pytest.raises(BicliqueError):
        mine(machines, source, min_left=2)
    assert done
    check_whole(machines)
    machines.change()
    assert bq.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]


@pytest.mark.parametrize(
    "listing", ["true", "of the old run alone", pytest.param("empty", marks=pytest.mark.exhaustive)]
)
@pytest.mark.first(1)
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
        assert bq.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]
    assert (old <= machines.there().keys()) == (listing == "empty")
    if listing == "true":
        check_whole(machines)
