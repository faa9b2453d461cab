"""Search of a problem with at most 64 base vertices. A row is one word, and a node is a few rows.

A frame's rows lie in one stretch of the stack: first the Q rows (excluded), then the C rows (candidates)
by ascending number of base vertices. C rows are all different, and none lies inside a Q row. With thresholds, each has
enough base members, and the closure of the problem enough root members. So every C row is a canonical child and a
maximal biclique without any test. The visit of a C row emits it and finds its
own candidates. Children with at most six base vertices, or with few candidates, are solved without a frame
(`kernels.cpu.leaf`).
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.constants import EMPTY, FULL, MAX_ROWS, PADDING, PAUSED
from bicliques.kernels.cpu.leaf import MAX_BITS, SOLVED_AT_ONCE, closed_subsets, intersections
from bicliques.kernels.cpu.marks import keep_marked, keep_touching, live_in_word
from bicliques.kernels.cpu.output import aside_is_full, begin_aside, deliver, deliver_size, end_aside
from bicliques.kernels.cpu.pointers import word_frame
from bicliques.kernels.cpu.rows import covered, distinct_by_size, drop_covered, keep_widest, restrict
from bicliques.kernels.cpu.simd import extract_bits, popcount, trailing_zeros

#: Excluded lists that are longer are reduced to their widest rows. Values from 64 to 512 were measured to be equal.
WIDE_Q = 128

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def search_word(g, word, out):
    """Explore the open word problem until it is empty, the output is full, or the steps are used up."""
    w = word.state
    while True:
        if w.delivered < w.n_found and not _deliver_found(g, word, out):
            return FULL
        if w.depth == 0:
            return EMPTY
        if out.state.steps <= 0 or aside_is_full(out):
            return PAUSED
        more = _visit(g, word, out, True) if out.state.marking else _visit(g, word, out, None)
        if not more:
            w.depth -= 1


@compiled
def _visit(g, word, out, marking):
    """Visit children of the top frame until one gets a frame of its own, or `word.found` is nearly full.

    `marking` is None unless only bicliques with a marked edge are wanted. Then Numba leaves out what is only for these.

    Returns False when the frame has no children left.
    """
    w, s = word.state, out.state
    f = word_frame(word.frame, w.depth - 1)
    w.found_depth = w.depth
    stack = word.stack
    first = f.q0 + f.n_q
    free = first + f.n_c
    j = f.next
    while j < f.end:
        if w.n_found + f.n_c + SOLVED_AT_ONCE > w.max_found:
            f.next = j
            return True
        t = stack[first + j]
        j += 1
        s.steps -= 1
        if marking is not None:
            live = live_in_word(word, t, word.frame_mask[w.depth - 1], first + j, free)
            if live == _ZERO:
                continue
        found(word, out, t)
        m = restrict(stack, first + j, free, t, free)
        if s.min_base > 1:
            m = _drop_small(word, out, free, m)
        if marking is not None:
            m = keep_touching(stack, free, m, live)
        if m == 0 or solve_leaf(word, out, t, f.q0, first + j - 1, free, m):
            continue
        m = distinct_by_size(stack, free, m)
        m = drop_covered(stack, f.q0, first + j - 1, free, m)
        if m <= MAX_ROWS:
            solve_few(word, out, f.q0, first + j - 1, free, m)
            continue
        f.next = j
        _push_frame(g, word, out, t, f.q0, first + j - 1, free, m)
        return True
    f.next = j
    return False


@compiled
def found(word, out, t):
    """Count the maximal biclique with base side `t`, or keep it for delivery."""
    if out.state.plain:
        out.state.count += 1
    else:
        w = word.state
        word.found[w.n_found] = t
        w.n_found += 1


@compiled
def is_small(word, out, t):
    """Whether the base side `t` has fewer members than are wanted."""
    s = out.state
    return s.min_base > 1 and _weight(word, t) < s.min_base


@compiled
def _drop_small(word, out, at, n):
    """R1: keep those of ``stack[at:at + n]`` that have enough base members. Returns their number."""
    stack, m = word.stack, at
    for i in range(at, at + n):
        stack[m] = stack[i]
        m += not is_small(word, out, stack[i])
    return m - at


@compiled
def solve_leaf(word, out, t, q0, q1, at, m):
    """Emit everything below `t` if `t` has at most six base vertices and at least two candidates.

    Excluded rows are ``stack[q0:q1]``, candidates ``stack[at:at + m]``. All may have bits outside `t`.
    Returns whether it emitted.
    """
    k = popcount(t)
    if k > MAX_BITS or m < 2:
        return False
    stack = word.stack
    candidates = _ZERO
    for i in range(at, at + m):
        candidates |= _ONE << extract_bits(stack[i], t)
    excluded = _ZERO
    for i in range(q0, q1):
        excluded |= _ONE << extract_bits(stack[i], t)
    closed = closed_subsets(excluded, candidates, k)
    if out.state.plain:
        if out.state.min_base > 1 and closed != _ZERO:
            closed &= _large_subsets(word, t, out.state.min_base)
        out.state.count += popcount(closed)
        return True
    while closed != _ZERO:
        subset = _spread(np.uint64(trailing_zeros(closed)), t)
        closed &= closed - _ONE
        if not is_small(word, out, subset):
            found(word, out, subset)
    return True


@compiled
def _spread(subset, t):
    """Put the low bits of `subset` at the one bits of `t`."""
    x = _ZERO
    while subset != _ZERO:
        low = t & (~t + _ONE)
        if subset & _ONE != _ZERO:
            x |= low
        t ^= low
        subset >>= _ONE
    return x


@compiled
def solve_few(word, out, q0, q1, at, m):
    """Emit `m` <= MAX_ROWS canonical candidates ``stack[at:at + m]`` and everything below them."""
    stack = word.stack
    for i in range(at, at + m):
        found(word, out, stack[i])
    if m < 2:
        return
    if m == 2:
        x = stack[at] & stack[at + 1]
        if x != _ZERO and x != stack[at] and not is_small(word, out, x) and not covered(stack, q0, q1, x):
            found(word, out, x)
        return
    n = intersections(stack, at, m, word.leaf)
    for i in range(m, n):
        if not is_small(word, out, word.leaf[i]) and not covered(stack, q0, q1, word.leaf[i]):
            found(word, out, word.leaf[i])


@compiled
def _push_frame(g, word, out, t, q0, q1, at, m):
    """Push a frame for base side `t` with excluded rows ``stack[q0:q1]`` and candidates ``stack[at:at + m]``.

    If the frame does not fit, the node is put aside with its candidates.
    """
    w, s, stack = word.state, out.state, word.stack
    begin = at + m
    if begin + 2 * (q1 - q0) + 3 * m + PADDING > w.max_stack:
        _put_aside(word, out, t, at, m)
        return
    if not s.plain and not _push_near(g, word, out, t):
        _put_aside(word, out, t, at, m)
        return
    n_q = 0
    for i in range(q0, q1):
        x = stack[i] & t
        stack[begin + n_q] = x
        n_q += x != _ZERO
    if n_q > WIDE_Q:
        n_q = keep_widest(stack, begin, n_q)
    for i in range(m):
        stack[begin + n_q + i] = stack[at + i]
    f = word_frame(word.frame, w.depth)
    f.q0, f.n_q, f.n_c, f.next, f.end = begin, n_q, m, 0, m
    word.frame_mask[w.depth] = t
    w.depth += 1


@compiled
def _push_near(g, word, out, t):
    """List the candidate rows that touch `t`: only these can be in a closure below it. False if they do not fit."""
    w = word.state
    parent, f = word_frame(word.frame, w.depth - 1), word_frame(word.frame, w.depth)
    at = parent.near0 + parent.n_near
    if at + parent.n_near > w.max_near:
        return False
    n = at
    for i in range(parent.near0, at):
        word.near[n] = word.near[i]
        word.near_mask[n] = word.near_mask[i]
        n += word.near_mask[i] & t != _ZERO
    f.near0, f.n_near = at, n - at
    return True


@compiled
def weigh(word, out, k):
    """Returns the members of all `k` bits, and notes those of each bit, if they matter."""
    w, s, most = word.state, out.state, np.int64(1)
    if s.min_base == 1 and not s.sizing:
        return k
    total = 0
    for b in range(k):
        total += out.base_size[word.base[b]]
        most |= out.base_size[word.base[b]]
    w.n_planes = 0
    while most >> w.n_planes:
        word.planes[w.n_planes] = _ZERO
        for b in range(k):
            bit = np.uint64(out.base_size[word.base[b]] >> w.n_planes) & _ONE
            word.planes[w.n_planes] |= bit << np.uint64(b)
        w.n_planes += 1
    return total


@compiled
def _weight(word, t):
    """Base members of the base side `t`."""
    total = 0
    for p in range(word.state.n_planes):
        total += popcount(word.planes[p] & t) << p
    return total


@compiled
def _large_subsets(word, t, least):
    """The subsets of `t`, six bits at most, with `least` members or more, as a family of `closed_subsets`."""
    sums, family, half = word.subset_sums, _ZERO, 1
    sums[0] = 0
    while t != _ZERO:
        weight = _weight(word, t & (~t + _ONE))
        for i in range(half):
            sums[half + i] = sums[i] + weight
        half *= 2
        t &= t - _ONE
    for i in range(half):
        family |= np.uint64(sums[i] >= least) << np.uint64(i)
    return family


@compiled
def _put_aside(word, out, t, at, m):
    """Turn the node with base side `t` and candidates ``stack[at:at + m]`` into a piece of its own."""
    n_path = _closure(word, out, t, 0, word.state.n_rows, True)
    first = end = begin_aside(out, n_path)
    for i in range(at, at + m):
        for r in range(word.state.n_rows):  # rows that are equal inside t share one word: name them all
            if word.mask[r] & t == word.stack[i]:
                out.aside[end] = word.row[r]
                end += 1
    end_aside(out, first, end, 0)


@compiled
def _closure(word, out, t, lo, hi, all_rows):
    """Write the closure of base side `t` to `out.closure`, from all rows or from near ones. Returns its length."""
    n = word.state.n_full
    for i in range(n):
        out.closure[i] = word.full[i]
    for i in range(lo, hi):
        r = i if all_rows else word.near[i]
        out.closure[n] = word.row[r]
        n += (word.mask[r] if all_rows else word.near_mask[i]) & t == t
    return n


@compiled
def _deliver_found(g, word, out):
    """Deliver what was found at the top frame. Returns False when the output is full."""
    w = word.state
    f = word_frame(word.frame, w.found_depth - 1)
    if out.state.sizing and not out.state.prove and not out.state.marking:
        return _count_reports(g, word, out, f.near0, f.near0 + f.n_near)
    if out.state.marking:
        keep_marked(word)
    while w.delivered < w.n_found:
        t = word.found[w.delivered]
        n_roots = _closure(word, out, t, f.near0, f.near0 + f.n_near, False)
        n_base = 0
        while t != _ZERO:
            word.listed[n_base] = word.base[trailing_zeros(t)]
            n_base += 1
            t &= t - _ONE
        if not deliver(g, out, word.listed, n_base, n_roots):
            return False
        w.delivered += 1
    w.delivered = w.n_found = 0
    return True


@compiled
def _count_reports(g, word, out, lo, hi):
    """As `_deliver_found`, for sizes only: count the rows of a closure among ``near[lo:hi]``, and write none."""
    w, s = word.state, out.state
    always = w.n_full
    if not s.unit_roots:
        always = 0
        for i in range(w.n_full):
            always += g.root_members_indptr[word.full[i] + 1] - g.root_members_indptr[word.full[i]]
    while w.delivered < w.n_found:
        t = word.found[w.delivered]
        n = always
        if s.unit_roots:
            for i in range(lo, hi):
                n += word.near_mask[i] & t == t
        else:
            for i in range(lo, hi):
                if word.near_mask[i] & t == t:
                    v = word.row[word.near[i]]
                    n += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
        if not deliver_size(out, _weight(word, t), n):
            return False
        w.delivered += 1
    w.delivered = w.n_found = 0
    return True
