"""The driver has fake workers here. Tests look at what it writes down, and at when it gives up."""

from pathlib import Path
from typing import Any

import pytest

from bicliques.pipeline.mining import driver
from bicliques.pipeline.mining.driver import mine_run
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import Plan
from bicliques.pipeline.run.session import sessions
from bicliques.pipeline.workers.thread_pool import Pool, Result
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.options import RunLimits
from bicliques.schemas.work import Subtrees
from tests.support.pools import FakePool
from tests.support.runs import answer, load_ledger, prepared_run, quiet, random_edges

EDGES = random_edges(40, 30, 0.3, seed=5)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run that is planned and not mined."""
    return prepared_run(tmp_path, EDGES, engine="reference")


def mine(folder: RunFolder, pool: Pool, **limits: Any) -> None:
    mine_run(Run(folder), pool, RunLimits(**limits), quiet)


def test_slices_after_a_lost_entry_do_not_reuse_numbers_of_other_entries(folder: RunFolder) -> None:
    mine(folder, FakePool(8))
    ledger = load_ledger(folder.path)
    taken_from = {source for entry in ledger.entries.values() for source, _, _ in entry.took}
    lost = next(number for number in ledger.entries if number not in taken_from)
    assert lost < max(ledger.entries)
    ledger.file(lost).unlink()
    kept = {file: file.read_bytes() for file in folder.ledger.iterdir()}
    mine(folder, FakePool())
    after = load_ledger(folder.path)
    assert (after.total.count, after.total.fingerprint) == answer(EDGES)
    assert {file: file.read_bytes() for file in kept} == kept


def test_an_entry_has_the_pieces_of_a_left_over_that_was_cut(folder, monkeypatch):
    cut: list[int] = []
    spread = Subtrees.spread

    def watched(self: Subtrees, pieces: int) -> Subtrees:
        more = spread(self, pieces)
        cut.append(len(more) - len(self))
        return more

    monkeypatch.setattr(Subtrees, "spread", watched)
    for most in (3, 8):
        mine(folder, FakePool(64), max_results=most)
    assert sum(cut) > 0, "no left-over was cut"
    mine(folder, FakePool())
    ledger = load_ledger(folder.path)
    assert (ledger.total.count, ledger.total.fingerprint) == answer(EDGES)


def test_left_over_work_is_not_part_of_the_weight_of_entries(folder: RunFolder) -> None:
    weight = float(Plan.read(folder).weights.sum())
    for most in (20, 60, 100, 140):
        mine(folder, FakePool(), max_results=most)
    entries = load_ledger(folder.path).entries.values()
    assert len(entries) >= 4
    assert sum(entry.result.n_left_over for entry in entries) > 0
    assert sum(entry.weight for entry in entries) < weight


def test_an_error_that_would_repeat_is_reported_at_once(folder: RunFolder) -> None:
    pool = FakePool(instead=lambda tag: Result(tag, error=ResourceError("the disk is full; make room")))
    with pytest.raises(ResourceError, match="the disk is full; make room"):
        mine(folder, pool)
    assert pool.asked == {0: 1}


def test_a_slice_that_fails_again_and_again_ends_the_run(folder: RunFolder) -> None:
    pool = FakePool(instead=lambda tag: Result(tag, error=RuntimeError("boom")))
    with pytest.raises(ResourceError, match=r"slice 0 failed . times, the last time because: RuntimeError: boom"):
        mine(folder, pool)
    assert pool.asked[0] > 1


@pytest.mark.timeout(60)  # without the error this run would wait forever
def test_a_run_without_workers_does_not_wait_forever(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "NO_WORKERS_S", 0.0)
    monkeypatch.setattr(driver, "LOOK_S", 0.0)
    with pytest.raises(ResourceError, match="no worker has been there for 0 seconds; start some"):
        mine(folder, FakePool(0))


def test_a_pool_is_asked_to_grow_and_the_session_counts_slices(folder, monkeypatch):
    pool, asked = FakePool(4), list[str]()
    monkeypatch.setattr(pool, "grow", lambda: asked.append("grow"))
    monkeypatch.setattr(driver, "GROW_AFTER_S", -1.0)
    monkeypatch.setattr(driver, "GROW_FOR_S", -1.0)
    mine(folder, pool)
    assert asked
    assert sessions(folder)[-1].slices == len(load_ledger(folder.path).entries)
