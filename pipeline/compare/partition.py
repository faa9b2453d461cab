"""Finds out which rows only one of two runs has, in bounded memory: in temporary files, by ranges of a hash."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bicliques.pipeline.run.buckets import Buckets
from bicliques.schemas.errors import IncompleteError

#: Three words of 64 bits: the id of the row, the hash of its members, its number and the run that it is of.
BYTES_PER_ROW = 24
#: Rows of a bucket, which is sorted in memory, and most buckets.
_BUCKET, _MOST_BUCKETS = 1 << 21, 1 << 16
#: Most threads that compare buckets.
_MOST_THREADS = 4
#: The bit of the third word that says that the row is of the new run.
_NEW = np.uint64(1 << 63)


class Divided(NamedTuple):
    """Rows in the order of their buckets.

    Parameters
    ----------
    records : ndarray, shape (rows, 3), uint64
    ends : ndarray of int64
        Where each bucket ends.
    """

    records: np.ndarray
    ends: np.ndarray


class Changed(NamedTuple):
    """Rows that only one of the runs has.

    Parameters
    ----------
    rows : ndarray of int64
        Their numbers in that run.
    fingerprint : int
        Sum of their ids modulo 2**64.
    """

    rows: np.ndarray
    fingerprint: int


def divide(ids: np.ndarray, hashes: np.ndarray, first: int, is_new: bool, n_buckets: int) -> Divided:
    """Divide rows among buckets.

    Parameters
    ----------
    ids : ndarray of uint64
        The ids of the rows.
    hashes : ndarray of uint64
        Hashes of their members that have nothing to do with the ids.
    first : int
        Number of the first row; the others follow.
    is_new : bool
        Whether they are of the new run.
    n_buckets : int
        A power of two, at most 2**16.
    """
    records = np.empty((len(ids), 3), np.uint64)
    records[:, 0], records[:, 1] = ids, hashes
    records[:, 2] = np.arange(first, first + len(ids), dtype=np.uint64) | (_NEW if is_new else np.uint64(0))
    if n_buckets == 1:
        return Divided(records, np.array([len(ids)]))
    bucket = (hashes >> np.uint64(64 - n_buckets.bit_length() + 1)).astype(np.uint16)
    order = np.argsort(bucket, kind="stable")  # NumPy sorts 16 bits by their digits
    return Divided(records[order], np.cumsum(np.bincount(bucket, minlength=n_buckets)))


class Partition:
    """Takes the rows of both runs, and says which of them only one run has.

    Two rows are the same when their ids and the hashes of their members are equal, 128 bits together.

    Parameters
    ----------
    folder : Path
        A temporary folder.
    rows : int
        Number of rows of both runs together.

    Raises
    ------
    ResourceError
        From all methods, if the temporary folder is full.

    Notes
    -----
    It writes `BYTES_PER_ROW` per row. Memory: some 150 MB per thread.
    """

    def __init__(self, folder: Path, rows: int):
        n = min(1 << (max(-(-rows // _BUCKET), 1) - 1).bit_length(), _MOST_BUCKETS)
        self._buckets = Buckets(folder, n, BYTES_PER_ROW * rows)

    @property
    def n_buckets(self) -> int:
        """How many buckets `divide` has to make."""
        return self._buckets.n

    def add(self, rows: Divided) -> None:
        """Add rows that were divided among `n_buckets` buckets."""
        self._buckets.add(rows.records, rows.ends.tolist())

    def changed(self) -> Iterator[tuple[Changed, Changed]]:
        """The rows that only the old run has, and those that only the new run has, bucket by bucket.

        Raises
        ------
        IncompleteError
            If a run has a row twice.
        """
        return self._buckets.each(_compared, _MOST_THREADS)


def _compared(words: np.ndarray) -> tuple[Changed, Changed]:
    ids, hashes, rows = np.ascontiguousarray(words.reshape(-1, 3).T)
    order = np.argsort(hashes)
    if _parted(ids[order], hashes[order]):
        order = np.lexsort((ids, hashes))
    ids, hashes, rows = ids[order], hashes[order], rows[order]
    is_new = rows >= _NEW
    same = (hashes[1:] == hashes[:-1]) & (ids[1:] == ids[:-1])
    twice = same & (is_new[1:] == is_new[:-1])
    twice[1:] |= same[1:] & same[:-1]  # of three equal rows two are of one run
    if twice.any():
        raise IncompleteError(
            f"the row with id {ids[int(np.argmax(twice))].astype(np.int64)} is in one of the runs twice; find out "
            "in which, with: bicliques verify"
        )
    alone = np.ones(len(rows), bool)
    alone[1:] &= ~same
    alone[:-1] &= ~same
    gone, new = alone & ~is_new, alone & is_new
    return _chosen(ids, rows, gone), _chosen(ids, rows & ~_NEW, new)


def _parted(ids: np.ndarray, hashes: np.ndarray) -> bool:
    """Whether there are rows with equal hashes and other ids, which have to be sorted by these, too."""
    return bool(((hashes[1:] == hashes[:-1]) & (ids[1:] != ids[:-1])).any())


def _chosen(ids: np.ndarray, rows: np.ndarray, which: np.ndarray) -> Changed:
    return Changed(rows[which].astype(np.int64), int(np.add.reduce(ids[which], dtype=np.uint64)))
