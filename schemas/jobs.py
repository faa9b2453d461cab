"""Jobs: the questions that can be asked of the search tree. A run has one job, and all that depends on it is here.

The plan, the scheduler, the ledger's ranges, pools and resume do not depend on the job. They deal nodes of the search
tree, and add up totals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bicliques.schemas.bicliques import Bicliques, Emit
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.leaves import CLIQUES, Leaves, bounds_of
from bicliques.schemas.search import JobName, Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.totals import Best, Found, PerVertex, Total
from bicliques.schemas.vertices import SideTotals

if TYPE_CHECKING:
    from bicliques.schemas.graph import MiningGraph

#: Reductions of the graph before it is searched: take the (min_left, min_right) core, or merge twins.
Reduction = Literal["core", "twins"]
EVERY_REDUCTION: frozenset[Reduction] = frozenset({"core", "twins"})
#: Where the rows of the result are: in the parts of the slices, in the total of the run, or nowhere.
Rows = Literal["slices", "total", "none"]


class Job(ABC):
    """One question about a graph.

    Attributes
    ----------
    name : str
        Name, as in `EngineKind.jobs`.
    reductions : frozenset of Reduction
        Reductions that are exact for the job. `kernels.graph.prepare` does no others.
    weights : str
        Name, in `pipeline.prepare.weights`, of the estimate of the work below a root that fits the job.
    in_bands : bool
        Whether the work is cut into bands (`schemas.bands`), each with a graph and thresholds of its own. Otherwise the
        whole run is one band.
    cores_write : bool
        Whether processor cores write and read the rows of a GPU, too, because cuDF does not know of a column.
    """

    name: JobName
    reductions: frozenset[Reduction]
    weights: str = "wedges"
    in_bands: bool = False
    cores_write: bool = False

    def __init__(self, search: Search) -> None:
        self.search = search

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """Where the rows of the result are."""

    @property
    @abstractmethod
    def has_fingerprint(self) -> bool:
        """Whether the rows are hashed, so that two runs can be compared by one number."""

    @property
    @abstractmethod
    def zero(self) -> Total:
        """The total of no slices."""

    @abstractmethod
    def taker(self, emit: Emit, limits: Limits) -> Emit:
        """The receiver of an engine's bicliques in mode ``list``: `emit`, or one that keeps what the total needs."""

    @abstractmethod
    def total(self, found: Found, taker: Emit) -> Total:
        """The total of a call of an engine, made of what the engine counted and of what `taker` kept."""

    @abstractmethod
    def read_total(self, data: dict[str, Any]) -> Total:
        """The inverse of `Total.to_json`. It raises the same errors as `Found.from_json`."""

    @property
    def of_engine(self) -> Search:
        """The search that an engine is asked to do.

        If it is another one than `search`, engines do not know of the job. Then the slice looks at what they list, and
        makes the total of that (`pipeline.slices.slice_search`).
        """
        return self.search

    @property
    def looks_on(self) -> bool:
        """Whether engines do not know of the job, because `of_engine` is another search than that of the run."""
        return self.of_engine is not self.search

    def numbers(self, graph: MiningGraph) -> int:
        """How many vertices of a graph the paths and candidates of `schemas.work.Subtrees` can name."""
        return graph.n_roots

    def bound(self, total: Total) -> int | None:
        """A biclique with a key below this cannot change `total` any more. None while every biclique can.

        An engine may leave such bicliques out (`schemas.search.Limits.bound`). The result is exact either way.
        """
        return None

    def bound_of(self, taker: Emit) -> int | None:
        """The same for a `taker` of this job, after what it has received.

        An engine that prunes by the bound asks whenever it has handed bicliques out. It hands them out soon if their
        measure is more than the bound, and goes on with the bound that it gets. A bound only ever rises in a call.
        """
        return None


class AllMaximal(Job):
    """All maximal bicliques. `Search.mode` says whether they are counted, also hashed, or listed."""

    name: JobName = "all"
    reductions = EVERY_REDUCTION

    @property
    def rows(self) -> Rows:
        """In the parts of the slices if they are listed, and otherwise nowhere."""
        return "slices" if self.search.mode == "list" else "none"

    @property
    def has_fingerprint(self) -> bool:
        """True unless bicliques are only counted."""
        return self.search.mode != "count"

    @property
    def zero(self) -> Found:
        """No bicliques."""
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


class EveryVertex(AllMaximal):
    """All maximal bicliques, and for every vertex the number of those with it and the largest of them.

    Bicliques are listed or counted, as `Search.mode` says. Engines list them in any case.
    """

    name = "vertices"

    @cached_property
    def of_engine(self) -> Search:
        """A search that lists all."""
        return replace(self.search, mode="list", per_vertex=False)

    @property
    def zero(self) -> PerVertex:  # type: ignore[override]
        """No bicliques."""
        return PerVertex(super().zero, SideTotals.none(), SideTotals.none())

    def total_of(self, found: Found, left: SideTotals, right: SideTotals) -> PerVertex:
        """What an engine has found, and what is known of the vertices of these bicliques."""
        return PerVertex(self._found(found), left, right)

    def read_total(self, data: dict[str, Any]) -> PerVertex:  # type: ignore[override]
        """The total of a ledger entry."""
        return PerVertex.from_json(data)


class EachPairOnce(AllMaximal):
    """All maximal bicliques of a graph of one kind of vertices, each in one direction (`Search.mirrored`).

    Engines list those of the double cover in any case, in both directions.
    """

    @cached_property
    def of_engine(self) -> Search:
        """A search that lists all of the double cover that are not too small on one side."""
        return replace(self.search, mode="list", sizes=False, mirrored=None)

    def total_of(self, found: Found) -> Found:
        """Those that are results."""
        return self._found(found)


class Marked(AllMaximal):
    """The maximal bicliques that have a marked edge. `schemas.graph.MiningGraph.marks` says which edges are marked.

    A vertex stands for its twins, and an edge of the graph is marked if one of the edges that it stands for is. A
    biclique has all twins of a vertex or none, so it has the one edge or none of the others, too.
    """

    name = "marked"


class AllSizes(AllMaximal):
    """The number of p x q bicliques, maximal or not, for all p and q, as leaves of a pivot tree (`schemas.leaves`).

    Twins are not merged, because the bicliques with some of them are counted, too. Engines make the total themselves.
    """

    name: JobName = "pq"
    reductions = frozenset()
    says = f"{as_option('pq')} counts bicliques of all sizes, not only maximal ones"

    def __init__(self, search: Search) -> None:
        super().__init__(search)
        bounds_of(search.pq or "")
        if search.has_thresholds or search.has_filters or search.is_containing:
            raise InputError(f"{self.says}: leave thresholds, filters and given members out")
        if search.sizes or search.per_vertex or search.mode != "count":
            raise InputError(f"{self.says}: leave {as_option('sizes')} and {as_option('fingerprint')} out")

    def numbers(self, graph: MiningGraph) -> int:
        """What is left of a node has vertices of both sides, and base vertices have the numbers behind the roots."""
        return graph.n_roots + graph.n_base

    @property
    def zero(self) -> Leaves:  # type: ignore[override]
        """No leaves."""
        return Leaves.none()

    def read_total(self, data: dict[str, Any]) -> Leaves:  # type: ignore[override]
        """The leaves of a ledger entry."""
        return Leaves.from_json(data)


class AllCliques(AllSizes):
    """The number of cliques of each size of a graph of one kind of vertices, whose double cover is searched."""

    name = "cliques"
    says = "cliques of all sizes are counted, not only maximal ones"


class NearMaximal(AllMaximal):
    """All maximal near-bicliques: a few pairs of each may be no edges (`schemas.search.Near`, docs/holes.md).

    A result may hold some of several twins, because each of them may cost a missing pair. So twins are not merged.
    """

    name = "near"
    reductions = frozenset({"core"})
    cores_write = True

    def numbers(self, graph: MiningGraph) -> int:
        """Paths and candidates hold vertices of both sides, and base vertices have the numbers behind the roots."""
        return graph.n_roots + graph.n_base


class LargestFew(Job):
    """The `Search.largest` largest maximal bicliques by `Search.by`, found by branch and bound."""

    name: JobName = "largest"
    reductions = EVERY_REDUCTION
    in_bands = True

    def __init__(self, search: Search) -> None:
        super().__init__(search)
        if search.per_vertex:
            raise InputError(
                f"{as_option('per_vertex')} looks at all bicliques, and the largest are few of them: leave one of "
                "both out"
            )
        if search.largest is None or search.mode != "list":
            raise InputError(
                f"the largest bicliques are listed: leave {as_option('count_only')} and {as_option('sizes')} out"
            )

    @property
    def rows(self) -> Rows:
        """In the total of the run."""
        return "total"

    @property
    def has_fingerprint(self) -> bool:
        """True: the rows are hashed."""
        return True

    @property
    def zero(self) -> Best:
        """No rows, and no bicliques seen."""
        return Best(self._k, self.search.by, 0, Bicliques.from_pairs([]))

    def taker(self, emit: Emit, limits: Limits) -> Emit:
        """A receiver that keeps the largest bicliques. `emit` gets none."""
        return _Keeper(self.zero, limits.bound, self.search.mirrored)

    def total(self, found: Found, taker: Emit) -> Best:
        """The rows that `taker` kept."""
        assert isinstance(taker, _Keeper)
        return taker.best

    def read_total(self, data: dict[str, Any]) -> Best:
        """The rows of a ledger entry."""
        return Best.from_json(data, self._k, self.search.by)

    def bound(self, total: Total) -> int | None:
        """The key of the last row, once there are as many rows as are wanted."""
        assert isinstance(total, Best)
        return total.least

    def bound_of(self, taker: Emit) -> int | None:
        """The bound of the slice, or the key of the last row that `taker` kept if that is higher."""
        assert isinstance(taker, _Keeper)
        return taker.least

    @property
    def _k(self) -> int:
        assert self.search.largest is not None
        return self.search.largest


class LargestNear(LargestFew):
    """The largest maximal near-bicliques. What `NearMaximal` says of twins and of numbers holds here, too."""

    name = "near-largest"
    reductions = frozenset({"core"})
    numbers = NearMaximal.numbers

    @property
    def zero(self) -> Best:
        """No rows, which say how many pairs are missing."""
        none = Bicliques.from_pairs([])
        return Best(self._k, self.search.by, 0, Bicliques(**none.arrays, missing=np.empty(0, VERTEX)))


class _Keeper:
    """An `Emit` that keeps the largest bicliques, and skips those below a bound."""

    on_device = False

    def __init__(self, best: Best, bound: int | None, mirrored: int | None) -> None:
        self.best, self._bound, self._mirrored = best, bound, mirrored

    @property
    def least(self) -> int | None:
        """The least key that is kept. None while every biclique is."""
        return max((key for key in (self._bound, self.best.least) if key is not None), default=None)

    def __call__(self, batch: Bicliques) -> None:
        self.best += Best.of(self.best.k, self.best.by, batch.once(self._mirrored), self.least)


#: All jobs by name.
JOBS: dict[str, type[Job]] = {
    job.name: job
    for job in (AllCliques, AllMaximal, AllSizes, EveryVertex, LargestFew, LargestNear, Marked, NearMaximal)
}


def job_of(search: Search) -> Job:
    """The job of a search."""
    if search.pq is not None:
        return AllCliques(search) if search.pq == CLIQUES else AllSizes(search)
    if search.largest is not None:
        return LargestFew(search) if search.near is None else LargestNear(search)
    if search.marked:
        return Marked(search)
    if search.near is not None:
        return NearMaximal(search)
    if search.mirrored is not None:
        return EachPairOnce(search)
    return EveryVertex(search) if search.per_vertex else AllMaximal(search)
