"""Finds 64-bit numbers that occur more than once, in bounded memory and with 8 bytes of disk per number."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

import numpy as np

from pipeline.process.in_order import MOST_THREADS
from pipeline.run.buckets import Buckets
from pipeline.run.files import temporary_folder

__all__ = ["Repeats"]

#: Largest number of 64-bit numbers that a bucket holds on average. A bucket is sorted in memory.
_BUCKET = 1 << 22


class Repeats:
    """Takes numbers in batches, and says which of them occurred more than once. It is a context manager.

    Parameters
    ----------
    expected : int
        About how many numbers will come.

    Raises
    ------
    ResourceError
        From all methods, if the temporary folder is full.

    Notes
    -----
    Numbers are divided among buckets by their leading bits. Buckets are about equally long, because the leading bits of
    hashes are as good as random. Memory: in the end some 40 MB for each core, of `MOST_THREADS` at most.
    """

    def __init__(self, expected: int):
        self.n_buckets = max(1, -(-expected // _BUCKET))
        self._stack, self._bytes = ExitStack(), 8 * expected

    def __enter__(self) -> Repeats:
        self.folder = self._stack.enter_context(temporary_folder())
        self._buckets = Buckets(self.folder, self.n_buckets, self._bytes)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, numbers: np.ndarray) -> None:
        """Add numbers: ndarray of uint64, ascending."""
        first = (np.arange(1, self.n_buckets, dtype=np.float64) / self.n_buckets * 2.0**32).astype(np.uint64)
        self._buckets.add(numbers, [*np.searchsorted(numbers, first << np.uint64(32)).tolist(), len(numbers)])

    def found(self, most: int = 1000) -> np.ndarray:
        """At most `most` of the numbers that occurred more than once, uint64, ascending. It can be asked once."""
        repeated: list[np.ndarray] = []
        for own in self._buckets.each(_repeated, MOST_THREADS):
            repeated.append(own[:most])
            if sum(map(len, repeated)) >= most:
                break
        return np.concatenate(repeated)[:most]


def _repeated(numbers: np.ndarray) -> np.ndarray:
    numbers.sort()
    return np.unique(numbers[1:][numbers[1:] == numbers[:-1]])
