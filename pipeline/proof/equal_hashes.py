"""Whether any of very many 64-bit numbers occurs twice, in bounded memory and 8 bytes of disk a number."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

from pipeline.run.files import temporary_errors, temporary_folder

__all__ = ["Repeats"]

#: Numbers a bucket holds on average; a bucket is sorted in memory.
_BUCKET = 1 << 22


class Repeats:
    """Takes numbers in batches and tells which of them occurred more than once.

    Parameters
    ----------
    expected : int
        About how many numbers will come.

    Notes
    -----
    Numbers are dealt into temporary files by their leading bits, which are as good as random for hashes. At
    most some 100 MB of memory. All methods raise a `ResourceError` if the temporary folder takes no more.
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
        with suppress(OSError):  # of bytes that nobody wants any more
            self._stack.close()

    def add(self, numbers: np.ndarray) -> None:
        """Append numbers, uint64."""
        with temporary_errors(self._folder, self._bytes):
            self._deal(numbers)

    def found(self, most: int = 1000) -> np.ndarray:
        """At most about `most` of the numbers that occurred more than once, ascending within a bucket."""
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
