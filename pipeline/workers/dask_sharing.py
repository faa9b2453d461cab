"""Slices for Dask workers of several threads: one slice for each worker, whose threads share it.

Dask counts threads, and would send a second slice to a worker that has one while another worker has none. So it is told
which worker gets a slice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pipeline.workers.dask_tasks import DaskTasks
from pipeline.workers.pool import Result

__all__ = ["DaskSharing"]


class DaskSharing:
    """See `pipeline.workers.pool.Sharing`.

    Parameters
    ----------
    tasks : DaskTasks
    """

    def __init__(self, tasks: DaskTasks):
        self._tasks = tasks
        self._there: tuple[str, ...] = ()
        self._given: dict[int, str] = {}  # by tag: the address of the worker

    def look(self, addresses: Iterable[str]) -> None:
        """Take note of the workers that are there."""
        self._there = tuple(addresses)

    def workers(self) -> int:
        """The number of worker processes."""
        return len(self._there)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Have the worker run the task that has fewest. If it goes meanwhile, another one does."""
        in_hand = Counter(self._given.values())
        where = min(self._there, key=lambda address: in_hand[address])
        self._given[tag] = where
        self._tasks.submit(tag, function, argument, where)

    def ended(self, results: Iterable[Result]) -> None:
        """These tasks have ended."""
        for result in results:
            self._given.pop(result.tag, None)
