"""The search for near-bicliques: pieces are opened as problems one after the other, and their nodes are explored."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.cpu.constants import FINISHED, FULL, GROW, PAUSED
from bicliques.kernels.cpu.near_node import add, branch_of, settle, shrink
from bicliques.kernels.cpu.near_open import open_piece
from bicliques.kernels.cpu.near_word import child_of_words
from bicliques.kernels.cpu.near_workspace import SETS
from bicliques.kernels.cpu.output import deliver
from bicliques.kernels.cpu.pointers import graph_at, near_at, near_frame, output_at, pieces_at
from bicliques.kernels.cpu.simd import trailing_zeros

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@entry
def explore_near(graph, pieces, n_pieces, near, out):
    """Work until all pieces are done, the output is full, the steps are used up, or memory has to grow.

    Parameters
    ----------
    graph, pieces, near, out : ndarray of int64
        Addresses of the fields of `workspace.Graph`, `Pieces`, `near_workspace.Near` and `workspace.Output`.
    n_pieces : int

    Returns
    -------
    int
        Which of them it was.
    """
    return _explore(graph_at(graph), pieces_at(pieces), n_pieces, near_at(near), output_at(out))


@compiled
def _explore(g, pieces, n_pieces, near, out):
    s, p = out.state, near.state
    p.measure, p.bound, p.max0, p.max1 = s.measure, s.bound, s.max_root, s.max_base
    while True:
        status = _search(g, near, out)
        if status != FINISHED:
            return status
        if s.item == n_pieces:
            return FINISHED
        if s.steps <= 0:
            return PAUSED
        if not open_piece(g, pieces, s.item, near, out):
            return GROW
        s.item += 1
        if p.depth > 0:  # to open it may use up all steps, and a slice of no time must not leave over what it was given
            s.steps = max(s.steps, 1)


@compiled
def _search(g, near, out):
    s, p = out.state, near.state
    while p.depth > 0:
        if p.pending:
            if not _deliver(g, near, out):
                return FULL
            p.pending = 0
            p.depth -= 1
            continue
        f = near_frame(near.frame, p.depth - 1)
        if f.next == f.n_branch:
            p.depth -= 1
            continue
        if s.steps <= 0:
            return PAUSED
        words, rows = f.w0 + f.w1, f.all0 * f.w1 + f.all1 * f.w0
        p.need_bits = f.bits_top + 2 * SETS * words + rows
        p.need_list = f.list_top + 3 * (f.all0 + f.all1)
        if p.need_bits > p.max_bits or p.need_list > p.max_list or p.depth + 1 >= p.max_frames:
            return GROW
        y = np.int64(near.list[f.branch + f.next])
        side = 0
        at = f.sets + words
        if y < 0:
            y, side, at = ~y, 1, at + f.w0
        near.bits[at + (y >> 6)] &= ~(_ONE << np.uint64(y & 63))
        s.steps -= 1 + (rows >> 8)
        if words == 2 and p.pairs < 0 and p.measure == 0:
            found = child_of_words(near, p.depth, side, y)
        else:
            add(near, p.depth, side, y)
            found = settle(near, p.depth, (f.x0, f.n_x0), (f.x1, f.n_x1), (f.branch, f.next), True)
        f.next += 1
        if found > 0:
            if found == 1:
                shrink(near, p.depth)
                branch_of(near, p.depth)
            p.pending = found == 2
            p.depth += 1
    return FINISHED


@compiled
def _deliver(g, near, out):
    """Deliver the leaf. Returns False if there is no room for it."""
    s, p = out.state, near.state
    f = near_frame(near.frame, p.depth - 1)
    n_roots = _names(near, f.sets, f.w0, f.names0, out.closure)
    n_base = _names(near, f.sets + f.w0, f.w1, f.names1, near.listed)
    n_rows = s.n_rows
    if not deliver(g, out, near.listed, n_base, n_roots):
        return False
    if s.n_rows > n_rows:
        out.missing[n_rows] = f.total
    return True


@compiled
def _names(near, s, w, names, to):
    n = 0
    for i in range(w):
        x = near.bits[s + i]
        while x != _ZERO:
            to[n] = near.list[names + 64 * i + trailing_zeros(x)]
            x &= x - _ONE
            n += 1
    return n
