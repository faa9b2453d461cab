"""Solves whole subtrees without a search when one side of them is tiny.

- With at most six base vertices, a row is one of 64 subsets of them. A set of rows is one 64-bit word with
  a bit per subset. Some 130 word operations find every closed set (`closed_subsets`).
- With at most `MAX_ROWS` candidates, their distinct intersections are listed (`intersections`).
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled

#: Base vertices that a subset word can hold.
MAX_BITS = 6

#: Most bicliques that one call can find.
SOLVED_AT_ONCE = 64

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
# _HAS[b]: the subsets (bit positions 0..63) that contain element b
_HAS = np.array(
    [
        0xAAAAAAAAAAAAAAAA,
        0xCCCCCCCCCCCCCCCC,
        0xF0F0F0F0F0F0F0F0,
        0xFF00FF00FF00FF00,
        0xFFFF0000FFFF0000,
        0xFFFFFFFF00000000,
    ],
    dtype=np.uint64,
)


@compiled
def _subsets_of(family):
    """All subsets of the members of a family (its down-closure), by one shift per element."""
    family |= (family & np.uint64(0xAAAAAAAAAAAAAAAA)) >> np.uint64(1)
    family |= (family & np.uint64(0xCCCCCCCCCCCCCCCC)) >> np.uint64(2)
    family |= (family & np.uint64(0xF0F0F0F0F0F0F0F0)) >> np.uint64(4)
    family |= (family & np.uint64(0xFF00FF00FF00FF00)) >> np.uint64(8)
    family |= (family & np.uint64(0xFFFF0000FFFF0000)) >> np.uint64(16)
    family |= (family & np.uint64(0xFFFFFFFF00000000)) >> np.uint64(32)
    return family


@compiled
def closed_subsets(excluded, candidates, k):
    """Base sides of every maximal biclique strictly below a node with `k` <= 6 base vertices.

    Parameters
    ----------
    excluded, candidates : uint64
        Families of subsets: bit ``s`` is set when some row has exactly the elements of ``s``. Candidates
        are neither empty nor full.
    k : int

    Returns
    -------
    uint64
        Family of the non-empty intersections of one or more candidates that lie in no excluded row.

    Notes
    -----
    A set S is such an intersection iff it lies in a candidate and, for every element b outside S, in a
    candidate without b. Both conditions are down-closures, which shifts compute.
    """
    alive = _subsets_of(candidates) & ~_subsets_of(excluded) & ~_ONE
    if alive == _ZERO:
        return alive
    for b in range(k):
        alive &= _subsets_of(candidates & ~_HAS[b]) | _HAS[b]
    return alive


@compiled
def intersections(rows, start, m, out):
    """Distinct non-empty intersections of two or more of ``rows[start:start + m]`` that are not rows themselves.

    Parameters
    ----------
    rows : pointer to uint64
    m : int
        At most `MAX_ROWS`.
    out : pointer to 2**MAX_ROWS uint64
        Filled with the rows followed by the intersections.

    Returns
    -------
    int
        How many words of `out` are used; the intersections begin at ``m``.
    """
    for i in range(m):
        out[i] = rows[start + i]
    n = m
    for i in range(1, m):
        before = n
        for a in range(i):
            n = _add(out, n, out[a] & out[i])
        for a in range(m, before):
            n = _add(out, n, out[a] & out[i])
    return n


@compiled
def _add(out, n, x):
    if x == _ZERO:
        return n
    for b in range(n):
        if out[b] == x:
            return n
    out[n] = x
    return n + 1
