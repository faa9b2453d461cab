"""Counts of bicliques by size. A size is the number of members of each side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bicliques.schemas.dtypes import COUNT, VERTEX
from bicliques.schemas.errors import IncompleteError

#: So many sizes are shown.
_SHOWN = 10


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """Counts by size, ascending by (n_left, n_right). Each size occurs once, and no count is 0.

    Parameters
    ----------
    n_left, n_right : ndarray, shape (n,), int32
        Members of the user's sides, twins included.
    count : ndarray, shape (n,), int64
        How many bicliques have the size.
    """

    n_left: np.ndarray
    n_right: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, n_left: np.ndarray, n_right: np.ndarray, count: np.ndarray | None = None) -> SizeCounts:
        """Add up sizes in any order, which may repeat.

        Parameters
        ----------
        n_left, n_right : ndarray, shape (n,), int32 or int64
            At least 0.
        count : ndarray, shape (n,), int64, or None
            The count of each. None: 1.
        """
        if count is None:
            return SizedRows(n_left, n_right).counts
        return cls._sorted(n_left, n_right, count)

    @classmethod
    def _sorted(cls, n_left: np.ndarray, n_right: np.ndarray, count: np.ndarray | None = None) -> SizeCounts:
        keys = n_left.astype(np.int64) << 32 | n_right.astype(np.int64)
        if count is None:
            sizes, total = np.unique(keys, return_counts=True)
        else:
            sizes, slot = np.unique(keys, return_inverse=True)
            total = np.zeros(len(sizes), COUNT)
            np.add.at(total, slot, count)
        there = total > 0
        sizes, total = sizes[there], total[there]
        return cls((sizes >> 32).astype(VERTEX), (sizes & 0xFFFFFFFF).astype(VERTEX), total.astype(COUNT))

    @classmethod
    def empty(cls) -> SizeCounts:
        """Counts without any bicliques."""
        return cls(np.empty(0, VERTEX), np.empty(0, VERTEX), np.empty(0, COUNT))

    @classmethod
    def merge(cls, parts: Iterable[SizeCounts]) -> SizeCounts:
        """The sum of `parts`."""
        each = list(parts)
        if len(each) < 2:
            return each[0] if each else cls.empty()
        return cls.of(*(np.concatenate([getattr(part, name) for part in each]) for name in _COLUMNS))

    def pick(self, which: np.ndarray) -> SizeCounts:
        """The counts of the sizes where the mask `which` is true."""
        return SizeCounts(*(getattr(self, name)[which] for name in _COLUMNS))

    @property
    def total(self) -> int:
        """Bicliques of all sizes."""
        return int(self.count.sum())

    def __len__(self) -> int:
        return len(self.count)

    def __repr__(self) -> str:
        """The sizes with most bicliques, one per line."""
        best = np.argsort(-self.count, kind="stable")[:_SHOWN]
        rows = [f"{self.n_left[k]:>9,} x {self.n_right[k]:<9,} {self.count[k]:>15,}" for k in best]
        told = f"<{self.total:,} bicliques of {len(self):,} sizes"
        if not rows:
            return f"{told}>"
        return "\n".join([f"{told}, most of them of", *rows]) + ">"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SizeCounts):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _COLUMNS)

    __hash__ = None  # type: ignore[assignment]

    def to_json(self) -> dict[str, list[int]]:
        """One list per column."""
        return {name: getattr(self, name).tolist() for name in _COLUMNS}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SizeCounts:
        """Inverse of `to_json`, which gave `data`.

        Raises
        ------
        IncompleteError
            A column is missing or has another length.
        """
        try:
            columns = [np.array(data[name], COUNT) for name in _COLUMNS]
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise IncompleteError(f"its counts by size are damaged ({type(error).__name__}: {error})") from error
        if len({column.shape for column in columns}) != 1 or columns[0].ndim != 1:
            raise IncompleteError("its counts by size are damaged: the columns have different lengths")
        if any(((column < 0) | (column > np.iinfo(VERTEX).max)).any() for column in columns[:2]):
            raise IncompleteError("its counts by size are damaged: a side has an impossible number of members")
        return cls(columns[0].astype(VERTEX), columns[1].astype(VERTEX), columns[2])


class SizedRows:
    """Rows and their sizes: how many rows have each size, and which rows have some of the sizes.

    Parameters
    ----------
    n_left, n_right : ndarray, shape (n,), int32 or int64
        At least 0.

    Attributes
    ----------
    n_left, n_right : ndarray
    counts : SizeCounts

    Notes
    -----
    If a table of all sizes up to the largest is shorter than the columns, nothing is sorted. It takes 8 bytes per row.
    """

    def __init__(self, n_left: np.ndarray, n_right: np.ndarray):
        self.n_left, self.n_right = n_left, n_right
        self._places: np.ndarray | None = None  # of the rows in the table
        self._width = int(n_right.max()) + 1 if len(n_left) else 0
        length = (int(n_left.max()) + 1) * self._width if len(n_left) else 0
        if 0 < length <= max(len(n_left), _SHORT_TABLE):
            self._places = np.empty(len(n_left), np.intp)
            self.counts = self._by_table(length)
        else:
            self.counts = SizeCounts._sorted(n_left, n_right)

    def _by_table(self, length: int) -> SizeCounts:
        assert self._places is not None
        total = np.zeros(length, COUNT)
        part = max(_PART, length)  # a pass over the table per part
        for begin in range(0, len(self._places), part):
            places = self._places[begin : begin + part]
            np.multiply(self.n_left[begin : begin + part], self._width, out=places, dtype=np.intp)
            places += self.n_right[begin : begin + part]
            total += np.bincount(places, minlength=length)
        sizes = np.flatnonzero(total)
        left, right = sizes // self._width, sizes % self._width
        return SizeCounts(left.astype(VERTEX), right.astype(VERTEX), total[sizes].astype(COUNT))

    def of(self, sizes: SizeCounts) -> np.ndarray:
        """The numbers of the rows that have one of these sizes, ascending. All rows if there is no table.

        Parameters
        ----------
        sizes : SizeCounts
            Some of `counts`.
        """
        if len(sizes) == 0:
            return np.empty(0, np.intp)
        if self._places is None:
            return np.arange(len(self.n_left))
        is_wanted = np.zeros(int(self.n_left.max() + 1) * self._width, np.bool_)
        is_wanted[sizes.n_left.astype(np.intp) * self._width + sizes.n_right] = True
        return np.flatnonzero(is_wanted[self._places])


#: Rows that are looked at together, so that what is computed of them stays in the cache of the processor.
_PART = 1 << 17
#: Entries of a table that is worth making for any number of sizes.
_SHORT_TABLE = 1 << 12
_COLUMNS = ("n_left", "n_right", "count")
