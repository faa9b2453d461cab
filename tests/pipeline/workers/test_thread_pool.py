"""Threads are workers. On cores each thread has its own engine and its own name, and all threads get slices."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.mining import driver
from pipeline.proof import proving
from pipeline.run.opened import Run
from pipeline.slices import worker
from pipeline.workers import local_workers
from pipeline.workers.pool import Result
from pipeline.workers.thread_pool import InThreads
from schemas.options import RunLimits
from tests.support.pools import MeetingThreads
from tests.support.runs import answer, load_ledger, manifest_pair, prepared_run, quiet, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 1)


def test_three_threads_on_cores_share_the_slices_and_find_everything(tmp_path: Path) -> None:
    run, pool = Run(prepared_run(tmp_path, EDGES, engine="cpu")), MeetingThreads(3)
    try:
        session = driver.mine_run(run, pool, RunLimits(), quiet, 0.01)
        manifest = proving.prove(run, pool, quiet)
    finally:
        pool.close()
    assert session.outcome == "complete"
    assert session.workers == "this process, 3 threads"
    assert manifest_pair(run.path) == answer(EDGES)
    found = {entry.result.worker for entry in load_ledger(run.path).entries.values()}
    assert found == {f"{worker.identity()}.{k}" for k in (1, 2, 3)}
    assert manifest.mining["workers"].keys() == found


def test_each_thread_searches_while_the_others_do() -> None:
    together, pool = threading.Barrier(3, timeout=60), InThreads(3)

    def meet(_: Any) -> str:
        together.wait()
        return worker.identity()

    for tag in range(3):
        pool.submit(tag, meet, None)
    results: list[Result] = []
    while len(results) < 3:
        results += pool.wait(60)
    assert len({result.value for result in results}) == 3
    assert pool.capacity() == (3, 3, None)
    pool.close()


def test_threads_that_share_an_engine_are_one_worker() -> None:
    pool = InThreads(2, share_engine=True)
    pool.submit(0, worker.identity, None)
    (result,) = pool.wait(60)
    assert result.value == worker.identity()
    assert (pool.capacity(), pool.describe()) == ((2, 1, None), "this process, one GPU")
    pool.close()


def test_by_default_every_core_of_this_process_mines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_workers, "count_cores", lambda: 2)
    monkeypatch.setattr(local_workers, "InThreads", MeetingThreads)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = pipeline.mine(source, tmp_path / "out", slice_seconds=0.01, progress=False, report=False)
    assert (results.manifest.count, results.manifest.fingerprint) == answer(EDGES)
    assert results.manifest.mining["sessions"][0]["workers"] == "this process, 2 threads"
    assert {name.rpartition(".")[2] for name in results.manifest.mining["workers"]} == {"1", "2"}


def test_a_thread_on_a_core_works_two_seconds_at_most() -> None:
    """The end of a run waits for the thread, even after a second Ctrl-C."""
    pool = local_workers.LOCAL_WORKERS["cores"].open(local_workers.WorkerOptions())
    assert pool.longest_task_s() == 2.0
    pool.close()
