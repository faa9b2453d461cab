"""Operations on the bit rows of a sieve problem, whose word `w` lies in one stretch for all rows together.

So a loop over rows reads consecutive words, eight at a time.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.constants import PADDING
from bicliques.kernels.cpu.simd import extract_bits, overlaps, popcount, trailing_zeros

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def count_overlaps(bits, rows, stride, words, planes, at, lo, hi, count, k0):
    """Write the weights of the overlaps of rows `lo` to `hi` with the base vertices at `at` to ``count[k0:]``.

    The base vertices are `planes` bit vectors: vector `p` has those with bit `p` in their weight. Up to eight entries
    behind the counts are overwritten.
    """
    kept = 0
    for p in range(planes):
        for w in range(words):
            x = bits[at + p * words + w]
            if x != _ZERO or kept == 0:
                for i in range(lo, hi, PADDING):
                    overlaps(bits, rows + w * stride + i, x, p, count, k0 + i - lo, kept)
                kept = -1


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
