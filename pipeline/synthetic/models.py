"""The models of random graphs: how many neighbours each left vertex draws, and how.

A model cuts the left vertices into parts of about as many edges, and draws each part by itself. The neighbours of a
vertex do not depend on the cuts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from decimal import Decimal
from itertools import pairwise
from math import isqrt
from typing import NamedTuple

import numpy as np

from kernels.compiled.random_edges import CHANCE_BITS, MOST_LEVELS, draw_by_quadrants, draw_by_stubs, split
from kernels.compiled.random_rows import Quadrants, Rows, Stubs
from pipeline.synthetic.degrees import power_law, usual_largest
from pipeline.synthetic.planting import Planted
from pipeline.synthetic.streams import key_of
from pipeline.synthetic.wanted import Wanted
from schemas.dtypes import VERTEX

__all__ = ["Drawn", "Part", "RandomGraph", "random_graph"]

#: Keys of the permutation of stubs, two per round.
_KEYS = 4


class Part(NamedTuple):
    """Left vertices ``first`` to ``stop - 1``, how many neighbours they draw, and what the model knows of them."""

    first: int
    stop: int
    edges: int
    nodes: tuple[np.ndarray, ...] = ()


class Drawn(NamedTuple):
    """Neighbours of some left vertices.

    Parameters
    ----------
    vertices : ndarray of int64
        Left vertices, ascending.
    indptr : ndarray of int64
        The neighbours of row ``i`` are ``right[indptr[i]:indptr[i + 1]]``.
    right : ndarray of int32
        Ascending in every row.
    """

    vertices: np.ndarray
    indptr: np.ndarray
    right: np.ndarray


class Room(NamedTuple):
    """Where a model draws into.

    Parameters
    ----------
    table : ndarray of int32
        Room for a set of neighbours.
    indptr, right : ndarray
        See `Drawn`.
    """

    table: np.ndarray
    indptr: np.ndarray
    right: np.ndarray


class RandomGraph(ABC):
    """A graph that is drawn part by part.

    Parameters
    ----------
    graph : Wanted

    Attributes
    ----------
    key : int
        Of the draws.
    model : Stubs or Quadrants
    """

    model: Stubs | Quadrants

    def __init__(self, graph: Wanted):
        self.graph, self.planted = graph, Planted(graph)
        self.key = key_of(graph.seed, "rows")

    @abstractmethod
    def parts(self, edges: int) -> list[Part]:
        """All left vertices, in parts that draw about so many edges. A vertex is in one part."""

    @abstractmethod
    def degrees(self, part: Part) -> tuple[np.ndarray, ...]:
        """Left vertices of a part (int64, ascending), how many neighbours each draws, and its first stub (int64)."""

    @abstractmethod
    def draw(self, rows: Rows, room: Room) -> None:
        """Draw the neighbours of rows."""

    def rows(self, part: Part) -> Rows:
        """What the neighbours of a part are drawn from."""
        vertices, degrees, stubs = self.degrees(part)
        return Rows(vertices, degrees, stubs, self.planted.rows(vertices))

    def drawn(self, rows: Rows) -> Drawn:
        """The neighbours of rows."""
        indptr, spaces = rows.indptr, rows.spaces
        most = int(np.diff(spaces).max(initial=1))
        table = np.empty(max(1 << (2 * most - 1).bit_length(), 4), VERTEX)
        right = np.empty(int(indptr[-1]), VERTEX)
        self.draw(rows, Room(table, indptr, right))
        return Drawn(rows.vertices, indptr, right)


class _ChungLu(RandomGraph):
    """Degrees of both sides by power laws. A permutation pairs the stubs, so no degree is left to chance."""

    def __init__(self, graph: Wanted):
        super().__init__(graph)
        n = graph.drawn_edges
        limits = (graph.most_neighbours, graph.n_left)
        largest = [
            usual_largest(n, vertices, limit) if given is None else given
            for vertices, limit, given in zip(
                (graph.n_left, graph.n_right), limits, (graph.max_left_degree, graph.max_right_degree), strict=True
            )
        ]
        self._left = power_law("left", graph.n_left, n, Decimal(graph.left_exponent), largest[0])
        right = power_law("right", graph.n_right, n, Decimal(graph.right_exponent), largest[1])
        keys = np.array([key_of(graph.seed, "stubs", k) for k in range(_KEYS)], np.uint64)
        height = isqrt(n - 1) + 1
        self.model = self._stubs = Stubs(keys, (height, -(-n // height), n), *right.classes())

    def parts(self, edges: int) -> list[Part]:
        """See `RandomGraph`."""
        stubs, vertices = self._left.stubs, self._left.vertices
        wished = np.arange(edges, int(stubs[-1]), edges, dtype=np.int64)
        k = np.searchsorted(stubs, wished, side="right") - 1
        cuts = vertices[k] - (stubs[k] - wished) // self._left.degrees[k]  # rounded up to whole vertices
        ends = np.unique(np.concatenate([[0], cuts, [self.graph.n_left]]))
        drawn = np.diff(self._left.before(ends)).tolist()
        return [Part(a, b, n) for (a, b), n in zip(pairwise(ends.tolist()), drawn, strict=True)]

    def degrees(self, part: Part) -> tuple[np.ndarray, ...]:
        """See `RandomGraph`."""
        stubs, degrees = self._left.of(part.first, part.stop)
        return np.arange(part.first, part.stop, dtype=np.int64), degrees, stubs

    def draw(self, rows: Rows, room: Room) -> None:
        """See `RandomGraph`."""
        keys, grid, classes, shift = self._stubs
        own = (rows.vertices, rows.firsts, rows.degrees)
        draw_by_stubs(self.key, keys, grid, own, rows.planted, classes, shift, self.graph.n_right, *room)


class _RMat(RandomGraph):
    """Edges fall into quadrants of the matrix, again and again."""

    def __init__(self, graph: Wanted):
        super().__init__(graph)
        whole = 1 << CHANCE_BITS
        a, b, c = (int(Decimal(share) * whole) for share in graph.quadrants[:3])
        d = whole - a - b - c
        self._first_left = a + b
        halves = (a * whole // max(a + b, 1), c * whole // max(c + d, 1), a + c)
        self.model = self._quadrants = Quadrants(np.array(halves, np.int64))
        self._split_key = key_of(graph.seed, "split")

    def _split(self, nodes: tuple[np.ndarray, ...], until: int, room: int) -> tuple[np.ndarray, ...]:
        """Ranges with at most `until` edges, or single vertices; see `kernels.compiled.random_edges.split`."""
        more = np.zeros(MOST_LEVELS, np.int64)
        stack = tuple(np.concatenate([each[::-1], more]) for each in nodes)
        out = tuple(np.empty(room, np.int64) for _ in nodes)
        chance, most = self._first_left, self.graph.most_neighbours
        n = split(self._split_key, chance, most, until, stack, len(nodes[0]), int(until >= 0), out)
        return tuple(each[:n] for each in out)

    def parts(self, edges: int) -> list[Part]:
        """See `RandomGraph`."""
        n = self.graph.drawn_edges
        whole = tuple(np.array([each], np.int64) for each in (0, self.graph.n_left, 0, n))
        nodes = self._split(whole, edges, MOST_LEVELS * (n // edges + 1) + 1)
        parts, begin, filled = [], 0, 0
        counts = nodes[3].tolist()
        for k, count in enumerate(counts):
            if filled and filled + count > edges:
                parts.append(self._part(nodes, begin, k))
                begin, filled = k, 0
            filled += count
        return [*parts, self._part(nodes, begin, len(counts))]

    def _part(self, nodes: tuple[np.ndarray, ...], begin: int, end: int) -> Part:
        own = tuple(each[begin:end].copy() for each in nodes)
        return Part(int(own[0][0]), int(own[0][-1] + own[1][-1]), int(own[3].sum()), own)

    def degrees(self, part: Part) -> tuple[np.ndarray, ...]:
        """See `RandomGraph`. Only vertices with neighbours are there, and there are no stubs."""
        vertices, _, _, degrees = self._split(part.nodes, -1, part.edges)
        planted = self.planted.between(part.first, part.stop)
        none = np.zeros(0, np.int64)
        if not len(planted):
            return vertices, degrees, none
        both = np.union1d(vertices, planted)
        found = np.zeros(len(both), np.int64)
        found[np.searchsorted(both, vertices)] = degrees
        return both, found, none

    def draw(self, rows: Rows, room: Room) -> None:
        """See `RandomGraph`."""
        chances = np.empty(MOST_LEVELS, np.int64)
        n_left, n_right = self.graph.n_left, self.graph.n_right
        own = (rows.vertices, rows.degrees)
        draw_by_quadrants(self.key, *self._quadrants, own, rows.planted, n_left, n_right, chances, *room)


def random_graph(graph: Wanted) -> RandomGraph:
    """The graph, ready to be drawn.

    Raises
    ------
    InputError
        If there are no degrees of this kind.
    """
    return _ChungLu(graph) if graph.model == "chung-lu" else _RMat(graph)
