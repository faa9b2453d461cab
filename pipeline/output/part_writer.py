"""Writes batches of bicliques to Parquet parts, in bounded memory. A part is either whole or not there."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.run.files import create, disk_errors, replace_file
from pipeline.run.labels import Tables
from pipeline.run.names import part_name, part_stem, unnamed_part
from schemas.bicliques import Bicliques, biclique_schema
from schemas.errors import ResourceError
from schemas.manifest import Part

__all__ = ["MOST_BYTES", "PartWriter", "pieces_of", "to_batch", "writer_bytes"]

#: Most members (left and right together) of a row group. A biclique with more has a row group of its own.
GROUP_MEMBERS = 1 << 21
#: Most rows of a row group.
GROUP_ROWS = 1 << 19
#: Most bytes of labels in a row group, of both sides. Offsets of 32 bits, also those of readers, allow four times as
#: much.
GROUP_BYTES = 1 << 29
#: Most bytes of labels that one side of a biclique can have.
MOST_BYTES = (1 << 31) - 1
#: A part that has reached so many bytes is closed, and the slice goes on with another one.
PART_BYTES = 1 << 29

#: Measured on six graphs (benchmarks/layout.py). Labels repeat, so dictionaries make files 11 to 48 % smaller and
#: faster to write. Level 3 of zstd makes them another 6 to 14 % smaller in an eighth more time. A checksum shows a
#: damaged page before it is decoded.
_PARQUET = {"compression": "zstd", "compression_level": 3, "use_dictionary": True, "write_page_checksum": True}


def to_batch(found: Bicliques, tables: Tables) -> pa.RecordBatch:
    """Bicliques as rows of `schemas.bicliques.biclique_schema`, in new arrays."""
    left, right = tables or (None, None)
    columns = [
        _lists(found.left_indptr, found.left, left),
        _lists(found.right_indptr, found.right, right),
        pa.array(np.diff(found.left_indptr).astype(np.int32)),
        pa.array(np.diff(found.right_indptr).astype(np.int32)),
        pa.array(found.root.copy()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=part_schema(tables))


def part_schema(tables: Tables, names: tuple[str, str] = ("left", "right")) -> pa.Schema:
    """Arrow schema of the parts. Its metadata has the `names` of the sides."""
    left, right = (pa.int32(), pa.int32()) if tables is None else (tables[0].type, tables[1].type)
    return biclique_schema(left, right, names)


def writer_bytes(tables: Tables) -> int:
    """Bound of the memory of one `PartWriter`, in bytes, as long as no single biclique fills a row group.

    It is the size of two row groups, one that is collected and one that is encoded, with labels of mean size.
    """
    width = 4.0 if tables is None else 8.0 + max(t.nbytes / max(len(t), 1) for t in tables)
    return int(2 * 2 * GROUP_MEMBERS * width) + 8 * GROUP_ROWS * 28


class PartWriter:
    """An `Emit` that collects the bicliques of one slice and writes them into parts.

    Parameters
    ----------
    folder : Path
        Folder of the parts.
    slice_number : int
        It is in the names of the parts, with a random suffix. So two attempts at a slice never write the same file.
    tables : Tables
    names : (str, str)
        Names of the sides in the input, for the metadata of the parts.
    """

    on_device = False

    def __init__(self, folder: Path, slice_number: int, tables: Tables, names: tuple[str, str] = ("left", "right")):
        self.folder = folder
        self.stem = part_stem(slice_number)
        self.tables = tables
        self.names = names
        self.parts: list[Part] = []
        self._collected: list[pa.RecordBatch] = []
        self._members = self._rows = self._bytes = self._rows_of_part = 0
        self._file: Any = None  # a pyarrow.OSFile while a part is open
        self._writer: Any = None  # and its pyarrow.parquet.ParquetWriter

    @cached_property
    def room(self) -> LabelRoom:
        """The room for labels. A caller that only writes groups does not need it."""
        return LabelRoom(self.tables)

    def __call__(self, found: Bicliques, /) -> None:
        """Append a batch, whose arrays may change afterwards.

        Raises
        ------
        ResourceError
            A resource is missing, as when the disk is full; or the labels of a biclique do not fit into a row.
        """
        for piece in pieces_of(found, GROUP_MEMBERS, self.room):
            size = self.room.of(piece)
            if self._collected and self._bytes + size > GROUP_BYTES:
                self._write_collected()
            self._collected.append(to_batch(piece, self.tables))
            self._bytes += size
            self._members += len(piece.left) + len(piece.right)
            self._rows += len(piece)
            if self._members >= GROUP_MEMBERS or self._rows >= GROUP_ROWS:
                self._write_collected()

    def close(self) -> list[Part]:
        """Write the last rows, and name the last part. Without rows there is no part."""
        if self._collected:
            self._write_collected()
        self._close_part()
        return self.parts

    def write_group(self, batches: list[pa.RecordBatch]) -> None:
        """Write batches that `to_batch` made as one row group. Rows that `add` collects are not part of it."""
        with disk_errors(self._temporary()):
            if self._writer is None:
                create(self._temporary()).close()
                self._file = pa.OSFile(str(self._temporary()), "wb")
                self._writer = pq.ParquetWriter(self._file, part_schema(self.tables, self.names), **_PARQUET)
            self._writer.write_table(pa.Table.from_batches(batches), row_group_size=2 * GROUP_ROWS)
        self._rows_of_part += sum(map(len, batches))
        if self._file.tell() >= PART_BYTES:
            self._close_part()

    def discard(self) -> None:
        """Remove all that was written, after an error."""
        if self._writer is not None:
            self._writer.is_open = False  # otherwise it would try to write the end of the file again
            self._file.close()
            self._writer = self._file = None
        for path in [self._temporary(), *(self.folder / part.name for part in self.parts)]:
            path.unlink(missing_ok=True)
        self.parts = []

    def _write_collected(self) -> None:
        collected = self._collected
        self._collected, self._members, self._rows, self._bytes = [], 0, 0, 0
        self.write_group(collected)

    def _close_part(self) -> None:
        if self._writer is None:
            return
        name = part_name(self.stem, len(self.parts))
        with disk_errors(self.folder / name):
            self._writer.close()
            size = self._file.tell()
            self._file.close()
            replace_file(self._temporary(), self.folder / name)
        self.parts.append(Part(name, self._rows_of_part, size))
        self._writer, self._file, self._rows_of_part = None, None, 0

    def _temporary(self) -> Path:
        return self.folder / unnamed_part(self.stem, len(self.parts))


class LabelRoom:
    """Counts the bytes of the labels of bicliques as text, to keep row groups within 32-bit offsets.

    Parameters
    ----------
    tables : Tables

    Notes
    -----
    Labels of at most 256 bytes are not counted, because every row group of such labels is small enough.
    """

    def __init__(self, tables: Tables):
        sizes = [None if tables is None else _byte_lengths(table) for table in tables or (None, None)]
        longest = max((int(own.max()) for own in sizes if own is not None and len(own)), default=0)
        self._sizes = sizes if longest * GROUP_MEMBERS > GROUP_BYTES else None

    def until(self, found: Bicliques) -> np.ndarray | None:
        """Bytes of the rows before each row, both sides together. None if they do not matter.

        Raises
        ------
        ResourceError
            One biclique has too many bytes for a row.
        """
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
                    f"a biclique has {members:,} {side} members whose labels take {int(rows.max()):,} bytes, and a row "
                    f"holds {MOST_BYTES:,}; mine with --ids dense"
                )
            total[1:] += np.cumsum(rows)
        return total

    def of(self, found: Bicliques) -> int:
        """Bytes of all rows. 0 if they do not matter."""
        until = self.until(found)
        return 0 if until is None else int(until[-1])


def _byte_lengths(labels: pa.Array) -> np.ndarray | None:
    """Bytes of each label, int32. None for numbers."""
    if not pa.types.is_string(labels.type):
        return None
    lengths: np.ndarray = pc.binary_length(labels).to_numpy(zero_copy_only=False)
    return lengths


def pieces_of(found: Bicliques, members: int, room: LabelRoom | None = None) -> list[Bicliques]:
    """The batch in pieces of at most so many members and `GROUP_BYTES` of labels, or of one biclique."""
    until = found.left_indptr + found.right_indptr
    taken = None if room is None else room.until(found)
    pieces, start = [], 0
    while start < len(found):
        stop = int(np.searchsorted(until, until[start] + members, side="right")) - 1
        if taken is not None:
            stop = min(stop, int(np.searchsorted(taken, taken[start] + GROUP_BYTES, side="right")) - 1)
        stop = min(max(stop, start + 1), len(found))
        pieces.append(_rows(found, start, stop))
        start = stop
    return pieces


def _rows(found: Bicliques, start: int, stop: int) -> Bicliques:
    left, right = found.left_indptr[start : stop + 1], found.right_indptr[start : stop + 1]
    return Bicliques(
        left - left[0],
        found.left[left[0] : left[-1]],
        right - right[0],
        found.right[right[0] : right[-1]],
        found.root[start:stop],
    )


def _lists(indptr: np.ndarray, ids: np.ndarray, labels: pa.Array | None) -> pa.ListArray:
    values = pa.array(ids.copy()) if labels is None else labels.take(pa.array(ids))
    return pa.ListArray.from_arrays(pa.array(indptr.astype(np.int32)), values)
