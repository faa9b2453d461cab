"""Dask workers of several threads get one slice each, and each is told how many threads it has."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import distributed
import pytest

from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices.thread_team import threads_here
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.pipeline.workers.dask_tasks import MANY, could_share
from bicliques.pipeline.workers.thread_pool import Result
from bicliques.schemas.options import RunLimits
from bicliques.schemas.platform import CORES
from tests.support.pools import results
from tests.support.runs import FOR_TWO, answer, load_ledger, prepared_run, quiet


@pytest.fixture(scope="module")
def theirs() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster


class Told:
    """Stands for `DaskTasks`: remembers which worker each task is for. All tasks that `has_ended` has ended."""

    def __init__(self) -> None:
        self.where: dict[int, str | None] = {}
        self.has_ended: list[Result] = []

    def submit(self, tag: int, function: Any, argument: Any, where: str | None = None) -> None:
        self.where[tag] = where

    def wait(self, seconds: float) -> list[Result]:
        return self.has_ended


def test_no_worker_gets_a_second_slice_while_another_one_has_none() -> None:
    threads, told, client = {"a": 2, "b": 3, "c": 4}, Told(), mock.MagicMock()
    client.nthreads = lambda: threads
    pool = DaskPool(client, None, "workers", CORES)
    pool._tasks = told  # type: ignore[assignment]
    assert pool.capacity() == (9, 9, (3, 3))
    assert pool.idle(0) == 9
    for tag in range(3):
        pool.submit(tag, str, None, on_all_threads=True)
    assert sorted(filter(None, told.where.values())) == ["a", "b", "c"]
    told.has_ended = [Result(1)]
    pool.wait(0)
    assert pool.idle(0) == threads[str(told.where[1])]
    pool.submit(-1, str, None)
    pool.submit(3, str, None, on_all_threads=True)
    assert (told.where[-1], told.where[3]) == (None, told.where[1])
    threads["d"] = 5
    pool.capacity()
    pool.submit(4, str, None, on_all_threads=True)
    assert told.where[4] == "d"
    pool.close()


@pytest.mark.parametrize(
    ("workers", "hosts", "says"),
    [(MANY, 1, False), (MANY + 1, MANY + 1, False), (MANY + 1, 1, True), (MANY + 1, MANY, True)],
)
def test_many_workers_of_one_thread_on_shared_hosts_are_told_of(workers, hosts, says, caplog):
    assert could_share([f"tls://10.0.0.{k % hosts}:{5000 + k}" for k in range(workers)]) == says
    assert ["one worker per host" in record.message for record in caplog.records] == [True] * says


def test_that_is_said_once_and_not_of_workers_with_threads(caplog, theirs):
    pool = DaskPool.connect(theirs.scheduler_address)
    for threads, times in ((2, 0), (1, 1), (1, 1)):
        there = {f"tls://h:{k}": threads for k in range(MANY + 1)}
        with mock.patch.object(pool, "_threads", return_value=there), mock.patch.object(pool, "_meet"):
            pool.capacity()
        assert sum("one worker per host" in record.message for record in caplog.records) == times
    pool.close()


def threads_there(argument: object) -> int:
    return threads_here()


def test_threads_of_a_dask_worker_share_its_slices(tmp_path, monkeypatch, theirs):
    folder = prepared_run(tmp_path, FOR_TWO, engine="cpu")
    pool = DaskPool.connect(theirs.scheduler_address)
    with monkeypatch.context() as patch:
        asked, nthreads = [], pool.client.nthreads
        patch.setattr(pool.client, "nthreads", lambda: asked.append("threads") or nthreads())
        assert pool.capacity() == (2, 2, (1, 1))
        assert asked == ["threads"], "one look is enough"
    pool.submit(0, threads_there, None, on_all_threads=True)
    pool.submit(1, threads_there, None)
    assert {tag: result.value for tag, result in results(pool, 2).items()} == {0: 2, 1: 1}
    session = driver.mine_run(Run(folder), pool, RunLimits(), quiet, 0.05)
    manifest = proving.prove(Run(folder), pool, quiet)
    pool.close()
    assert session.outcome == "complete"
    assert (manifest.count, manifest.fingerprint) == answer(FOR_TWO)
    assert {entry.result.stats.threads for entry in load_ledger(folder.path).entries.values()} == {2}


@pytest.mark.parametrize(("threads", "platform"), [(1, "cores"), (2, "cuda")])
def test_workers_with_one_engine_do_not_share(threads: int, platform: str) -> None:
    with (
        distributed.LocalCluster(
            1, threads_per_worker=threads, processes=False, dashboard_address="127.0.0.1:0"
        ) as theirs,
        distributed.Client(theirs, set_as_default=False) as client,
    ):
        pool = DaskPool.connect(client) if platform == "cores" else DaskPool(client, None, "GPUs", CUDA, closes=False)
        assert pool.capacity()[1:] == (1, None)
        pool.close()


def test_a_slice_for_a_worker_that_has_gone_is_mined_by_another_one(theirs: distributed.LocalCluster) -> None:
    pool = DaskPool.connect(theirs.scheduler_address)
    pool._sharing = {"tcp://127.0.0.1:1": 2}
    pool.submit(0, threads_there, None, on_all_threads=True)
    (result,) = pool.wait(300)
    pool.close()
    assert result.value == 2
