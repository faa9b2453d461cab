"""Rows in a temporary file, divided by a hash: equal ones come into the same bucket, and a bucket fits into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.run.files import temporary_errors

Result = TypeVar("Result")


class _Batch(NamedTuple):
    """Some rows in the file."""

    begin: int  # in bytes
    row_bytes: int
    bounds: np.ndarray  # of the buckets, in rows: where the first one begins and where each ends

    def stretch(self, k: int) -> range:
        """The bytes of a bucket in the file."""
        start, stop = self.bounds[k : k + 2].tolist()
        return range(self.begin + start * self.row_bytes, self.begin + stop * self.row_bytes)


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

    Notes
    -----
    Batches stand one behind the other in one file, so a batch is one write, however many buckets there are. Memory: 4
    bytes per bucket and batch.
    """

    def __init__(self, folder: Path, n: int, n_bytes: int):
        self.n = n
        self._folder, self._bytes = folder, n_bytes
        self._file = folder / "rows"
        self._written = 0  # bytes
        self._batches: list[_Batch] = []

    def add(self, rows: np.ndarray, ends: Iterable[int]) -> None:
        """Add rows in the order of their buckets.

        Parameters
        ----------
        rows : ndarray of uint64, C-contiguous
            One number for each, or a row of numbers.
        ends : iterable of int
            Where each of the `n` buckets ends.
        """
        self._batches.append(_Batch(self._written, rows.nbytes // max(len(rows), 1), np.array([0, *ends], np.uint32)))
        self._written += rows.nbytes
        with temporary_errors(self._folder, self._bytes), self._file.open("ab") as file:
            file.write(rows.data)

    def each(self, work: Callable[[np.ndarray], Result], most_threads: int) -> Iterator[Result]:
        """`work` of the numbers (uint64, one dimension) of each bucket, in order. Each thread holds one bucket.

        The file is removed after the last one.
        """
        yield from in_order(lambda k: work(self._bucket(k)), range(self.n), min(most_threads, count_cores()))
        self._file.unlink(missing_ok=True)

    def _bucket(self, k: int) -> np.ndarray:
        stretches = [stretch for batch in self._batches if (stretch := batch.stretch(k))]
        numbers, at = np.empty(sum(map(len, stretches)) // 8, np.uint64), 0
        if stretches:
            words = numbers.data.cast("B")
            with temporary_errors(self._folder, self._bytes), self._file.open("rb") as file:
                for stretch in stretches:
                    file.seek(stretch.start)
                    if file.readinto(words[at : at + len(stretch)]) < len(stretch):
                        raise OSError(f"{self._file} is shorter than what was written")
                    at += len(stretch)
        return numbers
