"""Operations on the bit rows of a sieve problem, whose word `w` lies in one stretch for all rows together.

So a loop over rows reads consecutive words, and the compiler makes vector instructions of it.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled
from kernels.cpu.simd import extract_bits, popcount, trailing_zeros

__all__ = ["MOST_NEEDED", "alive_members", "base_of", "count_overlaps", "pack_row", "reached"]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
#: Most root members that `reached` can ask for. Its counters have eight bits.
MOST_NEEDED = 255


@compiled
def count_overlaps(bits, rows, stride, words, planes, at, lo, hi, count):
    """Write the weights of the overlaps of rows `lo` to `hi` with the base vertices at `at` to ``count[lo:hi]``.

    The base vertices are `planes` bit vectors: vector `k` has those with bit `k` in their weight.
    """
    for i in range(lo, hi):
        count[i] = 0
    for k in range(planes):
        for w in range(words):
            x = bits[at + k * words + w]
            if x != _ZERO:
                _add_overlaps(bits, rows + w * stride, lo, hi, x, k, count)


@compiled
def _add_overlaps(bits, row, lo, hi, x, k, count):
    for i in range(lo, hi):
        count[i] += popcount(bits[row + i] & x) << k


@compiled
def alive_members(count, weight, list0, lo, hi, least):
    """Members of those of the rows `lo` to `hi` whose overlap weighs at least `least`."""
    total = 0
    for i in range(lo, hi):
        total += (count[i] >= least) * weight[list0 + i]
    return total


@compiled
def reached(bits, row, lo, hi, x, count, weight, list0, least, need):
    """Those base vertices of word `x` that occur in rows with `need` members, at most `MOST_NEEDED`.

    Only rows `lo` to `hi` whose overlap weighs at least `least` count. Each base vertex has a counter. Bit `k` of all 64
    counters is one word, and a counter begins so that its carry says that `need` is reached.
    """
    c0, c1, c2, c3 = _begin(need, 0), _begin(need, 1), _begin(need, 2), _begin(need, 3)
    c4, c5, c6, c7 = _begin(need, 4), _begin(need, 5), _begin(need, 6), _begin(need, 7)
    there = ~x
    for i in range(lo, hi):
        if count[i] < least:
            continue
        row_x = bits[row + i] & x
        for _ in range(min(weight[list0 + i], need)):
            y = row_x
            c0, y = c0 ^ y, c0 & y
            c1, y = c1 ^ y, c1 & y
            c2, y = c2 ^ y, c2 & y
            c3, y = c3 ^ y, c3 & y
            c4, y = c4 ^ y, c4 & y
            c5, y = c5 ^ y, c5 & y
            c6, y = c6 ^ y, c6 & y
            c7, y = c7 ^ y, c7 & y
            there |= y
        if there == ~_ZERO:
            return x
    return there & x


@compiled
def _begin(need, k):
    return _ZERO - np.uint64(((MOST_NEEDED + 1 - need) >> k) & 1)


@compiled
def pack_row(bits, row, stride, mask, words, target, target_stride):
    """Write the bits of a row at the one bits of ``mask[:words]`` one behind the other, word by word."""
    word, filled = _ZERO, 0
    for w in range(words):
        if mask[w] == _ZERO:
            continue
        x = extract_bits(bits[row + w * stride], mask[w])
        word |= x << np.uint64(filled)
        filled += popcount(mask[w])
        if filled >= 64:
            bits[target] = word
            target += target_stride
            filled -= 64
            used = np.uint64(popcount(mask[w]) - filled)  # bits of x that were written, at least one
            word = (x >> (used - _ONE)) >> _ONE
    if filled > 0:
        bits[target] = word


@compiled
def base_of(base, base0, mask, words, target, target0):
    """Write the base vertices of ``mask[:words]``, whose bits are ``base[base0:]``, to ``target[target0:]``.

    Returns their number.
    """
    n = 0
    for w in range(words):
        x = mask[w]
        while x != _ZERO:
            target[target0 + n] = base[base0 + (w << 6) + trailing_zeros(x)]
            x &= x - _ONE
            n += 1
    return n
