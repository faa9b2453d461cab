"""Merges twins inside a node of the sieve: base vertices that no candidate tells apart become one bit with a weight.

`kernels.reference.tree` says why this is exact (R7). The rows of the candidates are split 64 at a time. So a class of
twins is found by comparing words, and a hash only says where to look. A bit that stands for a class has
an entry in `Sieve.base` that is no base vertex, and `Output` has what the class is made of.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.simd import trailing_zeros

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_FULL = ~_ZERO
_HASH = np.uint64(0x9E3779B97F4A7C15)


@compiled
def merge_twins(sieve, out, f, n):
    """Make the bits of the frame `f` classes of twins, if they need at most half as many words.

    Its L is `sieve.mask`, with `n` base vertices. The new bits are behind the old ones.
    """
    if out.state.max_classes == 0:  # marked edges are those of base vertices, not of classes
        return
    d = _classes(sieve, f, n)
    if d == 0 or f.n_classes + d > out.state.max_classes or not _list_members(out, sieve, f, d):
        return
    _add_up(sieve, out, f, d)
    words, planes, first_class = (d + 63) >> 6, 1, out.state.first_class + f.n_classes
    for k in range(first_class, first_class + d):
        while min(out.base_size[k], out.state.most_weight) >> planes:
            planes += 1
    at, rows = f.top, f.top + words * planes
    if rows + words * f.n_rows > sieve.state.max_bits:
        return
    for i in range(words * planes):
        sieve.bits[at + i] = _ZERO
    for k in range(d):
        sieve.base[f.base0 + f.n_base + k] = first_class + k
        weight = min(out.base_size[first_class + k], out.state.most_weight)
        for p in range(planes):
            if (weight >> p) & 1:
                sieve.bits[at + p * words + (k >> 6)] |= _ONE << np.uint64(k & 63)
    for first in range(0, f.n_rows, 64):
        _write_rows(sieve, f, d, rows, first, min(first + 64, f.n_rows))
    f.at, f.rows, f.stride, f.words, f.planes, f.top = at, rows, f.n_rows, words, planes, rows + words * f.n_rows
    f.base0, f.n_base, f.n_classes = f.base0 + f.n_base, d, f.n_classes + d


@compiled
def _classes(sieve, f, n):
    """Number the classes of the `n` vertices by their first vertices, in `sieve.twin`. Returns how many, 0 if too many.

    Two vertices are in a class if the same candidates have them.
    """
    limit, size = (f.words >> 1) << 6, 128
    while size < 2 * limit:
        size *= 2
    for c in range(n):
        sieve.twin[c] = 0
    found = 0
    for first in range(f.next, f.n_rows, 64):
        for i in range(size):
            sieve.slot[i] = -1
        found = c = 0
        for w in range(f.words):
            x = sieve.mask[w]
            if x == _ZERO:
                continue
            _columns(sieve, f, w, first, min(first + 64, f.n_rows))
            while x != _ZERO:
                key, part = sieve.square[trailing_zeros(x)], sieve.twin[c]
                k = _place(sieve, found, key, part, size)
                if k == found:
                    if found == limit:
                        return 0
                    found += 1
                sieve.twin[c] = k
                c += 1
                x &= x - _ONE
    return found


@compiled
def _place(sieve, found, key, part, size):
    """The number of the class with this key in this part, which is `found` if it is a new one. It is entered then."""
    at = np.int64(((key + np.uint64(part + 1) * _HASH) * _HASH) >> np.uint64(33)) & (size - 1)
    while True:
        k = np.int64(sieve.slot[at])
        if k == -1:
            sieve.slot[at] = found
            sieve.key[found], sieve.part[found] = key, part
            return np.int64(found)
        if sieve.key[k] == key and sieve.part[k] == part:
            return k
        at = (at + 1) & (size - 1)


@compiled
def _columns(sieve, f, w, first, end):
    """Write which of the rows `first` to `end` have each bit of word `w` to `sieve.square`: a word for each bit."""
    for r in range(64):
        sieve.square[r] = _ZERO
    for r in range(first, end):
        sieve.square[r - first] = sieve.bits[f.rows + w * f.stride + r]
    _transpose(sieve.square)


@compiled
def _transpose(square):
    """Swap bit `b` of word `r` with bit `r` of word `b`, for 64 words."""
    j, mask = 32, np.uint64(0xFFFFFFFF)
    while j:
        shift = np.uint64(j)
        for high in range(0, 64, 2 * j):
            for k in range(high, high + j):
                t = ((square[k] >> shift) ^ square[k + j]) & mask
                square[k] ^= t << shift
                square[k + j] ^= t
        j >>= 1
        mask ^= mask << np.uint64(j)


@compiled
def _list_members(out, sieve, f, d):
    """List the base vertices of each class, if they will be written. Returns whether there is room."""
    top = out.class_ptr[f.n_classes]
    if not out.state.listing:
        for k in range(d):
            out.class_ptr[f.n_classes + k + 1] = top
        return True
    for k in range(f.n_classes + 1, f.n_classes + d + 1):  # the entry before them ends the last class of `f`
        out.class_ptr[k] = 0
    c = 0
    for w in range(f.words):
        x = sieve.mask[w]
        while x != _ZERO:
            u = sieve.base[f.base0 + (w << 6) + trailing_zeros(x)]
            k = u - out.state.first_class
            out.class_ptr[f.n_classes + sieve.twin[c] + 1] += 1 if k < 0 else out.class_ptr[k + 1] - out.class_ptr[k]
            c += 1
            x &= x - _ONE
    for k in range(f.n_classes + 1, f.n_classes + d + 1):
        n = out.class_ptr[k]
        out.class_ptr[k] = top  # where the class begins. It moves to the end while members are written.
        top += n
    if top > out.state.max_members:
        return False
    c = 0
    for w in range(f.words):
        x = sieve.mask[w]
        while x != _ZERO:
            u = sieve.base[f.base0 + (w << 6) + trailing_zeros(x)]
            k = f.n_classes + sieve.twin[c] + 1
            old = u - out.state.first_class
            if old < 0:
                out.class_member[out.class_ptr[k]] = u
                out.class_ptr[k] += 1
            else:
                for i in range(out.class_ptr[old], out.class_ptr[old + 1]):
                    out.class_member[out.class_ptr[k]] = out.class_member[i]
                    out.class_ptr[k] += 1
            c += 1
            x &= x - _ONE
    return True


@compiled
def _add_up(sieve, out, f, d):
    """Add up members and hashes of each class."""
    first_class = out.state.first_class + f.n_classes
    for k in range(first_class, first_class + d):
        out.base_size[k], out.base_hash[k] = 0, _ZERO
    c = 0
    for w in range(f.words):
        x = sieve.mask[w]
        while x != _ZERO:
            u = sieve.base[f.base0 + (w << 6) + trailing_zeros(x)]
            k = first_class + sieve.twin[c]
            out.base_size[k] += out.base_size[u]
            out.base_hash[k] += out.base_hash[u]
            c += 1
            x &= x - _ONE


@compiled
def _write_rows(sieve, f, d, rows, first, end):
    """Write rows `first` to `end` of `d` classes behind `rows`: a row has a class if it has all of its vertices."""
    for k in range(d):
        sieve.key[k] = _FULL
    c = 0
    for w in range(f.words):
        x = sieve.mask[w]
        if x == _ZERO:
            continue
        _columns(sieve, f, w, first, end)
        while x != _ZERO:
            sieve.key[sieve.twin[c]] &= sieve.square[trailing_zeros(x)]
            c += 1
            x &= x - _ONE
    for w in range((d + 63) >> 6):
        for b in range(64):
            k = (w << 6) + b
            sieve.square[b] = sieve.key[k] if k < d else _ZERO
        _transpose(sieve.square)
        for r in range(first, end):
            sieve.bits[rows + w * f.n_rows + r] = sieve.square[r - first]
