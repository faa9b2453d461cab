"""Makes a hub problem of base vertices: it walks the wedges, picks rows and sets their bits.

With thresholds it is a sieve problem. What they leave no use for is dropped before anything is built: R1 costs what the
walk over the wedges costs, which is made anyway, and most roots are over then. `kernels.reference.tree` says what the
reductions are and why they are exact.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.compiled.searching import sort
from bicliques.kernels.cpu.bound import fewest_base, fewest_roots
from bicliques.kernels.cpu.marks import note_in_hub
from bicliques.kernels.cpu.pointers import hub_frame, sieve_frame
from bicliques.kernels.cpu.workspace import CLOSED, OUTSIDE, WORD_BITS

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
#: Passes over the wedges that R2 makes at most. What is left then is the sieve's.
_PASSES = 8


@compiled
def open_hub(g, hub, sieve, out, n_base, problem):
    """Open the problem with base vertices ``hub.base[:n_base]``, which is (keyed, root, todo, fresh).

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
    keyed, root, todo, fresh = problem
    h, s = hub.state, out.state
    h.n_full = h.n_rows = h.first = h.depth = 0
    n = _count_rows(g, hub, out, n_base)
    size = total = _size_of(g, hub, out, n_base)
    h.least = s.min_base
    if sieve is not None:
        size = _reduce(g, hub, out, n, n_base, total, keyed, root)
    first, members, dead = _close_rows(g, hub, n, size, keyed, root)
    if dead or size == 0 or (s.measure != 0 and members > s.max_root):
        forget(hub, n, n_base)
        return
    if keyed and size < total:
        fresh = first < todo  # then all bicliques below have this candidate, so they belong to this piece
        todo = CLOSED if fresh else todo
    n_excluded, n_candidates = _sort_rows(hub, out, n, size, keyed, root, todo)
    n_explored = _number_rows(hub, n_excluded, n_candidates)
    _number_base(hub, n_base)
    if s.marking:
        note_in_hub(g, hub)
        if h.n_marked == 0:
            forget(hub, h.n_rows, n_base)
            return
    h.words, h.fresh, h.depth = (h.n_base + 63) >> 6, fresh and members >= s.min_root, 1
    if sieve is not None:
        if _fits(g, hub, sieve, out):
            _begin_sieve(g, hub, sieve, out, size, n_explored, members)
            return
    h.wide = s.sieving or h.n_rows * h.words > h.max_bits
    if not h.wide:
        _set_bits(g, hub, out)
    f = hub_frame(hub.frame, 0)
    f.list0, f.n_list, f.next, f.end = 0, n_candidates, 0, n_explored
    for i in range(n_candidates):
        hub.list[i] = n_excluded + i


@compiled
def _weight(g, out, u):
    """Members of a base vertex. Without a measure, more than are wanted count as those wanted."""
    return min(g.base_members_indptr[u + 1] - g.base_members_indptr[u], out.state.most_weight)


@compiled
def _size_of(g, hub, out, n_base):
    total = 0
    for i in range(n_base):
        total += _weight(g, out, hub.base[i])
    return total


@compiled
def _count_rows(g, hub, out, n_base):
    """Weigh what every root vertex has of the base vertices. Write roots that have some to `hub.row`.

    Returns their number.
    """
    n = 0
    for i in range(n_base):
        u = hub.base[i]
        weight = _weight(g, out, u)
        hub.local[u] = i
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
def _reduce(g, hub, out, n, n_base, total, keyed, root):
    """Drop base vertices by R1, R2 and R4. Returns the weight of those left, 0 if the node leads nowhere.

    `HUB_STATE.least` is then the threshold of R1 and R3.
    """
    s = out.state
    size, closed, least = total, 0, s.min_base
    for i in range(n):
        v = hub.row[i]
        if hub.count[v] == total and _is_inside(hub, v, keyed, root):
            closed += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
            if keyed:
                hub.key[v] = CLOSED  # it is in the closure of the whole L
    for _ in range(_PASSES):
        members = _members_inside(g, hub, n, least, keyed, root)
        while fewest_base(s, members) > least:
            least = fewest_base(s, members)
            members = _members_inside(g, hub, n, least, keyed, root)
        need = fewest_roots(s, size)
        if size < least or members < need:
            return 0
        dropped = 0
        if closed < need:
            dropped = _drop_base(g, hub, out, n_base, least, need, keyed, root)
        if dropped == 0:
            break
        size -= dropped
    hub.state.least = least
    return size if size >= least else 0


@compiled
def _members_inside(g, hub, n, least, keyed, root):
    """Members of the closure and of the candidates that have at least `least` of the base vertices."""
    members = 0
    for i in range(n):
        v = hub.row[i]
        if hub.count[v] >= least and _is_inside(hub, v, keyed, root):
            members += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
    return members


@compiled
def _drop_base(g, hub, out, n_base, least, need, keyed, root):
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
            if hub.count[v] >= least and _is_inside(hub, v, keyed, root):
                members += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
                if members >= need:
                    break
        if members < need:
            weight = _weight(g, out, u)
            for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
                hub.count[g.base_indices[e]] -= weight
            hub.local[u] = OUTSIDE
            dropped += weight
        s.steps -= (g.base_indptr[u + 1] - g.base_indptr[u]) >> 6
    return dropped


@compiled
def _close_rows(g, hub, n, size, keyed, root):
    """Write the closure of L to `hub.full`.

    Returns the key of its first member that the whole L had not, its members, and whether the node is dead.
    """
    h = hub.state
    first, members, dead = CLOSED, 0, False
    for i in range(n):
        v = hub.row[i]
        if hub.count[v] == size:
            dead |= not _is_inside(hub, v, keyed, root)
            if keyed:
                first = min(first, hub.key[v])
            members += g.root_members_indptr[v + 1] - g.root_members_indptr[v]
            hub.full[h.n_full] = v
            h.n_full += 1
    return first, members, dead


@compiled
def _sort_rows(hub, out, n, size, keyed, root, todo):
    """Write the excluded rows and the candidates that can matter to both ends of `hub.sorter`.

    Candidates are sorted by what they have of L, then rank; those that are not to be explored come last. The counts of
    rows that cannot matter are reset. R1 says which candidates these are, and R3 which excluded rows. Without
    thresholds, an excluded row only matters to nodes with more than 64 base vertices. Returns the numbers of excluded
    rows and of candidates.
    """
    n_excluded = n_candidates = 0
    end = hub.state.n_sorter
    least = hub.state.least
    least_excluded = least if out.state.sieving else WORD_BITS + 1
    for i in range(n):
        v = hub.row[i]
        count = hub.count[v]
        if count == size:
            continue
        inside = _is_inside(hub, v, keyed, root)
        if count < (least if inside else least_excluded):
            hub.count[v] = 0
            hub.key[v] = OUTSIDE
        elif inside:
            later = keyed and hub.key[v] >= todo
            n_candidates += 1
            hub.sorter[end - n_candidates] = (np.int64(later) << 62) | (np.int64(count) << 31) | v
        else:
            hub.sorter[n_excluded] = v
            n_excluded += 1
    sort(hub.sorter, end - n_candidates, end)
    return n_excluded, n_candidates


@compiled
def _number_rows(hub, n_excluded, n_candidates):
    """Number the excluded rows, then the candidates in order. Returns how many candidates are to be explored."""
    h = hub.state
    for i in range(n_excluded):
        hub.row[i] = hub.sorter[i]
        hub.key[hub.sorter[i]] = i
    n_explored = 0
    for i in range(n_candidates):
        packed = hub.sorter[h.n_sorter - n_candidates + i]
        v = packed & 0x7FFFFFFF
        n_explored += (packed >> 62) == 0
        hub.row[n_excluded + i] = v
        hub.key[v] = n_excluded + i
    for i in range(h.n_full):
        hub.key[hub.full[i]] = CLOSED
    h.first = n_excluded
    h.n_rows = n_excluded + n_candidates
    return n_explored


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
def forget(hub, n, n_base):
    """Reset what was written to the arrays that are indexed by vertex, for rows ``hub.row[:n]`` and the closure."""
    for i in range(n):
        hub.count[hub.row[i]] = 0
        hub.key[hub.row[i]] = OUTSIDE
    for i in range(hub.state.n_full):
        hub.count[hub.full[i]] = 0
        hub.key[hub.full[i]] = OUTSIDE
    for i in range(n_base):
        hub.local[hub.base[i]] = OUTSIDE
    hub.state.n_full = hub.state.n_rows = hub.state.depth = hub.state.fresh = 0


@compiled
def _set_bits(g, hub, out):
    h = hub.state
    words = h.words
    for i in range(h.n_rows * words):
        hub.bits[i] = _ZERO
    for i in range(words):
        hub.frame_bits[i] = ~_ZERO
    if h.n_base & 63:
        hub.frame_bits[words - 1] = (_ONE << np.uint64(h.n_base & 63)) - _ONE
    for i in range(h.n_base):
        u = hub.base[i]
        bit = _ONE << np.uint64(i & 63)
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            q = hub.key[g.base_indices[e]]
            if q != OUTSIDE and q < h.n_rows:
                hub.bits[q * words + (i >> 6)] |= bit
    out.state.steps -= (h.n_rows * words) >> 6


@compiled
def _fits(g, hub, sieve, out):
    """Note words and planes of the problem in frame 0 of the sieve. Returns whether its bit rows fit."""
    h = hub.state
    f = sieve_frame(sieve.frame, 0)
    f.words, f.planes = h.words, 1
    for i in range(h.n_base):
        while _weight(g, out, hub.base[i]) >> f.planes:
            f.planes += 1
    return f.words * (f.planes + h.n_rows) <= sieve.state.max_bits and h.n_rows <= sieve.state.max_list


@compiled
def _begin_sieve(g, hub, sieve, out, size, n_explored, members):
    """Write the first frame of the sieve, and leave the hub as if nothing had been."""
    h, v, bits = hub.state, sieve.state, sieve.bits
    f = sieve_frame(sieve.frame, 0)
    f.at, f.rows, f.stride, f.list0 = 0, f.planes * f.words, h.n_rows, 0
    f.next, f.end, f.n_rows = h.first, h.first + n_explored, h.n_rows
    f.base0, f.n_base, f.n_classes, f.size = 0, h.n_base, 0, size
    f.n_closed, f.members, f.members_left = h.n_full, members, 0
    f.top = f.rows + f.words * f.stride
    for i in range(h.n_full):
        sieve.closed[i] = hub.full[i]
    for i in range(h.n_rows):
        r = hub.row[i]
        sieve.row[i] = r
        sieve.weight[i] = g.root_members_indptr[r + 1] - g.root_members_indptr[r]
        if i >= h.first:
            f.members_left += sieve.weight[i]
    for i in range(f.top):
        bits[i] = _ZERO
    for i in range(h.n_base):
        u = hub.base[i]
        sieve.base[i] = u
        word, bit = i >> 6, _ONE << np.uint64(i & 63)
        for k in range(f.planes):
            if (_weight(g, out, u) >> k) & 1:
                bits[k * f.words + word] |= bit
        for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
            q = hub.key[g.base_indices[e]]
            if q != OUTSIDE and q < h.n_rows:
                bits[f.rows + word * f.stride + q] |= bit
    out.state.steps -= f.top >> 6
    v.fresh, v.depth = h.fresh, 1
    forget(hub, h.n_rows, h.n_base)
