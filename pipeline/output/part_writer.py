"""Writes batches of bicliques to Parquet parts, in bounded memory. A part is either whole or not there."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.kernels.gpu.nvml import named_devices
from bicliques.pipeline.output import stretch
from bicliques.pipeline.output.stretch import LabelRoom, Stretch, pieces_of, row_groups
from bicliques.pipeline.process.cores import count_cores, processes_that_share
from bicliques.pipeline.run.files import create, disk_errors, replace_file
from bicliques.pipeline.run.labels import Tables
from bicliques.pipeline.run.names import part_name, part_stem, unnamed_part
from bicliques.schemas.bicliques import UNKNOWN, Bicliques, Provenance, biclique_schema, fingerprint
from bicliques.schemas.manifest import Part

#: A part that has reached so many bytes is closed, and the slice goes on with another one.
PART_BYTES = 1 << 29

_LISTS, _NUMBERS = ["left.list.element", "right.list.element"], ["n_left", "n_right", "root", "missing"]
#: Measured on six graphs (benchmarks/layout.py). Labels repeat, so dictionaries make files 11 to 48 % smaller and
#: faster to write. Level 3 of zstd makes them another 6 to 14 % smaller in an eighth more time. A checksum shows a
#: damaged page before it is decoded. Ids are as good as random, so nothing makes them smaller.
LAYOUT: dict[str, Any] = {
    "compression": dict.fromkeys([*_LISTS, *_NUMBERS], "zstd") | {"id": "none"},
    "compression_level": dict.fromkeys([*_LISTS, *_NUMBERS], 3),
    "use_dictionary": [*_LISTS, *_NUMBERS],
    "write_statistics": _NUMBERS,
    "write_page_index": True,
    "write_page_checksum": True,
}


#: Most threads. More would be faster than any disk.
_MOST_THREADS = 16


def writing_threads() -> int:
    """How many threads this worker may write with: its share of the cores, if each worker has a GPU of this machine.

    A process that this package starts is told how many share them. One that dask-cuda starts sees the GPUs of all.
    """
    workers = max(processes_that_share(), len(named_devices() or ()))
    return min(max(count_cores() // workers, 1), _MOST_THREADS)


def to_batch(found: Bicliques, tables: Tables) -> pa.RecordBatch:
    """Bicliques as rows of `schemas.bicliques.biclique_schema`, in new arrays."""
    left, right = tables or (None, None)
    columns = [
        pa.array(found.ids.copy()),
        _lists(found.left_indptr, found.left, left),
        _lists(found.right_indptr, found.right, right),
        pa.array(np.diff(found.left_indptr).astype(np.int32)),
        pa.array(np.diff(found.right_indptr).astype(np.int32)),
        pa.array(found.root.copy()),
        *([] if found.missing is None else [pa.array(found.missing.copy())]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=part_schema(tables, near=found.missing is not None))


def part_schema(tables: Tables, provenance: Provenance = UNKNOWN, *, near: bool = False) -> pa.Schema:
    """Arrow schema of the parts; see `biclique_schema`. Its metadata has the provenance."""
    left, right = (pa.int32(), pa.int32()) if tables is None else (tables[0].type, tables[1].type)
    return biclique_schema(left, right, provenance, near=near)


def writer_bytes(tables: Tables) -> int:
    """Bound of the memory of one `PartWriter`, in bytes, as long as no single biclique fills a row group.

    It is the size of two stretches and of the longest batch, as they are collected and sorted in arrays that double,
    and of a row group that is encoded, with labels of mean size.
    """
    width = 4.0 if tables is None else 8.0 + max(t.nbytes / max(len(t), 1) for t in tables)
    collected = 4 * (4 * stretch.STRETCH_MEMBERS + 32 * stretch.STRETCH_ROWS)
    return collected + int(2 * stretch.GROUP_MEMBERS * width) + 32 * stretch.GROUP_ROWS


class PartWriter:
    """An `Emit` that collects the bicliques of one slice and writes them into parts.

    Parameters
    ----------
    folder : Path
        Folder of the parts.
    slice_number : int
        It is in the names of the parts, with a random suffix. So two attempts at a slice never write the same file.
    provenance : Provenance
        For the metadata of the parts.
    """

    on_device = False

    def __init__(self, folder: Path, slice_number: int, tables: Tables, provenance: Provenance = UNKNOWN):
        self.folder = folder
        self.stem = part_stem(slice_number)
        self.tables = tables
        self.provenance = provenance
        self.parts: list[Part] = []
        self.stretch = Stretch()
        self._rows = self._fingerprint = 0  # of the part that is open
        self._file: Any = None  # a pyarrow.OSFile while a part is open
        self._writer: Any = None  # and its pyarrow.parquet.ParquetWriter

    @cached_property
    def room(self) -> LabelRoom:
        """The room for labels. It takes a pass over all labels."""
        return LabelRoom(self.tables)

    def __call__(self, found: Bicliques, /) -> None:
        """Append a batch, whose arrays may change afterwards.

        Raises `ResourceError`: a resource is missing, as when the disk is full; or the labels of a biclique do not fit
        into a row.
        """
        for piece in pieces_of(found, stretch.STRETCH_MEMBERS):
            self.stretch.add(piece)
            if self.stretch.is_full:
                self.write_stretch()

    def close(self) -> list[Part]:
        """Write the last rows, and name the last part. Without rows there is no part."""
        if len(self.stretch):
            self.write_stretch()
        self._close_part()
        return self.parts

    def write_stretch(self) -> None:
        """Write the rows that were collected, sorted by size."""
        for group in row_groups(self.stretch.take(), self.room):
            with disk_errors(self._temporary()):
                if self._writer is None:
                    self._open_part(near=group.missing is not None)
                rows = pa.Table.from_batches([to_batch(group, self.tables)])
                self._writer.write_table(rows, row_group_size=2 * stretch.GROUP_ROWS)
            self._rows += len(group)
            self._fingerprint = (self._fingerprint + fingerprint(group)) % 2**64
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

    def _open_part(self, *, near: bool) -> None:
        create(self._temporary()).close()
        self._file = pa.OSFile(str(self._temporary()), "wb")
        schema = part_schema(self.tables, self.provenance, near=near)
        order = pq.SortingColumn.from_ordering(schema, [("n_left", "descending"), ("n_right", "descending")])
        self._writer = pq.ParquetWriter(self._file, schema, sorting_columns=order, **LAYOUT)

    def _close_part(self) -> None:
        if self._writer is None:
            return
        name = part_name(self.stem, len(self.parts))
        with disk_errors(self.folder / name):
            self._writer.close()
            size = self._file.tell()
            self._file.close()
            replace_file(self._temporary(), self.folder / name)
        self.parts.append(Part(name, self._rows, size, str(self._fingerprint)))
        self._writer, self._file, self._rows, self._fingerprint = None, None, 0, 0

    def _temporary(self) -> Path:
        return self.folder / unnamed_part(self.stem, len(self.parts))


def _lists(indptr: np.ndarray, ids: np.ndarray, labels: pa.Array | None) -> pa.ListArray:
    values = pa.array(ids.copy()) if labels is None else labels.take(pa.array(ids))
    return pa.ListArray.from_arrays(pa.array(indptr.astype(np.int32)), values)
