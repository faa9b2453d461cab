"""Ranges of candidates as lists, for many nodes at once, on the host."""

from __future__ import annotations

import numpy as np

from kernels.compiled import compiled
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph

__all__ = ["candidates_of"]

#: `MiningGraph.base_indptr` and `base_indices`.
Edges = tuple[np.ndarray, np.ndarray]


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
    edges = graph.base_indptr, graph.base_indices
    counts = _count(edges, graph.n_roots, base, at, n, begin)
    indptr = np.concatenate([np.zeros(1, OFFSET), np.cumsum(counts)])
    candidates = np.empty(int(indptr[-1]), VERTEX)
    todo = _fill(edges, graph.n_roots, base, at, n, begin, end, indptr, candidates)
    return indptr, candidates, todo


@compiled
def _count(
    edges: Edges, n_roots: int, base: np.ndarray, at: np.ndarray, n: np.ndarray, begin: np.ndarray
) -> np.ndarray:
    """All ranks from `begin` on, or those that L meets, if it has fewer wedges than there are ranks."""
    counts = n_roots - begin
    met_by, met = np.full(n_roots, -1, np.int64), np.empty(n_roots, np.int32)
    for i in range(len(at)):
        own, wedges = base[at[i] : at[i] + n[i]], 0
        for u in own:
            wedges += edges[0][u + 1] - edges[0][u]
        if wedges < counts[i]:
            counts[i] = _meet(edges, own, begin[i], i, met_by, met)
    return counts


@compiled
def _fill(
    edges: Edges,
    n_roots: int,
    base: np.ndarray,
    at: np.ndarray,
    n: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    indptr: np.ndarray,
    candidates: np.ndarray,
) -> np.ndarray:
    met_by, todo = np.full(n_roots, -1, np.int64), np.empty(len(at), np.int32)
    for i in range(len(at)):
        own = candidates[indptr[i] : indptr[i + 1]]
        if len(own) == n_roots - begin[i]:
            own[:] = np.arange(begin[i], n_roots)
        else:
            _meet(edges, base[at[i] : at[i] + n[i]], begin[i], i, met_by, own)
            own.sort()
        todo[i] = np.searchsorted(own, end[i])
    return todo


@compiled
def _meet(edges: Edges, own: np.ndarray, least: int, node: int, met_by: np.ndarray, met: np.ndarray) -> int:
    """Roots from `least` on that some of L are adjacent to, to `met`; how many. `met_by`: who met a root last."""
    k = 0
    for u in own:
        for v in edges[1][edges[0][u] : edges[0][u + 1]]:
            if v >= least and met_by[v] != node:
                met_by[v] = node
                met[k] = v
                k += 1
    return k
