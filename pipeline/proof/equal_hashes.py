"""Finds 64-bit numbers that occur more than once, in bounded memory and with 8 bytes of disk per number."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from pipeline.run.files import temporary_errors, temporary_folder

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
    Numbers are put into temporary files by their leading bits. The files are about equally long, because the leading
    bits of hashes are as good as random. Memory: at most some 100 MB.
    """

    def __init__(self, expected: int):
        self.n_buckets = max(1, -(-expected // _BUCKET))
        self._stack = ExitStack()
        self._files: list[BinaryIO] = []
        self._folder, self._bytes = Path(), 8 * expected

    def __enter__(self) -> Repeats:
        self._folder, self._files = self._stack.enter_context(temporary_folder()), []
        try:
            with temporary_errors(self._folder, self._bytes):
                for k in range(self.n_buckets):
                    self._files.append(self._stack.enter_context((self._folder / str(k)).open("w+b")))
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
        """Add numbers: ndarray of uint64."""
        with temporary_errors(self._folder, self._bytes):
            self._deal(numbers)

    def found(self, most: int = 1000) -> np.ndarray:
        """At most `most` of the numbers that occurred more than once, uint64, ascending within a bucket."""
        repeated: list[np.ndarray] = []
        for file in self._files:
            with temporary_errors(self._folder, self._bytes):
                file.seek(0)
                numbers = np.sort(np.frombuffer(file.read(), dtype=np.uint64))
            repeated.append(np.unique(numbers[1:][numbers[1:] == numbers[:-1]])[:most])
            if sum(map(len, repeated)) >= most:
                break
        return np.concatenate(repeated)[:most]

    def _deal(self, numbers: np.ndarray) -> None:
        if self.n_buckets == 1:
            self._files[0].write(numbers.tobytes())
            return
        bucket = (numbers >> np.uint64(32)) * np.uint64(self.n_buckets) >> np.uint64(32)
        order = np.argsort(bucket, kind="stable")
        until = np.searchsorted(bucket[order], np.arange(1, self.n_buckets + 1))
        start = 0
        for file, stop in zip(self._files, until.tolist(), strict=True):
            file.write(numbers[order[start:stop]].tobytes())
            start = stop
