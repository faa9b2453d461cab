"""A few large bicliques that are found greedily: the bound with which the search for the largest begins.

It is a heuristic in NumPy, without compiled code. Whatever it finds is a maximal biclique. So its measure is a bound
that leaves out no row of the result. The search finds the rows themselves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bicliques.kernels.graph.wedges import degrees_of, gather
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Search, measure
from bicliques.schemas.totals import measured

#: Wedges that are walked at most, half of them from either side. It takes about a quarter of a second.
WEDGES = 1 << 24
#: Vertices of either side from which it begins at most, those of the largest degree first.
_STARTS = 512
#: A step counts as so many wedges more, because it has a cost of its own.
_STEP = 1 << 11
#: Roots are counted one by one if there are so many times as many as wedges.
_FEW = 8


def first_bound(graph: MiningGraph, search: Search, wedges: int = WEDGES) -> int:
    """The measure of the K-th largest biclique that is found in one graph; see `Found`."""
    return Found(search).look(graph, wedges=wedges)


class Found:
    """The measures of the largest bicliques that were found so far, each biclique once, by its left members.

    Parameters
    ----------
    search : Search
        `largest` says how many are wanted. Bicliques outside the limits do not count.

    Attributes
    ----------
    bound : int
        The measure of the K-th largest. 0 as long as there are fewer.
    """

    def __init__(self, search: Search) -> None:
        assert search.largest is not None
        # every pair of a double cover may be found in both directions
        self.search, self.k = search, search.largest * (1 if search.mirrored is None else 2)
        self.bound = self._least = 0
        self._measures: dict[bytes, int] = {}

    def look(self, graph: MiningGraph, least: int = 0, wedges: int = WEDGES) -> int:
        """Look for larger ones in a graph. Returns the bound.

        Parameters
        ----------
        graph : MiningGraph
            A core for the thresholds of the search, with all bicliques whose measure is `least` or more. Both of its
            sides are tried as roots.
        least : int
            Bicliques with a smaller measure do not count. They need not be maximal beyond `graph`, so one of them might
            be found a second time, with more members.
        wedges : int
            Wedges that may be walked.

        Notes
        -----
        It begins with the neighbours of one vertex. Then it takes in the vertex that is joined to most of them, again
        and again, until what is left cannot beat the bound. Its result depends on nothing but the search and the
        graphs.
        """
        self._least = least
        for roots in (graph, _transposed(graph)):
            _from_all(roots, self, wedges // 2)
        return self.bound

    @property
    def floor(self) -> int:
        """Bicliques with this measure, or a smaller one, are not looked for."""
        return max(self.bound, self._least - 1)

    def wants(self, left: int, right: int) -> bool:
        """Whether a biclique with so many members is within the limits and above the floor."""
        search = self.search
        return (
            search.min_left <= left <= (search.max_left or left)
            and search.min_right <= right <= (search.max_right or right)
            and max(left, right) >= (search.mirrored or 0)
            and measure(search.by, left, right) > self.floor
        )

    def add(self, left: np.ndarray, right: int) -> None:
        """A maximal biclique was found: its left members, and the number of its right ones."""
        self._measures[np.sort(left).tobytes()] = measure(self.search.by, len(left), right)
        if len(self._measures) >= self.k:
            best = sorted(self._measures.items(), key=lambda item: -item[1])[: self.k]
            self._measures, self.bound = dict(best), best[-1][1]


def _from_all(graph: MiningGraph, found: Found, wedges: int) -> None:
    """Begin with the vertices of the root side, until as many wedges were walked."""
    weights, degrees = np.diff(graph.root_members_indptr), degrees_of(graph, np.arange(graph.n_roots))
    base_weights, base_degrees = np.diff(graph.base_members_indptr), np.diff(graph.base_indptr)
    is_left = graph.root_side == "left"
    for root in np.argsort(-degrees, kind="stable")[:_STARTS].tolist():
        base = _neighbours(graph, root)
        while True:
            wedges -= int(base_degrees[base].sum()) + _STEP
            if wedges < 0:
                return
            _, touched = gather(graph.base_indices, graph.base_indptr[base], base_degrees[base])
            per_wedge = np.repeat(base_weights[base], base_degrees[base])
            order, shared = _by_overlap(touched, per_wedge, graph.n_roots)
            members = np.cumsum(weights[order])
            n_closed = int(np.count_nonzero(shared == shared[0]))  # the root itself has the whole base side
            sizes = (members, shared) if is_left else (shared, members)
            left, right = (int(side[n_closed - 1]) for side in sizes)
            if found.wants(left, right):
                lefts = (graph.root_members_indptr, graph.root_members, order[:n_closed])
                if not is_left:
                    lefts = (graph.base_members_indptr, graph.base_members, base)
                found.add(_members(*lefts), right)
            if n_closed == len(order) or int(measured(sizes[0], sizes[1], found.search.by).max()) <= found.floor:
                break
            base = np.intersect1d(base, _neighbours(graph, int(order[n_closed])), assume_unique=True)


def _by_overlap(touched: np.ndarray, per_wedge: np.ndarray, n_roots: int) -> tuple[np.ndarray, np.ndarray]:
    """The roots that are touched, the one that is touched most first, and by how many members each."""
    if _FEW * len(touched) < n_roots:
        roots, place = np.unique(touched, return_inverse=True)
        overlap = np.bincount(place, per_wedge)
    else:
        all_of_them = np.bincount(touched, per_wedge, n_roots)
        roots = np.flatnonzero(all_of_them)
        overlap = all_of_them[roots]
    order = np.argsort(-overlap, kind="stable")
    return roots[order], overlap[order].astype(np.int64)


def _neighbours(graph: MiningGraph, root: int) -> np.ndarray:
    return np.asarray(graph.root_indices[graph.root_indptr[root] : graph.root_indptr[root + 1]])


def _members(indptr: np.ndarray, members: np.ndarray, vertices: np.ndarray) -> np.ndarray:
    return gather(members, indptr[vertices], np.diff(indptr)[vertices])[1]


def _transposed(graph: MiningGraph) -> MiningGraph:
    """The graph with its sides exchanged. The ranks of its roots have no meaning."""
    return replace(
        graph,
        root_side="right" if graph.root_side == "left" else "left",
        root_indptr=graph.base_indptr,
        root_indices=graph.base_indices,
        base_indptr=graph.root_indptr,
        base_indices=graph.root_indices,
        root_members_indptr=graph.base_members_indptr,
        root_members=graph.base_members,
        base_members_indptr=graph.root_members_indptr,
        base_members=graph.root_members,
    )
