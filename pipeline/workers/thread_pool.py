"""A pool of threads of this process.

On processor cores each thread has an engine of its own, because compiled search and Arrow let other threads run. Many
threads share each slice. On a GPU all threads share one engine: one thread searches while another one writes.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

from bicliques.pipeline.slices import crew, worker
from bicliques.pipeline.slices.ending import all_ended
from bicliques.pipeline.workers.pool import Capacity, Result

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


#: Up to so many threads on cores have a slice each. Two lose a twentieth by sharing when they list, and sixteen that
#: have a slice each are idle for more than a third of a short run (docs/lab/scaling.md).
FEW_THREADS = 4


class InThreads:
    """Runs tasks on threads of this process; see `pipeline.workers.pool.Pool`.

    Parameters
    ----------
    threads : int
        Number of threads.
    share_engine : bool
        Whether all threads use one engine in turns.
    most_seconds : float or None
        Longest time of a task, in seconds. A running task cannot be stopped, so `close` may wait that long, as after a
        second Ctrl-C. None: any time.
    """

    def __init__(self, threads: int, share_engine: bool = False, most_seconds: float | None = None) -> None:
        self._n, self._share_engine, self._most_seconds = threads, share_engine, most_seconds
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="slice")
        self._done: queue.SimpleQueue[tuple[int, Future[Any]]] = queue.SimpleQueue()
        are_many = threads > FEW_THREADS and not share_engine
        self._sharing = ThreadSharing(threads, lambda *ended: self._done.put(ended)) if are_many else None

    def capacity(self) -> Capacity:
        """The number of threads, which share slices if there are many; one worker if they share an engine."""
        return Capacity(self._n, 1 if self._share_engine else self._n, self._sharing)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` once in this process."""
        function(argument)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Start the task as soon as a thread is free."""
        future = self._threads.submit(function, argument)
        future.add_done_callback(lambda done: self._done.put((tag, done)))

    def wait(self, seconds: float) -> list[Result]:
        """All tasks that have ended. Waits up to `seconds` for the first."""
        return ended(self._done, seconds)

    def grow(self) -> None:
        """Do nothing, because the number of threads is fixed."""

    def longest_task_s(self) -> float | None:
        """The `most_seconds` of the pool."""
        return self._most_seconds

    def describe(self) -> str:
        """The process in words, for the run card."""
        if self._share_engine:
            return "this process, one GPU"
        return "this process" if self._n == 1 else f"this process, {self._n} threads"

    def who(self, tag: int) -> str:
        """The name of this process."""
        return worker.identity()

    def dashboard(self) -> str:
        """An empty address, because there is no page."""
        return ""

    def close(self) -> None:
        """Wait for running tasks, drop the others, and free the memory of the last run. Slices that are shared end."""
        if self._sharing is not None:
            self._sharing.close()
        self._threads.shutdown(cancel_futures=True)
        worker.forget()


def ended(done: queue.SimpleQueue[tuple[int, Future[Any]]], seconds: float) -> list[Result]:
    """The results of all futures in the queue, by tag. Waits up to `seconds` for the first."""
    results = []
    try:
        tag, future = done.get(timeout=seconds)
        while True:
            results.append(_result(tag, future))
            tag, future = done.get_nowait()
    except queue.Empty:
        return results


def _result(tag: int, future: Future[Any]) -> Result:
    try:
        return Result(tag, value=future.result())
    except (Exception, CancelledError) as error:
        return Result(tag, error=error)
