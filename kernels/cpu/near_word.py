"""The nodes of a search for k-biplexes whose two sides have at most 64 vertices each: a set is one word.

Most nodes are like this. They do what `near_node.add` and `near_node.settle` do, with sets in registers in place of
memory. Their frames are the same.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.near_workspace import SETS
from bicliques.kernels.cpu.pointers import near_frame
from bicliques.kernels.cpu.simd import popcount, trailing_zeros

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_NONE = 1 << 40


@compiled
def child_of_words(near, d, side, y):
    """Make frame `d` the child of the frame before it with candidate `y` of a side, and settle it.

    Returns what `near_node.settle` does.
    """
    p, parent, f, bits = near.state, near_frame(near.frame, d - 1), near_frame(near.frame, d), near.bits
    own, other = parent.sets + side, parent.sets + 1 - side
    rows, rows_other, k, k_other, least, least_other, most, most_other = (
        (parent.rows0, parent.rows1, p.k0, p.k1, p.least0, p.least1, p.max0, p.max1)
        if side == 0
        else (parent.rows1, parent.rows0, p.k1, p.k0, p.least1, p.least0, p.max1, p.max0)
    )
    s, c, z, full = bits[own], bits[own + 2], bits[own + 4], bits[own + 6]
    s_other, c_other, z_other, full_other = bits[other], bits[other + 2], bits[other + 4], bits[other + 6]
    row = bits[rows + y]
    s |= _ONE << np.uint64(y & 63)
    own_miss = popcount(s_other & ~row)
    if own_miss == k:
        full |= _ONE << np.uint64(y & 63)
        c_other &= row
    x = s_other & ~row
    while x != _ZERO:
        u = trailing_zeros(x)
        x &= x - _ONE
        if popcount(s & ~bits[rows_other + u]) == k_other:
            full_other |= _ONE << np.uint64(u)
            c &= bits[rows_other + u]
    x = c_other & ~row
    if k_other > 0:
        x &= ~z_other
    z_other &= row
    while x != _ZERO:
        low = x & (~x + _ONE)
        x ^= low
        if popcount(s & ~bits[rows_other + trailing_zeros(low)]) > k_other:
            c_other ^= low
    if popcount(s) > most or popcount(s_other) > most_other:
        return 0
    need, need_other = least_other - k, least - k_other
    n, n_other, seen, seen_other = popcount(s | c), popcount(s_other | c_other), -1, -1
    a = a_other = _ZERO
    best, at, best_other, at_other = _NONE, 0, _NONE, 0
    while n >= least and n_other >= least_other and (seen != n_other or seen_other != n):
        if seen != n_other:
            seen = n_other
            c, a, best, at = _reduce(bits, c, z, s_other | c_other, n_other, rows, n_other - need)
            n = popcount(s | c)
        if seen_other != n:
            seen_other = n
            c_other, a_other, best_other, at_other = _reduce(
                bits, c_other, z_other, s | c, n, rows_other, n - need_other
            )
            n_other = popcount(s_other | c_other)
    if n < least or n_other < least_other:
        return 0
    t, t_other = s | c, s_other | c_other
    if not (_are_joined(bits, s, t_other, rows, need) and _are_joined(bits, s_other, t, rows_other, need_other)):
        return 0
    s, c, s_other, c_other = s | a, c & ~a, s_other | a_other, c_other & ~a_other
    p.best, p.best_side, p.best_at = (best, side, at) if best <= best_other else (best_other, 1 - side, at_other)
    is_leaf = c | c_other == _ZERO
    to = parent.list_top
    n_x = _excluded(near, parent, side, to, (s_other, full_other, t_other, n_other, rows), k, need, is_leaf)
    if n_x < 0:
        return 0
    others = s, full, t, n, rows_other
    n_x_other = _excluded(near, parent, 1 - side, to + n_x, others, k_other, need_other, is_leaf)
    if n_x_other < 0:
        return 0
    f.x0, f.n_x0, f.x1, f.n_x1 = (to, n_x, to + n_x, n_x_other) if side == 0 else (to + n_x, n_x_other, to, n_x)
    f.w0, f.w1, f.rows0, f.rows1 = 1, 1, parent.rows0, parent.rows1
    f.names0, f.names1, f.all0, f.all1 = parent.names0, parent.names1, parent.all0, parent.all1
    f.total = parent.total + own_miss
    f.sets = parent.bits_top
    f.bits_top = f.sets + 2 * SETS
    own, other = f.sets + side, f.sets + 1 - side
    bits[own], bits[own + 2], bits[own + 4], bits[own + 6] = s, c, z, full
    bits[other], bits[other + 2], bits[other + 4], bits[other + 6] = s_other, c_other, z_other, full_other
    f.branch = to + n_x + n_x_other
    f.n_branch = f.next = 0
    f.list_top = f.branch
    return 2 if is_leaf else 1


@compiled
def _reduce(bits, c, z, t_other, n_other, rows, most):
    """R1 on one side. Returns what is left, those of it that are joined to all, and the pivot: its children and it."""
    kept, joined_to_all = c, _ZERO
    best = _NONE
    while c != _ZERO:
        low = c & (~c + _ONE)
        k = trailing_zeros(c)
        c ^= low
        misses = n_other - popcount(t_other & bits[rows + k])
        kept ^= low if misses > most else _ZERO
        free = low & z if misses <= most else _ZERO
        joined_to_all |= free if misses == 0 else _ZERO
        best = min(best, misses << 6 | k if (free != _ZERO) & (misses > 0) else _NONE)
    return kept, joined_to_all, (best >> 6) + 1 if best < _NONE else _NONE, best & 63


@compiled
def _are_joined(bits, s, t_other, rows, need):
    while s != _ZERO:
        if popcount(t_other & bits[rows + trailing_zeros(s)]) < need:
            return False
        s &= s - _ONE
    return True


@compiled
def _excluded(near, parent, side, to, other, slack, need, is_leaf):
    """As `near_node._excluded`, for what a side of the parent excludes and the children before this one."""
    s, full, t, n_t, rows = other
    p, bits = near.state, near.bits
    start, n = (parent.x0, parent.n_x0) if side == 0 else (parent.x1, parent.n_x1)
    kept = 0
    for i in range(n + parent.next):
        if i < n:
            x = np.int64(near.list[start + i])
        else:
            x = np.int64(near.list[parent.branch + i - n])
            x = ~x if side == 1 else x
            if x < 0:
                continue
        row = bits[rows + x]
        miss = popcount(s & ~row)
        if miss > slack or full & ~row != _ZERO:
            continue
        if is_leaf:
            return -1
        joined = popcount(t & row)
        if joined < need:
            continue
        if miss == 0:
            if joined == n_t:
                return -1
            if n_t - joined < p.best:
                p.best, p.best_side, p.best_at = n_t - joined, side, x
        near.list[to + kept] = x
        kept += 1
    return kept
