"""Compressed sparse rows (CSR): int64 offsets, and int32 indices that ascend inside a row."""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph

__all__ = ["degrees_of", "from_sorted_pairs", "gather", "select_rows", "transpose", "wedges", "wedges_of"]


def from_sorted_pairs(rows: np.ndarray, columns: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR of pairs that are sorted by (row, column).

    Parameters
    ----------
    rows, columns : ndarray, shape (n,), int32
    n_rows : int
    """
    counts = np.bincount(rows, minlength=n_rows)
    return np.concatenate([np.zeros(1, OFFSET), np.cumsum(counts, dtype=OFFSET)]), columns


@compiled
def transpose(indptr, indices, n_columns):
    """The same edges by column, in O(n + m): (offsets, row numbers). Rows ascend inside a column."""
    n = indices.size
    out_indptr = np.zeros(n_columns + 1, dtype=np.int64)
    for e in range(n):
        out_indptr[indices[e] + 1] += 1
    for c in range(n_columns):
        out_indptr[c + 1] += out_indptr[c]
    free = out_indptr[:-1].copy()
    out = np.empty(n, dtype=np.int32)
    for r in range(indptr.size - 1):
        for e in range(indptr[r], indptr[r + 1]):
            c = indices[e]
            out[free[c]] = r
            free[c] += 1
    return out_indptr, out


@compiled
def select_rows(indptr, indices, rows):
    """The given rows, in the given order, as a CSR of their own, in O(edges kept)."""
    out_indptr = np.zeros(rows.size + 1, dtype=np.int64)
    for i in range(rows.size):
        out_indptr[i + 1] = out_indptr[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    out = np.empty(out_indptr[-1], dtype=np.int32)
    for i in range(rows.size):
        start = indptr[rows[i]]
        for k in range(out_indptr[i + 1] - out_indptr[i]):
            out[out_indptr[i] + k] = indices[start + k]
    return out_indptr, out


def wedges(indptr: np.ndarray) -> int:
    """Sum of squared degrees. It is the cost of walking from every vertex of the other side to its 2-hop neighbours."""
    return int(np.square(np.diff(indptr).astype(np.float64)).sum())


def compact_columns(indices: np.ndarray, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Renumber columns so that none is empty: (new indices, the old column of each new one)."""
    used = np.zeros(n_columns, dtype=np.bool_)
    used[indices] = True
    old = np.flatnonzero(used).astype(VERTEX)
    new = np.cumsum(used, dtype=VERTEX) - 1
    return new[indices].astype(VERTEX), old


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
    lists = np.empty(indptr[-1], values.dtype)
    _copy(values, at.astype(OFFSET), indptr, lists)
    return indptr, lists


@compiled
def _copy(values: np.ndarray, at: np.ndarray, indptr: np.ndarray, lists: np.ndarray) -> None:
    for i in range(len(at)):
        lists[indptr[i] : indptr[i + 1]] = values[at[i] : at[i] + indptr[i + 1] - indptr[i]]
