"""Which nodes lead to a biclique with a marked edge, where only these are wanted (`schemas.jobs.Marked`).

A marked edge between a root vertex r and a base vertex u is *live* in a node if u is in its L, and r is in its closure
or one of its candidates. A node without live edges ends. A candidate leads nowhere, and excludes nothing that is
wanted, if it is joined to no base vertex of a live edge: a wanted biclique below the node has one in its base side.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def has_mark(g, out, base, n_base, n_roots):
    """Whether the biclique (``base[:n_base]``, ``out.closure[:n_roots]``) has a marked edge."""
    for i in range(n_base):
        for e in range(g.marks_indptr[base[i]], g.marks_indptr[base[i] + 1]):
            for k in range(n_roots):
                if out.closure[k] == g.marks[e]:
                    return True
    return False


@compiled
def note_in_word(g, word, k):
    """List the marked edges of the word problem with `k` base vertices in `word.marked`."""
    w = word.state
    w.n_marked = 0
    for b in range(k):
        u = word.base[b]
        for e in range(g.marks_indptr[u], g.marks_indptr[u + 1]):
            mask = _mask_of(word, g.marks[e], k)
            if mask != _ZERO:
                word.marked[2 * w.n_marked] = mask
                word.marked[2 * w.n_marked + 1] = _ONE << np.uint64(b)
                w.n_marked += 1


@compiled
def _mask_of(word, v, k):
    """The base vertices of a root vertex of the closure or among the candidates of a word problem. 0 for others."""
    for i in range(word.state.n_full):
        if word.full[i] == v:
            return ~_ZERO >> np.uint64(64 - k)
    for i in range(word.state.n_rows):
        if word.row[i] == v:
            return word.mask[i]
    return _ZERO


@compiled
def keep_marked(word):
    """Drop what was found, and is not delivered yet, if it has no marked edge."""
    w = word.state
    n = w.delivered
    for i in range(w.delivered, w.n_found):
        t = word.found[i]
        word.found[n] = t
        n += _is_marked(word, t)
    w.n_found = n


@compiled
def _is_marked(word, t):
    """Whether the biclique with base side `t` has a marked edge."""
    for i in range(word.state.n_marked):
        mask, bit = word.marked[2 * i], word.marked[2 * i + 1]
        if bit & t != _ZERO and mask & t == t:
            return True
    return False


@compiled
def live_in_word(word, t, frame, lo, hi):
    """The base vertices of live edges of the child `t` of a frame with base side `frame`.

    The candidates of the child are ``stack[lo:hi]``, restricted to `frame`.
    """
    live = _ZERO
    for i in range(word.state.n_marked):
        mask, bit = word.marked[2 * i], word.marked[2 * i + 1]
        if bit & t & ~live != _ZERO and (mask & t == t or _is_among(word.stack, lo, hi, mask & frame)):
            live |= bit
    return live


@compiled
def _is_among(stack, lo, hi, x):
    for i in range(lo, hi):
        if stack[i] == x:
            return True
    return False


@compiled
def keep_touching(stack, at, n, live):
    """Keep those of ``stack[at:at + n]`` that are joined to a base vertex of a live edge. Returns their number."""
    m = at
    for i in range(at, at + n):
        x = stack[i]
        stack[m] = x
        m += x & live != _ZERO
    return m - at


@compiled
def note_in_hub(g, hub):
    """List the marked edges of the closure and of the candidates of the hub problem in `hub.marked`."""
    h = hub.state
    h.n_marked = 0
    for i in range(h.n_base):
        u = hub.base[i]
        for e in range(g.marks_indptr[u], g.marks_indptr[u + 1]):
            if hub.key[g.marks[e]] >= h.first:
                hub.marked[2 * h.n_marked] = hub.key[g.marks[e]]
                hub.marked[2 * h.n_marked + 1] = i
                h.n_marked += 1


@compiled
def is_live_in_hub(hub, r):
    """Whether the top frame's child `r`, whose L is behind that of the frame, has a live edge."""
    h = hub.state
    at = h.depth * h.words
    for i in range(h.n_marked):
        q, b = hub.marked[2 * i], hub.marked[2 * i + 1]
        if (hub.frame_bits[at + (b >> 6)] >> np.uint64(b & 63)) & _ONE != _ZERO:
            if q >= r or hub.closed_at[q] > 0:
                return True
    return False


@compiled
def is_live_in_sieve(g, sieve, f, at, j):
    """Whether the child `j` of a frame, whose L is at `at`, has a live edge."""
    for w in range(f.words):
        x = _ZERO
        for k in range(f.planes):
            x |= sieve.bits[at + k * f.words + w]
        for b in range(64):
            if (x >> np.uint64(b)) & _ONE != _ZERO:
                u = sieve.base[f.base0 + 64 * w + b]
                for e in range(g.marks_indptr[u], g.marks_indptr[u + 1]):
                    if _is_inside(sieve, f, j, g.marks[e]):
                        return True
    return False


@compiled
def _is_inside(sieve, f, j, v):
    for i in range(f.n_closed):
        if sieve.closed[i] == v:
            return True
    for i in range(f.list0 + j, f.list0 + f.n_rows):
        if sieve.row[i] == v:
            return True
    return False
