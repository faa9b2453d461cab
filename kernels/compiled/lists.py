"""Passes over a list column of vertices: a sum of hashes per list, how often each vertex occurs, and in which list."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.searching import value

#: Lists of so many entries are sorted by insertion alone.
_FEW = 12


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


@entry
def count_members(ids: np.ndarray, occurrences: np.ndarray) -> int:
    """Add the occurrences (int64) of each vertex.

    Returns
    -------
    int
        -1 if all `ids` (int32) are vertices. Otherwise the position of the first that is not; the work ends there.
    """
    for k in range(len(ids)):
        v = ids[k]
        if v < 0 or v >= len(occurrences):
            return k
        occurrences[v] += 1
    return -1


@entry
def keep_largest(
    code: int,
    ids: np.ndarray,
    indptr: np.ndarray,
    sizes: tuple[np.ndarray, np.ndarray],
    hashes: np.ndarray,
    kept_sizes: tuple[np.ndarray, np.ndarray],
    kept_hashes: np.ndarray,
) -> None:
    """Put every biclique in the place of the largest one of each of its members, if it is larger than that.

    The order is total: by measure, by number of edges, by left size, and by hash as a signed number.

    Parameters
    ----------
    code : int
        The measure, one of `kernels.compiled.searching`, with left in place of base.
    ids, indptr : ndarray of int32, and of int64, shape (n + 1,)
        Members of the bicliques on one side, as for `sum_lists`. Each is a vertex.
    sizes : (ndarray of int64, ndarray of int64), shape (n,)
        Left and right sizes of the bicliques.
    hashes : ndarray of uint64, shape (n,)
        Hashes of the bicliques.
    kept_sizes, kept_hashes : (ndarray of int32, ndarray of int32), ndarray of uint64
        The same of the largest biclique of each vertex so far. Sizes are 0 where there is none.
    """
    for i in range(len(hashes)):
        left, right, own = sizes[0][i], sizes[1][i], np.int64(hashes[i])
        edges = left * right
        measure = value(code, left, right)
        for k in range(indptr[i], indptr[i + 1]):
            v = ids[k]
            kept_left, kept_right = np.int64(kept_sizes[0][v]), np.int64(kept_sizes[1][v])
            kept_edges = kept_left * kept_right
            kept_measure = value(code, kept_left, kept_right)
            if measure != kept_measure:
                larger = measure > kept_measure
            elif edges != kept_edges:
                larger = edges > kept_edges
            elif left != kept_left:
                larger = left > kept_left
            else:
                larger = own > np.int64(kept_hashes[v])
            if larger:
                kept_sizes[0][v], kept_sizes[1][v], kept_hashes[v] = left, right, hashes[i]


@entry
def reorder(indptr: np.ndarray, values: np.ndarray, order: np.ndarray, out_indptr: np.ndarray, out: np.ndarray) -> None:
    """Lay lists out in another order.

    Parameters
    ----------
    indptr, values : ndarray of int64, shape (n + 1,), and of int32
        List ``i`` is ``values[indptr[i]:indptr[i + 1]]``.
    order : ndarray of int64, shape (n,)
        Number of the list that comes first, second, and so on.
    out_indptr, out : ndarray of the same types and shapes
        Output.
    """
    at = out_indptr[0] = 0
    for i in range(len(order)):
        for k in range(indptr[order[i]], indptr[order[i] + 1]):
            out[at] = values[k]
            at += 1
        out_indptr[i + 1] = at


@compiled
def sort_list(values, begin, end):
    """Sort ``values[begin:end]`` in place, by Shell's method with Ciura's gaps. Lists are short or nearly sorted."""
    n = end - begin
    if n > _FEW:
        ascends = True
        for i in range(begin + 1, end):
            ascends &= values[i - 1] < values[i]
        if ascends:
            return
        gap = 701
        while gap < n // 3:
            gap = gap * 9 // 4
        while gap >= n:
            gap = _next_gap(gap)
        while gap > 1:
            for i in range(begin + gap, end):
                value, at = values[i], i
                while at - gap >= begin and values[at - gap] > value:
                    values[at] = values[at - gap]
                    at -= gap
                values[at] = value
            gap = _next_gap(gap)
    for i in range(begin + 1, end):
        value, at = values[i], i
        while at > begin and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value


@compiled
def _next_gap(gap):
    if gap > 701:
        return max(gap * 4 // 9, 701)
    if gap > 301:
        return 301
    if gap > 132:
        return 132
    if gap > 57:
        return 57
    if gap > 23:
        return 23
    if gap > 10:
        return 10
    return 4 if gap > 4 else 1
