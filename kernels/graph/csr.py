"""Compressed sparse rows (CSR): int64 offsets, and int32 indices that ascend inside a row."""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled
from schemas.dtypes import OFFSET, VERTEX

__all__ = ["compact_columns", "copy_lists", "from_sorted_pairs", "select_rows", "transpose"]


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


def compact_columns(indices: np.ndarray, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Renumber columns so that none is empty: (new indices, the old column of each new one)."""
    used = np.zeros(n_columns, dtype=np.bool_)
    used[indices] = True
    old = np.flatnonzero(used).astype(VERTEX)
    new = np.cumsum(used, dtype=VERTEX) - 1
    return new[indices].astype(VERTEX), old


@compiled
def copy_lists(values, at, indptr, lists):
    """Write ``values[at[i]:...]`` to ``lists[indptr[i]:indptr[i + 1]]``, for every ``i``."""
    for i in range(len(at)):
        lists[indptr[i] : indptr[i + 1]] = values[at[i] : at[i] + indptr[i + 1] - indptr[i]]
