"""Planted bicliques: which vertices they have, and which of their edges noise removes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from kernels.compiled.random_rows import begins_of
from pipeline.synthetic.streams import Relabelling, key_of, words
from pipeline.synthetic.wanted import Wanted

__all__ = ["Planted"]


class Planted:
    """The planted bicliques of a graph. No two share a vertex.

    Parameters
    ----------
    graph : Wanted

    Attributes
    ----------
    left, right : list of ndarray of int64
        Vertices of each biclique.
    """

    def __init__(self, graph: Wanted):
        self._graph = graph
        self.left = self._chosen("left", graph.n_left, [p for p, _ in graph.plant])
        self.right = self._chosen("right", graph.n_right, [q for _, q in graph.plant])
        owners = [np.full(len(own), k, np.int64) for k, own in enumerate(self.left)]
        places = [np.arange(len(own), dtype=np.int64) for own in self.left]
        empty = np.zeros(0, np.int64)
        vertices = np.concatenate([empty, *self.left])
        order = np.argsort(vertices)
        self._vertices = vertices[order]
        self._owners, self._places = (np.concatenate([empty, *each])[order] for each in (owners, places))

    def _chosen(self, side: str, n: int, sizes: list[int]) -> list[np.ndarray]:
        line = Relabelling(n, key_of(self._graph.seed, "planted", side))
        ends = np.cumsum([0, *sizes])
        return [line(np.arange(a, b, dtype=np.int64)) for a, b in pairwise(ends)]

    def between(self, first: int, stop: int) -> np.ndarray:
        """Left vertices of a range that are in a planted biclique. int64, ascending."""
        a, b = np.searchsorted(self._vertices, [first, stop])
        return self._vertices[a:b]

    def rows(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The planted neighbours of left vertices; see `kernels.compiled.random_edges.draw_by_stubs`.

        Parameters
        ----------
        vertices : ndarray of int64
            Ascending.
        """
        found = np.searchsorted(self._vertices, vertices)
        found = np.minimum(found, max(len(self._vertices) - 1, 0))
        is_one = self._vertices[found] == vertices if len(self._vertices) else np.zeros(len(vertices), bool)
        lists, sizes = [], np.zeros(len(vertices), np.int64)
        for row in np.flatnonzero(is_one):
            own = self._row(int(self._owners[found[row]]), int(self._places[found[row]]))
            lists.append(own)
            sizes[row] = len(own)
        values = np.concatenate([np.zeros(0, np.int64), *lists])
        return begins_of(sizes), values

    def _row(self, k: int, place: int) -> np.ndarray:
        """Right vertices of a biclique, for the left vertex at a place of it. Those that noise takes are ``~v``."""
        right = self.right[k].copy()
        n_rows, removed = len(self.left[k]), self._graph.removed[k]
        n = (place + 1) * removed // n_rows - place * removed // n_rows
        if n:
            drawn = words(key_of(self._graph.seed, "noise", k), place * len(right) + np.arange(len(right)))
            gone = np.argsort(drawn, kind="stable")[:n]
            right[gone] = ~right[gone]
        return right
