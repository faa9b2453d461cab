"""Stretches of rows, which are sorted by size and cut into row groups, so that few row groups have the large bicliques.

A reader of the rows with ``n_left >= 20`` skips every row group whose statistics say that it has none. It reads a
fraction of a file, because the largest of a stretch are in its first, small row groups.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.run.labels import Tables
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import ResourceError, as_option

#: A stretch that has so many members (left and right together), or so many rows, is written.
STRETCH_MEMBERS, STRETCH_ROWS = 1 << 23, 1 << 20
#: Most members of a row group. A biclique with more has a row group of its own.
GROUP_MEMBERS = 1 << 21
#: Most rows of a row group.
GROUP_ROWS = 1 << 19
#: Most bytes of labels in a row group, of both sides. Offsets of 32 bits, also those of readers, allow four times as
#: much.
GROUP_BYTES = 1 << 29
#: Most bytes of labels that one side of a biclique can have.
MOST_BYTES = (1 << 31) - 1
#: The first two row groups have this share of the members of a stretch, and every later one twice as many as the one
#: before it. A row group has a dictionary of its own, so none has less than the second number if there are more.
_FIRST_SHARE, _LEAST_MEMBERS = 32, 1 << 16
#: Bits of a size, and of a row number, in the words that are sorted.
_SIZE_BITS, _ROW_BITS = 20, 23
_NONE = np.empty(0, np.int32)


class _Memory:
    """Arrays for the rows of a batch. They grow, and are used again, because fresh memory takes as long as the rows."""

    def __init__(self) -> None:
        self._of = Bicliques.from_pairs([])

    def rows(self, n: int, n_left: int, n_right: int, near: bool, kept: Bicliques | None = None) -> Bicliques:
        """Arrays of these lengths, whose beginnings are those of `kept`. They are valid until the next call.

        With `near`, there is also an array for the pairs that are no edges.
        """
        lengths = {"left": n_left, "right": n_right, "root": n, "ids": n, "left_indptr": n + 1, "right_indptr": n + 1}
        lengths |= {"missing": n} if near else {}
        arrays = {}
        for name, length in lengths.items():
            array = self._of.arrays.get(name, _NONE)
            if len(array) < length:
                array = np.empty(max(length, 2 * len(array)), array.dtype)
                if kept is not None:
                    own = kept.arrays.get(name, _NONE)
                    array[: len(own)] = own
            arrays[name] = array
        self._of = Bicliques(**arrays)
        return Bicliques(**{name: arrays[name][:length] for name, length in lengths.items()})


class Stretch:
    """Collects copies of batches, and gives them back sorted."""

    def __init__(self) -> None:
        self._collecting, self._sorting = _Memory(), _Memory()
        self._found = Bicliques.from_pairs([])

    def __len__(self) -> int:
        return len(self._found)

    @property
    def is_full(self) -> bool:
        """Whether it has so many rows that they are to be written."""
        members = len(self._found.left) + len(self._found.right)
        return members >= STRETCH_MEMBERS or len(self) >= STRETCH_ROWS

    def add(self, found: Bicliques) -> None:
        """Append a copy of a batch, whose arrays may change afterwards."""
        old = self._found
        n, n_left, n_right = len(old), len(old.left), len(old.right)
        sizes, near = (n + len(found), n_left + len(found.left), n_right + len(found.right)), found.missing is not None
        new = self._collecting.rows(*sizes, near, old)
        new.left[n_left:], new.right[n_right:] = found.left, found.right
        for name in ("root", "ids", "missing") if near else ("root", "ids"):
            new.arrays[name][n:] = found.arrays[name]
        new.left_indptr[n:] = found.left_indptr + n_left
        new.right_indptr[n:] = found.right_indptr + n_right
        self._found = new

    def take(self) -> Bicliques:
        """The rows with the largest left side first, and among equal ones the largest right side. The order is stable.

        Afterwards it is empty. The arrays are valid until rows are taken again.
        """
        from bicliques.kernels.compiled.lists import reorder  # not before it is needed: it may have to be compiled

        found, self._found = self._found, Bicliques.from_pairs([])
        order = _descending(np.diff(found.left_indptr), np.diff(found.right_indptr))
        new = self._sorting.rows(len(found), len(found.left), len(found.right), found.missing is not None)
        reorder(found.left_indptr, found.left, order, new.left_indptr, new.left)
        reorder(found.right_indptr, found.right, order, new.right_indptr, new.right)
        for name in ("root", "ids", "missing") if found.missing is not None else ("root", "ids"):
            np.take(found.arrays[name], order, out=new.arrays[name])
        return new


def _descending(n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
    """The order of `Stretch.take`, int64. Words of sizes and number are sorted several times as fast as keys are."""
    most = (1 << _SIZE_BITS) - 1
    if len(n_left) >= 1 << _ROW_BITS or max(n_left.max(initial=0), n_right.max(initial=0)) > most:
        return np.lexsort((-n_right, -n_left))
    words = (((most - n_left) << _SIZE_BITS | (most - n_right)) << _ROW_BITS) + np.arange(len(n_left))
    words.sort()
    order: np.ndarray = words & ((1 << _ROW_BITS) - 1)
    return order


def row_groups(found: Bicliques, room: LabelRoom) -> Iterator[Bicliques]:
    """Cut a stretch into row groups that grow up to `GROUP_MEMBERS`."""
    start, members = 0, max((len(found.left) + len(found.right)) // _FIRST_SHARE, _LEAST_MEMBERS)
    until, taken = found.left_indptr + found.right_indptr, room.until(found)
    first = True
    while start < len(found):
        left = int(until[-1] - until[start])
        own = left if left < members * 5 // 4 else members  # no row group of the few rows that remain
        stop = min(_end(until, taken, start, min(own, GROUP_MEMBERS)), start + GROUP_ROWS)
        yield found.rows(start, stop)
        start, members, first = stop, members if first else 2 * members, False


def pieces_of(found: Bicliques, members: int) -> Iterator[Bicliques]:
    """The batch in pieces of at most so many members, or of one biclique."""
    until, start = found.left_indptr + found.right_indptr, 0
    while start < len(found):
        stop = _end(until, None, start, members)
        yield found.rows(start, stop)
        start = stop


def _end(until: np.ndarray, taken: np.ndarray | None, start: int, members: int) -> int:
    """Where a piece from row `start` ends that has at most so many members, and `GROUP_BYTES` of labels."""
    stop = int(np.searchsorted(until, until[start] + members, side="right")) - 1
    if taken is not None:
        stop = min(stop, int(np.searchsorted(taken, taken[start] + GROUP_BYTES, side="right")) - 1)
    return min(max(stop, start + 1), len(until) - 1)


class LabelRoom:
    """Counts the bytes of the labels of bicliques as text, to keep row groups within 32-bit offsets.

    Notes
    -----
    Labels of at most 256 bytes are not counted, because every row group of such labels is small enough.
    """

    def __init__(self, tables: Tables):
        sizes = [None if tables is None else _byte_lengths(table) for table in tables or (None, None)]
        longest = max((int(own.max()) for own in sizes if own is not None and len(own)), default=0)
        self._sizes = sizes if longest * GROUP_MEMBERS > GROUP_BYTES else None

    def until(self, found: Bicliques) -> np.ndarray | None:
        """Bytes of the rows before each row, both sides together. None if they do not matter."""
        if self._sizes is None:
            return None
        total = np.zeros(len(found) + 1, np.int64)
        for side, own in zip(("left", "right"), self._sizes, strict=True):
            if own is None:
                continue
            ids, indptr = getattr(found, side), getattr(found, f"{side}_indptr")
            before = np.concatenate([np.zeros(1, np.int64), np.cumsum(own[ids], dtype=np.int64)])[indptr]
            rows = np.diff(before)
            if len(rows) and rows.max() > MOST_BYTES:
                members = int(np.diff(indptr)[rows.argmax()])
                raise ResourceError(
                    f"a biclique has {members:,} {side} members whose labels take {int(rows.max()):,} bytes, and a "
                    f"row holds {MOST_BYTES:,}; mine with {as_option('ids', 'dense')}"
                )
            total[1:] += np.cumsum(rows)
        return total


def _byte_lengths(labels: pa.Array) -> np.ndarray | None:
    """Bytes of each label, int32. None for numbers."""
    if not pa.types.is_string(labels.type):
        return None
    lengths: np.ndarray = pc.binary_length(labels).to_numpy(zero_copy_only=False)
    return lengths
