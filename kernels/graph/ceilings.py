"""How large a biclique with a given vertex can be, by the degrees of its neighbours, and what that leaves of a graph.

A biclique with s members on the side of a vertex has as many members on the other side as the vertex has neighbours of
degree s or more, at most. So the largest measure of both, over all s, is a *ceiling* of the vertex. A vertex whose
ceiling is below a bound is in no biclique that reaches the bound. Without it others have lower degrees, and so on.

Nothing is lost. A biclique that reaches the bound has all of its vertices, and whoever could extend it, to the end: the
larger biclique reaches the bound, too. Sizes above the limits of a search count as the limits, so this also holds where
the larger biclique is too large for the search.

In a graph with hubs, a bound leaves much less than any two thresholds that follow from it do.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.compiled.searching import MEASURES, value
from bicliques.kernels.graph.csr import compact_columns, degrees_of_columns, from_sorted_pairs, select_rows, transpose
from bicliques.kernels.graph.threads import borders, on_slices
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.search import Search, Side

#: Degrees are looked at by their level: up to this one each is a level, and then each of so many octaves has so
#: many levels.
_EXACT, _PER_OCTAVE, _OCTAVES = 48, 8, 26
#: Edges are removed until two passes, one for either side, leave more than this share of them.
_ENOUGH = 0.95
_NO_LIMIT = np.iinfo(VERTEX).max
_LEFT: Side = "left"
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}

_Csr = tuple[np.ndarray, np.ndarray]


class EdgesByCeiling:
    """The edges of a graph, of which a bound leaves some.

    Parameters
    ----------
    left, right : ndarray, shape (n_edges,), int32
        The edge table: dense ids, sorted by (left, right), no duplicates.
    n_left, n_right : int
        Number of dense ids per side.
    search : Search
        Its measure, its thresholds, and its limits.
    threads : int
        Nothing depends on their number.

    Attributes
    ----------
    most : int
        No biclique that the search wants has a larger measure.

    Notes
    -----
    It reads the edges twice, which takes 4 bytes per right vertex and thread.
    """

    def __init__(
        self, left: np.ndarray, right: np.ndarray, n_left: int, n_right: int, search: Search, threads: int = 1
    ) -> None:
        self._search, self._threads = search, threads
        self._rows = from_sorted_pairs(left, right, n_left, threads)
        self._n_right = n_right
        self._ceilings = self._ceilings_of("left", self._rows, degrees_of_columns(right, n_right, threads))
        self.most = int(self._ceilings.max(initial=0))

    def n_reaching(self, bound: int) -> int:
        """How many edges `reaching` begins with."""
        return int(np.diff(self._rows[0])[self._ceilings >= bound].sum())

    def reaching(self, bound: int) -> tuple[np.ndarray, np.ndarray]:
        """All edges of bicliques that the search wants and whose measure is `bound` or more, and few others.

        Returns
        -------
        (ndarray, ndarray), int32
            In the order of the edge table. Ids stay as they are.

        Notes
        -----
        It takes time in proportion to `n_reaching`, and 4 bytes per right vertex and thread.
        """
        keep = np.flatnonzero(self._ceilings >= bound)
        ids: dict[Side, np.ndarray] = {"left": keep.astype(VERTEX)}
        (indptr, indices), n = select_rows(*self._rows, keep, self._threads), self._n_right
        indices, ids["right"] = compact_columns(indices, n, self._threads)
        side, few_removed = _LEFT, 0
        while few_removed < 2 and len(indices):
            before, degrees, side = len(indices), np.diff(indptr), _OTHER[side]
            rows = transpose(indptr, indices, len(ids[side]), self._threads)
            keep = np.flatnonzero(self._ceilings_of(side, rows, degrees) >= bound)
            indptr, indices = select_rows(*rows, keep, self._threads)
            indices, used = compact_columns(indices, len(degrees), self._threads)
            ids = {side: ids[side][keep], _OTHER[side]: ids[_OTHER[side]][used]}
            few_removed = few_removed + 1 if len(indices) > _ENOUGH * before else 0
        if side != _LEFT:
            indptr, indices = transpose(indptr, indices, len(ids[_LEFT]), self._threads)
        return np.repeat(ids[_LEFT], np.diff(indptr)), ids[_OTHER[_LEFT]][indices]

    def _ceilings_of(self, side: Side, rows: _Csr, degrees: np.ndarray) -> np.ndarray:
        """The ceilings of the vertices of a side, int64. `degrees` are those of the other side. 0 is too small."""
        search, levels = self._search, _levels(int(degrees.max(initial=0)))
        least = {"left": search.min_left, "right": search.min_right}
        most = {"left": search.max_left or _NO_LIMIT, "right": search.max_right or _NO_LIMIT}
        level = np.searchsorted(levels, degrees).astype(np.uint8)
        level[degrees < least[side]] = 0
        limits = np.array([most[side], least[_OTHER[side]], most[_OTHER[side]]], np.int64)
        # a vertex's own side has the place of the base side
        code, found = MEASURES[search.by, side == "right"], np.empty(len(rows[0]) - 1, np.int64)

        def look(_: int, start: int, stop: int) -> None:
            counts = np.zeros(len(levels), OFFSET)
            _look(rows, level, levels, limits, code, (start, stop), counts, found)

        on_slices(look, borders(rows[0], self._threads))
        return found


def _levels(most: int) -> np.ndarray:
    """The highest degree of each level, ascending, int64. There are at most 256. Level 0 has vertices of degree 0."""
    octaves = np.arange(1, _OCTAVES * _PER_OCTAVE) / _PER_OCTAVE
    levels = np.concatenate([np.arange(_EXACT + 1), _EXACT * 2**octaves]).astype(np.int64)
    return np.minimum(levels[: np.searchsorted(levels, most) + 1], max(most, 0))


@entry
def _look(rows, level, levels, limits, code, part, counts, ceilings):
    """Write the ceiling of every row of a part. `counts` has a zero per level, before and afterwards."""
    indptr, indices = rows
    most, least_other, most_other = limits[0], limits[1], limits[2]
    for row in range(part[0], part[1]):
        ceilings[row] = 0
        if indptr[row + 1] - indptr[row] < least_other:
            continue
        for e in range(indptr[row], indptr[row + 1]):
            counts[level[indices[e]]] += 1
        counts[0] = 0
        found = 0
        for k in range(levels.size - 1, 0, -1):
            if counts[k] > 0:
                found += counts[k]
                counts[k] = 0
                if found >= least_other:
                    reached = value(code, min(levels[k], most), min(found, most_other))
                    ceilings[row] = max(ceilings[row], reached)
