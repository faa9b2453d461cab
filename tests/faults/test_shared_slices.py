"""Dask workers of two threads that share slices: killed while both threads mine, told to end, stopped and resumed."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.options import RunLimits
from tests.support.dask_commands import ManyWorkers, connected, dask_scheduler
from tests.support.held import held_together
from tests.support.pools import FakePool
from tests.support.runs import answer, load_ledger, prepared_run, quiet, random_edges

EDGES = random_edges(40, 30, 0.3, seed=5)
#: Seconds after which a thread that should mine is one that does not.
LIMIT_S = 300.0


def check(folder: RunFolder) -> None:
    """Nothing is lost, nothing is there twice, and no file belongs to nobody."""
    manifest = proving.prove(Run(folder), FakePool(), quiet)
    assert (manifest.count, manifest.fingerprint) == answer(EDGES)
    ledger = load_ledger(folder.path)
    assert ledger.outstanding() == {}
    assert list(ledger.orphans()) == []
    assert bq.verify(folder.path, progress=False).count == manifest.count


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        # one of one thread is told to end: tests/pipeline/workers/test_notice.py
        pytest.param(signal.SIGTERM, id="told", marks=pytest.mark.exhaustive),
    ],
)
def test_a_worker_that_ends_while_its_threads_mine_costs_nothing_but_its_slice(tmp_path, monkeypatch, number):
    monkeypatch.setattr(driver, "mine_slice", held_together)
    folder = prepared_run(tmp_path, EDGES, engine="reference")
    ended: list[int] = []
    until = time.monotonic() + LIMIT_S
    with dask_scheduler() as address:
        workers = ManyWorkers(address, threads=2)
        workers.start(2)
        pool = connected(address, 2)

        def watch(progress: object) -> None:
            mining = Counter(int(note.name.split("-")[1]) for note in tmp_path.glob("mined-*"))
            both = [pid for pid, threads in mining.items() if threads == 2]
            if both and not ended:
                ended.append(both[0])
                workers.end(both[0], number)
            if ended and is_gone(ended[0]):
                (tmp_path / "go").touch()
            assert time.monotonic() < until, "no worker mines on both threads, or the one that has to end does not"

        try:
            session = driver.mine_run(Run(folder), pool, RunLimits(), watch)
        finally:
            (tmp_path / "go").touch()
            pool.close()
            workers.close()
    assert session.outcome == "complete"
    assert session.retries == (1 if number == signal.SIGKILL else 0)
    entries = load_ledger(folder.path).entries.values()
    assert {entry.result.stats.threads for entry in entries} == {2}
    if number == signal.SIGTERM:
        [handed_back] = [e for e in entries if e.result.worker.endswith(f":{ended[0]}") and e.result.n_left_over]
        assert handed_back.result.total.seen > 0, "what its threads had found counts"
    check(folder)


def is_gone(pid: int) -> bool:
    """Whether a process is not there any more."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_run_of_shared_slices_that_was_stopped_goes_on_with_one_thread(tmp_path: Path) -> None:
    folder = prepared_run(tmp_path, EDGES, engine="reference")
    with dask_scheduler() as address:
        workers = ManyWorkers(address, threads=2)
        workers.start(2)
        pool = connected(address, 2)
        try:
            for most in (7, 60):
                session = driver.mine_run(Run(folder), pool, RunLimits(max_results=most), quiet)
                assert (session.outcome, session.count) == ("max_results", most)
        finally:
            pool.close()
            workers.close()
    assert len(bq.open_run(folder.path)) == 60
    assert driver.mine_run(Run(folder), FakePool(), RunLimits(), quiet).outcome == "complete"
    assert {entry.result.stats.threads for entry in load_ledger(folder.path).entries.values()} == {1, 2}
    check(folder)
