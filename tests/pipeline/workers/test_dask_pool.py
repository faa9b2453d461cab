"""Runs on Dask: with local workers, with a scheduler at an address, and with workers that are lost or missing."""

import asyncio
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import dask
import distributed
import numpy as np
import psutil
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.pipeline.estimate.memory import memory_bound
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers import dask_pool
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.pipeline.workers.opening import open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import WorkerLostError
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.options import RunLimits
from bicliques.schemas.search import Search
from tests.support.own_memory import PROCESS_FILES, OwnMemory
from tests.support.pools import FakePool, results
from tests.support.runs import answer, load_ledger, manifest_pair, prepared_run, quiet, random_edges, write_edges

EDGES = random_edges(120, 70, 0.35, 5)
#: The edges of a graph with two million bicliques, which are a dozen slices of 0.02 s on a fast machine.
MORE = random_edges(250, 80, 0.35, 7)


@pytest.fixture(scope="module")
def pool() -> Iterator[DaskPool]:
    engines.compile_engine("cpu")  # the driver of a run compiles, too: a worker's memory bound is without compiling
    engines.compile_proof()
    with open_pool(WorkerOptions(workers=2)) as pool:
        assert isinstance(pool, DaskPool)
        yield pool


def prepared(tmp_path: Path, search: Search | None = None, edges: np.ndarray = EDGES) -> RunFolder:
    return prepared_run(tmp_path, edges, search, "cpu")


def without_pandas() -> bool:
    pa.array(np.zeros(1)).to_numpy()
    return sys.modules["pandas"] is None


def slow(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


def wait_for(file: Path) -> int:
    while not file.exists():
        time.sleep(0.01)
    return os.getpid()


def fail(message: str) -> None:
    raise ResourceError(message)


def test_a_worker_that_never_says_its_name_does_not_delay_the_pool(pool, monkeypatch):
    """A worker may die after it has said its name, and before Dask has fetched the name."""
    real, over = distributed.Future.result, threading.Event()

    def result(future: distributed.Future, timeout: float | None = None) -> object:
        if str(future.key).startswith("identity"):
            over.wait(300)
            raise TimeoutError
        return real(future, timeout)

    monkeypatch.setattr(distributed.Future, "result", result)
    shared = DaskPool.connect(pool.client.scheduler.address)  # which asks the workers for their names again
    shared.capacity()
    shared.submit(0, slow, 0.0)
    ended = shared.wait(120)
    over.set()
    shared.close()
    assert [type(found.value) for found in ended] == [int]


def peak_bytes(begun: dict[str, OwnMemory], dask_worker: distributed.Worker) -> int:
    return begun[dask_worker.address].peak()


def die(argument: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("slice_seconds", [0.01, 10.0])
def test_two_workers_find_everything_in_short_and_in_long_slices(tmp_path, pool, slice_seconds):
    folder = prepared(tmp_path)
    session = driver.mine_run(Run(folder), pool, RunLimits(), quiet, slice_seconds)
    assert session.outcome == "complete"
    manifest = proving.prove(Run(folder), pool, quiet)
    assert (manifest.count, manifest.fingerprint) == answer(EDGES)
    assert len(manifest.mining["workers"]) == 2
    assert bq.verify(folder.path, progress=False).fingerprint == manifest.fingerprint


def test_two_workers_never_exceed_the_row_limit(tmp_path: Path, pool: DaskPool) -> None:
    folder = prepared(tmp_path)
    for most in (1, 5000, 5001):
        session = driver.mine_run(Run(folder), pool, RunLimits(max_results=most), quiet, 0.02)
        assert (session.outcome, session.count) == ("max_results", most)
        assert len(bq.open_run(folder.path).to_arrow(columns=["root"])) == most
    driver.mine_run(Run(folder), pool, RunLimits(), quiet)
    proving.prove(Run(folder), pool, quiet)
    assert manifest_pair(folder.path) == answer(EDGES)


def test_a_stop_commits_the_slices_that_are_running(tmp_path: Path, pool: DaskPool) -> None:
    folder = prepared(tmp_path)
    stop = threading.Event()
    seen = []

    def watch(progress: object) -> None:
        seen.append(progress)
        if len(load_ledger(folder.path).entries) > 3:
            stop.set()

    session = driver.mine_run(Run(folder), pool, RunLimits(), watch, 0.01, stop)
    assert session.outcome == "interrupted"
    ledger = load_ledger(folder.path)
    assert session.count == ledger.total.count == len(bq.open_run(folder.path))
    assert list(ledger.orphans()) == []
    driver.mine_run(Run(folder), pool, RunLimits(), quiet)
    proving.prove(Run(folder), pool, quiet)
    assert manifest_pair(folder.path) == answer(EDGES)


def test_a_run_that_only_counts_writes_no_bicliques(tmp_path: Path, pool: DaskPool) -> None:
    folder = prepared(tmp_path, Search(mode="count"))
    session = driver.mine_run(Run(folder), pool, RunLimits(), quiet)
    assert session.count == answer(EDGES)[0]
    assert proving.prove(Run(folder), pool, quiet).fingerprint is None
    assert list(folder.bicliques.iterdir()) == []


def test_a_scheduler_by_address_is_used_and_left_running(tmp_path: Path, pool: DaskPool) -> None:
    address = pool.client.scheduler.address
    source = write_edges(tmp_path / "g.parquet", EDGES, strings=True)
    results = bq.mine(source, tmp_path / "out", scheduler=address, progress=False, report=False)
    assert results.complete
    assert results.manifest.mining["sessions"][0]["workers"] == f"workers of {address}"
    assert pool.capacity().slots == 2


def test_the_error_of_a_scheduler_that_ends_says_that_its_workers_are_lost(tmp_path: Path) -> None:
    folder = prepared(tmp_path)
    with distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as theirs:
        pool = DaskPool.connect(theirs.scheduler_address, patience_s=2.0)
        assert pool.capacity().slots == 1
    with pytest.raises(ResourceError, match=r"Dask does not answer any more \(.*\), so the workers of .* are lost"):
        driver.mine_run(Run(folder), pool, RunLimits(), quiet)
    pool.close()


def test_errors_of_tasks_come_back_and_a_dead_worker_is_a_lost_task(pool, caplog, tmp_path):
    def gone() -> list[str]:
        return [record.getMessage() for record in caplog.records if getattr(record, "event", "") == "gone"]

    deadline = time.monotonic() + 300

    def passes(condition: Callable[[], bool]) -> bool:
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.05)
        return condition()

    assert pool.capacity().slots == 2  # this asks the workers for their names
    for tag in (3, 4):
        pool.submit(tag, wait_for, tmp_path / "over")
    named = rf"{socket.gethostname()}:\d+"
    assert passes(lambda: len({who for tag in (3, 4) if re.fullmatch(named, who := pool.who(tag))}) == 2)
    (tmp_path / "over").touch()
    pool.submit(0, slow, 0.0)
    pool.submit(1, fail, "no room")
    ended = results(pool, 4)
    pool.submit(2, die, None)
    assert passes(lambda: pool.capacity().slots < 2 or len(gone()) > 0)  # the pool may hear of its task later
    ended |= results(pool, 1)
    assert ended[0].value != os.getpid()
    assert isinstance(ended[1].error, ResourceError)
    assert str(ended[1].error) == "no room"
    assert isinstance(ended[2].error, WorkerLostError)
    assert re.match(rf"its worker {socket.gethostname()}:\d+ died", str(ended[2].error))
    assert pool.who(2) == ""
    assert passes(lambda: pool.capacity().slots == 2), "the dead worker was not replaced"
    assert gone() == [f"worker {str(ended[2].error).split()[2]} has gone"]


def double(number: int) -> int:
    return 2 * number


def test_tasks_that_are_sent_together_come_back_each_under_its_tag(pool: DaskPool) -> None:
    for tag in range(300):
        pool.submit(tag, double if tag % 3 else str, tag)
    assert {tag: result.value for tag, result in results(pool, 300).items()} == {
        k: 2 * k if k % 3 else str(k) for k in range(300)
    }


def test_a_task_that_cannot_be_sent_ends_with_the_reason(pool: DaskPool) -> None:
    pool.submit(1, str, threading.Lock())
    (result,) = pool.wait(120)
    assert result.tag == 1
    assert "Could not serialize object" in str(result.error)


def test_local_workers_listen_on_the_loopback_address_only(pool: DaskPool) -> None:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    connections = [c for process in processes for c in process.net_connections("inet") if c.status == "LISTEN"]
    assert len(connections) >= 4
    assert {connection.laddr.ip for connection in connections} == {"127.0.0.1"}


def test_workers_have_the_environment_that_keeps_memory_of_large_arrays(pool: DaskPool) -> None:
    assert set(pool.client.run(os.getenv, "MALLOC_MMAP_THRESHOLD_").values()) == {str(32 << 20)}
    assert set(pool.client.run(os.getenv, "OMP_NUM_THREADS").values()) == {"1"}, "other variables that Dask sets stay"


def test_workers_import_no_pandas(pool: DaskPool) -> None:
    """Arrow would import it at the first array, for a quarter of the time that a worker takes to start."""
    assert set(pool.client.run(without_pandas).values()) == {True}


def test_workers_ignore_the_terminals_interrupt(pool: DaskPool) -> None:
    pool.submit(0, slow, 0.0)
    (result,) = pool.wait(120)
    os.kill(result.value, signal.SIGINT)
    time.sleep(0.3)
    assert psutil.pid_exists(result.value)
    assert pool.capacity().slots == 2


def test_a_workers_memory_is_below_its_bound(tmp_path: Path, pool: DaskPool) -> None:
    for name in ("first", "again"):  # the workers import what they need in the first run
        (tmp_path / name).mkdir()
    driver.mine_run(Run(prepared(tmp_path / "first")), pool, RunLimits(), quiet)
    folder = prepared(tmp_path / "again")
    begun = pool.client.run(OwnMemory)
    driver.mine_run(Run(folder), pool, RunLimits(), quiet)
    bound = memory_bound(Run(folder))
    for peak in pool.client.run(peak_bytes, begun).values():
        assert 50 << 20 < peak < bound.shared + bound.worker - PROCESS_FILES


def test_a_run_that_no_worker_joins_ends_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LOOK_S", 0.01)
    monkeypatch.setattr(driver, "NO_WORKERS_S", 0.05)
    with pytest.raises(ResourceError, match="no worker has been there"):
        driver.mine_run(Run(prepared(tmp_path)), FakePool(0), RunLimits(), quiet)


def test_closing_the_pool_ends_the_wait_for_its_tasks() -> None:
    pool = DaskPool.local(1)
    waiting = threading.Thread(target=pool.everywhere, args=(slow, 3600.0))
    waiting.start()
    while not any(pool.client.processing().values()):
        time.sleep(0.01)
    pool.close()
    waiting.join(60)
    assert not waiting.is_alive()
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool._asking.submit(print)


def test_nothing_is_killed_after_the_workers_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A late look at the processes comes once a second until the cluster is closed. A number may then be another's."""
    killed, later, has_killed = list[int](), list[Callable[[], None]](), threading.Event()

    def run_now(kill: Callable[[], None]) -> None:
        kill()
        has_killed.set()

    nanny = SimpleNamespace(pid=4_000_000_000, status=distributed.Status.closed)
    loop = SimpleNamespace(add_callback=run_now, call_later=lambda seconds, again: later.append(again))
    cluster = SimpleNamespace(loop=loop, _created=[nanny], close=lambda timeout: has_killed.wait())
    monkeypatch.setattr(os, "kill", lambda pid, sign: killed.append(pid))
    dask_pool._stop(cluster, "toy", patience_s=0.01)
    assert (killed, len(later)) == ([nanny.pid], 1)
    later[0]()
    assert (killed, len(later)) == ([nanny.pid], 1)


def workers_of(pool: DaskPool) -> list[psutil.Process]:
    return [psutil.Process(pid) for pid in pool.client.run(os.getpid).values()]


def are_gone(processes: list[psutil.Process]) -> bool:
    return not psutil.wait_procs(processes, timeout=60)[1]


@pytest.mark.exhaustive
def test_a_replacement_worker_may_start_slowly() -> None:
    pool = DaskPool.local(1)
    (first,) = workers_of(pool)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10ms"}):  # this timeout of Dask is 15 s by default
        first.kill()
        deadline, second = time.monotonic() + 300, set[int]()
        while not second and time.monotonic() < deadline:
            second = set(pool.client.run(os.getpid, on_error="ignore").values()) - {first.pid}
        kept = list(pool.cluster.workers)
    pool.close()
    assert second
    assert len(kept) == 1, "Dask has given the second worker up, and is about to stop it"


@pytest.mark.exhaustive
def test_a_worker_that_never_becomes_ready_is_killed_at_the_end() -> None:
    """Dask would wait for such a worker without end, because it stops only workers that have announced themselves."""
    pool = DaskPool.local(1)
    (first,) = workers_of(pool)
    others = {*psutil.Process().children(), first}
    first.kill()
    while not (second := set(psutil.Process().children()) - others):
        time.sleep(0.005)
    for process in second:  # it replaces the first, and is about to import what it needs
        # a process that is suspended before it has its own program would suspend this process with it
        while process.cmdline() == psutil.Process().cmdline():
            time.sleep(0.005)
        process.suspend()
    pool.close()  # this takes some seconds, because Dask may not know the new process yet
    assert are_gone([first, *second])
    assert set(psutil.Process().children()) <= others, "there is no third one"


@pytest.mark.exhaustive
def test_workers_are_killed_and_not_replaced_when_dask_does_not_stop_them(monkeypatch, caplog):
    async def never_ends() -> None:
        await asyncio.sleep(3600)

    pool = DaskPool.local(2)
    workers, others = workers_of(pool), set(psutil.Process().children())
    with monkeypatch.context() as patch, caplog.at_level("INFO", "bicliques"):
        patch.setattr(pool.cluster, "_close", never_ends)
        pool.close(patience_s=0.2)
    assert are_gone(workers)
    assert "the 2 local workers did not end within 0.2 seconds and are killed" in caplog.text
    assert pool.cluster.shutdown_on_close is False, "the end of this process does not wait for the workers either"
    pool.cluster.close()
    assert set(psutil.Process().children()) < others
