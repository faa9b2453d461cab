"""Twins are vertices with the same neighbourhood. They are merged before the search and expanded in the output.

Twins are in the same maximal bicliques, so the search needs only one of them. Merging does not change the
number of maximal bicliques. It also keeps every first-level subtree alive: under ascending degree, no root's
closure can begin with an earlier root. After a pass over one side and one over the other, no side has twins.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled
from schemas.bicliques import LEFT_SALT, splitmix64
from schemas.dtypes import OFFSET, VERTEX

__all__ = ["group_twins"]


def group_twins(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group equal rows of a CSR.

    Returns
    -------
    representatives : ndarray, shape (n_groups,), int32
        First row of each group, ascending.
    members_indptr : ndarray, shape (n_groups + 1,), int64
    members : ndarray, shape (n_rows,), int32
        Rows of each group, ascending.

    Notes
    -----
    Hashes only bring rows together that may be equal. Then rows are compared in full. O(m + n log n).
    """
    n = len(indptr) - 1
    degree = np.diff(indptr)
    hashes = splitmix64(np.arange(int(indices.max(initial=-1)) + 1, dtype=np.uint64) ^ LEFT_SALT)
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes[indices], dtype=np.uint64)])
    key = total[indptr[1:]] - total[indptr[:-1]]
    order = np.lexsort((np.arange(n), degree, key)).astype(OFFSET)
    first = _first_equal(indptr, indices, key, order)
    by_group = np.lexsort((np.arange(n), first))
    representatives, starts = np.unique(first[by_group], return_index=True)
    members_indptr = np.concatenate([starts, [n]]).astype(OFFSET)
    return representatives.astype(VERTEX), members_indptr, by_group.astype(VERTEX)


@compiled
def _first_equal(indptr, indices, key, order):
    """For every row, the smallest row that is equal to it. `order` is ascending by key, then by row."""
    n = order.size
    first = np.empty(n, dtype=np.int64)
    start = 0
    for i in range(n):
        row = order[i]
        if key[row] != key[order[start]]:
            start = i
        first[row] = row
        for k in range(start, i):
            other = order[k]
            if first[other] == other and _rows_equal(indptr, indices, row, other):
                first[row] = other
                break
    return first


@compiled
def _rows_equal(indptr, indices, a, b):
    n = indptr[a + 1] - indptr[a]
    if n != indptr[b + 1] - indptr[b]:
        return False
    for k in range(n):
        if indices[indptr[a] + k] != indices[indptr[b] + k]:
            return False
    return True
