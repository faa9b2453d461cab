"""Ranks of the root vertices. Results are the same in every order; the sizes of the subtrees depend on it."""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import entry
from kernels.graph.threads import sort

__all__ = ["rank_order"]


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
    degree = _two_hop_degree(root_indptr, root_indices, base_indptr, base_indices)
    if order == "two-hop":
        return np.argsort(degree, kind="stable")
    return _peel_two_hop(root_indptr, root_indices, base_indptr, base_indices, degree)


@entry
def _two_hop_degree(root_indptr, root_indices, base_indptr, base_indices):
    n = root_indptr.size - 1
    seen = np.full(n, -1, dtype=np.int64)
    degree = np.zeros(n, dtype=np.int64)
    for v in range(n):
        for e in range(root_indptr[v], root_indptr[v + 1]):
            u = root_indices[e]
            for f in range(base_indptr[u], base_indptr[u + 1]):
                w = base_indices[f]
                if seen[w] != v:
                    seen[w] = v
                    degree[v] += 1
    return degree


@entry
def _peel_two_hop(root_indptr, root_indices, base_indptr, base_indices, degree):
    """Minimum-degree peeling of the 2-hop graph with a bucket queue (Batagelj and Zaversnik, 2003)."""
    n = degree.size
    start = np.zeros(degree.max() + 2 if n else 1, dtype=np.int64)
    for v in range(n):
        start[degree[v] + 1] += 1
    for d in range(start.size - 1):
        start[d + 1] += start[d]
    by_degree = np.empty(n, dtype=np.int64)
    position = np.empty(n, dtype=np.int64)
    free = start.copy()
    for v in range(n):
        position[v] = free[degree[v]]
        by_degree[position[v]] = v
        free[degree[v]] += 1
    seen = np.full(n, -1, dtype=np.int64)
    for i in range(n):
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
    return by_degree
