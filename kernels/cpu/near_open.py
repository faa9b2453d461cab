"""Opens a piece of work of a search for near-bicliques as a problem of bit rows. Only this reads the edges."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.cpu.near_node import branch_of, settle, shrink
from bicliques.kernels.cpu.near_workspace import SETS
from bicliques.kernels.cpu.pointers import near_frame
from bicliques.schemas.work import EVERYTHING

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
#: What a vertex is in the problem: in S, in C, or a root that shares enough with the first one; 0 outside.
_CHOSEN, _CANDIDATE, _AROUND = 1, 2, 3


@compiled
def open_piece(g, pieces, i, near, out):
    """Open piece `i`. Nothing is open afterwards if nothing is found below it. Returns False if memory has to grow."""
    p = near.state
    is_whole = pieces.todo[i] == EVERYTHING
    first = np.int64(pieces.path[pieces.path_indptr[i]])
    for e in range(pieces.path_indptr[i], pieces.path_indptr[i + 1]):
        first = min(first, np.int64(pieces.path[e]))
    if p.first != first:
        _meet(g, near, out, first)
    later = 1
    for k in range(p.n_hop):
        near.flag0[near.hop[k]] = _AROUND
        later += near.hop[k] > first
    near.flag0[first] = _AROUND
    fits = True
    if not is_whole or later >= p.least0:
        is_alive = _take(g, pieces, i, near, is_whole, first)
        if is_alive:
            is_alive = _peel(g, near, out, is_whole)
        if is_alive:
            fits = _fill(g, pieces, i, near, is_whole)
        _forget(g, pieces, i, near)
    for k in range(p.n_hop):
        near.flag0[near.hop[k]] = 0
    near.flag0[first] = 0
    return fits


@compiled
def _meet(g, near, out, first):
    """List the roots that have so many neighbours in common with a root as two members of a result have."""
    p = near.state
    n = 0
    for e in range(g.root_indptr[first], g.root_indptr[first + 1]):
        u = g.root_indices[e]
        for k in range(g.base_indptr[u], g.base_indptr[u + 1]):
            w = g.base_indices[k]
            if near.count0[w] == 0:
                near.hop[n] = w
                n += 1
            near.count0[w] += 1
        out.state.steps -= (g.base_indptr[u + 1] - g.base_indptr[u]) >> 6
    m = 0
    for k in range(n):
        w = near.hop[k]
        if w != first and near.count0[w] >= p.share:
            near.hop[m] = w
            m += 1
        near.count0[w] = 0
    p.n_hop, p.first = m, first


@compiled
def _take(g, pieces, i, near, is_whole, first):
    """Take S and the candidates of the piece, as far as they can be added to S. Returns False if S is not allowed."""
    p = near.state
    p.n0 = p.n1 = p.n_met = p.full0 = p.full1 = p.total = 0
    for e in range(pieces.path_indptr[i], pieces.path_indptr[i + 1]):
        x = np.int64(pieces.path[e])
        if x < p.n_roots:
            if near.flag0[x] != _AROUND:
                return False
            near.flag0[x] = _CHOSEN
            near.inner0[p.n0] = x
            p.n0 += 1
            for k in range(g.root_indptr[x], g.root_indptr[x + 1]):
                near.hit1[g.root_indices[k]] += 1
        else:
            x -= p.n_roots
            near.flag1[x] = _CHOSEN
            near.inner1[p.n1] = x
            p.n1 += 1
            for k in range(g.base_indptr[x], g.base_indptr[x + 1]):
                near.hit0[g.base_indices[k]] += 1
    p.s0, p.s1 = p.n0, p.n1
    for k in range(p.s0):
        y = near.inner0[k]
        miss = p.s1 - near.hit0[y]
        p.total += miss
        if p.pairs < 0 and miss > p.k0:
            return False
        if p.pairs < 0 and miss == p.k0:
            p.full0 += 1
            for e in range(g.root_indptr[y], g.root_indptr[y + 1]):
                near.full1[g.root_indices[e]] += 1
    for k in range(p.s1):
        u = near.inner1[k]
        miss = p.s0 - near.hit1[u]
        if p.pairs < 0 and miss > p.k1:
            return False
        if p.pairs < 0 and miss == p.k1:
            p.full1 += 1
            for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
                near.full0[g.base_indices[e]] += 1
    if p.pairs >= 0 and p.total > p.pairs:
        return False
    if is_whole:
        for k in range(p.n_hop):
            w = near.hop[k]
            if w > first:  # S is the root, which misses no root
                near.flag0[w] = _CANDIDATE
                near.inner0[p.n0] = w
                p.n0 += 1
    else:
        for e in range(pieces.candidate_indptr[i], pieces.candidate_indptr[i + 1]):
            x = np.int64(pieces.candidates[e])
            if x < p.n_roots:
                if near.flag0[x] == _AROUND and _fits_root(near, x):
                    near.flag0[x] = _CANDIDATE
                    near.inner0[p.n0] = x
                    p.n0 += 1
            elif near.flag1[x - p.n_roots] == 0 and _fits_base(near, x - p.n_roots):
                near.flag1[x - p.n_roots] = _CANDIDATE
                near.inner1[p.n1] = x - p.n_roots
                p.n1 += 1
    return True


@compiled
def _fits_root(near, w):
    """Whether a root can be added to S."""
    p = near.state
    return _fits(p, p.s1 - near.hit0[w], p.k0, near.full0[w] == p.full1)


@compiled
def _fits_base(near, u):
    """Whether a base vertex can be added to S."""
    p = near.state
    return _fits(p, p.s0 - near.hit1[u], p.k1, near.full1[u] == p.full0)


@compiled
def _fits(p, miss, most, has_full):
    """Whether S may have a vertex that misses so many. In a biplex it must have all members that may miss no more."""
    if p.pairs >= 0:
        return p.total + miss <= p.pairs
    return miss <= most and has_full


@compiled
def _peel(g, near, out, is_whole):
    """R1 and R2 on the lists, until nothing changes. Returns False if nothing is found below."""
    p = near.state
    slack0, slack1 = (p.k0, p.k1) if p.pairs < 0 else (p.pairs - p.total, p.pairs - p.total)
    for k in range(p.n0):
        y = near.inner0[k]
        for e in range(g.root_indptr[y], g.root_indptr[y + 1]):
            u = g.root_indices[e]
            if near.count1[u] == 0:
                near.met[p.n_met] = u
                p.n_met += 1
            near.count1[u] += 1
        out.state.steps -= (g.root_indptr[y + 1] - g.root_indptr[y]) >> 6
    if is_whole:
        for k in range(p.n_met):
            u = near.met[k]
            if near.count1[u] + slack1 >= p.least0 and _fits_base(near, u):
                near.flag1[u] = _CANDIDATE
                near.inner1[p.n1] = u
                p.n1 += 1
    for k in range(p.n0):
        y = near.inner0[k]
        n = 0
        for e in range(g.root_indptr[y], g.root_indptr[y + 1]):
            n += near.flag1[g.root_indices[e]] > 0
        near.count0[y] = n
    changed = True
    while changed:
        changed = False
        n = 0
        for k in range(p.n1):
            u = near.inner1[k]
            own = p.s0 - near.hit1[u] if p.pairs >= 0 and k < p.s1 else 0
            if near.count1[u] + slack1 + own >= p.least0:
                near.inner1[n] = u
                n += 1
                continue
            if k < p.s1:
                return False
            changed = True
            near.flag1[u] = 0
            for e in range(g.base_indptr[u], g.base_indptr[u + 1]):
                w = g.base_indices[e]
                near.count0[w] -= near.flag0[w] == _CHOSEN or near.flag0[w] == _CANDIDATE
        p.n1 = n
        n = 0
        for k in range(p.n0):
            y = near.inner0[k]
            own = p.s1 - near.hit0[y] if p.pairs >= 0 and k < p.s0 else 0
            if near.count0[y] + slack0 + own >= p.least1:
                near.inner0[n] = y
                n += 1
                continue
            if k < p.s0:
                return False
            changed = True
            near.flag0[y] = _AROUND
            for e in range(g.root_indptr[y], g.root_indptr[y + 1]):
                near.count1[g.root_indices[e]] -= 1
        p.n0 = n
        if p.n0 < p.least0 or p.n1 < p.least1:
            return False
    return True


@compiled
def _fill(g, pieces, i, near, is_whole):
    """Make the problem and its first frame. Returns False if memory has to grow."""
    p, f = near.state, near_frame(near.frame, 0)
    slack0, slack1 = (p.k0, p.k1) if p.pairs < 0 else (p.pairs - p.total, p.pairs - p.total)
    most = p.n_hop + 1 + p.n1 + p.n_met
    p.need_bits, p.need_list = 0, 6 * most
    if p.need_list > p.max_list:
        return False
    f.names0, n = 0, p.n0
    for k in range(p.n0):
        near.list[k] = near.inner0[k]
    for k in range(p.n_hop):
        w = near.hop[k]
        if near.flag0[w] == _AROUND and _fits_root(near, w):
            joined = 0
            for e in range(g.root_indptr[w], g.root_indptr[w + 1]):
                joined += near.flag1[g.root_indices[e]] > 0
            if joined + slack0 >= p.least1:
                near.list[n] = w
                n += 1
    f.all0, f.names1 = n, n
    for k in range(p.n1):
        near.at1[near.inner1[k]] = k
        near.list[n + k] = near.inner1[k]
    n += p.n1
    for k in range(p.n_met):
        u = near.met[k]
        if near.flag1[u] == 0 and near.count1[u] + slack1 >= p.least0 and _fits_base(near, u):
            near.flag1[u] = -1
            near.at1[u] = n - f.names1
            near.list[n] = u
            n += 1
    f.all1 = n - f.names1
    f.w0, f.w1 = (p.n0 + 63) >> 6, (p.n1 + 63) >> 6
    f.rows0, f.rows1 = 0, f.all0 * f.w1
    f.sets = f.rows1 + f.all1 * f.w0
    f.bits_top = f.sets + SETS * (f.w0 + f.w1)
    p.need_bits = 2 * f.bits_top
    if p.need_bits > p.max_bits:
        return False
    _set_bits(g, near, f)
    f.total = p.total
    source = n
    for k in range(p.n0, f.all0):
        near.list[n] = k
        n += 1
    for k in range(p.n1, f.all1):
        near.list[n] = k
        n += 1
    f.list_top = source
    chooses = pieces.fresh[i] != 0
    n_x0, n_x1 = f.all0 - p.n0, f.all1 - p.n1
    found = settle(near, 0, (source, n_x0), (source + n_x0, n_x1), (0, 0), chooses)
    if found == 1 and chooses:
        shrink(near, 0)
        branch_of(near, 0)
    elif found == 1:
        _branch_as_before(pieces, i, near, f)
    p.pending = found == 2
    p.depth = found > 0
    return True


@compiled
def _set_bits(g, near, f):
    p, bits = near.state, near.bits
    for k in range(f.bits_top):
        bits[k] = _ZERO
    words = f.w0 + f.w1
    for k in range(f.all0):
        y = near.list[k]
        near.at0[y] = k
        for e in range(g.root_indptr[y], g.root_indptr[y + 1]):
            u = g.root_indices[e]
            if near.flag1[u] != 0:
                at = np.int64(near.at1[u])
                if near.flag1[u] > 0:
                    bits[f.rows0 + k * f.w1 + (at >> 6)] |= _ONE << np.uint64(at & 63)
                if k < p.n0:
                    bits[f.rows1 + at * f.w0 + (k >> 6)] |= _ONE << np.uint64(k & 63)
    for k in range(p.n0):
        miss = p.s1 - near.hit0[near.list[k]]
        _put(bits, f.sets, words, k, k < p.s0, miss == 0, p.pairs < 0 and miss == p.k0)
    for k in range(p.n1):
        miss = p.s0 - near.hit1[near.list[f.names1 + k]]
        _put(bits, f.sets + f.w0, words, k, k < p.s1, miss == 0, p.pairs < 0 and miss == p.k1)


@compiled
def _put(bits, at, words, k, is_chosen, misses_nothing, is_full):
    """Put a vertex into the sets of its side."""
    at, bit = at + (k >> 6), _ONE << np.uint64(k & 63)
    if is_chosen:
        bits[at] |= bit
        if is_full:
            bits[at + 3 * words] |= bit
    else:
        bits[at + words] |= bit
        if misses_nothing:
            bits[at + 2 * words] |= bit


@compiled
def _branch_as_before(pieces, i, near, f):
    """List the first candidates of the piece, which were chosen as the children of its node, as children of frame 0."""
    p, n = near.state, 0
    words = f.w0 + f.w1
    begin = pieces.candidate_indptr[i]
    for e in range(begin, begin + pieces.todo[i]):
        x = np.int64(pieces.candidates[e])
        side = x >= p.n_roots
        x = x - p.n_roots if side else x
        if (near.flag1[x] if side else near.flag0[x]) == _CANDIDATE:
            k = np.int64(near.at1[x] if side else near.at0[x])
            c = f.sets + words + (f.w0 if side else 0)
            if (near.bits[c + (k >> 6)] >> np.uint64(k & 63)) & _ONE != _ZERO:
                near.list[f.branch + n] = ~k if side else k
                n += 1
    f.n_branch, f.next = n, 0
    f.list_top = f.branch + n


@compiled
def _forget(g, pieces, i, near):
    """Clean the arrays that have an entry per vertex."""
    p = near.state
    for e in range(pieces.path_indptr[i], pieces.path_indptr[i + 1]):
        x = np.int64(pieces.path[e])
        if x < p.n_roots:
            for k in range(g.root_indptr[x], g.root_indptr[x + 1]):
                near.hit1[g.root_indices[k]] = near.full1[g.root_indices[k]] = 0
        else:
            x -= p.n_roots
            near.flag1[x] = 0
            for k in range(g.base_indptr[x], g.base_indptr[x + 1]):
                near.hit0[g.base_indices[k]] = near.full0[g.base_indices[k]] = 0
    for e in range(pieces.candidate_indptr[i], pieces.candidate_indptr[i + 1]):
        if pieces.candidates[e] >= p.n_roots:
            near.flag1[pieces.candidates[e] - p.n_roots] = 0
    for k in range(p.n_met):
        near.count1[near.met[k]] = near.flag1[near.met[k]] = 0
    for k in range(p.n_hop):
        near.count0[near.hop[k]] = 0
    near.count0[p.first] = 0
