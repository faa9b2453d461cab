"""A node of the search for near-bicliques: what can be added, reductions, pivot, and the problem of its own.

`kernels.reference.near` has the definitions and the proof. Functions work on one side, which is called *own*, and get
the places of its sets, and of those of the *other* side, in the array of all bits.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.compiled.searching import BASE, EDGES, ROOTS
from bicliques.kernels.cpu.bound import fewest
from bicliques.kernels.cpu.near_workspace import SETS
from bicliques.kernels.cpu.pointers import near_frame
from bicliques.kernels.cpu.simd import extract_bits, popcount, trailing_zeros

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_NONE = 1 << 40


@compiled
def _size(bits, at, n):
    total = 0
    for i in range(n):
        total += popcount(bits[at + i])
    return total


@compiled
def _joined(bits, at, row, n):
    """How many of a set a row is joined to."""
    total = 0
    for i in range(n):
        total += popcount(bits[at + i] & bits[row + i])
    return total


@compiled
def missed(bits, at, row, n):
    """How many of a set a row misses."""
    total = 0
    for i in range(n):
        total += popcount(bits[at + i] & ~bits[row + i])
    return total


@compiled
def _keep(bits, at, row, n):
    """Keep those of a set that a row is joined to."""
    for i in range(n):
        bits[at + i] &= bits[row + i]


@compiled
def add(near, d, side, y):
    """Make frame `d` the child of the frame before it with candidate `y` of a side, up to what can be added to S."""
    p, parent, f = near.state, near_frame(near.frame, d - 1), near_frame(near.frame, d)
    bits, words = near.bits, parent.w0 + parent.w1
    f.w0, f.w1, f.rows0, f.rows1 = parent.w0, parent.w1, parent.rows0, parent.rows1
    f.names0, f.names1, f.all0, f.all1 = parent.names0, parent.names1, parent.all0, parent.all1
    f.sets = parent.bits_top
    f.bits_top, f.list_top = f.sets + SETS * words, parent.list_top
    for i in range(4 * words):
        bits[f.sets + i] = bits[parent.sets + i]
    left, right = (p.k0, f.rows0, f.w0, f.sets), (p.k1, f.rows1, f.w1, f.sets + f.w0)
    if side == 0:
        f.total = parent.total + _add(bits, p.pairs - parent.total, p.pairs, left, right, words, y)
    else:
        f.total = parent.total + _add(bits, p.pairs - parent.total, p.pairs, right, left, words, y)


@compiled
def _add(bits, slack, pairs, side, other_side, step, y):
    """Put `y` into S, and drop candidates that cannot be added any more. Returns how many of S it misses.

    Of its side, and of the other one: how many a member may miss, where the rows and how long the sets are, and S.
    """
    k_own, rows_own, w_own, own = side
    k_other, rows_other, w_other, other = other_side
    row = rows_own + y * w_other
    bits[own + (y >> 6)] |= _ONE << np.uint64(y & 63)
    own_miss = missed(bits, other, row, w_other)
    c_own, c_other, z_own, z_other = own + step, other + step, own + 2 * step, other + 2 * step
    full_own, full_other = own + 3 * step, other + 3 * step
    _keep(bits, z_other, row, w_other)
    if pairs >= 0:
        slack -= own_miss
        if slack == 0:
            _keep(bits, c_other, z_other, w_other)
            _keep(bits, c_own, z_own, w_own)
        else:
            _drop(bits, c_other, z_other, w_other, own, rows_other, w_own, slack)
            if own_miss > 0:
                _drop(bits, c_own, z_own, w_own, other, rows_own, w_other, slack)
        return own_miss
    if own_miss == k_own:
        bits[full_own + (y >> 6)] |= _ONE << np.uint64(y & 63)
        _keep(bits, c_other, row, w_other)
    if own_miss > 0:
        for i in range(w_other):
            x = bits[other + i] & ~bits[row + i]
            while x != _ZERO:
                u = 64 * i + trailing_zeros(x)
                x &= x - _ONE
                if missed(bits, own, rows_other + u * w_own, w_own) == k_other:
                    bits[full_other + i] |= _ONE << np.uint64(u & 63)
                    _keep(bits, c_own, rows_other + u * w_own, w_own)
    _drop(bits, c_other, z_other, w_other, own, rows_other, w_own, k_other)
    return own_miss


@compiled
def _drop(bits, c, z, w, s, rows, w_row, most):
    """Drop those of C that miss more than `most` of S. Those of `z` miss nothing."""
    for i in range(w):
        x = bits[c + i] & ~bits[z + i]
        while x != _ZERO:
            low = x & (~x + _ONE)
            x ^= low
            if missed(bits, s, rows + (64 * i + trailing_zeros(low)) * w_row, w_row) > most:
                bits[c + i] ^= low


@compiled
def settle(near, d, from0, from1, branch, chooses):
    """Reduce frame `d`, find what is excluded, and choose its children.

    Of the largest, the fewest members of a side follow from the most of the other one, again and again.

    Excluded are those of two lists, and of a list of both sides (i, or ~i), that can be added. Of each list it gets the
    start and the length. Without `chooses` the
    children are chosen already: then there is no pivot.

    Returns
    -------
    int
        0 if nothing is found below the node, 1 if it has children, 2 if it is a leaf that is to be delivered.
    """
    p, f = near.state, near_frame(near.frame, d)
    bits, w0, w1, words = near.bits, f.w0, f.w1, f.w0 + f.w1
    s0, s1 = f.sets, f.sets + w0
    c0, c1, z0, z1 = s0 + words, s1 + words, s0 + 2 * words, s1 + 2 * words
    a0, a1, t0, t1 = s0 + 4 * words, s1 + 4 * words, s0 + 5 * words, s1 + 5 * words
    slack0, slack1, total = p.k0, p.k1, f.total
    for i in range(words):
        bits[t0 + i] = bits[s0 + i] | bits[c0 + i]
    q0, q1 = t0, t1
    if p.pairs >= 0:
        slack0 = slack1 = p.pairs - total
        q0, q1 = s0 + 6 * words, s1 + 6 * words
        for i in range(words):
            bits[q0 + i] = bits[s0 + i] | bits[c0 + i] & bits[z0 + i]
    if _size(bits, s0, w0) > p.max0 or _size(bits, s1, w1) > p.max1:
        return 0
    first0, first1, at0, at1 = _NONE, _NONE, 0, 0
    n0, n1, seen0, seen1, need0, need1 = _size(bits, t0, w0), _size(bits, t1, w1), -1, -1, -1, -1
    while True:
        most0, most1 = _most(bits, q0, w0, n0, slack0), _most(bits, q1, w1, n1, slack1)
        least0, least1 = p.least0, p.least1
        if p.measure != 0:
            bound = p.bound + (total if p.measure == EDGES else 0)
            least0 = max(least0, fewest(p.measure, bound, min(most1, p.max1), BASE))
            least1 = max(least1, fewest(p.measure, bound, min(most0, p.max0), ROOTS))
        if most0 < least0 or most1 < least1 or least0 > p.max0 or least1 > p.max1:
            return 0
        if seen0 == n1 and need0 == least1 - slack0 and seen1 == n0 and need1 == least0 - slack1:
            break
        if seen0 != n1 or need0 != least1 - slack0:
            seen0, need0 = n1, least1 - slack0
            first0, at0 = _reduce(bits, (c0, z0, a0, t0, q0, w0), (t1, q1, n1, w1), f.rows0, need0)
            n0 = _size(bits, t0, w0)
        if seen1 != n0 or need1 != least0 - slack1:
            seen1, need1 = n0, least0 - slack1
            first1, at1 = _reduce(bits, (c1, z1, a1, t1, q1, w1), (t0, q0, n0, w0), f.rows1, need1)
            n1 = _size(bits, t1, w1)
    if p.pairs < 0 and not (
        _are_joined(bits, s0, w0, t1, f.rows0, w1, need0) and _are_joined(bits, s1, w1, t0, f.rows1, w0, need1)
    ):
        return 0
    p.best, p.best_side, p.best_at = _NONE, 0, 0
    if chooses:
        for i in range(words):  # who is joined to all is in every group below
            bits[s0 + i] |= bits[a0 + i]
            bits[c0 + i] &= ~bits[a0 + i]
        if first0 < _NONE:
            p.best, p.best_at = first0 + 1, at0
        if first1 + 1 < p.best:
            p.best, p.best_side, p.best_at = first1 + 1, 1, at1
    is_leaf = True
    for i in range(words):
        if bits[c0 + i] != _ZERO:
            is_leaf = False
            break
    if is_leaf and not chooses:
        return 0
    f.x0 = f.list_top
    other = s1, t1, q1, n1, w1, f.rows0
    f.n_x0 = _excluded(near, f.x0, 0, (from0[0], from0[1], 0), other, slack0, need0, is_leaf)
    if f.n_x0 >= 0:
        f.n_x0 = _excluded(near, f.x0, f.n_x0, (branch[0], branch[1], 0), other, slack0, need0, is_leaf)
    if f.n_x0 < 0:
        return 0
    f.x1 = f.x0 + f.n_x0
    other = s0, t0, q0, n0, w0, f.rows1
    f.n_x1 = _excluded(near, f.x1, 0, (from1[0], from1[1], 1), other, slack1, need1, is_leaf)
    if f.n_x1 >= 0:
        f.n_x1 = _excluded(near, f.x1, f.n_x1, (branch[0], branch[1], 2), other, slack1, need1, is_leaf)
    if f.n_x1 < 0:
        return 0
    f.branch = f.x1 + f.n_x1
    f.n_branch = f.next = 0
    f.list_top = f.branch
    return 2 if is_leaf else 1


@compiled
def _most(bits, q, w, n, slack):
    """The most members of a side of a group: of S and C, or of those with no miss, and `slack` others."""
    return min(n, _size(bits, q, w) + slack)


@compiled
def _reduce(bits, side, other_side, rows, need):
    """R1 on one side. Returns the fewest candidates that one with no miss is not joined to, and which it is.

    Those with none are put into `a`, and are not returned.
    """
    c, z, a, t, q, w = side
    t_other, q_other, n_other, w_other = other_side
    fewest, at = _NONE, 0
    for i in range(w):
        x = bits[c + i]
        bits[a + i] = _ZERO
        while x != _ZERO:
            low = x & (~x + _ONE)
            x ^= low
            k = 64 * i + trailing_zeros(low)
            n = _joined(bits, t_other, rows + k * w_other, w_other)
            if n < need or (q != t and _joined(bits, q_other, rows + k * w_other, w_other) < need):
                bits[c + i] ^= low
                bits[t + i] ^= low
                bits[q + i] &= ~low
            elif bits[z + i] & low != _ZERO:
                if n == n_other:
                    bits[a + i] |= low
                elif n_other - n < fewest:
                    fewest, at = n_other - n, k
    return fewest, at


@compiled
def _are_joined(bits, s, w, t_other, rows, w_other, need):
    """R2 in a k-biplex: whether every member of S on one side is joined to enough."""
    for i in range(w):
        x = bits[s + i]
        while x != _ZERO:
            row = rows + (64 * i + trailing_zeros(x)) * w_other
            x &= x - _ONE
            if _joined(bits, t_other, row, w_other) < need:
                return False
    return True


@compiled
def _excluded(near, to, kept, seen, other, slack, need, is_leaf):
    """List those that can be added of ``list[start:start + n]`` behind the first `kept` of ``list[to:]``.

    `which` says which are looked at: 0 those that are not negative, 1 those of a list of the base side, 2 the negative
    ones. Returns how many are listed, or -1 if one ends the node. It looks for a better pivot, too.
    """
    start, n, which = seen
    s, t, q, n_t, w, rows = other
    p, bits, side = near.state, near.bits, 1 if which > 0 else 0
    full = s + (t - s) // 5 * 3
    for i in range(n):
        x = np.int64(near.list[start + i])
        if which == 2:
            x = ~x
        if x < 0:
            continue
        row = rows + x * w
        miss = 0
        for k in range(w):
            word = bits[s + k]
            if word != _ZERO:
                miss += popcount(word & ~bits[row + k])
        if miss > slack:
            continue
        if p.pairs < 0 and miss > 0 and missed(bits, full, row, w) > 0:
            continue
        if is_leaf:
            return -1
        joined = _joined(bits, t, row, w)
        if joined < need or (q != t and _joined(bits, q, row, w) < need):
            continue
        if miss == 0:
            if joined == n_t:
                return -1
            if n_t - joined < p.best:
                p.best, p.best_side, p.best_at = n_t - joined, side, x
        near.list[to + kept] = x
        kept += 1
    return kept


@compiled
def branch_of(near, d):
    """List the children of frame `d` by its pivot: itself, if it is a candidate, and those it is not joined to."""
    p, f = near.state, near_frame(near.frame, d)
    words = f.w0 + f.w1
    c0, c1 = f.sets + words, f.sets + words + f.w0
    n = 0
    if p.best == _NONE:
        n = _list(near, f.branch, n, c0, f.w0, -1, 0)
        n = _list(near, f.branch, n, c1, f.w1, -1, 1)
    elif p.best_side == 0:
        n = _itself(near, f.branch, c0, f.w0, p.best_at, 0)
        n = _list(near, f.branch, n, c1, f.w1, f.rows0 + p.best_at * f.w1, 1)
    else:
        n = _itself(near, f.branch, c1, f.w1, p.best_at, 1)
        n = _list(near, f.branch, n, c0, f.w0, f.rows1 + p.best_at * f.w0, 0)
    f.n_branch, f.next = n, 0
    f.list_top = f.branch + n


@compiled
def _itself(near, to, c, w, x, side):
    if x >> 6 < w and (near.bits[c + (x >> 6)] >> np.uint64(x & 63)) & _ONE != _ZERO:
        near.list[to] = ~x if side == 1 else x
        return 1
    return 0


@compiled
def _list(near, to, n, c, w, row, side):
    for i in range(w):
        x = near.bits[c + i]
        if row >= 0:
            x &= ~near.bits[row + i]
        while x != _ZERO:
            k = 64 * i + trailing_zeros(x)
            x &= x - _ONE
            near.list[to + n] = ~k if side == 1 else k
            n += 1
    return n


@compiled
def shrink(near, d):
    """Give frame `d` a problem of its own if its rows become half as long, or words. Its children are not listed."""
    p, f = near.state, near_frame(near.frame, d)
    bits, w0, w1, words = near.bits, f.w0, f.w1, f.w0 + f.w1
    t0, t1 = f.sets + 5 * words, f.sets + 5 * words + w0
    n0, n1 = _size(bits, t0, w0), _size(bits, t1, w1)
    v0, v1 = (n0 + 63) >> 6, (n1 + 63) >> 6
    if words < 3 or (2 * (v0 + v1) > words and v0 + v1 > 2):
        return
    names0, rows0 = f.list_top, f.bits_top
    names1, rows1 = names0 + n0 + f.n_x0, rows0 + (n0 + f.n_x0) * v1
    sets = rows1 + (n1 + f.n_x1) * v0
    left, right = (t0, w0, v0), (t1, w1, v1)
    pivot0, pivot1 = (p.best_at, -1) if p.best_side == 0 else (-1, p.best_at)
    at = _place(near, left, right, (f.x0, f.n_x0), (f.names0, names0), (f.rows0, rows0), pivot0)
    at += _place(near, right, left, (f.x1, f.n_x1), (f.names1, names1), (f.rows1, rows1), pivot1)
    p.best_at = at
    for k in range(4):
        _pack(bits, f.sets + k * words, t0, w0, sets + k * (v0 + v1), v0)
        _pack(bits, f.sets + k * words + w0, t1, w1, sets + k * (v0 + v1) + v0, v1)
    for i in range(f.n_x0):
        near.list[f.x0 + i] = n0 + i
    for i in range(f.n_x1):
        near.list[f.x1 + i] = n1 + i
    f.names0, f.names1, f.rows0, f.rows1 = names0, names1, rows0, rows1
    f.w0, f.w1, f.all0, f.all1, f.sets = v0, v1, n0 + f.n_x0, n1 + f.n_x1, sets
    f.bits_top = sets + SETS * (v0 + v1)
    f.branch = names1 + n1 + f.n_x1
    f.list_top = f.branch


@compiled
def _place(near, side, other_side, excluded, names, rows, pivot):
    """Copy the rows of one side into the problem of a node. Returns the new number of the row `pivot`, or 0.

    Of each side: what is left, and the length of sets before and now. Names and rows: where they are, and will be.
    """
    (t, w, _), (t_other, w_other, v_other), (x, n_x) = side, other_side, excluded
    (names, new_names), (rows, new_rows) = names, rows
    n, found = 0, 0
    for i in range(w):
        word = near.bits[t + i]
        while word != _ZERO:
            k = 64 * i + trailing_zeros(word)
            word &= word - _ONE
            found = n if k == pivot else found
            near.list[new_names + n] = near.list[names + k]
            _pack(near.bits, rows + k * w_other, t_other, w_other, new_rows + n * v_other, v_other)
            n += 1
    for i in range(n_x):
        k = np.int64(near.list[x + i])
        found = n if k == pivot else found
        near.list[new_names + n] = near.list[names + k]
        _pack(near.bits, rows + k * w_other, t_other, w_other, new_rows + n * v_other, v_other)
        n += 1
    return found


@compiled
def _pack(bits, row, t, w, to, v):
    """Pack the bits of `row` at the one bits of `t` into `v` words."""
    for i in range(v):
        bits[to + i] = _ZERO
    at = 0
    for i in range(w):
        mask = bits[t + i]
        if mask != _ZERO:
            packed = extract_bits(bits[row + i], mask)
            bits[to + (at >> 6)] |= packed << np.uint64(at & 63)
            if (at & 63) > 0 and (at >> 6) + 1 < v:
                bits[to + (at >> 6) + 1] |= packed >> np.uint64(64 - (at & 63))
            at += popcount(mask)
