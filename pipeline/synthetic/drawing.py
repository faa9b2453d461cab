"""Draws a random graph in parts, each from the seed alone, so parts and threads do not change the graph.

Vertices are numbered by degree, and the numbers in their labels are a permutation of these. Every random number is a
word of a stream whose key follows from the seed and from what it is for.
"""

from __future__ import annotations

from decimal import Context, Decimal
from itertools import pairwise
from math import gcd, isqrt
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.kernels.compiled.random_edges import draw, label_edges
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.synthetic.wanted import Wanted
from bicliques.schemas.dtypes import VERTEX, offsets_of
from bicliques.schemas.errors import InputError
from bicliques.schemas.hashes import splitmix64
from bicliques.schemas.search import Side

#: Its logarithm and its exponential are correctly rounded, so they are the same everywhere.
_DECIMAL = Context(prec=50)
_ONE = 1 << 40
#: Degrees above this have as many bits as it has, less one.
_EXACT = 1 << 9
#: Entries of the guide, from which few classes are passed to find the one of a stub.
_GUIDE = 1 << 14


class Degrees:
    """Degrees of a side in runs of equal ones. The vertices are numbered from the largest degree to the least.

    Parameters
    ----------
    degrees, counts : ndarray of int64
        A degree, and how many vertices have it.

    Attributes
    ----------
    stubs, vertices : ndarray of int64
        First stub and first vertex of every run, and the number of all of them.
    """

    def __init__(self, degrees: np.ndarray, counts: np.ndarray):
        self.degrees, self.counts = degrees, counts
        self.stubs, self.vertices = offsets_of(degrees * counts), offsets_of(counts)

    def classes(self) -> tuple[tuple[np.ndarray, ...], int]:
        """`classes` and `shift` of `kernels.compiled.random_edges.draw`."""
        n = int(self.stubs[-1])
        shift = max(n.bit_length() - _GUIDE.bit_length() + 1, 0)
        places = np.arange((n >> shift) + 1, dtype=np.int64) << shift
        guide = np.searchsorted(self.stubs[1:-1], places, side="right").astype(np.int64)
        return (self.stubs, self.vertices[:-1].copy(), self.degrees, guide), shift

    def before(self, vertices: np.ndarray) -> np.ndarray:
        """How many stubs the vertices before each of these (int64, 0 to the number of vertices) have, int64."""
        k = np.searchsorted(self.vertices[1:-1], vertices, side="right")
        found: np.ndarray = self.stubs[k] + (vertices - self.vertices[k]) * self.degrees[k]
        return found

    def of(self, first: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """First stubs and degrees (int64) of vertices of a range."""
        degrees = np.repeat(self.degrees, np.diff(np.clip(self.vertices, first, stop)))
        return self.before(np.array([first])) + np.cumsum(degrees) - degrees, degrees


def usual_largest(edges: int, n: int, limit: int) -> int:
    """The largest degree where none is named: the root of the edges, at least twice the mean, at most `limit`."""
    return max(min(max(isqrt(edges), -(-2 * edges // n)), limit, edges - n + 1), 1)


def power_law(side: str, n: int, edges: int, exponent: Decimal, largest: int) -> Degrees:
    """Degrees of `n` vertices of a side with the sum `edges`, by an exponent above 1, the largest of which is given."""
    if not n + largest - 1 <= edges:
        raise InputError(
            f"{number(edges, 'edge is', 'edges are')} too few for {n:,} {side} vertices, each with an edge and "
            f"one with {largest:,}; ask for more edges, or fewer vertices"
        )
    if edges > n * largest:
        raise InputError(
            f"{n:,} {side} vertices with at most {number(largest, 'edge')} each have fewer than {edges:,} edges; ask "
            "for fewer edges, more vertices, or a larger degree"
        )
    grid = _grid(largest)
    ratios = [_ratio(largest, k, exponent) for k in grid]
    at_least = _at_least(n, edges, grid, ratios)
    counts = [a - b for a, b in pairwise([*at_least, 0])]
    runs = [(k, count) for k, count in zip(grid, counts, strict=True) if count][::-1]
    runs = _raised(runs, edges - sum(k * count for k, count in runs), largest)
    return Degrees(*(np.array(column, np.int64) for column in zip(*runs, strict=True)))


def _grid(largest: int) -> list[int]:
    """The degrees that occur: all up to `_EXACT`, above it those with few bits, and the largest one."""
    grid, step = list(range(1, min(largest, _EXACT) + 1)), 1
    while grid[-1] < largest:
        step *= 2
        grid += range(grid[-1] + step, min(2 * grid[-1], largest) + 1, step)
        grid += [largest] if grid[-1] + 2 * step > largest > grid[-1] else []
    return grid


def _ratio(largest: int, k: int, exponent: Decimal) -> int:
    """``(largest / k)**(exponent - 1)``, in units of 1 / `_ONE`."""
    log = _DECIMAL.ln(_DECIMAL.divide(Decimal(largest), Decimal(k)))
    power = _DECIMAL.exp(_DECIMAL.multiply(_DECIMAL.subtract(exponent, Decimal(1)), log))
    return int(_DECIMAL.multiply(power, Decimal(_ONE)))


def _at_least(n: int, edges: int, grid: list[int], ratios: list[int]) -> list[int]:
    """How many vertices have at least each degree, so that there are no more than `edges`, and not many fewer."""
    steps = [k - before for before, k in pairwise([0, *grid])]

    def counts(s: int) -> list[int]:
        return [n, *(min(n, (s * (ratio - _ONE) >> 80) + 1) for ratio in ratios[1:])]

    low, high = 0, 1
    if len(grid) > 1:
        high = (n << 80) // max(ratios[-2] - _ONE, 1) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if sum(step * count for step, count in zip(steps, counts(middle), strict=True)) <= edges:
            low = middle
        else:
            high = middle
    return counts(low)


def _raised(runs: list[tuple[int, int]], missing: int, largest: int) -> list[tuple[int, int]]:
    """Runs in descending order of which the first vertices have a stub more, until none is missing."""
    while missing:
        raised: list[tuple[int, int]] = []
        for k, count in runs:
            more = min(missing, count) if k < largest else 0
            missing -= more
            for degree, n in ((k + 1, more), (k, count - more)):
                if n and raised and raised[-1][0] == degree:
                    raised[-1] = (degree, raised[-1][1] + n)
                elif n:
                    raised.append((degree, n))
        runs = raised
    return runs


_STEP = np.uint64(0x9E3779B97F4A7C15)
#: Keys of the permutation of stubs, two per round.
_KEYS = 4
#: Bytes of a label of text.
_BYTES = 20


class Part(NamedTuple):
    """Left vertices ``first`` to ``stop - 1``, and how many neighbours they draw."""

    first: int
    stop: int
    edges: int


class Drawn(NamedTuple):
    """The edges of a part, those of a vertex one behind the other.

    Parameters
    ----------
    left, right : ndarray of int32
        Numbers in the labels of their ends.
    fingerprint : int
        The sum of `schemas.hashes.mixed` of these, modulo 2**64.
    largest_degree : int
        Of the left vertices. Each has an edge.
    neighbours : ndarray of int32
        Right vertices of the edges, ascending for each left vertex.
    """

    left: np.ndarray
    right: np.ndarray
    fingerprint: int
    largest_degree: int
    neighbours: np.ndarray


def _key(seed: int, *purpose: str | int) -> int:
    """The key of a stream. Its purpose is words of at most 8 letters, and numbers."""
    key = splitmix64(np.array([seed], np.uint64))
    for each in purpose:
        key = splitmix64(key ^ np.uint64(int.from_bytes(each.encode(), "little") if isinstance(each, str) else each))
    return int(key[0])


def _words(key: int, counters: np.ndarray) -> np.ndarray:
    """The words (uint64) of a stream at some places (int64). Compiled code draws the same."""
    return splitmix64(np.uint64(key) + counters.astype(np.uint64) * _STEP)


def _line(n: int, key: int) -> tuple[int, int, int]:
    """Factor, shift and modulus of a permutation of ``0..n-1``."""
    factor, shift = (int(word) % n for word in _words(key, np.arange(2)))
    while gcd(factor, n) != 1:
        factor += 1
    return factor % n, shift, n


def _permuted(numbers: np.ndarray, line: tuple[int, int, int]) -> np.ndarray:
    """Where a permutation leads, int64."""
    found: np.ndarray = (numbers.astype(np.int64) * line[0] + line[1]) % line[2]
    return found


class RandomGraph:
    """A graph of Chung and Lu whose degrees are exact: a permutation pairs the ends of edges of both sides.

    Raises `InputError` if there are no such degrees.

    Attributes
    ----------
    planted : dict of str to list of ndarray of int64
        By side, the vertices of each planted biclique.
    """

    def __init__(self, graph: Wanted):
        self.graph, n = graph, graph.drawn_edges
        given, room = (graph.max_left_degree, graph.max_right_degree), (graph.most_neighbours, graph.n_left)
        largest = [
            usual_largest(n, vertices, limit) if most is None else most
            for vertices, limit, most in zip((graph.n_left, graph.n_right), room, given, strict=True)
        ]
        self._left = power_law("left", graph.n_left, n, Decimal(graph.left_exponent), largest[0])
        right = power_law("right", graph.n_right, n, Decimal(graph.right_exponent), largest[1])
        self._classes, self._shift = right.classes()
        self._keys = np.array([_key(graph.seed, "stubs", k) for k in range(_KEYS)], np.uint64)
        height = isqrt(n - 1) + 1
        self._grid = height, -(-n // height), n
        self._rows_key = _key(graph.seed, "rows")
        sides: tuple[tuple[Side, int, int], ...] = ("left", graph.n_left, 0), ("right", graph.n_right, 1)
        self._labels = {side: _line(n, _key(graph.seed, "labels", side)) for side, n, _ in sides}
        self.planted: dict[Side, list[np.ndarray]] = {}
        for side, n, k in sides:
            line, ends = _line(n, _key(graph.seed, "planted", side)), np.cumsum([0, *(own[k] for own in graph.plant)])
            self.planted[side] = [_permuted(np.arange(a, b), line) for a, b in pairwise(ends)]
        places = [(int(u), k, i) for k, own in enumerate(self.planted["left"]) for i, u in enumerate(own)]
        self._places = np.array(sorted(places), np.int64).reshape(-1, 3)

    def parts(self, edges: int) -> list[Part]:
        """All left vertices, in parts that draw about so many edges. A vertex is in one part."""
        stubs, vertices = self._left.stubs, self._left.vertices
        wished = np.arange(edges, int(stubs[-1]), edges, dtype=np.int64)
        k = np.searchsorted(stubs, wished, side="right") - 1
        cuts = vertices[k] - (stubs[k] - wished) // self._left.degrees[k]  # rounded up to whole vertices
        ends = np.unique(np.concatenate([[0], cuts, [self.graph.n_left]]))
        drawn = np.diff(self._left.before(ends)).tolist()
        return [Part(a, b, n) for (a, b), n in zip(pairwise(ends.tolist()), drawn, strict=True)]

    def drawn(self, part: Part) -> Drawn:
        """The edges of a part."""
        stubs, degrees = self._left.of(part.first, part.stop)
        numbers, planted = np.arange(part.first, part.stop, dtype=np.int64), self._planted_of(part)
        starts, values = planted
        stays = np.concatenate([[0], np.cumsum(values >= 0)])[starts]
        indptr = offsets_of(degrees + np.diff(stays))
        most = int((degrees + np.diff(starts)).max(initial=1))
        table, right = np.empty(max(1 << (2 * most - 1).bit_length(), 4), VERTEX), np.empty(int(indptr[-1]), VERTEX)
        how, own, classes = (self._rows_key, self._keys), (numbers, stubs, degrees), (self._classes, self._shift)
        draw(how, self._grid, own, planted, classes, self.graph.n_right, table, (indptr, right))
        labels = np.empty_like(right), np.empty_like(right)
        total = label_edges(numbers, indptr, right, self._labels["left"], self._labels["right"], *labels)
        return Drawn(*labels, total % 2**64, int(np.diff(indptr).max()), right)

    def _planted_of(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """The planted neighbours of a part; see `kernels.compiled.random_edges.draw`."""
        sizes, lists = np.zeros(part.stop - part.first, np.int64), [np.zeros(0, np.int64)]
        a, b = np.searchsorted(self._places[:, 0], [part.first, part.stop])
        for u, k, place in self._places[a:b].tolist():
            lists.append(self._planted_row(k, place))
            sizes[u - part.first] = len(lists[-1])
        return offsets_of(sizes), np.concatenate(lists)

    def _planted_row(self, k: int, place: int) -> np.ndarray:
        """Right vertices of a biclique, for the left vertex at a place of it. Those that noise takes are ``~v``."""
        right = self.planted["right"][k].copy()
        n_rows, removed = len(self.planted["left"][k]), self.graph.removed[k]
        n = (place + 1) * removed // n_rows - place * removed // n_rows
        drawn = _words(_key(self.graph.seed, "noise", k), place * len(right) + np.arange(len(right)))
        gone = np.argsort(drawn, kind="stable")[:n]
        right[gone] = ~right[gone]
        return right

    def labels_of(self, vertices: np.ndarray, side: Side) -> np.ndarray:
        """The numbers in the labels of vertices (int64), int64."""
        return _permuted(vertices, self._labels[side])

    def label_array(self, numbers: np.ndarray, side: Side) -> pa.Array:
        """The labels with some numbers (int32): int32, or text such as ``left-000000000000007``."""
        if self.graph.labels == "integers":
            return pa.array(numbers.astype(np.int32, copy=False))
        text = pc.utf8_lpad(pa.array(numbers).cast(pa.large_string()), _BYTES - len(side) - 1, "0")
        start, nothing = (pa.scalar(each, pa.large_string()) for each in (f"{side}-", ""))
        return pc.binary_join_element_wise(start, text, nothing)
