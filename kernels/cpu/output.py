"""Delivery of bicliques by the compiled search: sizes, filters, fingerprint, and buffers of bounded length."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.compiled.lists import sort_list
from bicliques.kernels.compiled.searching import mixed, value
from bicliques.kernels.cpu.simd import trailing_zeros
from bicliques.kernels.cpu.workspace import USUAL

_ONE = np.uint64(1)
#: Lists of so many members are not sorted by bits.
_FEW = 64


@compiled
def _size(indptr, vertices, n):
    total = 0
    for i in range(n):
        total += indptr[vertices[i] + 1] - indptr[vertices[i]]
    return total


@compiled
def _base_size(out, base, n):
    total = 0
    for i in range(n):
        total += out.base_size[base[i]]
    return total


@compiled
def _hash(hashes, vertices, n):
    total = np.uint64(0)
    for i in range(n):
        total += hashes[vertices[i]]
    return total


@compiled
def _write_base(g, out, base, n, target, at):
    for i in range(n):
        k = base[i] - out.state.first_class
        if k >= 0:
            for e in range(out.class_ptr[k], out.class_ptr[k + 1]):
                at = _write_one(g.base_members_indptr, g.base_members, out.class_member[e], target, at)
        else:
            at = _write_one(g.base_members_indptr, g.base_members, base[i], target, at)


@compiled
def _write_one(indptr, members, v, target, at):
    for e in range(indptr[v], indptr[v + 1]):
        target[at] = members[e]
        at += 1
    return at


@compiled
def _write(indptr, members, vertices, n, target, at):
    for i in range(n):
        at = _write_one(indptr, members, vertices[i], target, at)


@compiled
def deliver(g, out, base, n_base, n_roots):
    """Emit the biclique (``base[:n_base]``, ``out.closure[:n_roots]``), unless a filter leaves it out.

    Returns
    -------
    bool
        False when it could not be emitted, because the row limit is reached or a buffer is full. Then
        `need_left` and `need_right` say how much room it needs, nothing else has changed, and the caller
        delivers the same biclique again later.
    """
    s = out.state
    base_size = _base_size(out, base, n_base)
    root_size = _size(g.root_members_indptr, out.closure, n_roots)
    if _is_left_out(out, base_size, root_size):
        return True
    if s.rows_left == 0 or (s.sizing and s.n_odd == s.max_odd):
        return False
    if s.listing and not _list(g, out, base, n_base, n_roots, base_size, root_size):
        return False
    s.rows_left -= 1
    s.count += 1
    if s.measure != 0 and value(s.measure, base_size, root_size) > s.bound:
        s.n_better += 1
        if s.n_better >= s.hand_out:
            s.steps = 0  # so that the bound rises soon
    if s.sizing:
        _count_size(out, base_size, root_size)
    if s.prove:
        left = _hash(out.base_hash, base, n_base)
        right = _hash(g.root_hash, out.closure, n_roots)
        if s.root_is_left:
            left, right = right, left
        own = mixed(left, right)
        s.fingerprint += own
        if s.listing:
            out.ids[s.n_rows - 1] = own
    return True


@compiled
def deliver_size(out, base_size, root_size):
    """As `deliver`, for a search that wants sizes only."""
    s = out.state
    if _is_left_out(out, base_size, root_size):
        return True
    if s.rows_left == 0 or s.n_odd == s.max_odd:
        return False
    s.rows_left -= 1
    s.count += 1
    _count_size(out, base_size, root_size)
    return True


@compiled
def _is_left_out(out, base_size, root_size):
    s = out.state
    if base_size < s.min_base or base_size > s.max_base or root_size < s.min_root or root_size > s.max_root:
        return True
    return s.measure != 0 and value(s.measure, base_size, root_size) < s.bound


@compiled
def _count_size(out, base_size, root_size):
    if base_size < USUAL and root_size < USUAL:
        out.usual[base_size * USUAL + root_size] += 1
    else:
        s = out.state
        out.odd[2 * s.n_odd] = base_size
        out.odd[2 * s.n_odd + 1] = root_size
        s.n_odd += 1


@compiled
def _list(g, out, base, n_base, n_roots, base_size, root_size):
    """Copy the members into the buffers, and sort them. Returns False when they do not fit."""
    s = out.state
    left_size, right_size = (root_size, base_size) if s.root_is_left else (base_size, root_size)
    if s.n_rows == s.max_rows or s.n_left + left_size > s.max_left or s.n_right + right_size > s.max_right:
        s.need_left, s.need_right = left_size, right_size
        return False
    if s.root_is_left:
        _write(g.root_members_indptr, g.root_members, out.closure, n_roots, out.left, s.n_left)
        _write_base(g, out, base, n_base, out.right, s.n_right)
    else:
        _write_base(g, out, base, n_base, out.left, s.n_left)
        _write(g.root_members_indptr, g.root_members, out.closure, n_roots, out.right, s.n_right)
    _sort(out, out.left, s.n_left, s.n_left + left_size)
    _sort(out, out.right, s.n_right, s.n_right + right_size)
    first = out.closure[0]
    for i in range(1, n_roots):
        first = min(first, out.closure[i])
    out.root[s.n_rows] = g.root_members[g.root_members_indptr[first]]
    s.n_left += left_size
    s.n_right += right_size
    s.n_rows += 1
    out.left_indptr[s.n_rows] = s.n_left
    out.right_indptr[s.n_rows] = s.n_right
    return True


@compiled
def _sort(out, ids, begin, end):
    """Sort ``ids[begin:end]``, which are distinct. Members of classes are sorted by bits if they lie close together."""
    if out.state.sieving and end - begin > _FEW:
        ascends, low, high = True, ids[begin], ids[begin]
        for i in range(begin + 1, end):
            ascends &= ids[i - 1] < ids[i]
            low, high = min(low, ids[i]), max(high, ids[i])
        if ascends:
            return
        if (high >> 6) - (low >> 6) < end - begin:
            for i in range(begin, end):
                out.present[ids[i] >> 6] |= _ONE << np.uint64(ids[i] & 63)
            for w in range(low >> 6, (high >> 6) + 1):
                x = out.present[w]
                out.present[w] = np.uint64(0)
                while x != np.uint64(0):
                    ids[begin] = (w << 6) + trailing_zeros(x)
                    x &= x - _ONE
                    begin += 1
            return
    sort_list(ids, begin, end)


@compiled
def aside_is_full(out):
    """Whether the largest possible piece might not fit any more. It is asked before work begins, never after."""
    return out.state.n_aside + out.state.max_piece > out.state.max_aside


@compiled
def begin_aside(out, n_path):
    """Begin a piece with path ``out.closure[:n_path]``. Returns the position of its candidates in `aside`."""
    at = out.state.n_aside
    out.aside[at] = n_path
    for i in range(n_path):
        out.aside[at + 1 + i] = out.closure[i]
    return at + n_path + 2


@compiled
def end_aside(out, first, end, fresh):
    """End the piece. Its candidates are ``aside[first:end]``, and all of them are to be explored."""
    out.aside[first - 1] = end - first
    out.aside[end] = fresh
    out.state.n_aside = end + 1
