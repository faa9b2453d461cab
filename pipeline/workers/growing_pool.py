"""Workers that come when the work turns out to be worth them."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from pipeline.workers.pool import InProcess, Pool, Result

__all__ = ["Growing"]


class Growing:
    """In this process at first; once `grow` is called, on what `start` starts, as soon as it is there.

    Parameters
    ----------
    start : callable
        () -> pool.
    here : Pool or None
        Of this process; None for `InProcess`.
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

    def slots(self) -> int:
        """Here, or of the workers."""
        return self._now.slots()

    def workers(self) -> int:
        """Here, or of the workers."""
        return self._now.workers()

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Here, and on the workers when they come."""
        self._prepare = (function, argument)
        self._now.everywhere(function, argument)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """To the workers, if they are there."""
        if (workers := self._workers) is None:
            self._running_here += 1
            self._here.submit(tag, function, argument)
        else:
            workers.submit(tag, function, argument)

    def wait(self, seconds: float) -> list[Result]:
        """From here while a task is here, then from the workers."""
        if self._error is not None:
            raise self._error
        workers = self._workers  # they may come at any moment
        if self._running_here or workers is None:
            results = self._here.wait(seconds)
            self._running_here -= len(results)
            return results or (workers.wait(0) if workers is not None else [])
        self._here.close()  # nothing will come here any more
        return workers.wait(seconds)

    def grow(self) -> None:
        """Start the workers in the background, the first time."""
        if self._starting is None:
            self._starting = Thread(target=self._bring, daemon=True)
            self._starting.start()

    def longest_task_s(self) -> float | None:
        """Half a second while workers may come, because they would wait until this process has time."""
        return 0.5 if self._workers is None else None

    def describe(self) -> str:
        """The workers that there are now."""
        return self._now.describe()

    def who(self, tag: int) -> str:
        """The name of the worker that has it."""
        return self._now.who(tag)

    def dashboard(self) -> str:
        """Once the workers are there."""
        return "" if self._workers is None else self._workers.dashboard()

    def close(self) -> None:
        """Both, however far the workers have come."""
        self._closing = True
        self._here.close()
        if (coming := self._coming) is not None:
            coming.close()
        if self._starting is not None:
            self._starting.join()
        if (came := self._coming) is not None and came is not coming:  # they came meanwhile
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
