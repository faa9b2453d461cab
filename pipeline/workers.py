"""The workers a user asked for. Not part of a run's identity: a run may be resumed with others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pipeline.engines import Place
from pipeline.growing import Growing
from pipeline.pool import InProcess, Pool
from schemas.errors import InputError

__all__ = ["WorkerOptions", "open_pool"]


@dataclass(frozen=True)
class WorkerOptions:
    """How many workers, and where. Not part of a run's identity: a run may be resumed with others.

    Parameters
    ----------
    workers : int or None
        Processes on this machine; 0 works in this one. None starts one a core as soon as a run takes longer
        than a second, and with a GPU engine works in this one.
    scheduler : str or None
        Address of a running Dask scheduler, such as ``tcp://10.0.0.1:8786``, whose workers see the run's
        folder under the same path; instead of `workers`.
    slice_seconds : float
        Longest time a worker works without reporting, in seconds.
    """

    workers: int | None = None
    scheduler: str | None = None
    slice_seconds: float = 10.0

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 0:
            raise InputError(f"the number of workers must be 0 or more, not {self.workers}")
        if self.workers is not None and self.scheduler is not None:
            raise InputError("give either a number of workers or the address of a scheduler, not both")
        if not self.slice_seconds > 0:
            raise InputError(f"slices must last more than 0 seconds, not {self.slice_seconds}")


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
    pool = _open(options, place)
    try:
        yield pool
    finally:
        pool.close()


def _open(options: WorkerOptions, place: Place) -> Any:
    if options.scheduler is not None:
        return _cluster().connect(options.scheduler)
    if options.workers == 0 or (options.workers is None and place == "gpu"):
        return InProcess()
    if options.workers is None:
        return Growing(lambda: _cluster().local(None))
    return _cluster().local(options.workers)


def _cluster() -> Any:
    from pipeline.cluster import DaskPool  # only here: it imports Dask

    return DaskPool
