"""The best rows that do not repeat a better one."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.interest import keep_distinct, mark_repeats
from bicliques.pipeline.results.candidates import Rank, Score, best_rows, rounds
from bicliques.pipeline.results.parts import Parts
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import OFFSET


def distinct_rows(parts: Parts, score: Score, n: int, most: float) -> np.ndarray:
    """Go through the rows from the best on, and keep those that share too little with all that were kept before.

    Parameters
    ----------
    parts : Parts
    score : Score
    n : int
        How many rows to keep.
    most : float
        A row is left out if one that was kept has more than this share of its edges. From 0 to 1.

    Returns
    -------
    ndarray, shape (at most n, 7), int64
        `pipeline.results.candidates.Rank` of the rows that were kept, the best first.

    Notes
    -----
    A round finds the best rows that follow those of the round before and do not repeat a row that was kept until then.
    The kept rows are better than all that follow, so these rows would be left out whenever their turn came. Then it
    goes through them in order. A round reads what `best_rows` has to read, which is every row in the end if fewer than
    `n` rows are distinct. It keeps at least one row, so there are at most `n` rounds; each looks for more rows than the
    one before. Memory: the rows of a round, those that were kept, and 8 bytes per vertex.
    """
    kept, below = _Kept(parts.n_vertices, n, most), None
    chosen = [np.empty((0, 7), np.int64)]
    for size in rounds(n):
        found = best_rows(parts, score, size, below=below, dropped=kept.are_repeats)
        assert found.rows is not None
        chosen.append(found.ranks[kept.add(found.rows)])
        if found.are_all or kept.is_full:
            break
        below = _last(found.ranks)
    return np.concatenate(chosen)


def _last(ranks: np.ndarray) -> Rank:
    return tuple(ranks[-1].tolist())


class _Kept:
    """The rows that were kept, by vertex.

    Parameters
    ----------
    n_vertices : (int, int)
        Left and right vertices of the graph.
    n : int
        How many rows may be kept.
    most : float
    """

    def __init__(self, n_vertices: tuple[int, int], n: int, most: float):
        self._n, self._most = n, np.array([most])
        self._heads = [np.full(size, -1, OFFSET) for size in n_vertices]
        self._links = [(np.empty(0, OFFSET), np.empty(0, OFFSET)) for _ in n_vertices]
        self._used = np.zeros(3, np.int64)

    @property
    def is_full(self) -> bool:
        """Whether as many rows are kept as may be."""
        return int(self._used[0]) == self._n

    def are_repeats(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """Which of the rows with these numbers share too much with one that is kept, as a mask."""
        found = np.zeros(len(numbers), np.uint8)
        if self._used[0]:
            mark_repeats(*_flat(rows), numbers, self._index(), *self._room(int(self._used[0])), self._most, found)
        return found.astype(bool)

    def add(self, rows: Bicliques) -> np.ndarray:
        """Keep rows from the first on. Returns the numbers of those that are kept."""
        kept = np.empty(min(self._n - int(self._used[0]), len(rows)), OFFSET)
        room = self._room(int(self._used[0]) + len(kept))
        self._resize(len(rows.left), len(rows.right))
        found = kept[: keep_distinct(*_flat(rows), self._index(), self._used, *room, self._most, kept)]
        self._resize(0, 0)
        return found

    def _index(self) -> tuple[tuple[np.ndarray, ...], ...]:
        return tuple((heads, *links) for heads, links in zip(self._heads, self._links, strict=True))

    def _room(self, n: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        return (np.zeros(n, np.int64), np.zeros(n, np.int64)), np.empty(n, np.int64)

    def _resize(self, *more: int) -> None:
        """Have room for so many more links than are in use."""
        for k, (links, owners) in enumerate(self._links):
            used = int(self._used[k + 1])
            self._links[k] = _resized(links, used, more[k]), _resized(owners, used, more[k])


def _resized(old: np.ndarray, used: int, more: int) -> np.ndarray:
    new = np.empty(used + more, OFFSET)
    new[:used] = old[:used]
    return new


def _flat(rows: Bicliques) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    return rows.left, rows.left_indptr, rows.right, rows.right_indptr
