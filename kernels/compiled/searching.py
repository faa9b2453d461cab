"""What compiled code does in many places: search and sort without memory of its own, hash, and measure bicliques.

Measures of `schemas.search` are numbers here. They have the base side and the root side of a search, or a vertex's own
side and the other one, in place of left and right.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry


@compiled
def splitmix64(x: np.uint64) -> np.uint64:
    """As `schemas.hashes.splitmix64`."""
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@compiled
def mixed(left: np.uint64, right: np.uint64) -> np.uint64:
    """The hash of a row from the sums of its sides, as `schemas.hashes.mixed`."""
    return splitmix64(left ^ splitmix64(right))


#: The product, the sum, the smaller, or one of the sides. 0 stands for no measure.
EDGES, VERTICES, BALANCE, BASE, ROOTS = 1, 2, 3, 4, 5
#: The same by the measure, and by whether the root side is the left one.
MEASURES = {
    ("edges", False): EDGES,
    ("edges", True): EDGES,
    ("vertices", False): VERTICES,
    ("vertices", True): VERTICES,
    ("balance", False): BALANCE,
    ("balance", True): BALANCE,
    ("left", False): BASE,
    ("left", True): ROOTS,
    ("right", False): ROOTS,
    ("right", True): BASE,
}


@compiled
def value(code, base, roots):
    """The measure of a biclique with so many members."""
    if code == EDGES:
        return base * roots
    if code == VERTICES:
        return base + roots
    if code == BALANCE:
        return min(base, roots)
    return base if code == BASE else roots


#: Up to this many values are sorted by insertion.
_FEW = 20


@compiled
def first_at_least(values: np.ndarray, start: int, stop: int, wanted: int) -> int:
    """The first position of the ascending ``values[start:stop]`` with at least `wanted`, or `stop`."""
    while start < stop:
        middle = (start + stop) >> 1
        if values[middle] < wanted:
            start = middle + 1
        else:
            stop = middle
    return start


@compiled
def sort(values, lo, hi):
    """Sort ``values[lo:hi]`` of integers by quicksort. Numba compiles this in a tenth of the time of its own sort."""
    while hi - lo > _FEW:
        a, b, c = values[lo], values[(lo + hi) >> 1], values[hi - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        i, k = lo, hi - 1
        while i <= k:
            while values[i] < pivot:
                i += 1
            while values[k] > pivot:
                k -= 1
            if i <= k:
                values[i], values[k] = values[k], values[i]
                i += 1
                k -= 1
        if k - lo < hi - i:  # the shorter part first, so that there are few calls inside one another
            sort(values, lo, k + 1)
            lo = i
        else:
            sort(values, i, hi)
            hi = k + 1
    for i in range(lo + 1, hi):
        x = values[i]
        k = i
        while k > lo and values[k - 1] > x:
            values[k] = values[k - 1]
            k -= 1
        values[k] = x


@compiled
def _order(text, begin, end, other, other_begin, other_end):
    """Less than 0, 0 or more: how the bytes of one text compare with those of another one."""
    n = min(end - begin, other_end - other_begin)
    for k in range(n):
        difference = np.int64(text[begin + k]) - np.int64(other[other_begin + k])
        if difference != 0:
            return difference
    return (end - begin) - (other_end - other_begin)


@entry
def find_texts(
    text: np.ndarray, offsets: np.ndarray, wanted: np.ndarray, wanted_offsets: np.ndarray, found: np.ndarray
) -> None:
    """Find each of some texts among others that ascend by their bytes and are different, by halving.

    Parameters
    ----------
    text, offsets : ndarray of uint8, ndarray of integers, shape (n + 1,)
        Text ``i`` has the bytes ``text[offsets[i]:offsets[i + 1]]``.
    wanted, wanted_offsets : the same
        The texts to find.
    found : ndarray of int32
        Output: the number of each, or -1 where it is not there.
    """
    for i in range(len(found)):
        begin, end = np.int64(wanted_offsets[i]), np.int64(wanted_offsets[i + 1])
        low, high = 0, len(offsets) - 1
        while low < high:
            middle = (low + high) // 2
            order = _order(text, np.int64(offsets[middle]), np.int64(offsets[middle + 1]), wanted, begin, end)
            if order < 0:
                low = middle + 1
            else:
                high = middle
        found[i] = -1
        if low < len(offsets) - 1:
            if _order(text, np.int64(offsets[low]), np.int64(offsets[low + 1]), wanted, begin, end) == 0:
                found[i] = low
