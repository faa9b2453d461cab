"""Makes a sieve problem: it counts wedges, drops what thresholds leave no use for, and sets bits for the rest.

R1 at a root costs what the walk over its wedges costs, which is made anyway. So most roots are over before anything is
built. `kernels.reference.tree` says what the reductions are and why they are exact.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled
from kernels.cpu.pointers import hub_frame, sieve_frame
from kernels.cpu.rows import sort
from kernels.cpu.workspace import CLOSED, OUTSIDE

__all__ = ["open_sieve"]

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
#: Passes over the wedges that R2 makes at most. What is left then is the sieve's.
_PASSES = 8


@compiled
def open_sieve(g, hub, sieve, out, n_base, keyed, root, todo, fresh):
    """Open the problem with base vertices ``hub.base[:n_base]``. Parameters as for `open_hub`."""
    h, s = hub.state, out.state
    h.n_full = h.n_rows = h.first = h.depth = 0
    total = _mark_base(g, hub, out, n_base)
    n = _weigh_rows(g, hub, out, n_base)
    size, reduced = total, _note_closure(g, hub, n, total, keyed, root) < s.min_root
    for _ in range(_PASSES):
        if size < s.min_base or _members_inside(g, hub, out, n, keyed, root) < s.min_root:
            _forget(hub, n, n_base)
            return
        before = size
        if reduced:
            size -= _drop_base(g, hub, out, n_base, keyed, root)
        if size == before:
            break
    first, dead = _close_rows(hub, n, size, keyed, root)
    members = 0
    for i in range(h.n_full):
        members += g.root_members_indptr[hub.full[i] + 1] - g.root_members_indptr[hub.full[i]]
    if dead or size < s.min_base:
        _forget(hub, n, n_base)
        return
    if keyed and first < todo:  # all bicliques below have this candidate, so they belong to this piece
        todo, fresh = CLOSED, True
    elif keyed and size < total:
        fresh = False
    n_excluded, n_candidates, n_explored = _sort_rows(hub, out, n, size, keyed, root, todo if keyed else CLOSED)
    _number_base(hub, n_base)
    h.fresh = fresh and members >= s.min_root
    if _fits(g, hub, sieve, out, n_excluded + n_candidates):
        _begin(g, hub, sieve, out, n_excluded, n_explored, members, size)
    else:
        _begin_wide(hub, n_excluded, n_candidates, n_explored)


@compiled
def _base_weight(g, out, u):
    """Members of a base vertex; more than are wanted count as those wanted."""
    return min(g.base_members_indptr[u + 1] - g.base_members_indptr[u], out.state.min_base)


@compiled
def _mark_base(g, hub, out, n_base):
    """Note that the base vertices are there. Returns their weight."""
    total = 0
    for i in range(n_base):
        hub.local[hub.base[i]] = i
        total += _base_weight(g, out, hub.base[i])
    return total


@compiled
def _weigh_rows(g, hub, out, n_base):
    """Add up the overlaps of root vertices. Write the roots that have one to `hub.row`; returns their number."""
    n = 0
    for i in range(n_base):
        u = hub.base[i]
        weight = _base_weight(g, out, u)
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            v = g.base_indices[e]
            if hub.count[v] == 0:
                hub.row[n] = v
                n += 1
            hub.count[v] += weight
        out.state.steps -= (g.base_indptr[u + 1] - g.base_indptr[u]) >> 6
    return n


@compiled
def _is_inside(hub, v, keyed, root):
    return hub.key[v] != OUTSIDE if keyed else v >= root


@compiled
def _note_closure(g, hub, n, total, keyed, root):
    """Give candidates that contain all of L the key of the closure. Returns the members of the closure."""
    members = 0
    for i in range(n):
        v = hub.row[i]
        if hub.count[v] == total and _is_inside(hub, v, keyed, root):
            members += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
            if keyed:
                hub.key[v] = CLOSED
    return members


@compiled
def _members_inside(g, hub, out, n, keyed, root):
    """Members of the closure and of the candidates that R1 keeps."""
    members = 0
    for i in range(n):
        v = hub.row[i]
        if hub.count[v] >= out.state.min_base and _is_inside(hub, v, keyed, root):
            members += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
    return members


@compiled
def _drop_base(g, hub, out, n_base, keyed, root):
    """R2, once for each base vertex. Returns the weight of those dropped."""
    s = out.state
    dropped = 0
    for i in range(n_base):
        u = hub.base[i]
        if hub.local[u] == OUTSIDE:
            continue
        members = 0
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            v = g.base_indices[e]
            if hub.count[v] >= s.min_base and _is_inside(hub, v, keyed, root):
                members += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
                if members >= s.min_root:
                    break
        if members < s.min_root:
            weight = _base_weight(g, out, u)
            for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
                hub.count[g.base_indices[e]] -= weight
            hub.local[u] = OUTSIDE
            dropped += weight
        s.steps -= (g.base_indptr[u + 1] - g.base_indptr[u]) >> 6
    return dropped


@compiled
def _close_rows(hub, n, size, keyed, root):
    """Write the closure of the reduced L to `hub.full`.

    Returns the key of its first member that did not contain the whole L before, and whether the node is dead.
    """
    h = hub.state
    first, dead = CLOSED, False
    for i in range(n):
        v = hub.row[i]
        if hub.count[v] == size:
            dead |= not _is_inside(hub, v, keyed, root)
            if keyed:
                first = min(first, hub.key[v])
            hub.full[h.n_full] = v
            h.n_full += 1
    return first, dead


@compiled
def _sort_rows(hub, out, n, size, keyed, root, todo):
    """Write excluded rows, then candidates by ascending overlap, those explored first, to `hub.row`. R1 and R3.

    Returns the numbers of excluded rows, of candidates, and of candidates that are to be explored.
    """
    h = hub.state
    n_excluded = n_candidates = n_explored = 0
    end = h.n_sorter
    for i in range(n):
        v = hub.row[i]
        count = hub.count[v]
        if count < out.state.min_base or count == size:
            hub.count[v] = 0
        elif _is_inside(hub, v, keyed, root):
            later = keyed and hub.key[v] >= todo
            n_explored += not later
            n_candidates += 1
            hub.sorter[end - n_candidates] = (np.int64(later) << 62) | (np.int64(count) << 31) | v
        else:
            hub.sorter[n_excluded] = v
            n_excluded += 1
    sort(hub.sorter, end - n_candidates, end)
    for i in range(n_excluded):
        hub.row[i] = hub.sorter[i]
    for i in range(n_candidates):
        hub.row[n_excluded + i] = hub.sorter[end - n_candidates + i] & 0x7FFFFFFF
    h.n_rows = n_excluded + n_candidates
    for i in range(h.n_rows):
        hub.count[hub.row[i]] = i + 1  # its number, for those who set the bits
    return n_excluded, n_candidates, n_explored


@compiled
def _number_base(hub, n_base):
    """Leave out the base vertices that were dropped."""
    m = 0
    for i in range(n_base):
        u = hub.base[i]
        if hub.local[u] != OUTSIDE:
            hub.local[u] = m
            hub.base[m] = u
            m += 1
    hub.state.n_base = m


@compiled
def _forget(hub, n, n_base):
    for i in range(n):
        hub.count[hub.row[i]] = 0
    for i in range(n_base):
        hub.local[hub.base[i]] = OUTSIDE
    hub.state.n_full = hub.state.n_rows = 0


@compiled
def _fits(g, hub, sieve, out, n_rows):
    """Note words and planes of the problem in frame 0. Returns whether its bit rows fit."""
    h = hub.state
    f = sieve_frame(sieve, 0)
    f.words, f.planes = (h.n_base + 63) >> 6, 1
    for i in range(h.n_base):
        while _base_weight(g, out, hub.base[i]) >> f.planes:
            f.planes += 1
    return f.words * (f.planes + n_rows) <= sieve.state.max_bits and n_rows <= sieve.state.max_list


@compiled
def _begin(g, hub, sieve, out, n_excluded, n_explored, members, size):
    """Write the first frame of the sieve, and leave the hub as if nothing had been."""
    h, v = hub.state, sieve.state
    f = sieve_frame(sieve, 0)
    f.at, f.rows, f.stride, f.list0 = 0, f.planes * f.words, h.n_rows, 0
    f.next, f.end, f.n_rows = n_excluded, n_excluded + n_explored, h.n_rows
    f.base0, f.n_base, f.n_closed, f.members, f.members_left = 0, h.n_base, h.n_full, members, 0
    f.top = f.rows + f.words * f.stride
    for i in range(h.n_full):
        sieve.closed[i] = hub.full[i]
    for i in range(h.n_rows):
        r = hub.row[i]
        sieve.row[i] = r
        sieve.weight[i] = g.root_members_indptr[r + 1] - g.root_members_indptr[r]
        if i >= n_excluded:
            f.members_left += sieve.weight[i]
    _set_bits(g, hub, sieve, out)
    v.fresh, v.depth, h.fresh = h.fresh, 1, 0
    for i in range(h.n_base):
        sieve.base[i] = hub.base[i]
    _forget(hub, h.n_rows, h.n_base)


@compiled
def _set_bits(g, hub, sieve, out):
    h, bits = hub.state, sieve.bits
    f = sieve_frame(sieve, 0)
    for i in range(f.top):
        bits[i] = _ZERO
    for i in range(h.n_base):
        u = hub.base[i]
        word, bit = i >> 6, _ONE << np.uint64(i & 63)
        weight = _base_weight(g, out, u)
        for k in range(f.planes):
            if (weight >> k) & 1:
                bits[k * f.words + word] |= bit
        at = f.rows + word * f.stride - 1
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            number = hub.count[g.base_indices[e]]
            if number > 0:
                bits[at + number] |= bit
    out.state.steps -= f.top >> 6


@compiled
def _begin_wide(hub, n_excluded, n_candidates, n_explored):
    """Leave the problem to the hub, which makes each child a problem of its own."""
    h = hub.state
    h.words, h.wide, h.first, h.depth = (h.n_base + 63) >> 6, 1, n_excluded, 1
    f = hub_frame(hub, 0)
    f.list0, f.n_list, f.next, f.end = 0, n_candidates, 0, n_explored
    for i in range(n_candidates):
        hub.list[i] = n_excluded + i
