"""Threads of this process. On cores each thread has its own engine, and all threads share slices."""

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.mining import driver
from bicliques.pipeline.process.children import identity
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices import thread_team
from bicliques.pipeline.slices.slice_search import SliceSearch
from bicliques.pipeline.workers import opening, thread_pool
from bicliques.pipeline.workers.thread_pool import InThreads
from bicliques.schemas.options import RunLimits
from bicliques.schemas.work import Subtrees
from tests.support.pools import results, until
from tests.support.runs import answer, load_ledger, manifest_pair, prepared_run, quiet, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 1)


@pytest.fixture(autouse=True)
def one_is_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads share slices, as more than `FEW_THREADS` do."""
    monkeypatch.setattr(thread_pool, "FEW_THREADS", 1)


def test_three_threads_on_cores_share_slices_and_find_everything(tmp_path: Path) -> None:
    run = Run(prepared_run(tmp_path, EDGES, engine="cpu"))
    with closing(InThreads(3)) as pool:
        session = driver.mine_run(run, pool, RunLimits(), quiet, 0.01)
        manifest = proving.prove(run, pool, quiet)
    assert session.outcome == "complete"
    assert session.workers == "this process, 3 threads"
    assert manifest_pair(run.path) == answer(EDGES)
    assert {entry.result.stats.threads for entry in load_ledger(run.path).entries.values()} == {3}
    assert manifest.mining["workers"].keys() == {identity()}


def test_few_threads_have_a_slice_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_pool, "FEW_THREADS", 3)
    run = Run(prepared_run(tmp_path, EDGES, engine="cpu"))
    with closing(InThreads(3)) as pool:
        driver.mine_run(run, pool, RunLimits(), quiet, 0.01)
        proving.prove(run, pool, quiet)
    assert manifest_pair(run.path) == answer(EDGES)
    assert {entry.result.stats.threads for entry in load_ledger(run.path).entries.values()} == {1}


def test_a_thread_that_is_done_with_a_slice_goes_on_with_the_next_one(tmp_path: Path) -> None:
    """One thread still works on the first slice, as one does that writes for long."""
    pool, run = InThreads(2), Run(prepared_run(tmp_path, EDGES, engine="cpu"))
    idle, first, is_given, next_has_come = [], threading.Lock(), threading.Event(), threading.Event()

    def of_first() -> None:
        if first.acquire(blocking=False):
            is_given.set()
            assert next_has_come.wait(60)

    def lead(task: Callable[[], None]) -> None:
        with thread_team.team_of(run, thread_team.threads_here()) as threads:
            threads.all_do(task)

    def of_second() -> None:
        idle.append(pool.idle(0))
        next_has_come.set()

    try:
        pool.submit(0, lead, of_first, on_all_threads=True)
        assert is_given.wait(60)
        pool.submit(1, lead, of_second, on_all_threads=True)
        assert [result.error for result in results(pool, 2).values()] == [None, None]
        assert (idle[0], pool.idle(0)) == (0, 2)
    finally:
        next_has_come.set()
        pool.close()


def test_threads_that_a_last_slice_does_not_need_are_idle(tmp_path: Path) -> None:
    pool, run = InThreads(3), Run(prepared_run(tmp_path, EDGES, engine="cpu"))
    first, let_go = threading.Lock(), threading.Event()

    def lead(_: None) -> None:
        with thread_team.team_of(run, thread_team.threads_here()) as threads:
            threads.all_do(lambda: (first.acquire(blocking=False) and let_go.wait(60)) and None)

    try:
        pool.submit(0, lead, None, on_all_threads=True)
        until(lambda: pool.idle(0) == 2)
    finally:
        let_go.set()
        pool.close()
    assert pool.idle(0) == 3


class Held:
    """Threads that mine wait after their first piece until they are told to stop.

    Attributes
    ----------
    waits : Event
        One of them waits.
    is_forgotten : bool
        Nobody has told one of them for half a minute.
    """

    def __init__(self, patch: pytest.MonkeyPatch):
        self.waits, self.is_forgotten = threading.Event(), False
        all_of = SliceSearch.all_of

        def held(search: SliceSearch, work: Subtrees, n_probes: int) -> None:
            all_of(search, work.take(0, 1), n_probes)
            search._unfinished.append(work.take(1, len(work)))
            self.waits.set()
            until = time.monotonic() + 30
            while not search._is_asked_to_stop and not self.is_forgotten:
                self.is_forgotten = time.monotonic() > until
                time.sleep(0.005)

        patch.setattr(SliceSearch, "all_of", held)


@pytest.mark.parametrize("outcome", ["interrupted", "time_limit"])
def test_slices_end_when_the_run_stops_and_what_they_leave_over_is_mined_later(tmp_path, monkeypatch, outcome):
    run, pool, stop = Run(prepared_run(tmp_path, EDGES, engine="cpu")), InThreads(2), threading.Event()
    with monkeypatch.context() as patch:
        slices = Held(patch)
        limits = RunLimits(time_limit_s=0.3 if outcome == "time_limit" else None)

        def watch(progress: object) -> None:
            if outcome == "interrupted" and slices.waits.is_set():
                stop.set()

        try:
            assert driver.mine_run(run, pool, limits, watch, stop=stop).outcome == outcome
        finally:
            pool.close()
    assert not slices.is_forgotten
    assert any(entry.result.n_left_over for entry in load_ledger(run.path).entries.values())
    with closing(InThreads(2)) as pool:
        assert driver.mine_run(run, pool, RunLimits(), quiet).outcome == "complete"
        proving.prove(run, pool, quiet)
    assert manifest_pair(run.path) == answer(EDGES)


def test_slices_end_when_the_pool_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a second Ctrl-C."""
    run, pool = Run(prepared_run(tmp_path, EDGES, engine="cpu")), InThreads(2)
    slices = Held(monkeypatch)

    def watch(progress: object) -> None:
        if slices.waits.is_set():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        driver.mine_run(run, pool, RunLimits(), watch)
    pool.close()
    assert not slices.is_forgotten
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("team", "leading"))]


def test_each_thread_searches_while_the_others_do() -> None:
    together, pool = threading.Barrier(3, timeout=60), InThreads(3)

    def meet(_: Any) -> int:
        together.wait()
        return threading.get_ident()

    for tag in range(3):
        pool.submit(tag, meet, None)
    assert len({result.value for result in results(pool, 3).values()}) == 3
    assert (pool.capacity(), pool.idle(0)) == ((3, 3, (2, 1)), 3)
    pool.close()


def test_threads_that_share_an_engine_are_one_worker() -> None:
    pool = InThreads(2, share_engine=True)
    pool.submit(0, identity, None)
    (result,) = pool.wait(60)
    assert result.value == identity()
    assert (pool.capacity(), pool.describe()) == ((2, 1, None), "this process, one GPU")
    pool.close()


def test_by_default_every_core_of_this_process_mines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "count_cores", lambda: 2)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", slice_seconds=0.01, progress=False, report=False)
    assert (results.manifest.count, results.manifest.fingerprint) == answer(EDGES)
    assert results.manifest.mining["sessions"][0]["workers"] == "this process, 2 threads"
    entries = load_ledger(tmp_path / "out").entries.values()
    assert {entry.result.stats.threads for entry in entries} == {2}


def test_a_thread_on_a_core_works_two_seconds_at_most() -> None:
    """The end of a run waits for the thread, even after a second Ctrl-C."""
    pool = opening.LOCAL_WORKERS["cores"].open(opening.WorkerOptions())
    assert pool.longest_task_s() == 2.0
    pool.close()
