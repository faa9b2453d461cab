"""The workers a user asked for. Not part of a run's identity: a run may be resumed with others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline import startup
from pipeline.engines import EngineKind, Place
from pipeline.gpu.devices import Devices, choose_devices, device_numbers
from pipeline.growing import Growing
from pipeline.pool import InProcess, Pool
from pipeline.threads import InThreads
from pipeline.writing import WriteOn
from schemas.errors import InputError

__all__ = ["WorkerOptions", "ask_workers", "check_workers", "count_workers", "open_pool"]


@dataclass(frozen=True)
class WorkerOptions:
    """How many workers, and where. Not part of a run's identity: a run may be resumed with others.

    Parameters
    ----------
    workers : int or None
        Processes on this machine; 0 works in this one. None starts one a core, or one a GPU where there are
        several, as soon as a run takes longer than a second.
    scheduler : str or None
        Address of a running Dask scheduler, such as ``tls://10.0.0.1:8786``, whose workers see the run's
        folder under the same path; instead of `workers`.
    slice_seconds : float
        Longest time a worker works without reporting, in seconds.
    devices : int, str, sequence of int or None
        With a GPU engine: start a worker on each of these GPUs, counted from 0, as ``[0, 1]`` or ``"0,1"``; None for
        all.
    rmm_pool : str or None
        With a GPU engine: a pool of so much device memory in each worker, as ``40GB`` or ``0.8`` of the device.
    spill : bool
        With a GPU engine: cuDF moves its buffers to main memory when a device is full.
    write_on : "auto", "cpu" or "gpu"
        With a GPU engine: who encodes what it finds; see `pipeline.writing.open_writer`.
    """

    workers: int | None = None
    scheduler: str | None = None
    slice_seconds: float = 10.0
    devices: Devices | None = None
    rmm_pool: str | None = None
    spill: bool = False
    write_on: WriteOn = "auto"

    def __post_init__(self) -> None:
        if self.devices is not None:
            device_numbers(self.devices)  # which refuses other things
        if self.workers is not None and self.workers < 0:
            raise InputError(f"the number of workers must be 0 or more, not {self.workers}")
        if self.workers is not None and self.scheduler is not None:
            raise InputError("give either a number of workers or the address of a scheduler, not both")
        if self.on_gpus and self.scheduler is not None:
            raise InputError(
                "GPUs, pools and spilling are options of the workers of a scheduler; start those with them"
            )
        if self.write_on not in ("auto", "cpu", "gpu"):
            raise InputError(f"writing is on auto, cpu or gpu, not {self.write_on!r}")
        if not self.slice_seconds > 0:
            raise InputError(f"slices must last more than 0 seconds, not {self.slice_seconds}")

    @property
    def on_gpus(self) -> bool:
        """Whether an option is set that only workers on GPUs have."""
        return self.devices is not None or self.rmm_pool is not None or self.spill


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
        What the engine of one worker occupies (`pipeline.engines.EngineKind`).

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
    from pipeline.cluster import DaskPool  # not before it is needed: it imports Dask

    return DaskPool
