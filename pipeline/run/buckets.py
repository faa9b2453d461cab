"""Rows in temporary files, divided by a hash: equal ones come into the same file, and each file fits into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from pipeline.process.cores import count_cores
from pipeline.process.in_order import in_order
from pipeline.run.files import temporary_errors

__all__ = ["Buckets"]

#: Most threads that look at buckets. Each holds one.
_MOST_THREADS = 4

Result = TypeVar("Result")


class Buckets:
    """Takes rows that are divided already, and gives the rows of one bucket after the other.

    Parameters
    ----------
    folder : Path
        A temporary folder, which has nothing else.
    n : int
        Number of buckets.
    n_bytes : int
        Bytes of all rows, for the sentence about a full disk.

    Raises
    ------
    ResourceError
        From all methods, if the temporary folder is full.
    """

    def __init__(self, folder: Path, n: int, n_bytes: int):
        self.n = n
        self._folder, self._bytes = folder, n_bytes

    def add(self, rows: np.ndarray, ends: Iterable[int]) -> None:
        """Add rows in the order of their buckets.

        Parameters
        ----------
        rows : ndarray of uint64
            One number for each, or a row of numbers.
        ends : iterable of int
            Where each of the `n` buckets ends.
        """
        start = 0
        with temporary_errors(self._folder, self._bytes):
            for k, stop in enumerate(ends):
                if stop > start:  # opened for each, because a process may have only so many files open
                    with (self._folder / str(k)).open("ab") as file:
                        file.write(rows[start:stop].data)
                start = stop

    def each(self, work: Callable[[np.ndarray], Result]) -> Iterator[Result]:
        """`work` of the numbers (uint64, one dimension) of each bucket, in order. The files are removed."""
        yield from in_order(lambda k: work(self._taken(k)), range(self.n), min(_MOST_THREADS, count_cores()))

    def _taken(self, k: int) -> np.ndarray:
        file = self._folder / str(k)
        with temporary_errors(self._folder, self._bytes):
            numbers = np.fromfile(file, dtype=np.uint64) if file.exists() else np.empty(0, np.uint64)
            file.unlink(missing_ok=True)
        return numbers
