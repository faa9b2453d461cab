"""Opens, checks and counts the workers that a user asks for. How they start depends on their engine's platform."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.slices import first_use
from bicliques.pipeline.workers.devices import choose_devices, visible_devices
from bicliques.pipeline.workers.options import Scheduler, WorkerOptions
from bicliques.pipeline.workers.thread_pool import Capacity, InThreads, Pool
from bicliques.schemas.errors import InputError, ResourceError, as_option
from bicliques.schemas.platform import CORES, EngineKind, Platform

if TYPE_CHECKING:
    from bicliques.pipeline.workers.dask_pool import DaskPool

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
    """The class `pipeline.workers.dask_pool.DaskPool`, imported only when it is needed, because it imports Dask."""
    with startup.getting_ready():
        try:
            from bicliques.pipeline.workers.dask_pool import DaskPool
        except ModuleNotFoundError as error:
            raise ResourceError(
                f"worker processes need Dask, but {error.name} is not installed (pip install 'bicliques[cluster]'); "
                f"without {as_option('workers')} and {as_option('scheduler')} the cores of this process are used"
            ) from error
    return DaskPool


def _check_cores(options: WorkerOptions) -> None:
    if options.on_gpus:
        raise InputError(
            f"the engine works on processor cores: leave {as_option('devices')}, {as_option('rmm_pool')} and "
            f"{as_option('spill')} out"
        )
    if options.workers:
        dask_pool()


def _open_cores(options: WorkerOptions) -> Pool:
    if options.workers:
        return dask_pool().local(options.workers)
    # threads start at once, and share graph, labels and code
    return InThreads(count_cores() if options.workers is None else 1, most_seconds=_MOST_SECONDS)


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
    from bicliques.pipeline.workers.processes import Processes  # only where there are several GPUs

    return Processes(devices, CUDA, "first" if uses_first else "never", at_once=_asks_for_gpus(options))


def _asks_for_gpus(options: WorkerOptions) -> bool:
    return bool(options.workers or options.devices is not None) and not (options.rmm_pool or options.spill)


#: How workers start, by the name of the platform.
LOCAL_WORKERS: dict[str, LocalWorkers] = {
    CORES.name: LocalWorkers(_check_cores, _open_cores, "dask worker"),
    CUDA.name: LocalWorkers(_check_gpus, _open_gpus, "dask cuda worker", _asks_for_gpus),
}


@dataclass
class _Begun:
    """Workers that `begun` has begun to start, until somebody takes them."""

    options: WorkerOptions
    pool: Pool | None

    def take(self) -> Pool | None:
        pool, self.pool = self.pool, None
        return pool


_begun: ContextVar[_Begun | None] = ContextVar("begun", default=None)


def check_workers(options: WorkerOptions, platform: Platform) -> None:
    """Refuse workers that the engine cannot have, before anything is read or written.

    Raises `InputError` if options of GPUs come with an engine on cores, or GPUs are named that are not there. Raises
    `ResourceError` if the engine needs a GPU, and there is none. If workers need Dask, and it is not installed.
    """
    if options.scheduler is None:
        LOCAL_WORKERS[platform.name].check(options)


def expected_capacity(options: WorkerOptions, platform: Platform) -> Capacity | None:
    """How many workers a run would have. 0: this process alone. None: no option says anything of workers.

    Other workers than those of a scheduler have one slot here. Raises `InputError` if the client or the cluster that is
    given as scheduler cannot be used, and `ResourceError` if the scheduler does not answer or has no workers.
    """
    if options.scheduler is not None:
        pool = _connect(options.scheduler, platform)
        try:
            return pool.capacity()
        finally:
            pool.close()
    if options.devices is not None:
        workers: int | None = len(choose_devices(options.devices, options.workers))
    else:
        workers = options.workers
    return None if workers is None else Capacity(workers, workers)


@contextmanager
def begun(options: WorkerOptions, platform: Platform) -> Iterator[None]:
    """Within it workers start that the user asked for, if they do so by themselves. `open_pool` takes them.

    So they start while the input is read. Errors of the start are raised when the pool is used. Raises `InputError` or
    `ResourceError` where `check_workers` raises it.
    """
    local = LOCAL_WORKERS[platform.name]
    if options.scheduler is not None or not local.starts_by_itself(options):
        yield
        return
    begun = _Begun(options, local.open(options))
    _begun.set(begun)
    try:
        yield
    finally:
        if (pool := begun.take()) is not None:
            pool.close()


def _taken(options: WorkerOptions) -> Pool | None:
    found = _begun.get()
    return found.take() if found is not None and found.options is options else None


@contextmanager
def open_pool(options: WorkerOptions, platform: Platform = CORES) -> Iterator[Pool]:
    """The workers that a user asked for, ready to work. They are closed after the block.

    Raises `InputError` where `check_workers` raises it, or if the client or the cluster of a scheduler cannot be used,
    and `ResourceError` if the scheduler does not answer or has no workers, or workers do not start.

    Parameters
    ----------
    platform : Platform
        What the engine of a worker runs on.
    """
    with startup.getting_ready():
        check_workers(options, platform)
        if options.scheduler is not None:
            pool: Pool = _connect(options.scheduler, platform)
        else:
            pool = _taken(options) or LOCAL_WORKERS[platform.name].open(options)
    try:
        yield pool
    finally:
        pool.close()


def ask_workers(scheduler: Scheduler) -> Callable[[EngineKind], str | None]:
    """A function that says why an engine cannot run on the workers of a scheduler.

    It takes the kind of an engine, and returns a clause about the first worker that cannot run it. None if all can.
    Raises `InputError` if the client or the cluster that is given as scheduler cannot be used, and `ResourceError` if
    the scheduler does not answer or has no workers.
    """
    pool = _connect(scheduler, CORES)
    try:
        answers = pool.reasons()
    finally:
        pool.close()

    def ask(kind: EngineKind) -> str | None:
        told = ((name, reasons.get(kind.name, "it does not know it")) for name, reasons in answers.items())
        return next((f"worker {name} says: {reason}" for name, reason in told if reason is not None), None)

    return ask


def _connect(scheduler: Scheduler, platform: Platform) -> DaskPool:
    return dask_pool().connect(scheduler, platform, LOCAL_WORKERS[platform.name].command)


#: On fewer cores threads are nearly as fast. Four processes read three times as many rows per second as four threads.
CORES_WORTH_PROCESSES = 4
#: Each process computes the hashes of all vertices for itself, which takes 8 bytes per vertex and some time.
MOST_VERTICES = 1 << 21


def are_faster(n_vertices: int, pool: Pool, platform: Platform, on_device: bool) -> bool:
    """Whether workers of their own read rows faster than `pool`, which mined them on this machine.

    Parameters
    ----------
    n_vertices : int
        Vertices of both sides of the graph whose rows are read.
    platform : Platform
        What the engine of the pool runs on.
    on_device : bool
        Whether a GPU reads.
    """
    if platform.leaves_cores:
        return pool.has_threads or not on_device
    return pool.has_threads and _are_worth_processes(n_vertices)


def _are_worth_processes(n_vertices: int) -> bool:
    return count_cores() >= CORES_WORTH_PROCESSES and n_vertices <= MOST_VERTICES


def on_all_cores(n_vertices: int) -> Pool:
    """A pool with a thread per core. After `grow` it has a process per core, if they are worth it.

    Parameters
    ----------
    n_vertices : int
        Vertices of both sides of the graph whose rows are read.
    """
    n = count_cores()
    if not _are_worth_processes(n_vertices):
        return InThreads(n)

    from bicliques.pipeline.workers.processes import Processes  # only where there may be many rows

    return Processes([None] * n, CORES, "meanwhile", at_once=False, get_ready=first_use.before_proving)
