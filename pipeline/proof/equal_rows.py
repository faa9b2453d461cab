"""Finds equal rows: ids that occur more than once, in bounded memory, whose rows are then compared in full.

`Buckets` are rows in a temporary file, divided by a hash: equal ones come into the same bucket, and a bucket fits into
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, TypeVar

import numpy as np

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import MOST_THREADS, in_order
from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.run.files import temporary_errors, temporary_folder
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.manifest import Part

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

    Raises `ResourceError` from all methods, if the temporary folder is full.

    Parameters
    ----------
    folder : Path
        A temporary folder, which has nothing else.
    n : int
        Number of buckets.
    n_bytes : int
        Bytes of all rows, for the sentence about a full disk.

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


#: Largest number of 64-bit numbers that a bucket holds on average. A bucket is sorted in memory.
_BUCKET = 1 << 22


class Repeats:
    """Takes numbers in batches, and says which of them occurred more than once. It is a context manager.

    Raises `ResourceError` from all methods, if the temporary folder is full.

    Parameters
    ----------
    expected : int
        About how many numbers will come.

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


def refuse_equal_rows(
    run: Run,
    parts: Sequence[Part],
    suspects: np.ndarray,
) -> None:
    """Read the parts once more and compare the rows whose id is among `suspects`.

    Parameters
    ----------
    suspects : ndarray, uint64
        Ids, as hashes, that more than one row has. If there are none, nothing is read.
    """
    if len(suspects) == 0:
        return
    seen: dict[tuple[bytes, bytes], str] = {}
    for part in parts:
        for batch in read_part(run.folder.bicliques / part.name, run.tables):
            for row in np.flatnonzero(np.isin(batch.ids.view(np.uint64), suspects)).tolist():
                left = batch.left[batch.left_indptr[row] : batch.left_indptr[row + 1]].tobytes()
                right = batch.right[batch.right_indptr[row] : batch.right_indptr[row + 1]].tobytes()
                if (left, right) in seen:
                    raise IncompleteError(
                        f"a row of {part.name} is also in {seen[left, right]}, so a file is not as the run has "
                        "written it; mine again, into another folder"
                    )
                seen[left, right] = part.name
