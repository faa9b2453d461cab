"""From the workers a user asked for to workers that work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from kernels.kind import EngineKind, Place
from pipeline.process import startup
from pipeline.workers.devices import choose_devices
from pipeline.workers.growing_pool import Growing
from pipeline.workers.options import WorkerOptions
from pipeline.workers.pool import InProcess, Pool
from pipeline.workers.thread_pool import InThreads
from schemas.errors import InputError

__all__ = ["ask_workers", "check_workers", "count_workers", "open_pool"]


def check_workers(options: WorkerOptions, place: Place) -> None:
    """Refuse workers that the engine cannot have, before anything is read or written.

    Raises
    ------
    InputError
        If options of GPUs come with an engine on cores, or GPUs are named that are not there.
    """
    if options.scheduler is not None:
        return
    if place == "gpu" and options.workers != 0:
        choose_devices(options.devices, options.workers)
    if place == "core" and options.on_gpus:
        raise InputError("the engine works on processor cores: leave --devices, --rmm-pool and --spill out")


def count_workers(options: WorkerOptions, place: Place) -> int | None:
    """How many workers would share the work of a run, 0 for this process alone; None if nothing was said of them.

    Raises
    ------
    ResourceError
        If the scheduler does not answer or has no workers.
    """
    if options.scheduler is not None:
        pool = _cluster().connect(options.scheduler, place)
        try:
            return int(pool.workers())
        finally:
            pool.close()
    if options.devices is not None:
        return len(choose_devices(options.devices, options.workers))
    return options.workers


@contextmanager
def open_pool(options: WorkerOptions, place: Place = "core") -> Iterator[Pool]:
    """The workers a user asked for, ready to work; they are gone after the block.

    Parameters
    ----------
    options : WorkerOptions
    place : "core" or "gpu"
        What the engine of one worker occupies (`kernels.kind.EngineKind`).

    Raises
    ------
    ResourceError
        If the scheduler does not answer or has no workers, or workers do not start.
    """
    with startup.getting_ready():
        pool = _open(options, place)
    try:
        yield pool
    finally:
        pool.close()


def ask_workers(scheduler: str) -> Callable[[EngineKind], str | None]:
    """Why an engine cannot run on the workers of a scheduler: a clause that names the first of them, or None.

    Raises
    ------
    ResourceError
        If the scheduler does not answer or has no workers.
    """
    pool = _cluster().connect(scheduler)
    try:
        answers = pool.reasons()
    finally:
        pool.close()

    def ask(kind: EngineKind) -> str | None:
        told = ((name, reasons.get(kind.name, "it does not know it")) for name, reasons in answers.items())
        return next((f"worker {name} says: {reason}" for name, reason in told if reason is not None), None)

    return ask


def _open(options: WorkerOptions, place: Place) -> Any:
    check_workers(options, place)
    if options.scheduler is not None:
        return _cluster().connect(options.scheduler, place)
    if place == "gpu":
        return _open_gpus(options)
    if options.workers == 0:
        return InProcess()
    if options.workers is None:
        return Growing(lambda: _cluster().local(None))
    return _cluster().local(options.workers)


def _open_gpus(options: WorkerOptions) -> Any:
    if options.workers == 0:
        return InThreads()
    devices = choose_devices(options.devices, options.workers)
    start = partial(_cluster().on_gpus, devices, options.rmm_pool, options.spill)
    if options.workers is not None or options.on_gpus:
        return start()
    return Growing(start, InThreads()) if len(devices) > 1 else InThreads()


def _cluster() -> Any:
    from pipeline.workers.dask_pool import DaskPool  # not before it is needed: it imports Dask

    return DaskPool
