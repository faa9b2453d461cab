"""Compressed sparse rows (CSR): int64 offsets, and int32 indices that ascend inside a row."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.compiled.searching import sort
from bicliques.kernels.graph.threads import LEAST, borders, even, on_slices
from bicliques.schemas.dtypes import MAX_VERTICES, OFFSET, VERTEX


def from_sorted_pairs(
    rows: np.ndarray, columns: np.ndarray, n_rows: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """CSR of pairs that are sorted by (row, column).

    Parameters
    ----------
    rows, columns : ndarray, shape (n,), int32
    """
    indptr = np.empty(n_rows + 1, OFFSET)

    def search(_: int, start: int, stop: int) -> None:
        # int32, because other numbers would make a copy of `rows`
        indptr[start:stop] = np.searchsorted(rows, np.arange(start, stop, dtype=VERTEX))

    on_slices(search, even(n_rows, threads))
    indptr[n_rows] = len(rows)
    return indptr, columns


def transpose(
    indptr: np.ndarray, indices: np.ndarray, n_columns: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The same edges by column, in O(n + m): (offsets, row numbers). Rows ascend inside a column.

    Notes
    -----
    Every thread counts the columns of its rows, which takes 4 bytes per column, or 8 if there are 2^31 edges. There are
    so few threads that all of them together need at most as many bytes per edge.
    """
    cuts = borders(indptr, min(threads, len(indices) // max(n_columns, 1)))
    counts = np.zeros((len(cuts) - 1, n_columns), _wide_enough(len(indices)))
    on_slices(lambda k, start, stop: _count(indices[indptr[start] : indptr[stop]], counts[k]), cuts)
    out_indptr = np.zeros(n_columns + 1, OFFSET)
    added_up(counts, threads, out_indptr[1:])
    np.cumsum(out_indptr, out=out_indptr)

    def place(_: int, start: int, stop: int) -> None:
        """Counts become the place of the first entry of every thread."""
        first = out_indptr[start:stop].copy()
        for one in counts:
            n = one[start:stop].copy()
            one[start:stop] = first
            first += n

    on_slices(place, even(n_columns, threads))
    out = np.empty(len(indices), VERTEX)
    on_slices(lambda k, start, stop: _fill(indptr, indices, start, stop, counts[k], out), cuts)
    return out_indptr, out


def select_rows(
    indptr: np.ndarray, indices: np.ndarray, rows: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The given rows, in the given order, as a CSR of their own, in O(edges kept)."""
    at, out_indptr = np.empty(len(rows), OFFSET), np.zeros(len(rows) + 1, OFFSET)

    def measure(_: int, start: int, stop: int) -> None:
        some = rows[start:stop]
        at[start:stop] = indptr[:-1][some]
        out_indptr[start + 1 : stop + 1] = indptr[1:][some] - at[start:stop]

    on_slices(measure, even(len(rows), threads))
    np.cumsum(out_indptr, out=out_indptr)
    out = np.empty(out_indptr[-1], VERTEX)

    def copy(_: int, start: int, stop: int) -> None:
        copy_lists(indices, at[start:stop], out_indptr[start : stop + 1], out)

    on_slices(copy, borders(out_indptr, threads))
    return out_indptr, out


def renumbered(indptr: np.ndarray, indices: np.ndarray, number: np.ndarray, threads: int = 1) -> np.ndarray:
    """The columns ``number[indices]``, sorted inside every row. Both are int32."""
    out = np.empty(len(indices), VERTEX)
    on_slices(lambda _, start, stop: _renumber(indptr, indices, number, start, stop, out), borders(indptr, threads))
    return out


def compact_columns(indices: np.ndarray, n_columns: int, threads: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Renumber columns so that none is empty: (new indices, the old column of each new one)."""
    used = np.zeros(n_columns, dtype=np.bool_)

    def mark(_: int, start: int, stop: int) -> None:
        for first in range(start, stop, LEAST):  # a piece at a time, because NumPy makes 64-bit indices of it
            used[indices[first : min(first + LEAST, stop)]] = True  # threads may write the same byte, but the same

    on_slices(mark, even(len(indices), threads))
    old = np.flatnonzero(used).astype(VERTEX)
    if len(old) == n_columns:
        return indices, old
    new = np.cumsum(used, dtype=VERTEX) - 1
    return taken(new.astype(VERTEX, copy=False), indices, threads), old


def degrees_of_columns(indices: np.ndarray, n_columns: int, threads: int = 1) -> np.ndarray:
    """How often each column occurs, shape (n_columns,), int64. It takes as much memory as `transpose`."""
    cuts = even(len(indices), min(threads, len(indices) // max(n_columns, 1)))
    counts = np.zeros((len(cuts) - 1, n_columns), _wide_enough(len(indices)))
    on_slices(lambda k, start, stop: _count(indices[start:stop], counts[k]), cuts)
    return added_up(counts, threads)


def _wide_enough(n: int) -> np.dtype:
    """The type of counts up to `n`. Narrow ones leave more room in the caches."""
    return VERTEX if n <= MAX_VERTICES else OFFSET


def taken(values: np.ndarray, at: np.ndarray, threads: int = 1) -> np.ndarray:
    """``values[at]``, on threads."""
    out = np.empty(len(at), values.dtype)

    def take(_: int, start: int, stop: int) -> None:
        for first in range(start, stop, LEAST):  # a piece at a time, because NumPy makes 64-bit indices of it
            last = min(first + LEAST, stop)
            out[first:last] = values[at[first:last]]

    on_slices(take, even(len(at), threads))
    return out


def added_up(counts: np.ndarray, threads: int = 1, total: np.ndarray | None = None) -> np.ndarray:
    """The sum of all rows of `counts`, int64, which goes to `total` if that is given."""
    out = np.empty(counts.shape[1], OFFSET) if total is None else total

    def add(_: int, start: int, stop: int) -> None:
        counts[:, start:stop].sum(axis=0, out=out[start:stop])

    on_slices(add, even(len(out), threads))
    return out


@entry
def _count(indices, counts):
    for e in range(indices.size):
        counts[indices[e]] += 1


@entry
def _fill(indptr, indices, start, stop, free, out):
    for r in range(start, stop):
        for e in range(indptr[r], indptr[r + 1]):
            c = indices[e]
            out[free[c]] = r
            free[c] += 1


@entry
def _renumber(indptr, indices, number, start, stop, out):
    for r in range(start, stop):
        for e in range(indptr[r], indptr[r + 1]):
            out[e] = number[indices[e]]
        sort(out, indptr[r], indptr[r + 1])


@entry
def copy_lists(values, at, indptr, lists):
    """Write ``values[at[i]:...]`` to ``lists[indptr[i]:indptr[i + 1]]``, for every ``i``."""
    for i in range(len(at)):
        for k in range(indptr[i + 1] - indptr[i]):
            lists[indptr[i] + k] = values[at[i] + k]
