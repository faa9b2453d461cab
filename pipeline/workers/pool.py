"""The protocol `Pool` of everything that runs slices, and the pool that runs them in this process."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.slices import worker
from schemas.errors import ResourceError

__all__ = ["InProcess", "Pool", "Result", "WorkerLostError", "run_all"]

#: How many workers may die with the same task before the task is given up.
_ATTEMPTS = 3


class WorkerLostError(Exception):
    """A worker died while it had a task. The task may be tried again."""


@dataclass(frozen=True)
class Result:
    """How the task with the number `tag` ended: with a value, or with an error."""

    tag: int
    value: Any = None
    error: BaseException | None = None


class Pool(Protocol):
    """Runs functions on workers."""

    def slots(self) -> int:
        """How many tasks the pool takes at a time, now. The number may change, because workers may come and go."""
        ...

    def workers(self) -> int:
        """How many engines work at a time, now. Fewer than slots if one slice is written while another is mined."""
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
        """Start more workers, if the pool may, because there is enough work. `slots` says when they are there."""
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

    def slots(self) -> int:
        """One."""
        return 1

    def workers(self) -> int:
        """One."""
        return 1

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


def run_all(pool: Pool, function: Callable[[Any], Any], arguments: list[Any]) -> Iterator[tuple[int, Any]]:
    """Run `function` on every argument, a few at a time.

    Yields
    ------
    (int, object)
        Position of the argument, and the value for it, in the order in which the tasks end.

    Raises
    ------
    ResourceError
        If workers die three times with the same task.
    Exception
        Whatever the function raised.
    """
    waiting = deque(enumerate(arguments))
    lost: Counter[int] = Counter()
    running = 0
    while waiting or running:
        while waiting and running < pool.slots() + 1:
            tag, argument = waiting.popleft()
            pool.submit(tag, function, argument)
            running += 1
        for result in pool.wait(0.2):
            running -= 1
            if isinstance(result.error, WorkerLostError):
                lost[result.tag] += 1
                if lost[result.tag] == _ATTEMPTS:
                    raise ResourceError(f"a task failed {_ATTEMPTS} times: {result.error}") from result.error
                waiting.append((result.tag, arguments[result.tag]))
            elif result.error is not None:
                raise result.error
            else:
                yield result.tag, result.value
