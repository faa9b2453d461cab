"""Opens, checks and counts the workers that a user asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.process import startup
from pipeline.workers.devices import choose_devices
from pipeline.workers.local_workers import LOCAL_WORKERS, dask_pool
from pipeline.workers.options import Scheduler, WorkerOptions
from pipeline.workers.pool import Capacity, Pool
from schemas.engine_kind import EngineKind
from schemas.platform import CORES, Platform

if TYPE_CHECKING:
    from pipeline.workers.dask_pool import DaskPool

__all__ = ["ask_workers", "begun", "check_workers", "expected_capacity", "open_pool"]


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

    Raises
    ------
    InputError
        If options of GPUs come with an engine on cores, or GPUs are named that are not there.
    ResourceError
        If the engine needs a GPU, and there is none. If workers need Dask, and it is not installed.
    """
    if options.scheduler is None:
        LOCAL_WORKERS[platform.name].check(options)


def expected_capacity(options: WorkerOptions, platform: Platform) -> Capacity | None:
    """How many workers a run would have. 0: this process alone. None: no option says anything of workers.

    Other workers than those of a scheduler have one slot here.

    Raises
    ------
    InputError
        If the client or the cluster that is given as scheduler cannot be used.
    ResourceError
        If the scheduler does not answer or has no workers.
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

    So they start while the input is read. Errors of the start are raised when the pool is used.

    Raises
    ------
    InputError, ResourceError
        Where `check_workers` raises it.
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

    Parameters
    ----------
    options : WorkerOptions
    platform : Platform
        What the engine of a worker runs on.

    Raises
    ------
    InputError
        Where `check_workers` raises it, or if the client or the cluster of a scheduler cannot be used.
    ResourceError
        If the scheduler does not answer or has no workers, or workers do not start.
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

    Raises
    ------
    InputError
        If the client or the cluster that is given as scheduler cannot be used.
    ResourceError
        If the scheduler does not answer or has no workers.
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
