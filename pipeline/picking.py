"""Some rows of many: the largest bicliques, or rows by number, reading only the row groups that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from pipeline.parts import open_part
from schemas.errors import InputError
from schemas.sizes import SizeCounts

__all__ = ["MEASURES", "By", "Largest", "Place", "largest", "numbered", "places_of", "rows_at"]

By = Literal["edges", "balance", "left", "right"]
MEASURES: tuple[By, ...] = get_args(By)

#: File, row group and row in it, by position from 0.
Place = tuple[int, int, int]


class Largest:
    """The `n` largest of all bicliques whose sizes were added.

    Parameters
    ----------
    n : int
    by : "edges", "balance", "left" or "right"
        Ties go to the larger number of edges, then to the larger left side, then to the later row.

    Attributes
    ----------
    best : ndarray of int64, shape (at most n, 6)
        Key, edges, left size, file, row group and row, the largest first.

    Raises
    ------
    InputError
        If `by` is something else.
    """

    def __init__(self, n: int, by: By):
        if by not in MEASURES:
            raise InputError(f"bicliques are ranked by edges, balance, left or right, not by {by!r}")
        self._n, self._by = n, by
        self.best = np.empty((0, 6), np.int64)

    def add(self, left: np.ndarray, right: np.ndarray, sizes: SizeCounts, file: int, group: int) -> None:
        """The sizes of the rows of a row group, int64, and how many there are of each."""
        least = _least(sizes, self._by, self._n)
        if len(self.best) == self._n:
            least = max(least, tuple(self.best[-1, :3].tolist()))
        keys = _keys(left, right, self._by)
        rows = np.flatnonzero(keys >= least[0])
        key, edges, left = keys[rows], left[rows] * right[rows], left[rows]
        same = key == least[0]
        larger = ~same | (edges > least[1]) | ((edges == least[1]) & (left > least[2]))
        last = np.flatnonzero(same & (edges == least[1]) & (left == least[2]))[-self._n :]
        chosen = np.concatenate([np.flatnonzero(larger), last])  # of many with the same size, the last
        place = (np.full(len(chosen), file), np.full(len(chosen), group), rows[chosen])
        self.merge(np.column_stack([key[chosen], edges[chosen], left[chosen], *place]))

    def merge(self, best: np.ndarray) -> None:
        """What others have found, of other row groups."""
        both = np.concatenate([self.best, best])
        self.best = both[np.lexsort(both.T[::-1])[::-1][: self._n]]

    def places(self) -> list[Place]:
        """Where they are, the largest first."""
        return places_of(self.best)


def places_of(best: np.ndarray) -> list[Place]:
    """Where rows of `Largest.best` are."""
    return [(int(file), int(group), int(row)) for file, group, row in best[:, 3:]]


def largest(files: Sequence[Path], n: int, by: By) -> list[Place]:
    """Where the `n` largest bicliques are, the largest first, as `Largest` has it; reads the two size columns once."""
    found = Largest(n, by)
    for k, file in enumerate(files):
        with open_part(file) as part:
            for group in range(part.num_row_groups):
                sizes = part.read_row_group(group, columns=["n_left", "n_right"])
                left, right = (column.to_numpy().astype(np.int64) for column in sizes.columns)
                found.add(left, right, SizeCounts.of(left, right), k, group)
    return found.places()


def _keys(left: np.ndarray, right: np.ndarray, by: By) -> np.ndarray:
    """What sizes are ranked by."""
    if by == "edges":
        return left * right
    if by == "balance":
        return np.minimum(left, right)
    return left if by == "left" else right


def _least(sizes: SizeCounts, by: By, n: int) -> tuple[int, ...]:
    """Key, edges and left size of the n-th largest; zeros if there are fewer."""
    left, right = sizes.n_left.astype(np.int64), sizes.n_right.astype(np.int64)
    ranks = np.column_stack([_keys(left, right, by), left * right, left])
    order = np.lexsort(ranks.T[::-1])[::-1]
    at = int(np.searchsorted(np.cumsum(sizes.count[order]), n))
    return tuple(ranks[order[at]].tolist()) if at < len(order) else (0, 0, 0)


def numbered(files: Sequence[Path], rows_of: Sequence[int], wanted: np.ndarray) -> list[Place]:
    """Where rows are, by their number in all files together.

    Parameters
    ----------
    files : sequence of Path
    rows_of : sequence of int
        Rows of each file.
    wanted : ndarray of int64
        Row numbers, ascending.
    """
    places: list[Place] = []
    first = 0
    for k, (file, n_rows) in enumerate(zip(files, rows_of, strict=True)):
        mine = wanted[np.searchsorted(wanted, first) : np.searchsorted(wanted, first + n_rows)] - first
        first += n_rows
        if len(mine):
            with open_part(file) as part:
                metadata = part.metadata
            starts = np.cumsum([0, *(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))])
            groups = np.searchsorted(starts, mine, side="right") - 1
            places += [(k, int(g), int(row)) for g, row in zip(groups, mine - starts[groups], strict=True)]
    return places


def rows_at(files: Sequence[Path], places: list[Place], schema: pa.Schema) -> pa.Table:
    """The rows at `places`, in that order; every row group is read once, and one is in memory at a time."""
    if not places:
        return schema.empty_table()
    order = sorted(range(len(places)), key=lambda i: places[i])
    groups: dict[tuple[int, int], list[int]] = {}
    for i in order:
        groups.setdefault(places[i][:2], []).append(places[i][2])
    found = []
    for (k, group), rows in groups.items():
        with open_part(files[k]) as part:
            found.append(part.read_row_group(group).take(rows))
    return pa.concat_tables(found).take(np.argsort(order))
