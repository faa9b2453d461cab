"""Where slices run, behind one small protocol: in this process (here), or on Dask workers (`dask_pool`)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.slices import worker
from schemas.errors import ResourceError

__all__ = ["InProcess", "Pool", "Result", "WorkerLostError", "run_all"]

#: How often a task is given to a worker before its death is thought to be the task's fault.
_ATTEMPTS = 3


class WorkerLostError(Exception):
    """A worker died with a task in its hands; the task may be tried again."""


@dataclass(frozen=True)
class Result:
    """How a task ended: with a value, or with an error."""

    tag: int
    value: Any = None
    error: BaseException | None = None


class Pool(Protocol):
    """Something that runs functions elsewhere."""

    def slots(self) -> int:
        """How many tasks it takes at a time, now; workers may come and go."""
        ...

    def workers(self) -> int:
        """How many engines work at a time, now: fewer than slots where one task is written while another is mined."""
        ...

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` once on every worker, and wait for it."""
        ...

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Run ``function(argument)`` somewhere; its result comes out of `wait` with `tag`."""
        ...

    def wait(self, seconds: float) -> list[Result]:
        """What has ended; waits up to `seconds` for the first."""
        ...

    def grow(self) -> None:
        """Start more workers, if the pool may, because there is enough work. `slots` says when they are there."""
        ...

    def longest_task_s(self) -> float | None:
        """A task should not take longer for now, in seconds; None for any time."""
        ...

    def describe(self) -> str:
        """The workers in a few words."""
        ...

    def who(self, tag: int) -> str:
        """Host and process of the worker that has a task in its hands now; empty when none has, or it is not known."""
        ...

    def dashboard(self) -> str:
        """Address of a page about the workers; empty when there is none."""
        ...

    def close(self) -> None:
        """Let the workers go that are its own, and what they hold; nothing is asked of it afterwards."""
        ...


class InProcess:
    """One slot: this very process. A task runs when its result is waited for."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Callable[[Any], Any], Any]] = deque()

    def slots(self) -> int:
        """One."""
        return 1

    def workers(self) -> int:
        """One."""
        return 1

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        """Here."""
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
        """Do nothing: there is only this process."""

    def longest_task_s(self) -> float | None:
        """Two seconds: progress and Ctrl-C have to wait for the task."""
        return 2.0

    def describe(self) -> str:
        """The process in words, for the run card."""
        return "this process"

    def who(self, tag: int) -> str:
        """The name of this process."""
        return worker.identity()

    def dashboard(self) -> str:
        """No address: there is no page."""
        return ""

    def close(self) -> None:
        """Give the memory of the last run back."""
        worker.forget()


def run_all(pool: Pool, function: Callable[[Any], Any], arguments: list[Any]) -> Iterator[tuple[int, Any]]:
    """Run ``function`` on every argument, a few at a time; pairs of position and value, as they end.

    Raises
    ------
    ResourceError
        If workers die with the same task in their hands three times.
    Exception
        What the function raised.
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
