"""Operations on lists of single-word rows: sort, drop repeats, and drop rows that lie inside another list's row."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.compiled.searching import sort
from bicliques.kernels.cpu.constants import COUNTERS, PADDING, RANKED
from bicliques.kernels.cpu.memory import as_int64s
from bicliques.kernels.cpu.simd import at_least, covers, popcount

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
# up to this many words are sorted by insertion, which was measured to be faster than counting there
_FEW = 20


@compiled
def covered(rows, lo, hi, t):
    """Whether some word of ``rows[lo:hi]`` contains `t`. It reads up to PADDING words more."""
    i = lo
    while i + PADDING <= hi:
        if covers(rows, i, t) != _ZERO:
            return True
        i += PADDING
    if i < hi:
        return covers(rows, i, t) & ((_ONE << np.uint64(hi - i)) - _ONE) != _ZERO
    return False


@compiled
def restrict(rows, lo, hi, t, at):
    """Write the intersections of ``rows[lo:hi]`` with `t` that are neither empty nor `t` to ``rows[at:]``."""
    m = at
    for i in range(lo, hi):
        x = rows[i] & t
        rows[m] = x
        m += (x != _ZERO) & (x != t)
    return m - at


@compiled
def drop_covered(rows, lo, hi, at, n):
    """Keep, in order, those of ``rows[at:at + n]`` that lie inside no word of ``rows[lo:hi]``."""
    m = at
    for i in range(at, at + n):
        x = rows[i]
        if not covered(rows, lo, hi, x):
            rows[m] = x
            m += 1
    return m - at


@compiled
def distinct_by_size(rows, at, n):
    """Sort ``rows[at:at + n]`` by ascending number of bits, then value, and drop repeats. Returns how many stay.

    ``rows[at + n:at + 2n + COUNTERS]`` is scratch.
    """
    if n <= _FEW:
        _insertion_sort(rows, at, n)
    else:
        sort(as_int64s(rows), at, at + n)
        n = _drop_repeats(rows, at, n)
        _by_size(rows, at, n)
    return _drop_repeats(rows, at, n)


@compiled
def keep_widest(rows, at, n):
    """Keep those of ``rows[at:at + n]`` that lie inside no other. They exclude what the whole list excludes."""
    n = distinct_by_size(rows, at, n)
    for i in range(n // 2):  # widest first, because only a wider word can contain another
        rows[at + i], rows[at + n - 1 - i] = rows[at + n - 1 - i], rows[at + i]
    m = at
    for i in range(at, at + n):
        x = rows[i]
        if not covered(rows, at, m, x):
            rows[m] = x
            m += 1
    return m - at


@compiled
def _insertion_sort(rows, at, n):
    for i in range(at + 1, at + n):
        x = rows[i]
        size = popcount(x)
        k = i
        while k > at and (popcount(rows[k - 1]) > size or (popcount(rows[k - 1]) == size and rows[k - 1] > x)):
            rows[k] = rows[k - 1]
            k -= 1
        rows[k] = x


@compiled
def _drop_repeats(rows, at, n):
    m = at
    for i in range(at, at + n):
        if i == at or rows[i] != rows[m - 1]:
            rows[m] = rows[i]
            m += 1
    return m - at


@compiled
def _by_size(rows, at, n):
    """Stable counting sort by number of bits. It uses ``rows[at + n:at + 2n + COUNTERS]`` as scratch."""
    start = at + 2 * n
    for k in range(COUNTERS):
        rows[start + k] = _ZERO
    for i in range(at, at + n):
        rows[start + popcount(rows[i]) + 1] += _ONE
    for k in range(start, start + COUNTERS - 1):
        rows[k + 1] += rows[k]
    for i in range(at, at + n):
        k = start + popcount(rows[i])
        rows[at + n + np.int64(rows[k])] = rows[i]
        rows[k] += _ONE
    for i in range(at, at + n):
        rows[i] = rows[i + n]


@compiled
def sort_few(values, n):
    """Sort ``values[:n]``, which are different int64, by counting for each how many are smaller if there are few.

    Returns where the sorted values begin. Up to 2 `RANKED` entries are used in any case.
    """
    if n > RANKED:
        sort(values, 0, n)
        return 0
    for i in range(n):
        place = RANKED + n
        for k in range(0, n, PADDING):
            place -= popcount(at_least(values, k, n - k, values[i]))
        values[place] = values[i]
    return RANKED
