"""The protocol `Pool` of everything that runs slices, and the pool that runs them in this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from bicliques.pipeline.slices import worker


class WorkerLostError(Exception):
    """A worker died while it had a task. The task may be tried again."""


@dataclass(frozen=True)
class Result:
    """How the task with the number `tag` ended: with a value, or with an error."""

    tag: int
    value: Any = None
    error: BaseException | None = None


class Sharing(Protocol):
    """The workers of a pool whose threads share slices.

    Parameters
    ----------
    in_hand : int
        Slices that a worker has at a time. Threads that are done with one go on with another.
    """

    in_hand: int

    def workers(self) -> int:
        """How many there are."""
        ...

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """As `Pool.submit`, on the worker with the fewest slices. `crew.threads_here` says how many threads it has."""
        ...

    def idle(self) -> int:
        """Threads of all workers together that no slice needs."""
        ...

    def end(self) -> None:
        """End all slices early, where that is possible. What they have not done comes back as their left-over."""
        ...


class Capacity(NamedTuple):
    """How much a pool does at a time.

    Parameters
    ----------
    slots : int
        Tasks that it takes.
    workers : int
        Engines that work. Fewer than slots if one slice is written while another is mined.
    sharing : Sharing or None
        The workers whose threads are to share slices. None: each engine has its own.
    """

    slots: int
    workers: int
    sharing: Sharing | None = None


class Pool(Protocol):
    """Runs functions on workers."""

    def capacity(self) -> Capacity:
        """How much it does now. That may change, because workers may come and go."""
        ...

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` once on every worker, and wait for it."""
        ...

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` on some worker. `wait` returns the result with `tag`."""
        ...

    def wait(self, seconds: float) -> list[Result]:
        """The results of tasks that have ended. Waits up to `seconds` for the first."""
        ...

    def grow(self) -> None:
        """Start more workers, if the pool may, because there is enough work. `capacity` says when they are there."""
        ...

    def longest_task_s(self) -> float | None:
        """Seconds that a task should take at most, for now. None: any time."""
        ...

    def describe(self) -> str:
        """The workers in a few words."""
        ...

    def who(self, tag: int) -> str:
        """Host and process of the worker that has a task now. Empty if none has it, or it is not known."""
        ...

    def dashboard(self) -> str:
        """Address of a page about the workers. Empty if there is none."""
        ...

    def close(self) -> None:
        """Stop the workers that the pool owns, and free what its workers hold. The pool cannot be used afterwards."""
        ...


class InProcess:
    """A pool of one slot, which is this process. A task runs when `wait` is called."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Callable[[Any], Any], Any]] = deque()

    def capacity(self) -> Capacity:
        """One of everything."""
        return Capacity(1, 1)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` in this process."""
        function(argument)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Remember the task."""
        self._waiting.append((tag, function, argument))

    def wait(self, seconds: float) -> list[Result]:
        """Run the oldest task to its end, however long it takes."""
        if not self._waiting:
            return []
        tag, function, argument = self._waiting.popleft()
        try:
            return [Result(tag, value=function(argument))]
        except Exception as error:
            return [Result(tag, error=error)]

    def grow(self) -> None:
        """Do nothing, because there is only this process."""

    def longest_task_s(self) -> float | None:
        """Two seconds, because progress and Ctrl-C have to wait for the task."""
        return 2.0

    def describe(self) -> str:
        """The process in words, for the run card."""
        return "this process"

    def who(self, tag: int) -> str:
        """The name of this process."""
        return worker.identity()

    def dashboard(self) -> str:
        """An empty address, because there is no page."""
        return ""

    def close(self) -> None:
        """Free the memory of the last run."""
        worker.forget()
