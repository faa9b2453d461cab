"""Threads of this process: two for a GPU, one of which searches while the other one writes; many to read back."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from pipeline.slices import worker
from pipeline.workers.pool import Result

__all__ = ["InThreads"]


class InThreads:
    """Tasks on threads of this process; see `pipeline.workers.pool.Pool`.

    Parameters
    ----------
    threads : int
    """

    def __init__(self, threads: int) -> None:
        self._n = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="slice")
        self._done: queue.SimpleQueue[tuple[int, Future[Any]]] = queue.SimpleQueue()

    def slots(self) -> int:
        """The threads."""
        return self._n

    def workers(self) -> int:
        """One: the engine is shared, in turns."""
        return 1

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Here."""
        function(argument)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Start it at once, or as soon as a thread is free."""
        future = self._threads.submit(function, argument)
        future.add_done_callback(lambda done: self._done.put((tag, done)))

    def wait(self, seconds: float) -> list[Result]:
        """All that has ended, the first within `seconds`."""
        results = []
        try:
            tag, future = self._done.get(timeout=seconds)
            while True:
                results.append(_result(tag, future))
                tag, future = self._done.get_nowait()
        except queue.Empty:
            return results

    def grow(self) -> None:
        """Do nothing: the number of threads is fixed."""

    def longest_task_s(self) -> float | None:
        """None: a task may take any time."""
        return None

    def describe(self) -> str:
        """The process in words, for the run card."""
        return "this process, one GPU"

    def who(self, tag: int) -> str:
        """The name of this process."""
        return worker.identity()

    def dashboard(self) -> str:
        """No address: there is no page."""
        return ""

    def close(self) -> None:
        """Wait for what is running, and give the memory of the last run back."""
        self._threads.shutdown(cancel_futures=True)
        worker.forget()


def _result(tag: int, future: Future[Any]) -> Result:
    try:
        return Result(tag, value=future.result())
    except (Exception, CancelledError) as error:
        return Result(tag, error=error)
