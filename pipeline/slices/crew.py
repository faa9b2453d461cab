"""The threads of this process that share a slice (`pipeline.mining.together`). They are kept from slice to slice.

Each thread keeps its engine (`pipeline.slices.engine_turns`). What the work of a node is estimated from is kept, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from pipeline.prepare.weights import RootWeights, weights_of
from pipeline.run.opened import Run
from schemas.errors import BicliqueError

__all__ = ["Crew", "crew_of", "forget", "having_threads", "threads_here"]

_threads: ContextVar[int] = ContextVar("threads", default=1)


def threads_here() -> int:
    """How many threads share a slice here."""
    return _threads.get()


@contextmanager
def having_threads(n: int) -> Iterator[None]:
    """Slices that begin in the block are shared by `n` threads."""
    before = _threads.set(n)
    try:
        yield
    finally:
        _threads.reset(before)


class Crew:
    """So many threads, for one run.

    Parameters
    ----------
    run : Run
    threads : int
    """

    def __init__(self, run: Run, threads: int):
        self.run, self.threads = run, threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="crew")
        self.weights: Callable[[int], RootWeights] = cache(lambda band: weights_of(run.job, run.bands[band][1]))

    def all_do(self, task: Callable[[], None]) -> None:
        """Have each thread do the task once, and wait for all.

        Raises
        ------
        Exception
            What a thread has raised. An error of this package is preferred, because it says what to do.
        """
        ended = [self._executor.submit(task) for _ in range(self.threads)]
        wait(ended)
        errors = [error for future in ended if (error := future.exception()) is not None]
        if errors:
            raise min(errors, key=lambda error: not isinstance(error, BicliqueError))

    def close(self) -> None:
        """End the threads, after what they do now. Their engines go with them."""
        self._executor.shutdown()


_turn = threading.Lock()
_kept: Crew | None = None


@contextmanager
def crew_of(run: Run, threads: int) -> Iterator[Crew]:
    """The threads of this process, for the caller alone until the block ends. It waits while another slice has them."""
    global _kept
    with _turn:
        if _kept is None or (_kept.run, _kept.threads) != (run, threads):
            _end()
            _kept = Crew(run, threads)
        yield _kept


def forget() -> None:
    """End the threads, after their turn, and free what they hold."""
    with _turn:
        _end()


def _end() -> None:
    global _kept
    if _kept is not None:
        _kept.close()
        _kept = None
