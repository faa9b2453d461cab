"""Slices for Dask workers of several threads: one slice for each worker, whose threads share it.

Dask counts threads, and would send a second slice to a worker that has one while another worker has none. So it is told
which worker gets a slice.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from distributed.comm import get_address_host

from pipeline.process.logs import tell
from pipeline.workers.dask_tasks import DaskTasks
from pipeline.workers.pool import Result

__all__ = ["MANY", "DaskSharing", "could_share"]

logger = logging.getLogger(__name__)

#: So many workers of one thread each a driver serves without losing much (docs/multi-gpu.md).
MANY = 64


def could_share(addresses: Collection[str]) -> bool:
    """Whether there are too many workers of one thread, some of them on the same host. If so, say what is better."""
    hosts = {get_address_host(address) for address in addresses}
    if len(addresses) <= MANY or len(hosts) == len(addresses):
        return False
    text = (
        f"{len(addresses)} workers of one thread are on {len(hosts)} host{'s' if len(hosts) > 1 else ''}, and wait for "
        "the driver between slices; start one worker per host, whose threads share slices (dask worker --nworkers 1 "
        "--nthreads CORES)"
    )
    tell(logger, "apart", text, logging.WARNING, workers=len(addresses), hosts=len(hosts))
    return True


class DaskSharing:
    """See `pipeline.workers.pool.Sharing`.

    Parameters
    ----------
    tasks : DaskTasks
    """

    in_hand = 1

    def __init__(self, tasks: DaskTasks):
        self._tasks = tasks
        self._there: dict[str, int] = {}
        self._given: dict[int, str] = {}  # by tag: the address of the worker

    def look(self, threads: Mapping[str, int]) -> None:
        """Take note of the workers that are there: their threads, by their addresses."""
        self._there = dict(threads)

    def workers(self) -> int:
        """The number of worker processes."""
        return len(self._there)

    def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
        """Have the worker run the task that has fewest. If it goes meanwhile, another one does."""
        in_hand = Counter(self._given.values())
        where = min(self._there, key=lambda address: in_hand[address])
        self._given[tag] = where
        self._tasks.submit(tag, function, argument, where)

    def idle(self) -> int:
        """The threads of the workers that have no slice."""
        has_slice = set(self._given.values())
        return sum(threads for address, threads in self._there.items() if address not in has_slice)

    def end(self) -> None:
        """Do nothing, because a slice of a worker has a time limit of its own."""

    def ended(self, results: Iterable[Result]) -> None:
        """These tasks have ended."""
        for result in results:
            self._given.pop(result.tag, None)
