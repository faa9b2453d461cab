"""One pass over a list column of vertices: a sum of hashes per list, and how often each vertex occurs."""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import entry

__all__ = ["sum_lists"]


@entry
def sum_lists(
    ids: np.ndarray, indptr: np.ndarray, hashes: np.ndarray, occurrences: np.ndarray, sums: np.ndarray
) -> int:
    """Sum hashes modulo 2**64, list by list.

    Parameters
    ----------
    ids : ndarray of int32
        Vertices of all lists, one list after the other.
    indptr : ndarray of int64, shape (n + 1,)
        List ``i`` is ``ids[indptr[i]:indptr[i + 1]]``.
    hashes : ndarray of uint64
        Hash of each vertex.
    occurrences : ndarray of int64
        Occurrences of each vertex; those found here are added.
    sums : ndarray of uint64, shape (n,)
        Output.

    Returns
    -------
    int
        -1 if all `ids` are vertices. Otherwise the position of the first that is not; the work ends there.
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
