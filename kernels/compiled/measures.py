"""What a job measures bicliques by, for compiled code: the measures of `schemas.measures` as numbers.

It has the base side and the root side of a search, or a vertex's own side and the other one, in place of left and
right.
"""

from __future__ import annotations

from bicliques.kernels.compiled.jit import compiled

#: The product, the sum, the smaller, or one of the sides. 0 stands for no measure.
EDGES, VERTICES, BALANCE, BASE, ROOTS = 1, 2, 3, 4, 5
#: The same by the measure, and by whether the root side is the left one.
MEASURES = {
    ("edges", False): EDGES,
    ("edges", True): EDGES,
    ("vertices", False): VERTICES,
    ("vertices", True): VERTICES,
    ("balance", False): BALANCE,
    ("balance", True): BALANCE,
    ("left", False): BASE,
    ("left", True): ROOTS,
    ("right", False): ROOTS,
    ("right", True): BASE,
}


@compiled
def value(code, base, roots):
    """The measure of a biclique with so many members."""
    if code == EDGES:
        return base * roots
    if code == VERTICES:
        return base + roots
    if code == BALANCE:
        return min(base, roots)
    return base if code == BASE else roots
