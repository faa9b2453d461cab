"""Makes a word problem of a set of at most 64 base vertices: it walks their wedges and classifies the rows.

With thresholds, the closure of the problem has enough root members. What has not is a problem of `kernels.cpu.sieve`.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.constants import MAX_ROWS
from bicliques.kernels.cpu.marks import note_in_word
from bicliques.kernels.cpu.pointers import word_frame
from bicliques.kernels.cpu.rows import distinct_by_size, drop_covered, keep_widest
from bicliques.kernels.cpu.word import WIDE_Q, found, is_small, solve_few, solve_leaf, weigh
from bicliques.kernels.cpu.workspace import OUTSIDE

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def open_word(g, word, hub, out, k, problem):
    """Open the problem with base vertices ``word.base[:k]``, which is (keyed, bound, todo, fresh).

    Parameters
    ----------
    keyed : bool
        Whether a root vertex ranks by `hub.key`; otherwise it ranks by its own number.
    bound : int
        Vertices that contain L are closure; if one of them ranks below `bound`, the node is dead. Of the other
        vertices, those that rank above `bound` are candidates, and the rest is excluded.
    todo : int
        Candidates that rank at or above `todo` are not explored here, because they belong to other pieces.
    fresh : bool
        Whether the problem's own biclique is to be emitted.

    Notes
    -----
    A dead node (see `schemas.work.Subtrees`) opens nothing. The time is O(wedges of the base vertices).
    """
    keyed, bound, todo, fresh = problem
    full = ~_ZERO >> np.uint64(64 - k)
    w = word.state
    w.n_full = w.n_rows = w.depth = w.n_found = w.delivered = 0
    if weigh(word, out, k) < out.state.min_base:
        return
    n = _walk(g, word, out, k)
    n_q, dead = _classify(word, hub, out, n, full, keyed, bound)
    if not dead and out.state.marking:
        note_in_word(g, word, k)
        dead = w.n_marked == 0
    if not dead:
        if fresh:
            found(word, out, full)
        begin_word(word, hub, out, full, n_q, keyed, todo)


@compiled
def begin_word(word, hub, out, full, n_q, keyed, todo):
    """Begin the search below `full`, with the candidates in `word.row` and `word.mask`, and `n_q` excluded rows.

    The excluded rows are on the stack.
    """
    w = word.state
    n_c = n_todo = 0
    if not out.state.plain:
        _open_near(word)
    if w.n_rows:
        if n_q > WIDE_Q:
            n_q = keep_widest(word.stack, 0, n_q)
        n_c, n_todo = _stack_candidates(word, out, hub, full, n_q, keyed, todo)
    f = word_frame(word.frame, 0)
    f.q0, f.n_q, f.n_c, f.next, f.end = 0, n_q, n_c, 0, n_todo
    word.frame_mask[0] = full
    w.depth = w.found_depth = 1


@compiled
def _walk(g, word, out, k):
    """Write the rows that touch the base vertices, in order of first touch, and their masks. Returns their number."""
    n = 0
    slot, touched, masks = word.slot, word.touched, word.touched_mask
    for b in range(k):
        u = word.base[b]
        bit = _ONE << np.uint64(b)
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            v = g.base_indices[e]
            p = slot[v]
            if p == OUTSIDE:
                slot[v] = n
                touched[n] = v
                masks[n] = bit
                n += 1
            else:
                masks[p] |= bit
        out.state.steps -= (g.base_indptr[u + 1] - g.base_indptr[u]) >> 6
    for i in range(n):
        slot[touched[i]] = OUTSIDE
    return n


@compiled
def _classify(word, hub, out, n, full, keyed, bound):
    """Sort the rows into closure, candidates and, on the stack, excluded rows. Rows with too few base members are left.

    Returns the number of excluded rows, and whether the node is dead.
    """
    w = word.state
    n_q, with_threshold = 0, out.state.min_base > 1
    for i in range(n):
        v = word.touched[i]
        mask = word.touched_mask[i]
        rank = hub.key[v] if keyed else v
        if mask == full:
            if rank < bound or rank == OUTSIDE:
                if not (keyed and rank >= 0 and hub.closed_at[rank] > 0):
                    return 0, True
            word.full[w.n_full] = v
            w.n_full += 1
        elif with_threshold and is_small(word, out, mask):
            continue
        elif rank > bound:
            word.row[w.n_rows] = v
            word.mask[w.n_rows] = mask
            w.n_rows += 1
        else:
            word.stack[n_q] = mask
            n_q += 1
    return n_q, False


@compiled
def _open_near(word):
    n = word.state.n_rows
    for i in range(n):
        word.near[i] = i
        word.near_mask[i] = word.mask[i]
    f = word_frame(word.frame, 0)
    f.near0, f.n_near = 0, n


@compiled
def _stack_candidates(word, out, hub, full, at, keyed, todo):
    """Write the candidates to ``stack[at:]``, those that are to be explored first. Solves what is small.

    Returns the number of candidates, and how many of them are to be explored. Both are zero when nothing
    is left to search.
    """
    stack = word.stack
    n_todo = _place(word, hub, at, keyed, todo, True)
    rest = word.state.n_rows - n_todo
    if rest == 0 and solve_leaf(word, out, full, 0, at, at, n_todo):
        return 0, 0
    n_todo = drop_covered(stack, 0, at, at, distinct_by_size(stack, at, n_todo))
    if rest == 0:
        if n_todo <= MAX_ROWS:
            solve_few(word, out, 0, at, at, n_todo)
            return 0, 0
        return n_todo, n_todo
    end = at + n_todo
    rest = distinct_by_size(stack, end, _place(word, hub, end, keyed, todo, False))
    rest = drop_covered(stack, 0, at, end, rest)
    return n_todo + _drop_known(stack, at, end, rest), n_todo


@compiled
def _place(word, hub, at, keyed, todo, explored):
    """Write the masks of the candidates that are (or are not) explored here to ``stack[at:]``. Returns their number."""
    m = at
    for i in range(word.state.n_rows):
        if (not keyed or hub.key[word.row[i]] < todo) == explored:
            word.stack[m] = word.mask[i]
            m += 1
    return m - at


@compiled
def _drop_known(stack, lo, at, n):
    """Keep those of ``stack[at:at + n]`` that do not occur in ``stack[lo:at]``. Returns their number."""
    m = at
    for i in range(at, at + n):
        known = False
        for k in range(lo, at):
            known |= stack[k] == stack[i]
        if not known:
            stack[m] = stack[i]
            m += 1
    return m - at
