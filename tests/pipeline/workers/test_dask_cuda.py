"""Workers on GPUs, without a GPU: a LocalCluster stands for dask-cuda, and the CPU engine for that of a GPU."""

import os
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import distributed
import pytest

from bicliques.kernels import engines
from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.cli.options import numbers
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.workers import dask_tasks
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.pipeline.workers.devices import choose_devices
from bicliques.pipeline.workers.opening import ask_workers, check_workers, open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import WorkerLostError
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.options import RunLimits
from bicliques.schemas.platform import CORES, Platform
from tests.support.engines import registered, toy_kind, unable
from tests.support.pools import FakePool, results
from tests.support.runs import (
    FOR_KILLS,
    answer,
    check_two_find_everything,
    load_ledger,
    manifest_pair,
    prepared_run,
    quiet,
)


class Pretend(distributed.WorkerPlugin):
    """Each worker, also one that replaces another, gets the CPU engine as its GPU engine. Its energy cannot be read."""

    def setup(self, worker: Any) -> None:
        engines.register(toy_kind())


def fake_dask_cuda(seen: list[dict[str, Any]]) -> Any:
    def start(**options: Any) -> distributed.LocalCluster:
        seen.append(options)
        return distributed.LocalCluster(
            n_workers=len(options["CUDA_VISIBLE_DEVICES"]),
            threads_per_worker=options["threads_per_worker"],
            memory_limit=0,
            dashboard_address=options["dashboard_address"],
            silence_logs=options["silence_logs"],
        )

    return types.SimpleNamespace(LocalCUDACluster=start)


def fail_as_cuda_does(argument: object) -> None:
    raise type("CUDARuntimeError", (RuntimeError,), {})("cudaErrorIllegalAddress")


def own_pid(argument: object) -> int:
    return os.getpid()


@pytest.fixture(scope="module")
def pool() -> Iterator[DaskPool]:
    seen: list[dict[str, Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "dask_cuda", fake_dask_cuda(seen))
        patch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
        with open_pool(WorkerOptions(devices=(2, 0), rmm_pool="0.5", spill=True), CUDA) as pool:
            (options,) = seen
            assert options["CUDA_VISIBLE_DEVICES"] == ["6", "4"]
            assert (options["rmm_pool_size"], options["rmm_allocator_external_lib_list"]) == (0.5, ["cupy"])
            assert options["enable_cudf_spill"]
            pool.client.register_plugin(Pretend())
            yield pool


def test_two_gpus_have_four_slices_at_a_time_and_find_everything(tmp_path: Path, pool: DaskPool) -> None:
    assert (pool.capacity(), pool.describe()) == ((4, 2, None), "2 local GPUs")
    check_two_find_everything(tmp_path, pool)


@pytest.mark.exhaustive
def test_a_killed_gpu_worker_loses_nothing(tmp_path: Path, pool: DaskPool) -> None:
    folder = prepared_run(tmp_path, FOR_KILLS)
    pids = sorted(pool.client.run(os.getpid).values())
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if killed or not (progress.bicliques and progress.running):
            return
        os.kill(pids[0], signal.SIGSTOP)  # what it has in hand stays there
        time.sleep(0.2)  # until the scheduler knows what it has handed over
        if any(pool.who(tag).endswith(f":{pids[0]}") for tag in range(1000)):
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)
        else:
            os.kill(pids[0], signal.SIGCONT)

    session = driver.mine_run(Run(folder), pool, RunLimits(), kill_one, 0.05)
    assert killed
    assert session.retries >= 1
    proving.prove(Run(folder), pool, quiet)
    assert manifest_pair(folder.path) == answer(FOR_KILLS)
    assert list(load_ledger(folder.path).orphans()) == []


def test_a_worker_whose_device_fails_is_replaced(pool: DaskPool) -> None:
    while pool.capacity().workers < 2:
        time.sleep(0.1)
    before = set(pool.client.run(os.getpid).values())
    pool.submit(0, fail_as_cuda_does, None)
    assert isinstance(results(pool, 1)[0].error, WorkerLostError)
    deadline = time.monotonic() + 60
    while (
        pool.capacity().workers < 2 or before == set(pool.client.run(os.getpid).values())
    ) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(before & set(pool.client.run(os.getpid).values())) == 1
    pool.submit(1, own_pid, None)
    assert results(pool, 1)[1].value not in (None, os.getpid())


def test_workers_without_a_gpu_are_refused_for_a_gpu_engine(pool: DaskPool) -> None:
    address = pool.client.scheduler.address
    with pytest.raises(ResourceError, match=rf"worker .* of {address} has no GPU for the engine: .*dask cuda worker"):
        DaskPool.connect(address, CUDA, "dask cuda worker")


def test_the_error_of_a_missing_dask_cuda_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dask_cuda", None)
    with pytest.raises(ResourceError, match=r"need dask-cuda, but dask_cuda is not installed \(pip install"):
        dask_tasks.start_cluster(["0"], None, False)


def test_the_error_of_gpu_workers_that_do_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(**options: object) -> None:
        raise ValueError("RMM pool requested but module 'rmm' is not available")

    monkeypatch.setitem(sys.modules, "dask_cuda", types.SimpleNamespace(LocalCUDACluster=start))
    with pytest.raises(ResourceError, match=r"a cluster of 2 local GPUs could not be started \(RMM pool"):
        DaskPool.on_gpus(["0", "1"], "1GB")


@pytest.mark.parametrize(("wanted", "protocol"), [(False, "tcp"), (True, "tls")])
def test_workers_on_gpus_use_tls_where_dask_is_told_to(monkeypatch, wanted, protocol):
    seen: list[dict[str, Any]] = []
    start = types.SimpleNamespace(LocalCUDACluster=lambda **options: seen.append(options))
    monkeypatch.setitem(sys.modules, "dask_cuda", start)
    with dask.config.set({"distributed.comm.require-encryption": wanted}):
        dask_tasks.start_cluster(["0"], None, False)
    assert [options["protocol"] for options in seen] == [protocol]


def opened(monkeypatch: pytest.MonkeyPatch, options: WorkerOptions, visible: str) -> str:
    """The pool of a run with these options, in words. No process is started."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(DaskPool, "on_gpus", lambda devices, rmm_pool, spill: FakePool(words=f"Dask {devices}"))
    monkeypatch.setattr("bicliques.pipeline.workers.processes.Processes", on_devices)
    with open_pool(options, CUDA) as made:
        return made.describe()


def on_devices(devices: list[str], platform: Platform, here: str, at_once: bool) -> FakePool:
    assert platform is CUDA
    first = f"{devices[0]} here, " if here == "first" else ""
    return FakePool(words=f"{first}{devices[here == 'first' :]} {'at once' if at_once else 'later'}")


@pytest.mark.parametrize(
    ("options", "visible", "wanted"),
    [
        (WorkerOptions(), "0", "this process, one GPU"),
        (WorkerOptions(workers=0), "0,1", "this process, one GPU"),
        (WorkerOptions(workers=1), "7", "this process, one GPU"),
        (WorkerOptions(), "0,1,2,3", "0 here, ['1', '2', '3'] later"),
        (WorkerOptions(workers=2), "0,1,2,3", "0 here, ['1'] at once"),
        (WorkerOptions(devices=(0, 3)), "0,1,2,3", "0 here, ['3'] at once"),
        (WorkerOptions(devices=(1, 3)), "0,1,2,3", "['1', '3'] at once"),
        (WorkerOptions(devices=(1, 0)), "0,1", "['1', '0'] at once"),
        (WorkerOptions(devices=(0,)), "GPU-a1,GPU-b2", "this process, one GPU"),
        (WorkerOptions(devices=(1,)), "GPU-a1,GPU-b2", "['GPU-b2'] at once"),
        (WorkerOptions(rmm_pool="1GB"), "0", "Dask ['0']"),
        (WorkerOptions(spill=True, workers=2), "0,1,2", "Dask ['0', '1']"),
    ],
)
def test_options_decide_on_which_gpus_slices_begin_and_go_on(monkeypatch, options, visible, wanted):
    assert opened(monkeypatch, options, visible) == wanted


@pytest.mark.parametrize(
    ("make", "visible", "error", "words"),
    [
        (lambda: choose_devices(None, None), "", ResourceError, "no GPU is visible; choose engine='cpu'"),
        (
            lambda: choose_devices([2], None),
            "0,1",
            InputError,
            "there is no GPU 2 here, GPUs 0 to 1; correct devices",
        ),
        (lambda: choose_devices([1], None), "0", InputError, "there is no GPU 1 here, GPU 0 only"),
        (lambda: choose_devices([1, 1], None), "0,1", InputError, "named twice"),
        (lambda: choose_devices(None, 3), "0,1", InputError, "3 workers need a GPU each, and there are 2"),
        (lambda: WorkerOptions(scheduler="tcp://x:1", devices=(0,)), "0", InputError, "options of the workers of a"),
        (lambda: check_workers(WorkerOptions(devices=(0,)), CORES), "0", InputError, "works on processor cores"),
    ],
)
def test_impossible_options_of_gpu_workers_are_refused(monkeypatch, make, visible, error, words):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(error, match=words):
        make()


def test_the_engine_is_chosen_for_the_schedulers_workers_not_the_driver(pool):
    address = pool.client.scheduler.address
    with registered(unable("bitmatrix", "this driver has no GPU")):
        assert engines.choose("bitmatrix", ask_workers(address)).name == "bitmatrix"
        assert engines.choose("auto", ask_workers(address)).name == "bitmatrix"
        with pytest.raises(ResourceError, match="this driver has no GPU"):
            engines.choose("bitmatrix")
    pool.client.run(forget_engine, workers=list(pool.client.nthreads())[:1])
    choice = engines.choose("auto", ask_workers(address))
    assert choice.name == "cpu"
    assert "says: it is gone" in choice.reason


def forget_engine() -> None:
    engines.register(unable("bitmatrix", "it is gone"))


@pytest.mark.exhaustive
def test_the_option_devices_takes_numbers_between_commas(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["count", "x.csv", "--devices", "0,-1"]) == 2
    assert "argument --devices: " in capsys.readouterr().err
    assert numbers("0,3") == (0, 3)
