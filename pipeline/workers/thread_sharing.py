"""Slices that all threads of this process share (`pipeline.mining.together`), in a run without Dask.

There are two at a time. Threads that have no more to do for the first one, while others still write what they have
found, go on with the second one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pipeline.slices import crew
from pipeline.slices.ending import all_ended

__all__ = ["ThreadSharing"]

_IN_HAND = 2


class ThreadSharing:
    """See `pipeline.workers.pool.Sharing`.

    Parameters
    ----------
    threads : int
    ended : callable
        (tag, future) -> None. It is called for each task that has ended.
    """

    in_hand = _IN_HAND

    def __init__(self, threads: int, ended: Callable[[int, Future[Any]], None]) -> None:
        self._n, self._ended = threads, ended
        self._leading = ThreadPoolExecutor(_IN_HAND, thread_name_prefix="leading")
        self._running: set[int] = set()

    def workers(self) -> int:
        """One, this process."""
        return 1

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Start the task in a thread that waits for those which share the slice."""

        def shared() -> Any:
            with crew.having_threads(self._n):
                return function(argument)

        def ended(future: Future[Any]) -> None:
            self._running.discard(tag)
            self._ended(tag, future)

        self._running.add(tag)
        self._leading.submit(shared).add_done_callback(ended)

    def idle(self) -> int:
        """Threads that have no more to do for the slices that are there."""
        if not self._running:
            return self._n
        at_work = crew.threads_at_work()
        return self._n - at_work if at_work else 0  # a slice that nobody works on has just begun, or is about to end

    def end(self) -> None:
        """End the slices at their next safe point. Slices that are submitted later are mined as usual."""
        with all_ended():
            pass

    def close(self) -> None:
        """End the slices, and wait for that."""
        with all_ended():
            self._leading.shutdown(cancel_futures=True)
