"""How workers of this machine start. It depends on the platform that their engine runs on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernels.gpu.cuda import CUDA
from pipeline.process import startup
from pipeline.process.cores import count_cores
from pipeline.workers.devices import choose_devices, visible_devices
from pipeline.workers.options import WorkerOptions
from pipeline.workers.pool import InProcess, Pool
from pipeline.workers.thread_pool import InThreads
from schemas.errors import InputError, ResourceError
from schemas.platform import CORES

if TYPE_CHECKING:
    from pipeline.workers.dask_pool import DaskPool

__all__ = ["LOCAL_WORKERS", "LocalWorkers", "dask_pool"]

#: Longest slice of a thread on a core, in seconds. It is short, because the end of a run waits for it.
_MOST_SECONDS = 2.0


@dataclass(frozen=True)
class LocalWorkers:
    """How the workers of one `schemas.platform.Platform` start.

    Parameters
    ----------
    check : callable
        (options) -> None. It raises an `InputError` for options that such workers cannot have, or a `ResourceError` if
        there is no device.
    open : callable
        (options) -> the pool that the user asked for.
    command : str
        The command that starts such a worker of a Dask scheduler.
    starts_by_itself : callable
        (options) -> whether `open` begins to start the workers that the options ask for, and does not wait for them.
    """

    check: Callable[[WorkerOptions], None]
    open: Callable[[WorkerOptions], Pool]
    command: str
    starts_by_itself: Callable[[WorkerOptions], bool] = lambda options: False


def dask_pool() -> type[DaskPool]:
    """The class `pipeline.workers.dask_pool.DaskPool`. It is imported only when it is needed, because it imports Dask.

    Raises
    ------
    ResourceError
        If Dask is not installed.
    """
    with startup.getting_ready():
        try:
            from pipeline.workers.dask_pool import DaskPool
        except ModuleNotFoundError as error:
            raise ResourceError(
                f"worker processes need Dask, but {error.name} is not installed (pip install 'bicliques[cluster]'); "
                "without --workers and --scheduler the cores of this process are used"
            ) from error
    return DaskPool


def _check_cores(options: WorkerOptions) -> None:
    if options.on_gpus:
        raise InputError("the engine works on processor cores: leave --devices, --rmm-pool and --spill out")
    if options.workers:
        dask_pool()


def _open_cores(options: WorkerOptions) -> Pool:
    if options.workers == 0:
        return InProcess()
    if options.workers is None:  # threads start at once, and share graph, labels and code
        return InThreads(count_cores(), most_seconds=_MOST_SECONDS)
    return dask_pool().local(options.workers)


def _check_gpus(options: WorkerOptions) -> None:
    if options.workers != 0:
        choose_devices(options.devices, options.workers)


def _open_gpus(options: WorkerOptions) -> Pool:
    if options.workers == 0:
        return InThreads(CUDA.slices_in_hand, share_engine=True)
    devices = choose_devices(options.devices, options.workers)
    if options.rmm_pool or options.spill:  # dask-cuda knows how
        return dask_pool().on_gpus(devices, options.rmm_pool, options.spill)
    uses_first = devices[0] == visible_devices()[0]
    if uses_first and len(devices) == 1:
        return InThreads(CUDA.slices_in_hand, share_engine=True)
    from pipeline.workers.on_devices import OnDevices  # only where there are several GPUs

    return OnDevices(devices, CUDA, uses_first, at_once=_asks_for_gpus(options))


def _asks_for_gpus(options: WorkerOptions) -> bool:
    return bool(options.workers or options.devices is not None) and not (options.rmm_pool or options.spill)


#: How workers start, by the name of the platform.
LOCAL_WORKERS: dict[str, LocalWorkers] = {
    CORES.name: LocalWorkers(_check_cores, _open_cores, "dask worker"),
    CUDA.name: LocalWorkers(_check_gpus, _open_gpus, "dask cuda worker", _asks_for_gpus),
}
