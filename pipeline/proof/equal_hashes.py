"""Finds 64-bit numbers that occur more than once, in bounded memory and with 8 bytes of disk per number."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from pipeline.process.cores import count_cores
from pipeline.process.in_order import in_order
from pipeline.run.files import temporary_errors, temporary_folder

__all__ = ["Repeats"]

#: Largest number of 64-bit numbers that a bucket holds on average. A bucket is sorted in memory.
_BUCKET = 1 << 22
#: Most threads that sort buckets. Each holds one.
_MOST_THREADS = 4


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
    Numbers are put into temporary files by their leading bits. The files are about equally long, because the leading
    bits of hashes are as good as random. Memory: at most some 200 MB, in the end.
    """

    def __init__(self, expected: int):
        self.n_buckets = max(1, -(-expected // _BUCKET))
        self._stack = ExitStack()
        self.files: list[BinaryIO] = []
        self._folder, self._bytes = Path(), 8 * expected

    def __enter__(self) -> Repeats:
        self._folder, self.files = self._stack.enter_context(temporary_folder()), []
        try:
            with temporary_errors(self._folder, self._bytes):
                for k in range(self.n_buckets):
                    self.files.append(self._stack.enter_context((self._folder / str(k)).open("w+b")))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what could not be written is not needed any more
            self._stack.close()

    def add(self, numbers: np.ndarray) -> None:
        """Add numbers: ndarray of uint64, ascending."""
        first = (np.arange(1, self.n_buckets, dtype=np.float64) / self.n_buckets * 2.0**32).astype(np.uint64)
        ends = [*np.searchsorted(numbers, first << np.uint64(32)).tolist(), len(numbers)]
        with temporary_errors(self._folder, self._bytes):
            start = 0
            for file, stop in zip(self.files, ends, strict=True):
                file.write(numbers[start:stop].data)
                start = stop

    def found(self, most: int = 1000) -> np.ndarray:
        """At most `most` of the numbers that occurred more than once, uint64, ascending."""
        repeated: list[np.ndarray] = []
        for own in in_order(self._repeated, self.files, min(_MOST_THREADS, count_cores())):
            repeated.append(own[:most])
            if sum(map(len, repeated)) >= most:
                break
        return np.concatenate(repeated)[:most]

    def _repeated(self, file: BinaryIO) -> np.ndarray:
        with temporary_errors(self._folder, self._bytes):
            file.seek(0)
            numbers = np.fromfile(file, dtype=np.uint64)
        numbers.sort()
        return np.unique(numbers[1:][numbers[1:] == numbers[:-1]])
