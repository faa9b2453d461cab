"""Jobs: what is asked of the search tree. A run has one job, and what depends on it is said here and nowhere else.

The plan, the scheduler, the ledger's ranges, pools and resume do not know which job runs. They deal nodes of the search
tree, and add up totals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Literal

from schemas.bicliques import Bicliques
from schemas.emit import Emit
from schemas.errors import InputError
from schemas.search import JobName, Limits, Search
from schemas.sizes import SizeCounts
from schemas.totals import Best, Found, Total

__all__ = ["EVERY_REDUCTION", "JOBS", "AllMaximal", "Job", "LargestFew", "Reduction", "Rows", "job_of"]

#: What may be done to the graph before it is searched: the (min_left, min_right) core is taken, twins are merged.
Reduction = Literal["core", "twins"]
EVERY_REDUCTION: frozenset[Reduction] = frozenset({"core", "twins"})
#: Where the rows of the result are: in the parts of the slices, in the total of the run, or nowhere.
Rows = Literal["slices", "total", "none"]


class Job(ABC):
    """One question about a graph.

    Parameters
    ----------
    search : Search

    Attributes
    ----------
    name : str
        As `EngineKind.jobs` has it.
    reductions : frozenset of Reduction
        Those that are exact for it; `kernels.graph.prepare` does no other.
    weights : str
        The estimate of the work below a root that fits it, a name of `pipeline.prepare.weights`.
    """

    name: JobName
    reductions: frozenset[Reduction]
    weights: str = "wedges"

    def __init__(self, search: Search) -> None:
        self.search = search

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """Where its rows are."""

    @property
    @abstractmethod
    def has_fingerprint(self) -> bool:
        """Whether its rows are hashed, so that two runs can be compared by one number."""

    @property
    @abstractmethod
    def zero(self) -> Total:
        """The total of no slices."""

    @abstractmethod
    def taker(self, emit: Emit, limits: Limits) -> Emit:
        """What an engine hands bicliques to, in mode ``list``: `emit`, or something that keeps what the total needs."""

    @abstractmethod
    def total(self, found: Found, taker: Emit) -> Total:
        """The total of a call of an engine, from what it counted and from what `taker` kept."""

    @abstractmethod
    def read_total(self, data: dict[str, Any]) -> Total:
        """The inverse of `Total.to_json`; raises what `Found.from_json` does."""

    def bound(self, total: Total) -> int | None:
        """The key below which nothing can change `total` any more; None while everything can.

        An engine may leave out what is below it (`schemas.search.Limits.bound`), and is exact if it does not.
        """
        return None


class AllMaximal(Job):
    """All maximal bicliques: counted, counted and hashed, or listed, as `Search.mode` says."""

    name = "all"
    reductions = EVERY_REDUCTION

    @property
    def rows(self) -> Rows:
        """In the parts of the slices, when they are listed."""
        return "slices" if self.search.mode == "list" else "none"

    @property
    def has_fingerprint(self) -> bool:
        """Unless they are only counted."""
        return self.search.mode != "count"

    @property
    def zero(self) -> Found:
        """Nothing found."""
        return self._found(Found(0, 0, SizeCounts.empty()))

    def taker(self, emit: Emit, limits: Limits) -> Emit:
        """`emit` itself."""
        return emit

    def total(self, found: Found, taker: Emit) -> Found:
        """What was found."""
        return self._found(found)

    def read_total(self, data: dict[str, Any]) -> Found:
        """What was found."""
        return Found.from_json(data)

    def _found(self, found: Found) -> Found:
        return Found(
            found.count,
            found.fingerprint if self.has_fingerprint else None,
            found.sizes if self.search.sizes else None,
        )


class LargestFew(Job):
    """The `Search.largest` largest maximal bicliques by `Search.by`, found by looking at all of them."""

    name = "largest"
    reductions = EVERY_REDUCTION

    def __init__(self, search: Search) -> None:
        super().__init__(search)
        if search.largest is None or search.mode != "list":
            raise InputError("the largest bicliques are listed: leave count_only and sizes out")

    @property
    def rows(self) -> Rows:
        """In the total of the run."""
        return "total"

    @property
    def has_fingerprint(self) -> bool:
        """Of the rows."""
        return True

    @property
    def zero(self) -> Best:
        """None seen."""
        return Best(self._k, self.search.by, 0, Bicliques.from_pairs([]))

    def taker(self, emit: Emit, limits: Limits) -> Emit:
        """Keeps the largest of what it is handed; `emit` gets nothing."""
        return _Keeper(self.zero, limits.bound)

    def total(self, found: Found, taker: Emit) -> Best:
        """What `taker` kept."""
        assert isinstance(taker, _Keeper)
        return taker.best

    def read_total(self, data: dict[str, Any]) -> Best:
        """The rows of the entry."""
        return Best.from_json(data, self._k, self.search.by)

    def bound(self, total: Total) -> int | None:
        """The key of the last of as many rows as are wanted."""
        assert isinstance(total, Best)
        return total.least

    @property
    def _k(self) -> int:
        assert self.search.largest is not None
        return self.search.largest


class _Keeper:
    """An `Emit` that keeps the largest, and passes over what is below a bound."""

    on_device = False

    def __init__(self, best: Best, bound: int | None) -> None:
        self.best, self._bound = best, bound

    def __call__(self, batch: Bicliques) -> None:
        least = max((key for key in (self._bound, self.best.least) if key is not None), default=None)
        self.best += Best.of(self.best.k, self.best.by, batch, least)


#: By name.
JOBS: dict[str, type[Job]] = {job.name: job for job in (AllMaximal, LargestFew)}


def job_of(search: Search) -> Job:
    """The job of a search."""
    return LargestFew(search) if search.largest is not None else AllMaximal(search)
