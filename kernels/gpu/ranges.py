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
    most = np.minimum(_wedges(graph.base_indptr, base, at, n), graph.n_roots - begin)
    ends, todo = np.zeros(len(most) + 1, OFFSET), np.zeros(len(most), VERTEX)
    candidates = np.empty(int(most.sum()), VERTEX)
    _fill(graph.base_indptr, graph.base_indices, graph.n_roots, base, at, n, begin, end, most, ends, candidates, todo)
    return ends, candidates[: ends[-1]], todo


@compiled
def _wedges(base_indptr: np.ndarray, base: np.ndarray, at: np.ndarray, n: np.ndarray) -> np.ndarray:
    wedges = np.zeros(len(at), np.int64)
    for i in range(len(at)):
        for u in base[at[i] : at[i] + n[i]]:
            wedges[i] += base_indptr[u + 1] - base_indptr[u]
    return wedges


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
    most: np.ndarray,
    ends: np.ndarray,
    candidates: np.ndarray,
    todo: np.ndarray,
) -> None:
    met_by = np.full(n_roots, -1, np.int64)  # the last node that met a root
    for i in range(len(at)):
        k = ends[i]
        if most[i] == n_roots - begin[i]:
            for v in range(begin[i], n_roots):
                candidates[k] = v
                k += 1
        else:
            for u in base[at[i] : at[i] + n[i]]:
                for v in base_indices[base_indptr[u] : base_indptr[u + 1]]:
                    if v >= begin[i] and met_by[v] != i:
                        met_by[v] = i
                        candidates[k] = v
                        k += 1
            candidates[ends[i] : k].sort()
        todo[i] = np.searchsorted(candidates[ends[i] : k], end[i])
        ends[i + 1] = k
