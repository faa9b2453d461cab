"""Ranges of candidates as lists, for many nodes at once, on the host."""

from __future__ import annotations

import numpy as np

from kernels.compiled import compiled
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph

__all__ = ["candidates_of"]


def candidates_of(
    graph: MiningGraph, base: np.ndarray, at: np.ndarray, n: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Candidates of nodes that have all ranks from one on; where these are few, only those adjacent to the node's L.

    Parameters
    ----------
    graph : MiningGraph
    base : ndarray of int32
        Base vertices; L of node ``i`` is ``base[at[i]:at[i] + n[i]]``.
    at, n : ndarray of int, shape (nodes,)
    begin, end : ndarray of int, shape (nodes,)
        Candidates are the ranks from ``begin`` on; those before ``end`` are to be explored.

    Returns
    -------
    indptr, candidates : ndarray of int64, ndarray of int32
        List ``i`` is ``candidates[indptr[i]:indptr[i + 1]]``, in ascending order.
    todo : ndarray of int32, shape (nodes,)
        How many of each list are to be explored.
    """
    at, n, begin, end = (column.astype(OFFSET) for column in (at, n, begin, end))
    rows = graph.base_indptr, graph.base_indices, graph.n_roots
    counts = np.empty(len(at), OFFSET)
    _count(*rows, base, at, n, begin, counts)
    ends, todo = np.concatenate([np.zeros(1, OFFSET), np.cumsum(counts)]), np.empty(len(at), VERTEX)
    candidates = np.empty(int(ends[-1]), VERTEX)
    _fill(*rows, base, at, n, begin, end, ends, candidates, todo)
    return ends, candidates, todo


@compiled
def _count(
    base_indptr: np.ndarray,
    base_indices: np.ndarray,
    n_roots: int,
    base: np.ndarray,
    at: np.ndarray,
    n: np.ndarray,
    begin: np.ndarray,
    counts: np.ndarray,
) -> None:
    """All ranks from `begin` on, or those that L meets, if it has fewer wedges than there are ranks."""
    met_by = np.full(n_roots, -1, np.int64)  # the last node that met a root
    for i in range(len(at)):
        counts[i] = n_roots - begin[i]
        own = base[at[i] : at[i] + n[i]]
        wedges = 0
        for u in own:
            wedges += base_indptr[u + 1] - base_indptr[u]
        if wedges >= counts[i]:
            continue
        counts[i] = 0
        for u in own:
            for v in base_indices[base_indptr[u] : base_indptr[u + 1]]:
                if v >= begin[i] and met_by[v] != i:
                    met_by[v] = i
                    counts[i] += 1


@compiled
def _fill(
    base_indptr: np.ndarray,
    base_indices: np.ndarray,
    n_roots: int,
    base: np.ndarray,
    at: np.ndarray,
    n: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    ends: np.ndarray,
    candidates: np.ndarray,
    todo: np.ndarray,
) -> None:
    met_by = np.full(n_roots, -1, np.int64)
    for i in range(len(at)):
        own = candidates[ends[i] : ends[i + 1]]
        if len(own) == n_roots - begin[i]:
            own[:] = np.arange(begin[i], n_roots)
        else:
            k = 0
            for u in base[at[i] : at[i] + n[i]]:
                for v in base_indices[base_indptr[u] : base_indptr[u + 1]]:
                    if v >= begin[i] and met_by[v] != i:
                        met_by[v] = i
                        own[k] = v
                        k += 1
            own.sort()
        todo[i] = np.searchsorted(own, end[i])
