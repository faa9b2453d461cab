"""Some rows of many: the largest bicliques, or rows by number, reading only the row groups that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from pipeline.parts import open_part
from schemas.errors import InputError

__all__ = ["MEASURES", "By", "Largest", "Place", "largest", "numbered", "rows_at"]

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

    def add(self, left: np.ndarray, right: np.ndarray, file: int, group: int) -> None:
        """The sizes of the rows of a row group, int64."""
        least = int(self.best[-1, 0]) if len(self.best) == self._n else 0
        rows = _candidates(left, right, self._by, self._n, least)
        place = np.broadcast_to([file, group], (len(rows), 2))
        self.merge(np.column_stack([rows[:, :3], place, rows[:, 3]]))

    def merge(self, best: np.ndarray) -> None:
        """What others have found, of other row groups."""
        both = np.concatenate([self.best, best])
        self.best = both[np.lexsort(both.T[::-1])[::-1][: self._n]]

    def places(self) -> list[Place]:
        """Where they are, the largest first."""
        return [(int(file), int(group), int(row)) for file, group, row in self.best[:, 3:]]


def largest(files: Sequence[Path], n: int, by: By) -> list[Place]:
    """Where the `n` largest bicliques are, the largest first, as `Largest` has it; reads the two size columns once."""
    found = Largest(n, by)
    for k, file in enumerate(files):
        with open_part(file) as part:
            for group in range(part.num_row_groups):
                sizes = part.read_row_group(group, columns=["n_left", "n_right"])
                left, right = (column.to_numpy().astype(np.int64) for column in sizes.columns)
                found.add(left, right, k, group)
    return found.places()


def _candidates(left: np.ndarray, right: np.ndarray, by: By, n: int, least: int) -> np.ndarray:
    """Rows of a group that can be among the `n` best, whose key is at least `least`: key, edges, left, row."""
    edges = left * right
    key = {"edges": edges, "balance": np.minimum(left, right), "left": left, "right": right}[by]
    if len(key) > n:
        least = max(least, int(np.partition(key, len(key) - n)[len(key) - n]))
    rows = np.flatnonzero(key >= least)
    if len(rows) > n:  # many with the same key
        rows = rows[np.lexsort((left[rows], edges[rows], key[rows]))[-n:]]
    return np.column_stack([key[rows], edges[rows], left[rows], rows])


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
