"""How surprising a biclique is, given the degrees of its members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bicliques.kernels.compiled.interest import add_weights
from bicliques.pipeline.prepare.build import read_edges
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import IncompleteError

if TYPE_CHECKING:
    from bicliques.pipeline.proof.verification import Adjacency

#: How many units a bit has. Scores are sums of integers, so equal ones are equal on every machine and in any order.
UNIT = 1 << 20
#: Entries of the table of weights that are computed at a time.
_CHUNK = 1 << 20


class Surprise:
    """The score of `Results.top` by "surprise", in units of 2**-20 bits.

    If the edges were drawn again and every vertex kept its degree on average, the number of edges between a left vertex
    of degree d and a right one of degree e would follow a Poisson distribution with mean d * e / m, where m is the
    number of edges (Norros and Reittu 2006, doi:10.1239/aap/1143936140, with two sides). So the two would be joined
    with probability p = 1 - exp(-d * e / m). A biclique has the information of all its pairs, the sum of log2(1 / p)
    (De Bie 2011, doi:10.1007/s10618-010-0209-3). From it the bits are taken that say which of all blocks of its size it
    is: log2 of the number of ways to choose so many left vertices, and the same on the right.

    Pairs that are no edges have no information, and they cost the bits that say which of its pairs they are: log2 of
    the number of ways to choose so many of all pairs. So a row without missing pairs has the score of a biclique.
    Raises `IncompleteError` if the edge table is missing or damaged.

    Parameters
    ----------
    run : Run
        It has read its input.
    degrees : (ndarray, ndarray), int64
        How many neighbours each left and each right vertex has in the input, not in the graph that is left after
        reduction. It may be 0 for a vertex that is in no row: fewer different degrees are faster.

    Notes
    -----
    Memory: 4 bytes per vertex, ten times that while it is made, and 4 bytes per pair of different degrees. There are at
    most twice as many of these pairs as edges, because a side with k different degrees has at least k * k / 2 edges.
    If pairs may be no edges, 16 bytes per edge more.
    """

    def __init__(self, run: Run, degrees: Sequence[np.ndarray]):
        (self._left, left_kinds), (self._right, right_kinds) = map(_kinds, degrees)
        self._kinds = left_kinds, right_kinds
        self._edges = run.input["n_edges"]
        self._weights = _weights(self._left, self._right, self._edges)
        near = run.options.search.near
        self._missed = (0, 0) if near is None else (near.left, near.right)  # by a left and by a right member
        self._adjacency = None if near is None else _adjacency(run)
        # a biclique has at most as many left members as a right vertex has neighbours, and misses
        most = int(self._right[-1]) + self._missed[1], int(self._left[-1]) + self._missed[0]
        left, right = (_costs(len(own), min(n, len(own))) for own, n in zip(degrees, most, strict=True))
        self._costs = left, right

    def most(self, n_left: int, n_right: int) -> int:
        """All pairs of the largest size, with the least likely pair's information, and no cost."""
        return min(n_left * n_right, self._edges) * int(self._weights[0])

    def bounds(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        """What the score would be if no member had more neighbours than its biclique gives it."""
        if n_left.max(initial=0) >= len(self._costs[0]) or n_right.max(initial=0) >= len(self._costs[1]):
            raise IncompleteError("a row has more members than any vertex has neighbours; verify the run")
        of_left, of_right = n_right - self._missed[0], n_left - self._missed[1]  # the fewest neighbours of a member
        kinds = np.searchsorted(self._left, of_left) * len(self._right) + np.searchsorted(self._right, of_right)
        return n_left * n_right * self._weights[kinds] - self._cost(n_left, n_right)

    def of(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """The score of each of these rows."""
        found = np.empty(len(numbers), np.int64)
        add_weights(rows.sides, numbers, self._kinds, self._weights, len(self._right), found)
        if self._adjacency is not None:
            found -= self._of_holes(self._adjacency, rows.pick(numbers))
        return found - self._cost(np.diff(rows.left_indptr)[numbers], np.diff(rows.right_indptr)[numbers])

    def _of_holes(self, adjacency: Adjacency, rows: Bicliques) -> np.ndarray:
        """What the missing pairs of each row take from its score."""
        assert rows.missing is not None
        left, right = (kinds[ends] for kinds, ends in zip(self._kinds, adjacency.holes(rows), strict=True))
        weights = self._weights[left.astype(np.int64) * len(self._right) + right]
        upto = np.concatenate([[0], np.cumsum(weights, dtype=np.int64)])
        last = np.cumsum(rows.missing)
        pairs = np.diff(rows.left_indptr) * np.diff(rows.right_indptr)
        return upto[last] - upto[last - rows.missing] + _choices(pairs, rows.missing)

    def _cost(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        cost: np.ndarray = self._costs[0][n_left] + self._costs[1][n_right]
        return cost


def _kinds(degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different degrees, ascending, and the number of each vertex's among them, int32."""
    there = np.bincount(degrees, minlength=1) > 0
    there[0] = False  # such a vertex is in no row, and gets the number of the least degree
    return np.flatnonzero(there), np.maximum(np.cumsum(there, dtype=VERTEX) - 1, 0)[degrees]


def surprise_of(
    left: np.ndarray,
    right: np.ndarray,
    n_vertices: tuple[int, int],
    n_edges: int,
    holes: tuple[np.ndarray, np.ndarray],
) -> float:
    """The surprise of one biclique in bits, as `Surprise` has it in units, without the weights of all other degrees.

    Parameters
    ----------
    left, right : ndarray, shape (members,), int64
        The degrees of the members of each side in the input.
    n_vertices : (int, int)
        Left and right vertices of the input.
    n_edges : int
        Edges of the input.
    holes : (ndarray, ndarray), int64
        The degrees of the left and of the right ends of its missing pairs.
    """
    (left, n_left), (right, n_right) = (np.unique(own, return_counts=True) for own in (left, right))
    weights = _weights(left, right, n_edges).reshape(len(left), len(right)).astype(np.int64)
    members = int(n_left.sum()), int(n_right.sum())
    cost = sum(int(_costs(n, own)[-1]) for n, own in zip(n_vertices, members, strict=True))
    cost += int(weights[np.searchsorted(left, holes[0]), np.searchsorted(right, holes[1])].sum())
    cost += int(_choices(np.array([members[0] * members[1]]), np.array([len(holes[0])]))[0])
    return (int(n_left @ weights @ n_right) - cost) / UNIT


def _adjacency(run: Run) -> Adjacency:
    from bicliques.pipeline.proof.verification import Adjacency  # only where rows have missing pairs

    return Adjacency(*read_edges(run.folder), run.input["n_left"], run.input["n_right"])


def _weights(left: np.ndarray, right: np.ndarray, n_edges: int) -> np.ndarray:
    """log2(1 / p) of every pair of degrees, in units, int32. The left degrees are the rows of a matrix."""
    found = np.empty(len(left) * len(right), VERTEX)
    step = max(_CHUNK // len(right), 1)
    for begin in range(0, len(left), step):
        means = np.outer(left[begin : begin + step], right) / n_edges
        bits = -np.log2(-np.expm1(-means))
        found[begin * len(right) : begin * len(right) + bits.size] = np.rint(bits * UNIT).ravel()
    return found


def _costs(n: int, most: int) -> np.ndarray:
    """log2 of the number of ways to choose 0, 1, ..., `most` of `n` vertices, in units, int64."""
    k = np.arange(1, most + 1)
    bits = np.concatenate([[0.0], np.cumsum(np.log2((n - k + 1) / k))])
    return np.rint(bits * UNIT).astype(np.int64)


def _choices(n: np.ndarray, some: np.ndarray) -> np.ndarray:
    """log2 of the number of ways to choose some of `n`, by row, in units, int64."""
    bits = np.zeros(len(n))
    for k in range(1, int(some.max(initial=0)) + 1):
        bits += np.where(k <= some, np.log2(np.maximum(n - k + 1, 1) / k), 0.0)
    return np.rint(bits * UNIT).astype(np.int64)
