"""Makes a hub problem of a set of more than 64 base vertices: it walks the wedges, picks rows and sets their bits."""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled
from kernels.cpu.pointers import hub_frame
from kernels.cpu.rows import sort
from kernels.cpu.workspace import CLOSED, OUTSIDE, WORD_BITS

__all__ = ["open_hub"]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def open_hub(g, hub, out, n_base, keyed, root, todo, fresh):
    """Open the problem with base vertices ``hub.base[:n_base]``.

    Parameters
    ----------
    keyed : bool
        Whether the problem is a piece. Then its path has key CLOSED, and the key of a candidate is its
        position. Otherwise the problem is the first-level subtree of `root`.
    root : int
    todo : int
        Candidates of the piece that are to be explored.
    fresh : bool
        Whether the problem's own biclique is to be emitted.

    Notes
    -----
    The time is O(wedges of the base vertices) plus one bit per row and base vertex.
    """
    h = hub.state
    h.n_base, h.n_full, h.n_rows, h.first, h.depth = n_base, 0, 0, 0, 0
    n = _count_rows(g, hub, out, n_base)
    n_excluded, n_candidates, dead = _classify(hub, n, n_base, keyed, root)
    if dead:
        n_excluded = n_candidates = 0
    n_explored = _number_rows(hub, n_excluded, n_candidates, todo if keyed else CLOSED)
    if dead:
        for i in range(n_base):
            hub.local[hub.base[i]] = OUTSIDE
        return
    h.words = (n_base + 63) >> 6
    h.wide = h.n_rows * h.words > h.max_bits
    if not h.wide:
        _set_bits(g, hub, out, n_base)
    h.fresh = fresh
    h.depth = 1
    f = hub_frame(hub, 0)
    f.list0, f.n_list, f.next, f.end = 0, n_candidates, 0, n_explored
    for i in range(n_candidates):
        hub.list[i] = h.first + i


@compiled
def _count_rows(g, hub, out, n_base):
    """Count the base vertices of every root vertex. Write roots that have some to `hub.row`; returns their number."""
    n = 0
    for i in range(n_base):
        u = hub.base[i]
        hub.local[u] = i
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            v = g.base_indices[e]
            if hub.count[v] == 0:
                hub.row[n] = v
                n += 1
            hub.count[v] += 1
        out.state.steps -= (g.base_indptr[u + 1] - g.base_indptr[u]) >> 6
    return n


@compiled
def _classify(hub, n, n_base, keyed, root):
    """Sort rows into closure (`hub.full`), excluded and candidates (both ends of `hub.sorter`), and the rest.

    Candidates are sorted by number of base vertices, then rank. Those of a piece keep their order. The counts
    of all other rows are reset. Returns the numbers of excluded rows and of candidates, and whether the node
    is dead.
    """
    h = hub.state
    n_excluded = n_candidates = 0
    dead = False
    size = h.n_sorter
    for i in range(n):
        v = hub.row[i]
        count = hub.count[v]
        inside = hub.key[v] != OUTSIDE if keyed else v >= root
        if count == n_base:
            dead |= not inside
            hub.full[h.n_full] = v
            h.n_full += 1
        elif inside:
            n_candidates += 1
            major = hub.key[v] if keyed else count
            hub.sorter[size - n_candidates] = (np.int64(major) << 32) | v
        elif count > WORD_BITS:
            hub.sorter[n_excluded] = v
            n_excluded += 1
        else:
            hub.count[v] = 0
    if dead:
        for i in range(n):
            hub.count[hub.row[i]] = 0
        for i in range(h.n_full):
            hub.key[hub.full[i]] = OUTSIDE
        h.n_full = 0
    return n_excluded, n_candidates, dead


@compiled
def _number_rows(hub, n_excluded, n_candidates, todo):
    """Number the excluded rows, then the candidates in order. Returns how many candidates are to be explored."""
    h = hub.state
    for i in range(n_excluded):
        hub.row[i] = hub.sorter[i]
        hub.key[hub.sorter[i]] = i
    end = h.n_sorter
    sort(hub.sorter, end - n_candidates, end)
    n_explored = 0
    for i in range(n_candidates):
        packed = hub.sorter[end - n_candidates + i]
        v = packed & 0x7FFFFFFF
        n_explored += (packed >> 32) < todo
        hub.row[n_excluded + i] = v
        hub.key[v] = n_excluded + i
    for i in range(h.n_full):
        hub.key[hub.full[i]] = CLOSED
    h.first = n_excluded
    h.n_rows = n_excluded + n_candidates
    return n_explored


@compiled
def _set_bits(g, hub, out, n_base):
    h = hub.state
    words = h.words
    for i in range(h.n_rows * words):
        hub.bits[i] = _ZERO
    for i in range(words):
        hub.frame_bits[i] = ~_ZERO
    if n_base & 63:
        hub.frame_bits[words - 1] = (_ONE << np.uint64(n_base & 63)) - _ONE
    for i in range(n_base):
        u = hub.base[i]
        bit = _ONE << np.uint64(i & 63)
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            q = hub.key[g.base_indices[e]]
            if q != OUTSIDE and q < h.n_rows:
                hub.bits[q * words + (i >> 6)] |= bit
    out.state.steps -= (h.n_rows * words) >> 6
