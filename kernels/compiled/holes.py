"""Counts the pairs of rows that are no edges."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.compiled.searching import first_at_least


@entry
def count_missing(
    rows: tuple[tuple[np.ndarray, np.ndarray], ...],
    indptr: np.ndarray,
    indices: np.ndarray,
    found: np.ndarray,
    most: np.ndarray,
    joined: np.ndarray,
    ends: np.ndarray,
) -> None:
    """Count the missing pairs of each row, and the most that a member of either side is in.

    Parameters
    ----------
    rows : ((ndarray, ndarray), (ndarray, ndarray))
        As `schemas.bicliques.Bicliques.sides`.
    indptr, indices : ndarray of int64, ndarray of int32
        The right neighbours of each left vertex of the graph, ascending.
    found : ndarray of int64, shape (rows,)
        Output: missing pairs.
    most : ndarray of int64, shape (2 * rows,)
        Output: the most of a left member, and of a right one, for each row.
    joined : ndarray of int64
        Scratch, an entry for each right vertex.
    ends : ndarray of int32
        Output: the left and the right end of each missing pair in turn, row by row, as many as there is room for.
    """
    (left, left_indptr), (right, right_indptr) = rows
    at_end = 0
    for i in range(len(found)):
        n_left, n_right = left_indptr[i + 1] - left_indptr[i], right_indptr[i + 1] - right_indptr[i]
        edges, fewest = 0, n_right
        for k in range(right_indptr[i], right_indptr[i + 1]):
            joined[right[k]] = 0
        for k in range(left_indptr[i], left_indptr[i + 1]):
            at, end, own = indptr[left[k]], indptr[left[k] + 1], 0
            for j in range(right_indptr[i], right_indptr[i + 1]):
                at = first_at_least(indices, at, end, right[j])
                if at < end and indices[at] == right[j]:
                    own += 1
                    joined[right[j]] += 1
                elif at_end < len(ends):
                    ends[at_end], ends[at_end + 1] = left[k], right[j]
                    at_end += 2
            edges += own
            fewest = min(fewest, own)
        found[i] = n_left * n_right - edges
        most[2 * i] = n_right - fewest
        most[2 * i + 1] = 0
        for k in range(right_indptr[i], right_indptr[i + 1]):
            most[2 * i + 1] = max(most[2 * i + 1], n_left - joined[right[k]])
