"""How large a biclique is by the measure of the job, and what that demands of a node. See `kernels.reference.tree`.

The measures are those of `schemas.search`, for the base side and the root side in place of left and right. Without a
measure nothing is demanded beyond the thresholds of the search.
"""

from __future__ import annotations

from bicliques.kernels.compiled.jit import compiled
from bicliques.kernels.compiled.searching import BALANCE, BASE, EDGES, ROOTS, VERTICES

#: More members than any side has.
_TOO_MANY = 1 << 62


@compiled
def fewest_base(s, roots):
    """The fewest base members of a result that has at most `roots` root members."""
    if s.measure == 0:
        return s.min_base
    return max(s.min_base, fewest(s.measure, s.bound, min(roots, s.max_root), ROOTS))


@compiled
def fewest_roots(s, base):
    """The fewest root members of a result that has at most `base` base members."""
    if s.measure == 0:
        return s.min_root
    return max(s.min_root, fewest(s.measure, s.bound, min(base, s.max_base), BASE))


@compiled
def fewest(code, bound, other, measures_other):
    """The fewest members of one side beside `other` members of the other side, whose size alone is `measures_other`."""
    if code == EDGES:
        return (bound + other - 1) // other if other > 0 else _TOO_MANY
    if code == VERTICES:
        return bound - other
    if code == BALANCE:
        return bound if other >= bound else _TOO_MANY
    if code == measures_other:
        return 0 if other >= bound else _TOO_MANY
    return bound
