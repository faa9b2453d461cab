"""Mining on real devices: one GPU, two GPUs, with dask-cuda and without it, a killed worker, too little memory."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.gpu.cuda import CUDA
from bicliques.kernels.gpu.device import CudaDevice
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.pipeline.workers.devices import visible_devices
from bicliques.pipeline.workers.opening import open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.processes import Processes
from bicliques.schemas.errors import DeviceMemoryError, InputError
from bicliques.schemas.options import RunLimits
from tests.support.runs import answer, load_ledger, manifest_pair, prepared_run, quiet, random_edges, write_edges

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

EDGES = random_edges(150, 80, 0.35, 5)
#: 37 million, which take a GPU a dozen slices of ten milliseconds.
MANY = random_edges(400, 115, 0.36, 5)


@functools.cache
def answer_to_many() -> tuple[int, int]:
    return answer(MANY)


@pytest.fixture(scope="module")
def one() -> Iterator[DaskPool]:
    pytest.importorskip("dask_cuda", reason="dask-cuda is not installed")
    pool = DaskPool.on_gpus(visible_devices()[:1])
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def two() -> Iterator[DaskPool]:
    pytest.importorskip("dask_cuda", reason="dask-cuda is not installed")
    pool = DaskPool.on_gpus(visible_devices()[:2])
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def own_two() -> Iterator[Processes]:
    """This process on the first GPU, and one of its own on the second."""
    with open_pool(WorkerOptions(workers=2), CUDA) as pool:
        assert isinstance(pool, Processes)
        all_there(pool, 2)
        yield pool


def all_there(pool: Processes, n: int) -> None:
    end = time.monotonic() + 60
    while pool.capacity().workers < n:
        assert time.monotonic() < end
        time.sleep(0.01)


def device_of_worker() -> tuple[str, int]:
    import cupy

    return os.environ["CUDA_VISIBLE_DEVICES"].split(",")[0], int(cupy.cuda.runtime.getDevice())


def test_every_worker_has_a_device_of_its_own(one: DaskPool) -> None:
    assert list(one.client.run(device_of_worker).values()) == [(visible_devices()[0], 0)]
    assert one.capacity() == (2, 1, None)


def test_a_worker_finds_what_the_cpu_finds(tmp_path: Path, one: DaskPool) -> None:
    folder = prepared_run(tmp_path, EDGES)
    session = driver.mine_run(Run(folder), one, RunLimits(), quiet, 0.05)
    assert session.outcome == "complete"
    proving.prove(Run(folder), one, quiet)
    assert manifest_pair(folder.path) == answer(EDGES)


@pytest.mark.parametrize("slice_seconds", [0.02, 10.0])
def test_this_process_finds_what_the_cpu_finds(tmp_path: Path, slice_seconds: float) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(
        source,
        tmp_path / "out",
        engine="bitmatrix",
        workers=0,
        slice_seconds=slice_seconds,
        progress=False,
        report=False,
    )
    assert (len(results), results.manifest.fingerprint) == answer(EDGES)
    energy = results.manifest.mining["energy"]["gpus"]
    assert energy.get("joules", 0) > 0 or "not_readable" in energy


def test_never_one_row_too_many(tmp_path: Path, one: DaskPool) -> None:
    folder = prepared_run(tmp_path, EDGES)
    for most in (1, 5001):
        session = driver.mine_run(Run(folder), one, RunLimits(max_results=most), quiet, 0.05)
        assert (session.outcome, session.count) == ("max_results", most)
    driver.mine_run(Run(folder), one, RunLimits(), quiet)
    proving.prove(Run(folder), one, quiet)
    assert manifest_pair(folder.path) == answer(EDGES)


def take_longer() -> None:
    """In a worker: every slice takes a fifth of a second more."""
    mine = BitMatrixEngine.mine

    def slowly(*arguments: Any) -> Any:
        time.sleep(0.2)
        return mine(*arguments)

    BitMatrixEngine.mine = slowly  # type: ignore[method-assign]


def kill_once(pool: DaskPool, killed: list[int]) -> Any:
    """Kill a worker when something is committed and every worker has as many slices as it takes. Then at most one of
    them is only to be handed over, which Dask does again, unseen by the run. The other takes long enough to be lost."""
    pids = sorted(pool.client.run(os.getpid).values())
    pool.client.run(take_longer)

    def watch(progress: Progress) -> None:
        with_workers = pool.client.processing().values()  # a slice that was dealt may still be on its way
        if not killed and progress.bicliques and all(len(keys) == CUDA.slices_in_hand for keys in with_workers):
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    return watch


def test_a_killed_worker_loses_nothing(tmp_path: Path, one: DaskPool) -> None:
    folder, killed = prepared_run(tmp_path, MANY), []
    session = driver.mine_run(Run(folder), one, RunLimits(), kill_once(one, killed), 0.01)
    assert killed
    assert session.retries >= 1
    proving.prove(Run(folder), one, quiet)
    assert manifest_pair(folder.path) == answer_to_many()


def test_a_device_without_memory_gets_a_smaller_engine_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    take = CudaDevice.empty

    def take_little(self: CudaDevice, n: int, dtype: Any) -> Any:
        size = n * np.dtype(dtype).itemsize
        if size > 250 << 20:
            raise DeviceMemoryError(f"250 MiB are left, {size >> 20} MiB are needed")
        return take(self, n, dtype)

    monkeypatch.setattr(CudaDevice, "empty", take_little)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    results = bq.mine(source, tmp_path / "out", engine="bitmatrix", workers=0, progress=False, report=False)
    assert (len(results), results.manifest.fingerprint) == answer(EDGES)
    assert "goes on with half the device memory" in caplog.text
    assert all(entry.result.stats.halvings >= 1 for entry in load_ledger(tmp_path / "out").entries.values())


def test_devices_that_are_not_there_are_a_sentence(tmp_path: Path) -> None:
    source = write_edges(tmp_path / "g.parquet", EDGES)
    with pytest.raises(InputError, match="there is no GPU 99 here"):
        bq.count(source, engine="bitmatrix", devices=[99], progress=False)


@pytest.mark.multi_gpu(2)
def test_two_gpus_share_the_work_and_find_what_one_finds(tmp_path: Path, two: DaskPool) -> None:
    devices = {device for device, _ in two.client.run(device_of_worker).values()}
    assert devices == set(visible_devices()[:2])
    folder = prepared_run(tmp_path, MANY)
    driver.mine_run(Run(folder), two, RunLimits(), quiet, 0.1)
    manifest = proving.prove(Run(folder), two, quiet)
    assert (manifest.count, manifest.fingerprint) == answer_to_many()
    found: Counter[str] = Counter()
    for entry in load_ledger(folder.path).entries.values():
        found[entry.result.worker] += entry.result.total.count
    assert len(found) == 2
    assert min(found.values()) > manifest.count // 100


@pytest.mark.multi_gpu(2)
def test_one_of_two_may_be_killed(tmp_path: Path, two: DaskPool) -> None:
    folder, killed = prepared_run(tmp_path, MANY), []
    session = driver.mine_run(Run(folder), two, RunLimits(), kill_once(two, killed), 0.01)
    assert killed
    assert session.retries >= 1
    proving.prove(Run(folder), two, quiet)
    assert manifest_pair(folder.path) == answer_to_many()
    assert list(load_ledger(folder.path).orphans()) == []


def wait_for_both(pool: Processes) -> Callable[[Progress], None]:
    """A callback that lets this process mine on only when the other one is there."""

    def watch(progress: Progress) -> None:
        if progress.running:
            all_there(pool, 2)

    return watch


@pytest.mark.multi_gpu(2)
def test_this_process_and_another_share_the_work(tmp_path: Path, own_two: Processes) -> None:
    folder = prepared_run(tmp_path, MANY)
    driver.mine_run(Run(folder), own_two, RunLimits(), wait_for_both(own_two), 0.05)
    manifest = proving.prove(Run(folder), own_two, quiet)
    assert (manifest.count, manifest.fingerprint) == answer_to_many()
    assert len({entry.result.worker for entry in load_ledger(folder.path).entries.values()}) == 2


@pytest.mark.multi_gpu(2)
def test_the_other_process_may_be_killed(tmp_path: Path, own_two: Processes) -> None:
    folder, killed = prepared_run(tmp_path, MANY), []
    wait = wait_for_both(own_two)

    def kill(progress: Progress) -> None:
        if not killed:
            wait(progress)
        busy = [process for process in own_two._processes if own_two._in_hand(process)]
        if not killed and progress.bicliques and busy:
            killed.append(busy[0].pid)
            os.kill(busy[0].pid, signal.SIGKILL)

    driver.mine_run(Run(folder), own_two, RunLimits(), kill, 0.01)
    assert killed
    proving.prove(Run(folder), own_two, quiet)
    assert manifest_pair(folder.path) == answer_to_many()
    assert list(load_ledger(folder.path).orphans()) == []
    all_there(own_two, 2)


@pytest.mark.multi_gpu(2)
def test_by_default_all_gpus_are_used_once_it_takes_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "GROW_AFTER_S", 0.0)
    monkeypatch.setattr(driver, "GROW_FOR_S", 0.0)
    folder, grown, grow = prepared_run(tmp_path, MANY), threading.Event(), Processes.grow

    def noted(pool: Processes) -> None:
        grow(pool)
        grown.set()

    monkeypatch.setattr(Processes, "grow", noted)
    with open_pool(WorkerOptions(), CUDA) as pool:

        def wait_for_workers(progress: Progress) -> None:
            if progress.bicliques and grown.is_set():
                all_there(pool, len(visible_devices()))

        session = driver.mine_run(Run(folder), pool, RunLimits(), wait_for_workers, 0.05)
    assert "local GPUs" in session.workers
    assert load_ledger(folder.path).total.count == answer_to_many()[0]
