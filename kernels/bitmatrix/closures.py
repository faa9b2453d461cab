"""Closures of many lists of base vertices at once, on the host."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.searching import first_at_least
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.graph import MiningGraph


def closures_of(graph: MiningGraph, indptr: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Root vertices that are adjacent to all of a list. They are among the neighbours of its rarest vertex.

    Parameters
    ----------
    graph : MiningGraph
    indptr : ndarray of int64, shape (n + 1,)
    base : ndarray of int32
        List ``i`` is ``base[indptr[i]:indptr[i + 1]]``; none is empty.

    Returns
    -------
    indptr, roots : ndarray of int64, ndarray of int32
        The closures in the same form, each in ascending order.
    """
    ends = np.zeros(len(indptr), OFFSET)
    if len(indptr) == 1:
        return ends, np.empty(0, VERTEX)
    degrees = graph.base_indptr[base + 1] - graph.base_indptr[base]
    roots = np.empty(int(np.minimum.reduceat(degrees, indptr[:-1]).sum()), VERTEX)
    _fill(graph.root_indptr, graph.root_indices, graph.base_indptr, graph.base_indices, indptr, base, ends, roots)
    return ends, roots[: ends[-1]]


@entry
def _fill(
    root_indptr: np.ndarray,
    root_indices: np.ndarray,
    base_indptr: np.ndarray,
    base_indices: np.ndarray,
    indptr: np.ndarray,
    base: np.ndarray,
    ends: np.ndarray,
    roots: np.ndarray,
) -> None:
    n = 0
    for i in range(len(indptr) - 1):
        own = base[indptr[i] : indptr[i + 1]]
        rarest = own[0]
        for v in own:
            if base_indptr[v + 1] - base_indptr[v] < base_indptr[rarest + 1] - base_indptr[rarest]:
                rarest = v
        for root in base_indices[base_indptr[rarest] : base_indptr[rarest + 1]]:
            row = root_indices[root_indptr[root] : root_indptr[root + 1]]
            if len(row) >= len(own) and _has_all(row, own):
                roots[n] = root
                n += 1
        ends[i + 1] = n


@compiled
def _has_all(row: np.ndarray, own: np.ndarray) -> bool:
    for v in own:
        at = first_at_least(row, 0, len(row), v)
        if at == len(row) or row[at] != v:
            return False
    return True
