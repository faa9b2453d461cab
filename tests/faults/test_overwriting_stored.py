"""A run in a store that is cut off or killed while it takes the place of another one: any machine begins it again."""

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.remote.objects import objects_at
from bicliques.schemas.errors import BicliqueError, InputError
from tests.support.bucket import Asked, Gone, Killer
from tests.support.forks import sweeping
from tests.support.stored import Machines, check_whole, source_in


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return source_in(tmp_path)


def mine(machines: Machines, source: Path, **options: Any) -> bq.Results:
    return bq.mine(source, machines.url, workers=0, progress=False, report=False, **options)


def state_of(machines: Machines, few: int) -> str:
    """Which run is there, the old one of so many bicliques, or the new one. It can be read."""
    if objects_at(machines.url).size("options.json") is None:
        with pytest.raises(InputError, match=r"it has sessions/1\.json; name another place, or begin anew"):
            bq.open_run(machines.url)
        return "none"
    there = bq.open_run(machines.url)
    return "old" if len(there) == few and there.complete else "new"


def changes_of(machines: Machines, source: Path) -> list[Asked]:
    """The changes that a run makes when it takes the place of another one, in their order."""
    machines.bucket.well()
    assert mine(machines, source, overwrite=True).complete
    return [asked for asked in machines.bucket.asked if asked.changes]


def moments(changes: list[Asked], most: int) -> list[int]:
    """About so many numbers of changes, and one each of when the old run, none and the new one is there."""
    options = [at for at, asked in enumerate(changes, 1) if asked.key.endswith("/options.json")]
    return sorted({1, sum(options) // 2, len(changes), *range(1, len(changes), max(1, len(changes) // most))})


@pytest.mark.exhaustive  # without faults: tests/pipeline/run/test_overwriting_stored.py
def test_cut_off_while_another_run_takes_the_place(machines: Machines, source: Path) -> None:
    """Either run is there, or none. The same command goes on from any machine.

    By turns it is cut off before a change and after one, and never hears of that.
    """
    states = set()
    few = len(mine(machines, source, min_left=2))
    there = machines.there()
    for number, at in enumerate(moments(changes_of(machines, source), 8)):
        machines.put_all(there)
        machines.change()
        machines.bucket.fault = Gone(at, before=number % 2 == 0)
        with suppress(BicliqueError):  # it may have made fewer changes, or the last one is no harm
            mine(machines, source, overwrite=True)
        machines.bucket.well()
        machines.change()
        states.add(state_of(machines, few))
        assert mine(machines, source, overwrite=True).complete
        check_whole(machines)
    assert states == {"old", "none", "new"}
    assert objects_at(machines.url).size("sessions/1.json") is not None


@pytest.mark.exhaustive
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
