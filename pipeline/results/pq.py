"""The numbers of p x q bicliques of a run, compared with what the degrees and the wedges of its input say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import numpy as np

from bicliques.kernels.compiled.butterflies import butterflies_of_edges, count_common
from bicliques.kernels.cpu.leaves import LeafCounter
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import IncompleteError, InputError, as_option
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves, Range, bounds_of, ways
from bicliques.schemas.values import sizes_of

#: Rows and columns of the table of a count of all sizes, as JSON.
_TOLD = 20


@dataclass(frozen=True, eq=False)
class PqCounts:
    """How many bicliques there are, maximal or not, for all numbers of left and of right members.

    Parameters
    ----------
    leaves : Leaves
        The sums of binomials of which the numbers are made.
    up_to : (int, int) or None
        The largest numbers that were asked for. None: all.
    checks : tuple of str
        What was compared with the input.
    """

    leaves: Leaves
    up_to: tuple[int, int] | None
    checks: tuple[str, ...]

    def __repr__(self) -> str:
        p, q = self.shape
        return f"<{in_full(self.total)} bicliques of up to {p} x {q}>"

    def __getitem__(self, sizes: tuple[int, int]) -> int:
        """The number of bicliques with p left and q right members: ``counts[p, q]``."""
        p, q = sizes_of(sizes, "the key of a number of bicliques")
        if self.up_to is not None and (p > self.up_to[0] or q > self.up_to[1]):
            most = "x".join(map(str, self.up_to))
            raise InputError(f"{p}x{q} bicliques were not counted, but those up to {most}; count again with more")
        return self.leaves.bicliques((p, p), (q, q))

    @cached_property
    def total(self) -> int:
        """The number of all bicliques that were asked for."""
        p, q = self.up_to or (None, None)
        return self.leaves.bicliques((1, p), (1, q))

    @property
    def shape(self) -> tuple[int, int]:
        """The largest p and the largest q for which there are bicliques, among those that were asked for."""
        left, right = self.leaves.keys[:, :2].sum(axis=1), self.leaves.keys[:, 2:].sum(axis=1)
        there = (left > 0) & (right > 0)
        most = [int(side[there].max(initial=0)) for side in (left, right)]
        return tuple(map(min, most, self.up_to or most))  # type: ignore[return-value]

    def table(self, most: tuple[int, int] | None = None) -> list[list[int]]:
        """The numbers of all p and q that were asked for and occur.

        Parameters
        ----------
        most : (int, int) or None
            The largest p and q. None: all.
        """
        p, q = map(min, self.shape, most or self.shape)
        return [[self[i, k] for k in range(1, q + 1)] for i in range(1, p + 1)]

    def to_json(self) -> dict[str, Any]:
        """The numbers as text, because they have any length, and what was checked. Of all sizes, up to 20 x 20."""
        table = self.table(None if self.up_to else (_TOLD, _TOLD))
        texts = [[digits(n) for n in row] for row in table]
        return {"up_to": self.up_to, "table": texts, "total": digits(self.total), "checks": list(self.checks)}


def digits(number: int) -> str:
    """A whole number as text. Python alone refuses one of more than 4,300 digits."""
    return str(Decimal(number))


def in_full(number: int) -> str:
    """A number with all of its digits, or the first of very many."""
    text = digits(number)
    return f"{number:,}" if len(text) <= 40 else f"{text[0]}.{text[1:4]}... x 10^{len(text) - 1:,}"


def pq_of(run: Run) -> PqCounts:
    """The numbers of a run whose leaves are all counted.

    Raises `IncompleteError` if they contradict the input, or the ledger is damaged.
    """
    leaves, pq = run.ledger().total, run.options.search.pq
    assert isinstance(leaves, Leaves)
    assert pq is not None
    return PqCounts(leaves, bounds_of(pq), check_leaves(leaves, run.graph, bounds_of(pq)))


def shares_of(run: Run, counts: PqCounts) -> list[dict[str, np.ndarray]]:
    """How many bicliques of the largest size that was asked for contain each left and each right vertex."""
    graph, sizes = run.graph, counts.up_to
    assert sizes is not None
    number = counts[sizes]
    if number >= 2**63:
        raise InputError(
            f"there are {in_full(number)} bicliques of {sizes[0]} x {sizes[1]}, and {as_option('per_vertex')} has "
            "room for 2**63 of each vertex: ask for smaller sizes"
        )
    wanted = sizes if graph.root_side == "left" else sizes[::-1]
    found = zip(LeafCounter(graph, wanted).shares(*wanted), (graph.root_members, graph.base_members), strict=True)
    by_side = list(found) if graph.root_side == "left" else list(found)[::-1]
    columns = []
    for (own, members), n, size in zip(by_side, (graph.n_left, graph.n_right), sizes, strict=True):
        column = np.zeros(n, np.int64)
        column[members] = own
        if sum(column.tolist()) != size * number:
            raise IncompleteError(
                f"the numbers of the vertices of a side do not add up to {size * number:,}; count again"
            )
        columns.append({"bicliques": column})
    return columns


def edges_of(run: Run, counts: PqCounts) -> dict[str, np.ndarray]:
    """Ids of both ends of all edges in order, and how many butterflies contain each."""
    graph, number = run.graph, 4 * counts[2, 2]
    roots, base = (graph.root_indptr, graph.root_indices), (graph.base_indptr, graph.base_indices)
    found = np.zeros(graph.n_edges, np.int64)
    butterflies_of_edges(roots, base, np.zeros(graph.n_roots, np.int32), found)
    if sum(found.tolist()) != number:
        raise IncompleteError(f"the numbers of the edges do not add up to {number:,}; count again")
    ids = np.repeat(graph.root_members, np.diff(graph.root_indptr)), graph.base_members[graph.root_indices]
    left, right = ids if graph.root_side == "left" else ids[::-1]
    order = np.lexsort((right, left))
    return {"left": left[order], "right": right[order], "bicliques": found[order]}


def sets_of(numbers: np.ndarray, least: int, most: int | None) -> int:
    """How many sets of so many of n things there are, added up over n, of which `numbers` says how often it occurs."""
    return sum(ways(0, n, least, most) * int(numbers[n]) for n in np.flatnonzero(numbers).tolist())


def check_leaves(leaves: Leaves, graph: MiningGraph, up_to: tuple[int, int] | None) -> tuple[str, ...]:
    """Compare leaves with their checksum, and what follows from them with what the input says.

    Returns
    -------
    tuple of str
        What was compared.
    """
    if not leaves.is_whole:
        raise IncompleteError("the leaves do not have their checksum; count again")
    names = ["checksum of the leaves"]
    for name, (left, right), number in _expected(graph, up_to):
        if (found := leaves.bicliques(left, right)) != number:
            raise IncompleteError(
                f"the leaves give {digits(found)} {name}, and the input has {digits(number)}; count again"
            )
        names.append(name)
    return tuple(names)


def _expected(graph: MiningGraph, up_to: tuple[int, int] | None) -> Iterator[tuple[str, tuple[Range, Range], int]]:
    """What is counted, the sizes of these bicliques, and their number by degrees and wedges."""
    roots, base = (graph.root_indptr, graph.root_indices), (graph.base_indptr, graph.base_indices)
    sides = ("left", "right") if graph.root_side == "left" else ("right", "left")
    n, most = graph.n_roots, {side: up_to and max(up_to[side == "right"], 2) for side in sides}
    degrees = [np.bincount(np.diff(indptr)) for indptr, _ in (roots, base)]
    pairs = np.zeros(len(degrees[0]) + 1, np.int64)
    if n:
        count_common(roots, base, np.zeros(n, np.int32), np.empty(n, np.int32), pairs, pairs[:0], pairs[:0])

    def stars(side: int, p: int, q: Range, numbers: np.ndarray) -> tuple[tuple[Range, Range], int]:
        return (((p, p), q) if sides[side] == "left" else (q, (p, p))), sets_of(numbers, *q)

    yield "edges", *stars(0, 1, (1, 1), degrees[0])
    for side in (0, 1):
        yield f"bicliques with 1 {sides[side]} member", *stars(side, 1, (1, most[sides[1 - side]]), degrees[side])
    yield "butterflies", *stars(0, 2, (2, 2), pairs)
    yield f"bicliques with 2 {sides[0]} members", *stars(0, 2, (1, most[sides[1]]), pairs)
