"""Workers that are made up: so many of them, in this process, or none."""

import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from bicliques.pipeline.slices.thread_team import on_threads
from bicliques.pipeline.workers.thread_pool import Capacity, Pool, Result


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until it holds. A test that has waited for so long fails."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def results(pool: Pool, n: int) -> dict[int, Result]:
    """So many results, by tag."""
    found: dict[int, Result] = {}
    until(lambda: found.update({result.tag: result for result in pool.wait(0.1)}) or len(found) >= n)
    return found


class FakePool(Pool):
    """A `pipeline.workers.thread_pool.Pool` whose tasks are done here, one after the other, when they are waited for.

    Parameters
    ----------
    n : int
        Workers, and slots.
    instead : callable
        (tag) -> how the task ends without being run; None to run it.
    words : str
        What the workers are called.
    reasons : dict
        Of every worker, why each engine cannot run there, as `DaskPool.reasons`.
    """

    def __init__(
        self,
        n: int = 1,
        instead: Callable[[int], Result | None] = lambda tag: None,
        words: str = "made up",
        reasons: dict[str, dict[str, str | None]] | None = None,
    ):
        self.n, self.instead, self.words = n, instead, words
        self.asked: Counter[int] = Counter()
        self.everywhere_of: list[Any] = []
        self.is_closed = False
        self._reasons = reasons or {}
        self._tasks: deque[tuple[int, Callable[[Any], Any], Any]] = deque()

    def reasons(self) -> dict[str, dict[str, str | None]]:
        return self._reasons

    def capacity(self) -> Capacity:
        return Capacity(self.n, self.n)

    def everywhere(self, function: Callable[[Any], Any], argument: Any) -> None:
        self.everywhere_of.append(argument)
        if self.n:
            function(argument)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
        self.asked[tag] += 1
        self._tasks.append((tag, function, argument))

    def wait(self, seconds: float) -> list[Result]:
        if not self._tasks:
            return []
        tag, function, argument = self._tasks.popleft()
        if (result := self.instead(tag)) is not None:
            return [result]
        try:
            return [Result(tag, value=function(argument))]
        except Exception as error:
            return [Result(tag, error=error)]

    def describe(self) -> str:
        return self.words

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


class SharedInProcess(FakePool):
    """This process as one worker whose threads share each slice.

    Parameters
    ----------
    threads : int
    """

    def __init__(self, threads: int) -> None:
        super().__init__()
        self._threads = threads

    def capacity(self) -> Capacity:
        return Capacity(1, 1, (1, 1))

    def idle(self, free: int) -> int:
        return 0

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
        super().submit(tag, partial(on_threads, self._threads, function), argument)
