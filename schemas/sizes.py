"""Counts of bicliques by size. A size is the number of members of each side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from schemas.dtypes import COUNT, VERTEX
from schemas.errors import IncompleteError

__all__ = ["SizeCounts"]


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """Counts by size, ascending by (n_left, n_right). Each size occurs once, and no count is 0.

    Parameters
    ----------
    n_left, n_right : ndarray, shape (n,), int32
        Members of the user's sides, twins included.
    count : ndarray, shape (n,), int64
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
        if count is None and len(n_left) and (found := cls._by_table(n_left, n_right)) is not None:
            return found
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
    def _by_table(cls, n_left: np.ndarray, n_right: np.ndarray) -> SizeCounts | None:
        """The counts by a table of all sizes up to the largest, without sorting. None if the table would be longer."""
        width = int(n_right.max()) + 1
        if (int(n_left.max()) + 1) * width > max(len(n_left), _SHORT_TABLE):
            return None
        total = np.zeros((int(n_left.max()) + 1) * width, COUNT)
        for at in _slices(len(n_left), max(_PART, len(total))):  # a pass over the table per part
            total += np.bincount(n_left[at].astype(np.intp) * width + n_right[at], minlength=len(total))
        sizes = np.flatnonzero(total)
        return cls((sizes // width).astype(VERTEX), (sizes % width).astype(VERTEX), total[sizes].astype(COUNT))

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

    def rows_of(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        """The positions at which two columns have one of these sizes, ascending.

        All positions if the sizes are so large that a table of them would be longer than the columns.

        Parameters
        ----------
        n_left, n_right : ndarray, shape (n,), int32 or int64
            At least 0.
        """
        if len(self) == 0 or len(n_left) == 0:
            return np.empty(0, np.intp)
        width = int(max(n_right.max(), self.n_right.max())) + 1
        height = int(max(n_left.max(), self.n_left.max())) + 1
        if height * width > max(len(n_left), _SHORT_TABLE):
            return np.arange(len(n_left))
        is_own = np.zeros(height * width, np.bool_)
        is_own[self.n_left.astype(np.int64) * width + self.n_right] = True
        own = [is_own[n_left[at].astype(np.int64) * width + n_right[at]] for at in _slices(len(n_left), _PART)]
        return np.flatnonzero(np.concatenate(own))

    @property
    def total(self) -> int:
        """Bicliques of all sizes."""
        return int(self.count.sum())

    def __len__(self) -> int:
        return len(self.count)

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


def _slices(n: int, part: int) -> Iterator[slice]:
    for begin in range(0, n, part):
        yield slice(begin, begin + part)


#: Rows that are looked at together, so that what is computed of them stays in the cache of the processor.
_PART = 1 << 17
#: Entries of a table that is worth making for any number of sizes.
_SHORT_TABLE = 1 << 12
_COLUMNS = ("n_left", "n_right", "count")
