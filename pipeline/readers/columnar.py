"""Tables whose columns have types: Parquet and Arrow files, and what data frames share with them.

Integers of any width become int64 (and 32 bits wide again in the end, if the column is), strings of any layout
strings; a dictionary column is what it stands for. The two label columns are the first two unless named. Rows are
counted from 1 in messages.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.digests import file_digest
from pipeline.readers.base import EdgeStream, to_batch
from pipeline.readers.blocks import COMPRESSIONS, open_file
from pipeline.readers.labels import integers_of, sieve, why_bad
from pipeline.readers.sniff import find_columns
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["ROWS", "ParquetTable", "TableStream", "open_arrow", "open_parquet"]

#: Rows handled at a time.
ROWS = 1 << 20

_REFUSALS = (pa.ArrowException, OSError)


class TableStream(EdgeStream):
    """Edges of a table with typed columns.

    Parameters
    ----------
    source, format : str
    options : IngestOptions
    unit : str
        What a row is called in messages.
    """

    def __init__(self, source: str, format: str, options: IngestOptions, unit: str = "row"):
        self.source = source
        self.format = format
        self.options = options
        self.unit = unit

    @abstractmethod
    def pairs(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """The two columns as they are stored, some rows at a time."""

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Batches of edges; see `EdgeStream.chunks`."""
        n_before = 0
        for left, right in self.pairs():
            yield self._labels(left, right, n_before)
            n_before += len(left)

    def _labels(self, left: pa.Array, right: pa.Array, n_before: int) -> pa.RecordBatch:
        left_labels, left_bad = sieve(left, f"{self.source}: the left", self.options.label_type)
        right_labels, right_bad = sieve(right, f"{self.source}: the right", self.options.label_type)
        batch, bad = to_batch(left_labels, right_labels), pc.or_(left_bad, right_bad)
        if not pc.any(bad, min_count=0).as_py():
            return batch
        if not self.options.skip_bad_lines:
            row = pc.index(bad, True).as_py()
            column, side = (left, "left") if left_bad[row].as_py() else (right, "right")
            raise why_bad(column[row].as_py(), side).at(f"{self.source}, {self.unit} {n_before + row + 1}")
        batch = batch.filter(pc.invert(bad))
        self.skipped += len(bad) - batch.num_rows
        return batch


class TableFile(TableStream):
    """Edges of a Parquet or Arrow file."""

    def __init__(self, path: Path, options: IngestOptions, format: str):
        super().__init__(str(path), format, options)
        self.path = path
        open_file(path).close()
        if path.suffix.lower() in COMPRESSIONS:
            raise InputError(
                f"{path} is compressed once more around {format}; decompress it, for {format} compresses inside"
            )
        if path.stat().st_size == 0:
            raise InputError(f"{path} is empty; name a file that holds edges")
        try:
            schema = self.open()
        except _REFUSALS as error:
            raise self._damaged(error) from error
        self.names = list(schema.names)
        self.columns = find_columns(str(path), options, self.names, len(self.names))
        self.integers = integers_of(schema, self.columns)

    @abstractmethod
    def open(self) -> pa.Schema:
        """Open the file; the columns it has."""

    @abstractmethod
    def batches(self) -> Iterator[pa.RecordBatch]:
        """Batches of the file, with its label columns at least."""

    def pairs(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """At most `ROWS` rows at a time."""
        try:
            for batch in self.batches():
                left, right = self.columns if len(batch.schema) == len(self.names) else self._chosen(batch)
                for start in range(0, len(batch), ROWS):
                    yield batch.column(left).slice(start, ROWS), batch.column(right).slice(start, ROWS)
        except _REFUSALS as error:
            raise self._damaged(error) from error

    def _chosen(self, batch: pa.RecordBatch) -> tuple[int, int]:
        left, right = (batch.schema.get_field_index(self.names[k]) for k in self.columns)
        return left, right

    def digest(self) -> str | None:
        """Of the file as stored; see `EdgeStream.digest`."""
        return file_digest(self.path)

    def _damaged(self, error: Exception) -> InputError:
        reason = str(error).splitlines()[0].rstrip(".")
        return InputError(
            f"{self.path} is not a whole {self.format} file ({reason}); copy it again, or name its --format"
        )


class ParquetTable(TableFile):
    """Edges of a Parquet file, row group after row group."""

    def open(self) -> pa.Schema:
        """Read the footer."""
        # A buffer size makes Arrow read a column chunk in pieces instead of whole.
        self.file = pq.ParquetFile(self.path, buffer_size=1 << 20)
        return self.file.schema_arrow

    @property
    def is_exact(self) -> bool:
        """Whether the names of the label columns select them."""
        # Arrow takes a dot for a path into a struct, and a name that occurs twice for both columns.
        return all(self.names.count(name) == 1 and "." not in name for name in self._wanted)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The label columns alone, where their names select them."""
        with self.file:
            yield from self.file.iter_batches(batch_size=ROWS, columns=self._wanted if self.is_exact else None)

    def groups(self, row_groups: list[int], n_before: int) -> Iterator[pa.RecordBatch]:
        """Batches of edges of some row groups, before which there are `n_before` rows; needs `is_exact`."""
        try:
            for batch in self.file.iter_batches(batch_size=ROWS, row_groups=row_groups, columns=self._wanted):
                left, right = (batch[name] for name in self._wanted)
                yield self._labels(left, right, n_before)
                n_before += len(batch)
        except _REFUSALS as error:
            raise self._damaged(error) from error

    @property
    def _wanted(self) -> list[str]:
        return [self.names[k] for k in self.columns]


class ArrowTable(TableFile):
    """Edges of an Arrow IPC file or stream (Feather version 2 is the former)."""

    def open(self) -> pa.Schema:
        """Read the schema."""
        self.file = pa.memory_map(str(self.path))
        try:
            self.reader = pa.ipc.open_file(self.file)
        except pa.ArrowInvalid:
            self.file.seek(0)
            self.reader = pa.ipc.open_stream(self.file)
        return self.reader.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All columns; mapped, so that only those looked at are read."""
        with self.file:
            if isinstance(self.reader, pa.ipc.RecordBatchFileReader):
                for k in range(self.reader.num_record_batches):
                    yield self.reader.get_batch(k)
            else:
                yield from self.reader


def open_parquet(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a Parquet file."""
    return ParquetTable(path, options, "parquet")


def open_arrow(path: Path, options: IngestOptions) -> EdgeStream:
    """Open an Arrow IPC file or stream."""
    return ArrowTable(path, options, "arrow")
