"""Ranks of the root vertices. Results are the same in every order; the sizes of the subtrees depend on it."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.graph.threads import sort


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
