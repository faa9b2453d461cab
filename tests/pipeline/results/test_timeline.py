"""The timeline of the page: what every worker did when."""

import pytest

from bicliques.pipeline.results.report.timeline import timeline
from bicliques.schemas.manifest import LedgerEntry
from bicliques.schemas.stats import SliceStats
from tests.support.runs import ledger_entry, session


def entry(number: int, worker: str, began: float, seconds: float, **more) -> LedgerEntry:
    return ledger_entry(number, count=10, began=began, seconds=seconds, worker=worker, **more)


def test_the_time_line_leaves_out_the_time_between_two_sessions():
    sessions = [
        session(1000.0, 10.0, "time_limit"),
        session(90_000.0, 5.0),
    ]
    entries = [
        entry(0, "a", 1000.0, 4.0, stats=SliceStats(writing_seconds=1.0)),
        entry(1, "b", 1001.0, 9.0),
        entry(2, "a", 1005.0, 5.0),
        entry(3, "a", 90_001.0, 4.0),
    ]
    found = timeline(entries, sessions)
    assert [(s.start, s.stop, s.outcome) for s in found.sessions] == [(0, 10, "time_limit"), (10, 15, "complete")]
    assert found.seconds == 15
    lanes = {lane.worker: lane for lane in found.lanes}
    assert [(b.start, b.stop, b.writing) for b in lanes["a"].blocks] == [(0, 4, 1), (5, 10, 0), (11, 15, 0)]
    assert lanes["a"].busy_share == pytest.approx(13 / 14), "the second session had to start it again"
    assert lanes["b"].busy_share == pytest.approx(9 / 9), "it was not there in the second session"


def test_a_killed_session_lasts_as_long_as_its_slices():
    found = timeline([entry(0, "a", 50.0, 2.0)], [session(49.0, 0.0, "failed")])
    assert found.seconds == pytest.approx(3.0)
    assert timeline([], []).seconds == 0.0


def test_many_slices_are_joined_and_none_is_lost():
    entries = [entry(k, "ab"[k % 2], 100.0 + (k // 2) * 0.1, 0.09) for k in range(20_000)]
    found = timeline(entries, [session(100.0, 1000.0)])
    assert sum(len(lane.blocks) for lane in found.lanes) < 3000
    assert sum(block.slices for lane in found.lanes for block in lane.blocks) == 20_000
    assert sum(block.busy for lane in found.lanes for block in lane.blocks) == pytest.approx(1800)
