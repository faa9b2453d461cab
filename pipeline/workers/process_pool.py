"""A pool of processes of this machine that read parts back.

Threads of one process wait for one another: for Python's lock, and for memory that the system gives and takes back. On
16 cores 16 threads read twice as many rows per second as one, and 16 processes nine times as many
(docs/lab/commands.md).
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from bicliques.pipeline.process.children import end_with_parent, on_their_own
from bicliques.pipeline.workers.pool import Capacity, Result, WorkerLostError
from bicliques.pipeline.workers.thread_pool import ended


class InProcesses:
    """Runs tasks in processes that it starts; see `pipeline.workers.pool.Pool`. They end when their parent has ended.

    Parameters
    ----------
    n : int
        Number of processes.
    get_ready : callable
        () -> None. Each process calls it first. The pool is there when all have.

    Notes
    -----
    If a process dies, all tasks that run are lost, and other processes are started.
    """

    def __init__(self, n: int, get_ready: Callable[[], None]) -> None:
        self._n, self._get_ready = n, get_ready
        self._done: queue.SimpleQueue[tuple[int, Future[Any]]] = queue.SimpleQueue()
        self._processes = self._start()

    def _start(self) -> ProcessPoolExecutor:
        started = ProcessPoolExecutor(
            self._n, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(self._get_ready,)
        )
        try:
            with on_their_own():  # one process is started for each of these tasks
                for first in [started.submit(os.getpid) for _ in range(self._n)]:
                    first.result()
        except BaseException:
            started.shutdown(cancel_futures=True)
            raise
        return started

    def capacity(self) -> Capacity:
        """The number of processes. Each has one thread."""
        return Capacity(self._n, self._n)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Refuse, because nobody chooses the process of a task.

        Raises
        ------
        NotImplementedError
            Always.
        """
        raise NotImplementedError("processes get ready by themselves")

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Start the task as soon as a process is free. Function and argument are pickled."""
        try:
            future = self._processes.submit(function, argument)
        except BrokenProcessPool:
            self._processes = self._start()
            future = self._processes.submit(function, argument)
        future.add_done_callback(lambda done: self._done.put((tag, done)))

    def wait(self, seconds: float) -> list[Result]:
        """All tasks that have ended. Waits up to `seconds` for the first."""
        return [_without_cause(result) for result in ended(self._done, seconds)]

    def grow(self) -> None:
        """Do nothing, because the number of processes is fixed."""

    def longest_task_s(self) -> float | None:
        """None, because a process that is not needed any more is ended."""
        return None

    def describe(self) -> str:
        """The processes in words, for the run card."""
        return f"{self._n} processes"

    def who(self, tag: int) -> str:
        """An empty name, because it is not known which process has a task."""
        return ""

    def dashboard(self) -> str:
        """An empty address, because there is no page."""
        return ""

    def close(self) -> None:
        """Wait for running tasks, drop the others, and end the processes."""
        self._processes.shutdown(cancel_futures=True)


def _begin(get_ready: Callable[[], None]) -> None:
    threading.Thread(target=end_with_parent, daemon=True).start()
    get_ready()


def _without_cause(result: Result) -> Result:
    if isinstance(result.error, BrokenProcessPool):
        return Result(result.tag, error=WorkerLostError("a process that reads parts back has died"))
    return result
