"""Neighbourhoods in the input graph, to check rows against the input."""

from __future__ import annotations

import numpy as np

from kernels.graph.csr import from_sorted_pairs, transpose
from pipeline.run.progress import number

__all__ = ["Adjacency"]

#: About how many neighbours are gathered at a time, to bound memory.
_CHUNK = 1 << 20


class Adjacency:
    """The edges of the input in both directions.

    Parameters
    ----------
    left, right : ndarray, shape (n_edges,), int32
        The dense ids of both ends of every edge, sorted by (left, right), without duplicates.
    n_left, n_right : int
        Numbers of vertices.
    """

    def __init__(self, left: np.ndarray, right: np.ndarray, n_left: int, n_right: int):
        self._of_left = from_sorted_pairs(left, right, n_left)
        self._of_right = transpose(*self._of_left, n_right)

    def objection(self, left: np.ndarray, right: np.ndarray) -> str | None:
        """Why (left, right) is not a maximal biclique, as a clause. None if it is one.

        Parameters
        ----------
        left, right : ndarray, int32
            Dense ids of the members.
        """
        for members, others, csr, other_size, side in (
            (left, right, self._of_left, len(self._of_right[0]) - 1, "right"),
            (right, left, self._of_right, len(self._of_left[0]) - 1, "left"),
        ):
            if len(np.unique(members)) != len(members):
                return "repeats a member"
            common = _common_neighbours(csr, members, other_size)
            if not np.isin(others, common).all():
                return "is not a biclique: an edge is missing"
            if len(common) > len(others):
                more = number(len(common) - len(others), f"{side} vertex", f"{side} vertices")
                return f"is not maximal: {more} can be added"
        return None


def _common_neighbours(csr: tuple[np.ndarray, np.ndarray], members: np.ndarray, n_other: int) -> np.ndarray:
    """The vertices that are adjacent to all of `members`, ascending."""
    indptr, indices = csr
    counts = np.zeros(n_other, np.int64)
    starts, degrees = indptr[members], indptr[members + 1] - indptr[members]
    batch_of = np.cumsum(degrees) // _CHUNK
    for batch in np.unique(batch_of):
        chosen = batch_of == batch
        first, n = starts[chosen], degrees[chosen]
        offset = np.repeat(first - np.concatenate([[0], np.cumsum(n)[:-1]]), n)
        counts += np.bincount(indices[offset + np.arange(len(offset))], minlength=n_other)
    return np.flatnonzero(counts == len(members))
