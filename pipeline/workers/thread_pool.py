"""What runs slices: the base class of all pools of workers, how a task ended, and a pool of threads of this process.

On processor cores each thread has an engine of its own, because compiled search and Arrow let other threads run. Many
threads share each slice. On a GPU all threads share one engine: one thread searches while another one writes.
"""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from bicliques.pipeline.process.children import identity
from bicliques.pipeline.slices import thread_team, worker
from bicliques.pipeline.slices.ending import all_ended


class WorkerLostError(Exception):
    """A worker died while it had a task. The task may be tried again."""


@dataclass(frozen=True)
class Result:
    """How the task with the number `tag` ended: with a value, or with an error."""

    tag: int
    value: Any = None
    error: BaseException | None = None


class Capacity(NamedTuple):
    """How much a pool does at a time.

    Parameters
    ----------
    slots : int
        Tasks of one thread that it takes.
    workers : int
        Engines that work. Fewer than slots if one slice is written while another is mined.
    shared : (int, int) or None
        Where the threads of a worker share slices: slices that the pool takes, and its workers. None: each engine has
        slices of its own.
    """

    slots: int
    workers: int
    shared: tuple[int, int] | None = None


class Pool(ABC):
    """Runs functions on workers.

    Attributes
    ----------
    has_threads : bool
        Whether its tasks run on several threads of this process, which wait for one another when they read rows.
    """

    has_threads = False

    @abstractmethod
    def capacity(self) -> Capacity:
        """How much it does now. That may change, because workers may come and go."""

    @abstractmethod
    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` once on every worker, and wait for it."""

    @abstractmethod
    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
        """Run ``function(argument)`` on some worker. `wait` returns the result with `tag`.

        A task that runs `on_all_threads` is told how many its worker has (`pipeline.slices.thread_team.threads_here`).
        """

    @abstractmethod
    def wait(self, seconds: float) -> list[Result]:
        """The results of tasks that have ended. Waits up to `seconds` for the first."""

    @abstractmethod
    def describe(self) -> str:
        """The workers in a few words, for the run card."""

    @abstractmethod
    def close(self) -> None:
        """Stop the workers that the pool owns, and free what its workers hold. The pool cannot be used afterwards."""

    def idle(self, free: int) -> int:
        """Tasks of one thread for which there is room, where no slice has `free` of the slots."""
        return free

    def end_slices(self) -> None:
        """End slices early that threads share. What they have not done comes back as their left-over."""
        return

    def grow(self) -> None:
        """Start more workers, if the pool may, because there is enough work. `capacity` says when they are there."""
        return

    def longest_task_s(self) -> float | None:
        """Seconds that a task should take at most, for now. None: any time."""
        return None

    def who(self, tag: int) -> str:
        """Host and process of the worker that has a task now. Empty if none has it, or it is not known."""
        return ""

    def dashboard(self) -> str:
        """Address of a page about the workers. Empty if there is none."""
        return ""


#: Slices that threads share at a time. A thread that is done with one goes on with the other.
_IN_HAND = 2
#: Up to so many threads on cores have a slice each. Two lose a twentieth by sharing when they list, and sixteen that
#: have a slice each are idle for more than a third of a short run (docs/lab/scaling.md).
FEW_THREADS = 4


class InThreads(Pool):
    """Runs tasks on threads of this process; see `Pool`.

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
        self.has_threads = threads > 1
        self._shares = threads > FEW_THREADS and not share_engine
        self._leading = ThreadPoolExecutor(_IN_HAND, thread_name_prefix="leading")  # each waits for those which share
        self._led: set[Future[Any]] = set()

    def capacity(self) -> Capacity:
        """The number of threads, which share slices if there are many; one worker if they share an engine."""
        return Capacity(self._n, 1 if self._share_engine else self._n, (_IN_HAND, 1) if self._shares else None)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` once in this process."""
        function(argument)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
        """Start the task as soon as a thread is free, or at once if many threads share it."""
        if on_all_threads and self._shares:
            future = self._leading.submit(thread_team.on_threads, self._n, function, argument)
            self._led.add(future)
            future.add_done_callback(self._led.discard)
        else:
            future = self._threads.submit(function, argument)
        future.add_done_callback(lambda done: self._done.put((tag, done)))

    def wait(self, seconds: float) -> list[Result]:
        """All tasks that have ended. Waits up to `seconds` for the first."""
        results = []
        with suppress(queue.Empty):
            tag, future = self._done.get(timeout=seconds)
            while True:
                results.append(_result(tag, future))
                tag, future = self._done.get_nowait()
        return results

    def idle(self, free: int) -> int:
        """If threads share slices, those that have no more to do for the slices that are there."""
        if not self._shares:
            return free
        if not self._led:
            return self._n
        at_work = thread_team.threads_at_work()
        return self._n - at_work if at_work else 0  # a slice that nobody works on has just begun, or is about to end

    def end_slices(self) -> None:
        """End slices that threads share at their next safe point. Those that come later are mined as usual."""
        if self._shares:
            with all_ended():
                pass

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
        return identity()

    def close(self) -> None:
        """Wait for running tasks, drop the others, and free the memory of the last run. Slices that are shared end."""
        if self._shares:
            with all_ended():
                self._leading.shutdown(cancel_futures=True)
        self._threads.shutdown(cancel_futures=True)
        worker.forget()


def _result(tag: int, future: Future[Any]) -> Result:
    try:
        return Result(tag, value=future.result())
    except (Exception, CancelledError) as error:
        return Result(tag, error=error)
