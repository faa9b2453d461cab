"""Search of a problem with more than 64 base vertices, by bit rows over the base side of one hub.

Only rows that can matter get bits. These are the candidates, and those excluded rows that are long enough
to contain a node with more than 64 base vertices. A child with at most 64 base vertices becomes a word
problem, which is built from the graph itself. Candidates keep one order in the whole problem. So a row is
excluded if its position is before that of the child. A hub whose bit rows would not fit is *wide*: each of
its large children is put aside as a smaller problem of its own. With thresholds, and in dense graphs, only wide hubs
come here: all others are problems of `kernels.cpu.sieve`.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.constants import EMPTY, FULL, PAUSED
from bicliques.kernels.cpu.marks import has_mark, is_live_in_hub
from bicliques.kernels.cpu.open_hub import forget
from bicliques.kernels.cpu.open_word import open_word
from bicliques.kernels.cpu.output import aside_is_full, begin_aside, deliver, end_aside
from bicliques.kernels.cpu.pointers import hub_frame
from bicliques.kernels.cpu.simd import popcount, trailing_zeros
from bicliques.kernels.cpu.workspace import CLOSED, HUB_FRAMES, OUTSIDE, WORD_BITS

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def search_hub(g, word, hub, out):
    """Explore the open hub problem until a child becomes a word problem, or until `search_word` would end."""
    h, s = hub.state, out.state
    if h.fresh:
        if not _deliver_node(g, hub, out, hub.base, h.n_base):
            return FULL
        h.fresh = 0
    while h.depth > 0:
        if s.steps <= 0 or aside_is_full(out):
            return PAUSED
        f = hub_frame(hub.frame, h.depth - 1)
        if f.next == f.end:
            _pop(hub)
            continue
        r = hub.list[f.list0 + f.next]
        n = _child_of_wide(g, hub, r) if h.wide else _child(hub, r)
        s.steps -= 1 + (h.words >> 3)
        if s.marking and not h.wide and not is_live_in_hub(hub, r):
            n = 0
        if n > WORD_BITS or (s.sieving and n > 0):
            if h.wide:
                _put_aside(hub, out, r)
            elif not _open_child(g, hub, out, r, n):
                return FULL
            f.next += 1
            continue
        f.next += 1
        if n > 0:
            if not h.wide:
                _expand(hub, h.depth, word.base)
            else:
                for i in range(n):
                    word.base[i] = hub.child[i]
            open_word(g, word, hub, out, n, (True, np.int64(r), CLOSED, True))
            return EMPTY
    forget(hub, h.n_rows, h.n_base)
    return EMPTY


@compiled
def _child(hub, r):
    """Write the L of the top frame's child `r` behind the top frame's L. Returns its size."""
    h = hub.state
    words = h.words
    at, row = (h.depth - 1) * words, r * words
    n = 0
    for i in range(words):
        x = hub.frame_bits[at + i] & hub.bits[row + i]
        hub.frame_bits[at + words + i] = x
        n += popcount(x)
    return n


@compiled
def _child_of_wide(g, hub, r):
    """As `_child`, without bit rows: write the base vertices to `hub.child`."""
    v = hub.row[r]
    n = 0
    for e in range(g.root_indptr[v], g.root_indptr[v + 1]):
        u = g.root_indices[e]
        if hub.local[u] != OUTSIDE:
            hub.child[n] = u
            n += 1
    return n


@compiled
def _expand(hub, depth, target):
    """Write the base vertices of the bit vector at place `depth` of `frame_bits` to `target`."""
    words = hub.state.words
    n = 0
    for i in range(words):
        x = hub.frame_bits[depth * words + i]
        while x != _ZERO:
            target[n] = hub.base[(i << 6) + trailing_zeros(x)]
            x &= x - _ONE
            n += 1


@compiled
def _contains(hub, q, at):
    """Whether bit row `q` contains the bit vector that begins at ``frame_bits[at]``."""
    words = hub.state.words
    row = q * words
    for i in range(words):
        if hub.frame_bits[at + i] & ~hub.bits[row + i] != _ZERO:
            return False
    return True


@compiled
def _open_child(g, hub, out, r, n):
    """Test child `r` of the top frame, whose L has size `n`. If it is maximal, deliver it and push its frame.

    Returns False when the output is full. Nothing has changed then.
    """
    h = hub.state
    depth = h.depth
    at = depth * h.words
    for q in range(r):
        if hub.count[hub.row[q]] >= n and hub.closed_at[q] == 0 and _contains(hub, q, at):
            return True
    f, child = hub_frame(hub.frame, depth - 1), hub_frame(hub.frame, depth)
    list0 = f.list0 + f.n_list
    if depth + 1 == HUB_FRAMES or list0 + f.n_list > h.max_list or at + 2 * h.words > h.max_frame_bits:
        _put_aside(hub, out, r)
        return True
    hub.closed_at[r] = depth + 1
    n_list = 0
    for i in range(f.list0 + f.next + 1, list0):
        q = hub.list[i]
        overlap = _overlap(hub, q, at)
        if overlap == n:
            hub.closed_at[q] = depth + 1
        elif overlap > 0:
            hub.list[list0 + n_list] = q
            n_list += 1
    h.depth = depth + 1
    child.list0, child.n_list, child.next, child.end = list0, n_list, 0, n_list
    if not out.state.plain:
        _expand(hub, depth, hub.child)
    if not _deliver_node(g, hub, out, hub.child, n):
        _pop(hub)
        return False
    return True


@compiled
def _overlap(hub, q, at):
    words = hub.state.words
    row = q * words
    n = 0
    for i in range(words):
        n += popcount(hub.frame_bits[at + i] & hub.bits[row + i])
    return n


@compiled
def _deliver_node(g, hub, out, base, n_base):
    """Emit the top frame's biclique. Returns False when the output is full."""
    if out.state.plain:
        out.state.count += 1
        return True
    n_roots = _closure(hub, out)
    if out.state.marking and not has_mark(g, out, base, n_base, n_roots):
        return True
    return deliver(g, out, base, n_base, n_roots)


@compiled
def _closure(hub, out):
    """Write the closure of the top frame to `out.closure`. Returns its length."""
    h = hub.state
    for i in range(h.n_full):
        out.closure[i] = hub.full[i]
    n = h.n_full
    for q in range(h.first, h.n_rows):
        if hub.closed_at[q] > 0:
            out.closure[n] = hub.row[q]
            n += 1
    return n


@compiled
def _put_aside(hub, out, r):
    """Make the top frame's child `r` a piece of its own. It is tested for being dead when it is opened."""
    h = hub.state
    f = hub_frame(hub.frame, h.depth - 1)
    n_path = _closure(hub, out)
    out.closure[n_path] = hub.row[r]
    first = end = begin_aside(out, n_path + 1)
    for i in range(f.list0 + f.next + 1, f.list0 + f.n_list):
        out.aside[end] = hub.row[hub.list[i]]
        end += 1
    end_aside(out, first, end, 1)


@compiled
def _pop(hub):
    h = hub.state
    for q in range(h.first, h.n_rows):
        if hub.closed_at[q] == h.depth:
            hub.closed_at[q] = 0
    h.depth -= 1
