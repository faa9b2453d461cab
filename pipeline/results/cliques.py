"""The numbers of cliques and of motifs of a graph of one kind of vertices, compared with what its degrees say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bicliques.kernels.compiled.butterflies import count_common
from bicliques.pipeline.results.pq import digits, in_full, sets_of
from bicliques.schemas.dtypes import offsets_of
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves, Range
from bicliques.schemas.values import whole


@dataclass(frozen=True, eq=False)
class CliqueCounts:
    """How many cliques there are, for all numbers of vertices, and how many motifs of 3 and 4 vertices.

    Parameters
    ----------
    leaves : Leaves
        The sums of binomials of which the numbers are made. The right side has no vertices.
    motifs : dict of int
        How many connected induced subgraphs of 3 and 4 vertices there are of each form.
    checks : tuple of str
        What was compared with the input.
    """

    leaves: Leaves
    motifs: dict[str, int]
    checks: tuple[str, ...]

    def __repr__(self) -> str:
        return f"<{in_full(self.total)} cliques of up to {self.largest} vertices>"

    def __getitem__(self, k: int) -> int:
        """The number of cliques of `k` vertices: ``counts[k]``.

        Raises `InputError` if this is no whole number of 1 or more.
        """
        k = whole(k, "the key of a number of cliques", 1)
        return cliques(self.leaves, (k, k))

    @cached_property
    def total(self) -> int:
        """The number of all cliques. A vertex is one, and so is an edge."""
        return cliques(self.leaves, (1, None))

    @property
    def largest(self) -> int:
        """The number of vertices of the largest clique."""
        return int(self.leaves.keys.sum(axis=1).max(initial=0))

    def table(self) -> list[int]:
        """The numbers of cliques of 1, 2, 3 and more vertices, up to the largest."""
        return [self[k] for k in range(1, self.largest + 1)]

    def to_json(self) -> dict[str, Any]:
        """The numbers as text, because they have any length, and what was checked."""
        numbers = {"table": [digits(n) for n in self.table()], "total": digits(self.total)}
        return numbers | {"motifs": {name: digits(n) for name, n in self.motifs.items()}, "checks": list(self.checks)}


def cliques(leaves: Leaves, k: Range) -> int:
    """How many cliques there are with so many vertices."""
    return leaves.bicliques(k, (0, 0))


def cliques_of(leaves: Leaves, graph: MiningGraph) -> CliqueCounts:
    """The numbers that follow from all leaves of a double cover, and its motifs."""
    if not leaves.is_whole:
        raise IncompleteError("the leaves do not have their checksum; count again")
    indptr, indices = graph.neighbours()
    degrees, n = np.diff(indptr), graph.n_roots
    pairs, edges = np.zeros((2, int(degrees.max(initial=0)) + 2), np.int64)
    triangles = np.zeros(n, np.int64)
    rows, room = (indptr, indices), (np.zeros(n, np.int32), np.empty(n, np.int32))
    count_common(rows, rows, *room, pairs, edges, triangles)
    n_triangles = sets_of(edges, 1, 1) // 3
    for k, (name, number) in enumerate((("vertices", n), ("edges", len(indices) // 2), ("triangles", n_triangles)), 1):
        if (found := cliques(leaves, (k, k))) != number:
            raise IncompleteError(f"the leaves give {found:,} {name}, and the input has {number:,}; count again")
    others = offsets_of(degrees[indices] - 1)
    of_neighbours = others[indptr[1:]] - others[indptr[:-1]]
    numbers = np.bincount(degrees)
    # subgraphs with these edges, whatever other edges there are between their vertices; tailed: triangles with an edge
    paths = _dot(degrees - 1, of_neighbours) // 2 - 3 * n_triangles
    tailed = _dot(triangles, degrees - 2) // 2
    four = cliques(leaves, (4, 4))
    # and with no others
    diamonds = sets_of(edges, 2, 2) - 6 * four
    tailed -= 4 * diamonds + 12 * four
    cycles = sets_of(pairs, 2, 2) // 2 - diamonds - 3 * four
    motifs = {
        "wedges": sets_of(numbers, 2, 2) - 3 * n_triangles,
        "triangles": n_triangles,
        "paths": paths - 2 * tailed - 4 * cycles - 6 * diamonds - 12 * four,
        "stars": sets_of(numbers, 3, 3) - tailed - 2 * diamonds - 4 * four,
        "cycles": cycles,
        "tailed triangles": tailed,
        "diamonds": diamonds,
        "4-cliques": four,
    }
    if wrong := next((name for name, number in motifs.items() if number < 0), None):
        raise IncompleteError(f"the 4-cliques leave fewer than no {wrong}; count again")
    return CliqueCounts(leaves, motifs, ("checksum of the leaves", "vertices", "edges", "triangles"))


def _dot(one: np.ndarray, other: np.ndarray) -> int:
    return sum(a * b for a, b in zip(one.tolist(), other.tolist(), strict=True))
