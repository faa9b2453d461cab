"""Whether any of very many 64-bit numbers occurs twice, in bounded memory and 8 bytes of disk a number."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np

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
    most some 100 MB of memory.
    """

    def __init__(self, expected: int):
        self.n_buckets = max(1, -(-expected // _BUCKET))
        self._stack = ExitStack()
        self._files: list[BinaryIO] = []

    def __enter__(self) -> Repeats:
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bicliques-")))
        self._files = [self._stack.enter_context((folder / str(k)).open("w+b")) for k in range(self.n_buckets)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, numbers: np.ndarray) -> None:
        """Append numbers, uint64."""
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

    def found(self, most: int = 1000) -> np.ndarray:
        """At most about `most` of the numbers that occurred more than once, ascending within a bucket."""
        repeated: list[np.ndarray] = []
        for file in self._files:
            file.seek(0)
            numbers = np.sort(np.frombuffer(file.read(), dtype=np.uint64))
            repeated.append(np.unique(numbers[1:][numbers[1:] == numbers[:-1]])[:most])
            if sum(map(len, repeated)) >= most:
                break
        return np.concatenate(repeated)[:most]
