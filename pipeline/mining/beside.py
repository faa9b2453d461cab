"""What is done beside mining, by workers that have nothing to search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from bicliques.pipeline.workers.pool import Pool, Result
from bicliques.schemas.manifest import Part


class Beside(Protocol):
    """Work on the parts of committed slices. The driver of the step ``mine`` calls it from one thread.

    Its tasks have negative tags in the pool that mines, because the tags of slices are their numbers.
    """

    def begin(self, parts: Iterable[Part]) -> None:
        """Mining begins. These parts are committed already."""
        ...

    def committed(self, parts: Iterable[Part]) -> None:
        """These parts are committed, and will not change any more."""
        ...

    def go_on(self, pool: Pool, free: int) -> None:
        """Have at most `free` tasks in `pool`, those included that it has already. So many slots have no slice."""
        ...

    def take(self, result: Result) -> None:
        """The result of a task that `go_on` gave to the pool."""
        ...
