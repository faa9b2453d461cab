"""Wedges, the root side that they speak for, and lists taken out of a CSR. Small ones need no compiled code."""

from __future__ import annotations

from typing import Any

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.graph.threads import borders, even, on_slices, sort
from bicliques.schemas.dtypes import COUNT, OFFSET, gathered, offsets_of
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Side

#: Entries from which on compiled code copies lists. It is several times as fast, and takes no memory besides the
#: result, but it has to be compiled once, and loaded.
_MANY = 1 << 22


def wedges(indptr: Any) -> int:
    """Sum of squared degrees. It is the cost of walking from every vertex of the other side to its 2-hop neighbours.

    Parameters
    ----------
    indptr : ndarray, shape (n + 1,), int64
        Offsets of the rows of one side. An array of CuPy or of NumPy.
    """
    degree = (indptr[1:] - indptr[:-1]).astype(np.float64)
    return int((degree * degree).sum())


def root_side_of(
    options: BuildOptions, left_indptr: Any, right_indptr: Any, min_left: int, min_right: int
) -> tuple[Side, dict[Side, int]]:
    """The side that roots are on: the one that the options name, or else the one that promises less work.

    Parameters
    ----------
    left_indptr, right_indptr : ndarray, int64
        Offsets of the rows of both sides, without twins. Arrays of CuPy or of NumPy.
    min_left, min_right : int
        Thresholds of the search.

    Returns
    -------
    (Side, dict)
        The side, and the number of wedges with either side as roots.

    Notes
    -----
    The work that a side promises is its wedges times its own threshold, because the search adds one vertex of the root
    side after the other until there are as many, and only a base side that is too small ends it before. If both
    promise as much, it is the right side. docs/lab/root-side.md has what was measured.
    """
    found: dict[Side, int] = {"left": wedges(right_indptr), "right": wedges(left_indptr)}
    work: dict[Side, int] = {"left": found["left"] * min_left, "right": found["right"] * min_right}
    return options.root_side if options.root_side != "auto" else min(("right", "left"), key=work.__getitem__), found


def degrees_of(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    """Degree of each of these roots."""
    return graph.root_indptr[roots + 1] - graph.root_indptr[roots]


def wedges_of(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    """Wedges of each root: the cost of opening it, and the best cheap estimate of the work below it."""
    indptr, base = gather(graph.root_indices, graph.root_indptr[roots], degrees_of(graph, roots))
    total = offsets_of(graph.base_indptr[base + 1] - graph.base_indptr[base])
    return total[indptr[1:]] - total[indptr[:-1]]


def gather(values: np.ndarray, at: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, and the lists ``values[at[i]:at[i] + n[i]]`` one behind the other."""
    if n.sum() < _MANY:
        return gathered(values, at, n)
    from bicliques.kernels.graph.csr import copy_lists  # not before it pays

    indptr = offsets_of(n)
    lists = np.empty(indptr[-1], values.dtype)
    copy_lists(values, at.astype(OFFSET), indptr, lists)
    return indptr, lists


def wedges_of_roots(
    base_indptr: np.ndarray, base_indices: np.ndarray, n_roots: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The wedges of each root to higher ranks, and all of them.

    Parameters
    ----------
    base_indptr, base_indices : ndarray, int64 and int32
        See `schemas.graph.MiningGraph`.

    Returns
    -------
    (ndarray, ndarray), shape (n_roots,), int64

    Notes
    -----
    Every thread counts for itself, which takes 16 bytes per root. There are so few threads that all of them together
    need at most 16 bytes per edge, or one needs more.
    """
    cuts = borders(base_indptr, min(threads, len(base_indices) // max(n_roots, 1)))
    counts = np.zeros((len(cuts) - 1, n_roots, 2), COUNT)
    on_slices(lambda k, start, stop: _walk(base_indptr, base_indices, start, stop, counts[k].reshape(-1)), cuts)
    later, wedges = np.empty(n_roots, COUNT), np.empty(n_roots, COUNT)

    def add(_: int, start: int, stop: int) -> None:
        total = counts[:, start:stop].sum(axis=0)
        later[start:stop], wedges[start:stop] = total[:, 0], total[:, 1]

    on_slices(add, even(n_roots, threads))
    return later, wedges


@entry
def _walk(indptr, indices, start, stop, counts):
    """Add wedges to higher ranks to entry ``2r`` of `counts`, and all wedges to ``2r + 1``, for every root ``r``."""
    for u in range(start, stop):
        begin, end = indptr[u], indptr[u + 1]
        for e in range(begin, end):
            counts[2 * indices[e]] += end - 1 - e  # neighbours are in the order of their ranks
            counts[2 * indices[e] + 1] += end - begin


def rank_order(
    order: str,
    root_indptr: np.ndarray,
    root_indices: np.ndarray,
    base_indptr: np.ndarray,
    base_indices: np.ndarray,
    *,
    threads: int = 1,
) -> np.ndarray:
    """Root vertices in the order of their ranks.

    Parameters
    ----------
    order : "degree", "two-hop", "unilateral" or "id"
        ``degree``: ascending degree. ``two-hop``: ascending number of root vertices within two hops.
        ``unilateral``: repeatedly the vertex with the fewest remaining 2-hop neighbours (Chen et al.,
        PVLDB 2022, doi:10.14778/3529337.3529341). ``id``: ascending id. Ties are broken by id.
    threads : int
        Threads that sort by degree.

    Returns
    -------
    ndarray, shape (n_roots,), int64

    Notes
    -----
    ``degree`` is O(n log n). ``two-hop`` walks every wedge once, ``unilateral`` twice.
    """
    n = len(root_indptr) - 1
    if order == "id":
        return np.arange(n)
    if order == "degree":
        words = np.diff(root_indptr) << 32 | np.arange(n)  # sorted faster than by argsort
        sort(words, threads)
        return words & 0xFFFFFFFF
    graph = root_indptr, root_indices, base_indptr, base_indices
    degree, seen = np.zeros(n, np.int64), np.full(n, -1, np.int64)
    _two_hop_degree(graph, seen, degree)
    by_degree = np.argsort(degree, kind="stable")
    if order == "two-hop":
        return by_degree
    start = np.searchsorted(degree[by_degree], np.arange(degree.max(initial=0) + 1))
    position = np.empty(n, np.int64)
    position[by_degree] = np.arange(n)
    seen.fill(-1)
    _peel_two_hop(graph, degree, start, by_degree, position, seen)
    return by_degree


@entry
def _two_hop_degree(graph, seen, degree):
    """Count root vertices within two hops in `degree`, which is zero before. `seen` is -1 before."""
    root_indptr, root_indices, base_indptr, base_indices = graph
    for v in range(degree.size):
        for e in range(root_indptr[v], root_indptr[v + 1]):
            u = root_indices[e]
            for f in range(base_indptr[u], base_indptr[u + 1]):
                w = base_indices[f]
                if seen[w] != v:
                    seen[w] = v
                    degree[v] += 1


@entry
def _peel_two_hop(graph, degree, start, by_degree, position, seen):
    """Minimum-degree peeling of the 2-hop graph with a bucket queue (Batagelj and Zaversnik, 2003).

    `by_degree` is the queue: vertices by ascending degree before, and in the order of peeling at the end. `position`
    has the place of each vertex in it, and `start` the first place of each degree. `seen` is -1 before.
    """
    root_indptr, root_indices, base_indptr, base_indices = graph
    for i in range(degree.size):
        v = by_degree[i]
        for e in range(root_indptr[v], root_indptr[v + 1]):
            u = root_indices[e]
            for f in range(base_indptr[u], base_indptr[u + 1]):
                w = base_indices[f]
                if seen[w] == v or degree[w] <= degree[v]:
                    continue
                seen[w] = v
                other = by_degree[start[degree[w]]]  # swap w with the first of its bucket, then shrink the bucket
                a, b = position[w], position[other]
                by_degree[a], by_degree[b] = other, w
                position[w], position[other] = b, a
                start[degree[w]] += 1
                degree[w] -= 1
