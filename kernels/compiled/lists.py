"""What a list column says of its vertices, in one pass: a sum of hashes a list, and how often each vertex occurs."""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled

__all__ = ["sum_lists"]


@compiled
def sum_lists(
    ids: np.ndarray, indptr: np.ndarray, hashes: np.ndarray, occurrences: np.ndarray, sums: np.ndarray
) -> int:
    """Sum hashes modulo 2**64, list by list.

    Parameters
    ----------
    ids : ndarray of int32
        Vertices, one list after the other.
    indptr : ndarray of int64, shape (n + 1,)
        List ``i`` is ``ids[indptr[i]:indptr[i + 1]]``.
    hashes : ndarray of uint64
        By vertex.
    occurrences : ndarray of int64
        By vertex; added to.
    sums : ndarray of uint64, shape (n,)
        Output.

    Returns
    -------
    int
        Position in `ids` of the first that is no vertex, at which the work ends; -1 if all are.
    """
    for i in range(len(sums)):
        total = np.uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            v = ids[k]
            if v < 0 or v >= len(hashes):
                return k
            total += hashes[v]
            occurrences[v] += 1
        sums[i] = total
    return -1
