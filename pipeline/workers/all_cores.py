"""All cores of this machine for the proof: threads of this process at first, and processes if there are many rows."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.slices import first_use
from bicliques.pipeline.workers.pool import Capacity, InProcess, Pool, Result
from bicliques.pipeline.workers.thread_pool import InThreads
from bicliques.schemas.platform import Platform


class Growing:
    """Runs tasks in this process at first. After `grow` it runs them on the pool of `start`, once that is ready.

    Parameters
    ----------
    start : callable
        () -> pool of the workers.
    here : Pool or None
        The pool of this process. None: an `InProcess`.
    """

    def __init__(self, start: Callable[[], Pool], here: Pool | None = None):
        self._start = start
        self._here = InProcess() if here is None else here
        self._running_here = 0
        self._coming: Pool | None = None  # started, perhaps not yet ready
        self._workers: Pool | None = None  # ready
        self._closing = False
        self._starting: Thread | None = None
        self._error: BaseException | None = None
        self._prepare: tuple[Callable[[Any], Any], Any] | None = None

    def capacity(self) -> Capacity:
        """That of the pool that is used now."""
        return self._now.capacity()

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` in this process now, and on the workers when they are there."""
        self._prepare = (function, argument)
        self._now.everywhere(function, argument)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Give the task to the workers if they are there, else to this process."""
        if (workers := self._workers) is None:
            self._running_here += 1
            self._here.submit(tag, function, argument)
        else:
            workers.submit(tag, function, argument)

    def wait(self, seconds: float) -> list[Result]:
        """The tasks that have ended: in this process while it has tasks, later on the workers."""
        if self._error is not None:
            raise self._error
        workers = self._workers  # read once, because another thread may set it at any moment
        if self._running_here or workers is None:
            results = self._here.wait(seconds)
            self._running_here -= len(results)
            return results or (workers.wait(0) if workers is not None else [])
        self._here.close()  # all further tasks go to the workers
        return workers.wait(seconds)

    def grow(self) -> None:
        """Start the workers in the background. Later calls do nothing."""
        if self._starting is None:
            self._starting = Thread(target=self._bring, daemon=True)
            self._starting.start()

    def longest_task_s(self) -> float | None:
        """Half a second until the workers are there, because they would wait for a longer task of this process."""
        return 0.5 if self._workers is None else None

    def describe(self) -> str:
        """The workers that are used now, in a few words."""
        return self._now.describe()

    def who(self, tag: int) -> str:
        """The name of the worker that has the task."""
        return self._now.who(tag)

    def dashboard(self) -> str:
        """Address of the dashboard of the workers. Empty until they are there."""
        return "" if self._workers is None else self._workers.dashboard()

    def close(self) -> None:
        """Close both pools, however far the workers have come."""
        self._closing = True
        self._here.close()
        if (coming := self._coming) is not None:
            coming.close()
        if self._starting is not None:
            self._starting.join()
        if (came := self._coming) is not None and came is not coming:  # the workers came meanwhile
            came.close()

    @property
    def _now(self) -> Pool:
        return self._here if self._workers is None else self._workers

    def _bring(self) -> None:
        try:
            self._coming = coming = self._start()
            if self._prepare is not None and not self._closing:
                coming.everywhere(*self._prepare)
            self._workers = coming
        except BaseException as error:
            self._error = error


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
    pool : Pool
    platform : Platform
        What the engine of the pool runs on.
    on_device : bool
        Whether a GPU reads.
    """
    has_threads = type(pool) is InThreads
    if platform.leaves_cores:
        return has_threads or not on_device
    return has_threads and _are_worth_processes(n_vertices)


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

    def start() -> Pool:
        from bicliques.pipeline.workers.process_pool import InProcesses  # only where there are many rows

        return InProcesses(n, first_use.before_proving)

    return Growing(start, InThreads(n))
