"""The threads of this process that share slices (`pipeline.slices.shared_slice`). They are kept from slice to slice.

Each thread keeps its engine (`pipeline.slices.engine_turns`). What the work of a node is estimated from is kept, too.
If there are two slices, a thread goes on with the second one as soon as it has no more to do for the first one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from bicliques.pipeline.prepare.weights import RootWeights, weights_of
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import BicliqueError

_threads: ContextVar[int] = ContextVar("threads", default=1)


def threads_here() -> int:
    """How many threads share a slice here."""
    return _threads.get()


def on_threads(n: int, function: Callable[[Any], Any], argument: Any) -> Any:
    """Return ``function(argument)``, in which slices are shared by `n` threads."""
    before = _threads.set(n)
    try:
        return function(argument)
    finally:
        _threads.reset(before)


class Team:
    """So many threads, for one run."""

    def __init__(self, run: Run, threads: int):
        self.run, self.threads = run, threads
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="team")
        self._submitting = threading.Lock()
        self._to_do: set[Future[None]] = set()
        self.weights: Callable[[int], RootWeights] = cache(lambda band: weights_of(run.job, run.bands[band][1]))

    def all_do(self, task: Callable[[], None]) -> None:
        """Have each thread do the task once, after the tasks that it was given before, and wait for all.

        Raises `Exception`: what a thread has raised. An error of this package is preferred, because it says what to do.
        """
        with self._submitting:  # the threads go on with the next task together
            ended = [self._executor.submit(task) for _ in range(self.threads)]
            self._to_do.update(ended)
        for future in ended:
            future.add_done_callback(self._to_do.discard)
        wait(ended)
        errors = [error for future in ended if (error := future.exception()) is not None]
        if errors:
            raise min(errors, key=lambda error: not isinstance(error, BicliqueError))

    @property
    def at_work(self) -> int:
        """How many threads have something to do."""
        return min(len(self._to_do), self.threads)

    def close(self) -> None:
        """End the threads, after what they do now. Their engines go with them."""
        self._executor.shutdown()


_changed = threading.Condition()
_kept: Team | None = None
_users = 0


@contextmanager
def team_of(run: Run, threads: int) -> Iterator[Team]:
    """The threads of this process, until the block ends. It waits while slices of another run have them."""
    global _kept, _users
    with _changed:
        _changed.wait_for(lambda: _users == 0 or _is_of(run, threads))
        if not _is_of(run, threads):
            _end()
        if _kept is None:
            _kept = Team(run, threads)
        _users += 1
        team = _kept
    try:
        yield team
    finally:
        with _changed:
            _users -= 1
            _changed.notify_all()


def threads_at_work() -> int:
    """How many threads of this process work on slices that they share."""
    with _changed:
        return 0 if _kept is None else _kept.at_work


def forget() -> None:
    """End the threads, after the slices that they have, and free what they hold."""
    with _changed:
        _changed.wait_for(lambda: _users == 0)
        _end()


def _is_of(run: Run, threads: int) -> bool:
    return _kept is not None and (_kept.run, _kept.threads) == (run, threads)


def _end() -> None:
    global _kept
    if _kept is not None:
        _kept.close()
        _kept = None
