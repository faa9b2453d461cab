"""Search of nodes that thresholds may still reduce. It is the upper part of the tree, where the root side is small.

In a dense graph hubs come here without thresholds, too, because twins are merged here.
The reductions R1 to R6 of `kernels.reference.tree` are made at every child. The rows of a frame are those of its parent
that are left, restricted to its L. First come the excluded rows, then the candidates, by ascending overlap. So the rows
that are excluded at a candidate are those before it, and its own candidates are those behind it. When L fits half the
words, the rows are packed. Where twins are merged (`kernels.cpu.twins`), that is mostly after a step or two. A
child whose root side is large enough and that has at most 64 base vertices becomes a word
problem: all that thresholds can do below it is R1.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.bound import fewest_base, fewest_roots
from bicliques.kernels.cpu.constants import EMPTY, FULL, PADDING, PAUSED
from bicliques.kernels.cpu.marks import has_mark, is_live_in_sieve, note_in_word
from bicliques.kernels.cpu.open_word import begin_word
from bicliques.kernels.cpu.output import aside_is_full, begin_aside, deliver, end_aside
from bicliques.kernels.cpu.pointers import sieve_frame
from bicliques.kernels.cpu.rows import sort_few
from bicliques.kernels.cpu.simd import (
    at_least,
    extract_bits,
    members_of,
    occurring,
    overlaps,
    popcount,
    trailing_zeros,
)
from bicliques.kernels.cpu.twins import merge_twins
from bicliques.kernels.cpu.word import weigh
from bicliques.kernels.cpu.workspace import SIEVE_FRAMES, WORD_BITS

_ZERO = np.uint64(0)
_ONE = np.uint64(1)

#: Most root members that R2 can ask for, because its counters have eight bits. A node that needs more is left as it is.
_MOST_NEEDED = 255
#: What became of a child: it leads nowhere; an excluded row contains it; it is open or done; there was no room; it is a
#: word problem; all below it is larger than the filters allow.
_NOTHING, _EXCLUDED, _OPEN, _NO_ROOM, _WORD, _TOO_LARGE = 0, 1, 2, 3, 4, 5


@compiled
def search_sieve(g, word, hub, sieve, out):
    """Explore the open sieve problem until a child becomes a word problem, or until `search_word` would end."""
    v, s = sieve.state, out.state
    if v.fresh:
        f = sieve_frame(sieve.frame, 0)
        _load_mask(sieve, f.at, f.words, f.planes)
        if not _deliver(g, hub, sieve, out, f.base0, f.words, f.n_closed):
            return FULL
        v.fresh = 0
    while v.depth > 0:
        if s.steps <= 0 or aside_is_full(out):
            return PAUSED
        f = sieve_frame(sieve.frame, v.depth - 1)
        if f.next == f.end or min(f.members + f.members_left, s.max_root) < fewest_roots(s, f.size):
            v.depth -= 1
            continue
        j = f.next
        s.steps -= 1 + ((f.n_rows - j) * f.words >> 8)
        became = _child(g, word, hub, sieve, out, f, sieve_frame(sieve.frame, v.depth), j)
        if became == _NO_ROOM:
            return FULL
        f.next = j + 1
        f.members_left -= sieve.weight[f.list0 + j]
        if became == _NOTHING:
            for w in range(f.words):  # no result has this row, so it excludes nothing
                sieve.bits[f.rows + w * f.stride + j] = _ZERO
        elif became == _WORD:
            return EMPTY
    return EMPTY


@compiled
def _child(g, word, hub, sieve, out, f, child, j):
    """Open child `j` of the top frame, and deliver its biclique. Returns what became of it."""
    s, bits, count = out.state, sieve.bits, sieve.count
    at = f.top
    if at + f.planes * f.words > sieve.state.max_bits:
        _put_aside(sieve, out, f, j, False)
        return _OPEN
    for k in range(f.planes):
        for w in range(f.words):
            bits[at + k * f.words + w] = bits[f.at + k * f.words + w] & bits[f.rows + w * f.stride + j]
    size = _reduce(sieve, out, f, at, j)
    if size == 0 or (s.marking and not is_live_in_sieve(g, sieve, f, at, j)):
        return _NOTHING
    aside = f.n_rows + PADDING  # where the counts of the excluded rows are
    _count_overlaps(bits, f, at, 0, j, count, aside)
    n_excluded = 0
    for i in range(0, j, PADDING):
        if at_least(count, aside + i, j - i, size) != _ZERO:
            return _EXCLUDED
        n_excluded += popcount(at_least(count, aside + i, j - i, sieve.state.least))
    n_candidates = _join_closure(hub, sieve, f, child, j, size)
    first = sort_few(hub.sorter, n_candidates)
    if s.measure != 0 and child.members > s.max_root:
        return _TOO_LARGE
    n_base = _load_mask(sieve, at, f.words, f.planes)
    words = (n_base + 63) >> 6 if ((n_base + 63) >> 6) * 2 <= f.words else f.words
    n_rows = n_excluded + n_candidates
    list0 = f.list0 + f.n_rows
    if (
        sieve.state.depth + 1 == SIEVE_FRAMES
        or list0 + n_rows > sieve.state.max_list
        or at + (f.planes + n_rows) * max(words, f.words) > sieve.state.max_bits
    ):
        _put_aside(sieve, out, f, j, True)
        return _OPEN
    if child.members >= fewest_roots(s, size) and not _deliver(g, hub, sieve, out, f.base0, f.words, child.n_closed):
        return _NO_ROOM
    if n_candidates == 0:
        return _OPEN
    child.at, child.words, child.planes, child.size = at, words, f.planes, size
    child.rows, child.stride, child.list0, child.n_rows = at + f.planes * words, n_rows, list0, n_rows
    child.next, child.end = n_excluded, n_rows
    child.top = child.rows + words * n_rows
    child.base0, child.n_base, child.n_classes = f.base0, f.n_base, f.n_classes
    _copy_rows(hub, sieve, f, child, j, n_excluded, first, n_candidates)
    if n_base > WORD_BITS:
        merge_twins(sieve, out, child, _load_mask(sieve, at, words, f.planes))
    if s.measure == 0 and child.members >= s.min_root and child.n_base <= WORD_BITS:
        _hand_over(g, word, hub, sieve, out, child)
        return _WORD
    sieve.state.depth += 1
    return _OPEN


@compiled
def _reduce(sieve, out, f, at, j):
    """Reduce the child `j` whose L is at `at`, with R1, R2 and R4. Returns the weight of its L, 0 if it leads nowhere.

    ``count`` then has the overlaps of the rows behind `j`, and `least` is the threshold of R1 and R3 in the child.
    """
    s, bits, count = out.state, sieve.bits, sieve.count
    closed = f.members + sieve.weight[f.list0 + j]
    lo, n = f.list0 + j + 1, f.n_rows - j - 1
    members = f.members + f.members_left
    least = fewest_base(s, members)
    while True:
        size = 0
        for k in range(f.planes):
            for w in range(f.words):
                size += popcount(bits[at + k * f.words + w]) << k
        need = fewest_roots(s, size) - closed
        if size < least or members - closed < need:
            return 0
        _count_overlaps(bits, f, at, j + 1, f.n_rows, count, j + 1)
        if need > 0 or s.measure != 0:
            members = closed + members_of(count, j + 1, n, least, sieve.weight, lo)
            while fewest_base(s, members) > least:
                least = fewest_base(s, members)
                members = closed + members_of(count, j + 1, n, least, sieve.weight, lo)
            if size < least or members - closed < need:
                return 0
        if need <= 0 or need > _MOST_NEEDED or not _drop_base(sieve, f, at, j, least, need):
            sieve.state.least = least
            return size


@compiled
def _drop_base(sieve, f, at, j, least, need):
    """R2: drop base vertices that do not occur in enough candidates. Returns whether there were any."""
    bits = sieve.bits
    dropped = False
    for w in range(f.words):
        x = _ZERO
        for k in range(f.planes):
            x |= bits[at + k * f.words + w]
        if x == _ZERO:
            continue
        lo, n, row = f.list0 + j + 1, f.n_rows - j - 1, f.rows + w * f.stride + j + 1
        kept = x & occurring(bits, row, n, sieve.count, j + 1, least, sieve.weight, lo, need)
        if kept != x:
            dropped = True
            for k in range(f.planes):
                bits[at + k * f.words + w] &= kept
    return dropped


@compiled
def _join_closure(hub, sieve, f, child, j, size):
    """Write the closure of child `j`, and list its candidates in `hub.sorter`. Returns their number."""
    count = sieve.count
    sieve.closed[f.n_closed] = sieve.row[f.list0 + j]
    n_closed, members, left, n = f.n_closed + 1, f.members + sieve.weight[f.list0 + j], 0, 0
    for i in range(j + 1, f.n_rows):
        if count[i] == size:
            sieve.closed[n_closed] = sieve.row[f.list0 + i]
            n_closed += 1
            members += sieve.weight[f.list0 + i]
        elif count[i] >= sieve.state.least:
            hub.sorter[n] = (count[i] << 32) | i
            left += sieve.weight[f.list0 + i]
            n += 1
    child.n_closed, child.members, child.members_left = n_closed, members, left
    return n


@compiled
def _copy_rows(hub, sieve, f, child, j, n_excluded, first, n_candidates):
    """Write L and the rows of the new frame `child`, candidates in the order of ``hub.sorter[first:]``."""
    bits, mask = sieve.bits, sieve.mask
    if child.words < f.words:
        for k in range(f.planes):
            pack_row(bits, child.at + k * f.words, 1, mask, f.words, child.at + k * child.words, 1)
        child.base0 = f.base0 + f.n_base
        child.n_base = _base_of(sieve.base, f.base0, mask, f.words, sieve.base, child.base0)
    r = 0
    for i in range(0, j, PADDING):
        alive = at_least(sieve.count, f.n_rows + PADDING + i, j - i, sieve.state.least)
        while alive != _ZERO:
            _copy_row(sieve, f, child, i + trailing_zeros(alive), r)
            alive &= alive - _ONE
            r += 1
    for i in range(n_candidates):
        _copy_row(sieve, f, child, hub.sorter[first + i] & 0x7FFFFFFF, n_excluded + i)


@compiled
def _copy_row(sieve, f, child, i, r):
    bits, mask = sieve.bits, sieve.mask
    sieve.row[child.list0 + r] = sieve.row[f.list0 + i]
    sieve.weight[child.list0 + r] = sieve.weight[f.list0 + i]
    if child.words < f.words:
        pack_row(bits, f.rows + i, f.stride, mask, f.words, child.rows + r, child.stride)
    else:
        for w in range(f.words):
            bits[child.rows + w * child.stride + r] = bits[f.rows + w * f.stride + i] & mask[w]


@compiled
def merge_in_top(sieve, out):
    """Merge the twins in the top frame, if there are candidates to tell them apart and more than 64 base vertices."""
    f = sieve_frame(sieve.frame, sieve.state.depth - 1)
    if f.next < f.end and f.n_base > WORD_BITS:
        merge_twins(sieve, out, f, _load_mask(sieve, f.at, f.words, f.planes))


@compiled
def _load_mask(sieve, at, words, planes):
    """Write the L at `at` to `sieve.mask`. Returns the number of its vertices."""
    n = 0
    for w in range(words):
        x = _ZERO
        for k in range(planes):
            x |= sieve.bits[at + k * words + w]
        sieve.mask[w] = x
        n += popcount(x)
    return n


@compiled
def _deliver(g, hub, sieve, out, base0, words, n_closed):
    """Emit the biclique with the base vertices of `sieve.mask`. Returns False when the output is full."""
    if out.state.plain:
        out.state.count += 1
        return True
    for i in range(n_closed):
        out.closure[i] = sieve.closed[i]
    n = _base_of(sieve.base, base0, sieve.mask, words, hub.child, 0)
    if out.state.marking and not has_mark(g, out, hub.child, n, n_closed):
        return True
    return deliver(g, out, hub.child, n, n_closed)


@compiled
def _hand_over(g, word, hub, sieve, out, f):
    """Make the new frame `f`, whose rows have one word, a word problem."""
    w = word.state
    for i in range(f.n_closed):
        word.full[i] = sieve.closed[i]
    for i in range(f.n_base):
        word.base[i] = sieve.base[f.base0 + i]
    for i in range(f.next):
        word.stack[i] = sieve.bits[f.rows + i]
    w.n_full, w.n_rows = f.n_closed, f.n_rows - f.next
    for i in range(f.next, f.n_rows):
        word.row[i - f.next] = sieve.row[f.list0 + i]
        word.mask[i - f.next] = sieve.bits[f.rows + i]
    _load_mask(sieve, f.at, 1, f.planes)
    if out.state.sizing:
        weigh(word, out, f.n_base)
    else:
        w.n_planes = f.planes  # which count more than `most_weight` members as so many
        for k in range(f.planes):
            word.planes[k] = sieve.bits[f.at + k]
    if out.state.marking:
        note_in_word(g, word, f.n_base)
    begin_word(word, hub, out, sieve.mask[0], f.next, False, 0)


@compiled
def _put_aside(sieve, out, f, j, counted):
    """Make child `j` of the top frame a piece of its own. If its rows are `counted`, R1 shortens its candidates."""
    for i in range(f.n_closed):
        out.closure[i] = sieve.closed[i]
    out.closure[f.n_closed] = sieve.row[f.list0 + j]
    first = end = begin_aside(out, f.n_closed + 1)
    for i in range(j + 1, f.n_rows):
        if not counted or sieve.count[i] >= sieve.state.least:
            out.aside[end] = sieve.row[f.list0 + i]
            end += 1
    end_aside(out, first, end, 1)


# Operations on the bit rows of a problem, whose word `w` lies in one stretch for all rows together. So a loop over rows
# reads consecutive words, eight at a time.


@compiled
def _count_overlaps(bits, f, at, lo, hi, count, k0):
    """Write the weights of the overlaps of rows `lo` to `hi` with the base vertices at `at` to ``count[k0:]``.

    The base vertices are bit vectors: vector `p` has those with bit `p` in their weight. Up to eight entries behind the
    counts are overwritten.
    """
    kept = 0
    for p in range(f.planes):
        for w in range(f.words):
            x = bits[at + p * f.words + w]
            if x != _ZERO or kept == 0:
                for i in range(lo, hi, PADDING):
                    overlaps(bits, f.rows + w * f.stride + i, x, p, count, k0 + i - lo, kept)
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
def _base_of(base, base0, mask, words, target, target0):
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
