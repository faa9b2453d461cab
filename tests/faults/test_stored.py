"""A run in a store whose driver is killed, or whose store fails: another machine goes on, and finds the same."""

import signal
from contextlib import suppress
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.run import bucket_ledger
from bicliques.schemas.errors import BicliqueError
from tests.support.bucket import Asked, Gone, Killer
from tests.support.forks import sweeping
from tests.support.stored import Machines, check_whole, source_in, told_apart


def mine(machines: Machines, source: Path) -> None:
    """In two sessions, with several slices each."""
    bq.mine(source, machines.url, workers=0, progress=False, max_results=60, report=False)
    bq.resume(machines.url, workers=0, progress=False, max_results=None, report=False)


def go_on(machines: Machines, source: Path) -> None:
    """What a person does on another machine. The same command begins the run if none is there."""
    machines.change()
    bq.mine(source, machines.url, workers=0, progress=False, report=False)


#: A request that fails, how it fails, and from which one of its kind on.
BROKEN = [
    ("put", "cut before", 3),
    ("put", "cut after", 24),
    ("put", "refuse", 28),
    ("get", "refuse", 3),
    ("get", "cut before", 16),
    ("head", "error", 2),
    ("list", "error", 1),
    ("delete", "error", 1),
]
FAULTS = ("cut before", "cut after", "refuse", "error")
#: What a client asks again for.
PASSING = ("cut before", "cut after", "error")
ALL = [(what, fault, first) for what in ("get", "head", "put") for fault in FAULTS for first in (1, 12)]
ALL += [("put", "error", first) for first in (27, 29)]


@pytest.mark.parametrize(
    ("what", "fault", "first"), [*BROKEN, *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in ALL)]
)
def test_a_store_that_stays_broken(machines: Machines, tmp_path: Path, what: str, fault: str, first: int) -> None:
    source, asked = source_in(tmp_path), 0

    def broken(each: Asked) -> str | None:
        nonlocal asked
        asked += each.what == what
        return fault if each.what == what and asked >= first else None

    machines.bucket.fault = broken
    said = ""
    try:
        bq.mine(source, machines.url, workers=0, progress=False, report=False)
    except BicliqueError as error:
        said = str(error)
    machines.bucket.well()
    assert "\n" not in said
    assert bool(said) == (asked >= first) or what == "delete", "the last thing to delete is the lock"
    assert said == "" or machines.url.partition("?")[0] in said
    go_on(machines, source)
    check_whole(machines)


def test_a_fault_that_passes_is_tried_again(machines: Machines, tmp_path: Path) -> None:
    """The first request of a kind for an object fails. So an object that is put anew is met again as its own."""
    source = source_in(tmp_path)
    seen: set[Asked] = set()
    failed: list[tuple[str, str]] = []

    def once(asked: Asked) -> str | None:
        if asked in seen or asked.what in ("begin", "part", "complete", "list"):
            return None
        seen.add(asked)
        failed.append((asked.what, PASSING[sum(what == asked.what for what, _ in failed) % 3]))
        return failed[-1][1]

    machines.bucket.fault = once
    mine(machines, source)
    machines.bucket.well()
    assert {(what, fault) for what in ("get", "put") for fault in PASSING} <= set(failed)
    check_whole(machines)


def changes_of(machines: Machines, source: Path) -> list[Asked]:
    """How a run in two sessions changes the bucket. It depends a little on how long its slices take."""
    mine(machines, source)
    changes = [asked for asked in machines.bucket.asked if asked.changes]
    machines.empty()
    assert len(changes) > 25, "there were fewer changes than files"
    return changes


def check_marks(machines: Machines) -> None:
    """Whoever finds a mark finds what it stands for."""
    there = machines.there().keys()
    assert "manifest.json" in there or "_SUCCESS" not in there
    assert "steps/plan.json" in there or not any(key.startswith(("options.json", "sessions/1")) for key in there)


@pytest.mark.parametrize("which", ["few", pytest.param("others", marks=pytest.mark.exhaustive)])
def test_cut_off_before_and_after_every_change(machines: Machines, tmp_path: Path, which: str) -> None:
    """In this process. Nothing that comes later arrives at the store, as if the process had been killed.

    It is cut off before a change and after one by turns. After a change the store has what it has before the next one.
    """
    source = source_in(tmp_path)
    moments = told_apart(changes_of(machines, source))
    few = moments[:: len(moments) // 3]
    for number, at in enumerate(few if which == "few" else sorted({*moments}.difference(few))):
        machines.empty()
        machines.change()
        machines.bucket.fault = Gone(at, before=number % 2 == 0)
        with suppress(BicliqueError):  # the last change is the removal of the lock, which is no harm
            mine(machines, source)
        machines.bucket.well()
        check_marks(machines)
        go_on(machines, source)
        check_whole(machines)


@pytest.mark.exhaustive  # cut off in this process: above
@pytest.mark.parametrize("most", [3, 8])
def test_killed_before_and_after_changes(machines: Machines, tmp_path: Path, most: int) -> None:
    source = source_in(tmp_path)
    words = ["mine", str(source), "-o", machines.url, "--quiet", "--workers", "0", "--no-report"]
    moments, killed = told_apart(changes_of(machines, source)), 0
    with sweeping(machines.variables) as sweeper:
        for number, at in enumerate(moments[:: len(moments) // most]):
            machines.empty()
            machines.change()
            machines.bucket.fault = Killer(tmp_path / "pid", at, before=number % 2 == 0)
            code = sweeper.run(tmp_path, words)
            machines.bucket.well()
            assert code in (0, -signal.SIGKILL), (tmp_path / "err").read_text()
            killed += code != 0
            check_marks(machines)
            go_on(machines, source)
            check_whole(machines)
    assert killed >= most // 2, "one session makes more than half of the changes of two"


def test_numbers_that_were_not_announced_are_announced(machines: Machines, tmp_path: Path) -> None:
    machines.patch.setattr(bucket_ledger, "FIRST", 1)
    mine(machines, source_in(tmp_path))
    check_whole(machines)
