"""How large a biclique is by the measure of the job, and what that demands of a node. See `kernels.reference.tree`.

The measures are those of `schemas.measures`, for the base side and the root side in place of left and right. Without a
measure nothing is demanded beyond the thresholds of the search.
"""

from __future__ import annotations

from kernels.compiled.jit import compiled

__all__ = ["MEASURE_CODES", "ceiling_of", "fewest_base", "fewest_roots", "value"]

#: Codes of `Output.state.measure`. 0 stands for a job without a measure.
_EDGES, _VERTICES, _BALANCE, _BASE, _ROOTS = 1, 2, 3, 4, 5
#: The codes by the measure and by whether the root side is the left one.
MEASURE_CODES = {
    ("edges", False): _EDGES,
    ("edges", True): _EDGES,
    ("vertices", False): _VERTICES,
    ("vertices", True): _VERTICES,
    ("balance", False): _BALANCE,
    ("balance", True): _BALANCE,
    ("left", False): _BASE,
    ("left", True): _ROOTS,
    ("right", False): _ROOTS,
    ("right", True): _BASE,
}
#: More members than any side has.
_TOO_MANY = 1 << 62


@compiled
def value(code, base, roots):
    """The measure of a biclique with so many members."""
    if code == _EDGES:
        return base * roots
    if code == _VERTICES:
        return base + roots
    if code == _BALANCE:
        return min(base, roots)
    return base if code == _BASE else roots


@compiled
def ceiling_of(s, base, roots):
    """The largest measure of a result that has at most so many members, and no more than the filters allow."""
    return value(s.measure, min(base, s.max_base), min(roots, s.max_root))


@compiled
def fewest_base(s, roots):
    """The fewest base members of a result that has at most `roots` root members."""
    if s.measure == 0:
        return s.min_base
    return max(s.min_base, _fewest(s.measure, s.bound, min(roots, s.max_root), _ROOTS))


@compiled
def fewest_roots(s, base):
    """The fewest root members of a result that has at most `base` base members."""
    if s.measure == 0:
        return s.min_root
    return max(s.min_root, _fewest(s.measure, s.bound, min(base, s.max_base), _BASE))


@compiled
def _fewest(code, bound, other, measures_other):
    """The fewest members of one side beside `other` members of the other side, whose size alone is `measures_other`."""
    if code == _EDGES:
        return (bound + other - 1) // other if other > 0 else _TOO_MANY
    if code == _VERTICES:
        return bound - other
    if code == _BALANCE:
        return bound if other >= bound else _TOO_MANY
    if code == measures_other:
        return 0 if other >= bound else _TOO_MANY
    return bound
