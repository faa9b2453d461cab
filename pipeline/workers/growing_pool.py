"""A pool that starts more workers when there is enough work for them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from pipeline.workers.pool import Capacity, InProcess, Pool, Result

__all__ = ["Growing"]


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
