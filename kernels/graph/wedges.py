"""Degrees and wedges of root vertices, and lists taken out of a CSR. Small ones need no compiled code."""

from __future__ import annotations

import numpy as np

from schemas.dtypes import OFFSET
from schemas.graph import MiningGraph

__all__ = ["degrees_of", "gather", "wedges", "wedges_of"]

#: Entries from which on compiled code copies lists. It is several times as fast, and takes no memory besides the
#: result, but loading a compiler takes 0.3 s.
_MANY = 1 << 22


def wedges(indptr: np.ndarray) -> int:
    """Sum of squared degrees. It is the cost of walking from every vertex of the other side to its 2-hop neighbours."""
    return int(np.square(np.diff(indptr).astype(np.float64)).sum())


def degrees_of(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    """Degree of each of these roots."""
    return graph.root_indptr[roots + 1] - graph.root_indptr[roots]


def wedges_of(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    """Wedges of each root: the cost of opening it, and the best cheap estimate of the work below it."""
    indptr, base = gather(graph.root_indices, graph.root_indptr[roots], degrees_of(graph, roots))
    total = np.concatenate([np.zeros(1, OFFSET), np.cumsum(graph.base_indptr[base + 1] - graph.base_indptr[base])])
    return total[indptr[1:]] - total[indptr[:-1]]


def gather(values: np.ndarray, at: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, and the lists ``values[at[i]:at[i] + n[i]]`` one behind the other."""
    indptr = np.concatenate([np.zeros(1, OFFSET), np.cumsum(n, dtype=OFFSET)])
    if indptr[-1] < _MANY:
        return indptr, values[np.repeat(at - indptr[:-1], n) + np.arange(indptr[-1])]
    from kernels.graph.csr import copy_lists  # not before it pays: it imports a compiler

    lists = np.empty(indptr[-1], values.dtype)
    copy_lists(values, at.astype(OFFSET), indptr, lists)
    return indptr, lists
