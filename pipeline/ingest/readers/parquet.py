"""Parquet files, batch after batch of the two label columns.

A batch is as many rows as make some 64 MiB by what the file says of its row groups, and text that is stored behind
dictionaries stays there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.ingest.readers.base import EdgeStream
from pipeline.ingest.readers.columnar import TableFile
from pipeline.ingest.readers.tables import FURTHER_ROWS, ROWS
from pipeline.ingest.readers.validity import is_text
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["WIDE_GROUP", "ParquetTable", "open_parquet"]

#: Bytes of a batch, by the sizes that the file states.
BATCH_BYTES = 64 << 20
#: Rows of a batch where text is stored as differences from the row before: the file does not tell how long it is.
DIFFERENCE_ROWS = 1 << 12
#: A column of a row group of more bytes may have so many bytes per row, and no more.
WIDE_GROUP, _WIDE_ROW = 1 << 28, 1 << 16


class ParquetTable(TableFile):
    """Edges of a Parquet file, row group after row group."""

    def open(self) -> pa.Schema:
        """Read the footer."""
        self.file = pq.ParquetFile(self.path)
        return self.file.schema_arrow

    def select(self) -> None:
        """Find the label columns among those that are stored, which structs and lists have several of."""
        kinds, metadata = self.file.schema_arrow.types, self.file.metadata
        leaves = [metadata.schema.column(k).path for k in range(metadata.num_columns)]
        # Arrow takes a dot for a path into a struct, and a name that occurs twice for both columns.
        self.is_exact = all(self.names.count(n) == 1 == leaves.count(n) and "." not in n for n in self._wanted)
        read = [leaves.index(name) for name in self._wanted] if self.is_exact else []
        self._texts = [leaf for leaf, k in zip(read, self.columns, strict=False) if is_text(kinds[k])]
        self._refuse_wide(metadata, read)
        self.batch_rows = _rows_of(metadata)

    def _refuse_wide(self, metadata: pq.FileMetaData, leaves: Iterable[int]) -> None:
        """Pages are decompressed whole: some kilobytes in the file can be gigabytes of labels."""
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for column in map(group.column, leaves) if _is_wide(group.total_byte_size, group.num_rows) else ():
                if _is_wide(n_bytes := column.total_uncompressed_size, group.num_rows):
                    raise InputError(
                        f"{self.path}: column {column.path_in_schema!r} holds {n_bytes:,} bytes in {group.num_rows:,} "
                        f"rows of row group {number}, and {_WIDE_ROW:,} bytes per row are the most; give shorter labels"
                    )

    def places(self, batch: pa.RecordBatch) -> tuple[int, int]:
        """By name, where names select columns."""
        left, right = map(batch.schema.get_field_index, self._wanted) if self.is_exact else self.columns
        return left, right

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The label columns alone, where their names select them."""
        with self.file:
            yield from self._iterate()

    def first_rows(self, columns: list[int]) -> pa.RecordBatch | None:
        """See `TableFile`."""
        names = [self.names[k] for k in columns if self.names.count(self.names[k]) == 1]
        with pq.ParquetFile(self.path) as file:
            batch = next(file.iter_batches(FURTHER_ROWS, columns=names), None)
        return None if batch is None else batch.select([batch.schema.get_field_index(name) for name in names])

    def groups(self, row_groups: list[int], n_before: int) -> Iterator[pa.RecordBatch]:
        """Batches of edges of some row groups, before which there are `n_before` rows; needs `is_exact`."""
        return self.labelled(map(self.pair, self._iterate(row_groups)), n_before)

    def _iterate(self, row_groups: Iterable[int] | None = None) -> Iterator[pa.RecordBatch]:
        columns = self._wanted if self.is_exact else None
        groups = range(self.file.metadata.num_row_groups) if row_groups is None else row_groups
        for (behind, rows), run in groupby(groups, self._layout_of):
            # A buffer size makes Arrow read a column chunk in pieces instead of whole.
            how = {"metadata": self.file.metadata, "buffer_size": 1 << 20, "read_dictionary": list(behind)}
            with pq.ParquetFile(self.path, **how) as file:
                yield from file.iter_batches(rows, list(run), columns)

    def _layout_of(self, number: int) -> tuple[tuple[int, ...], int]:
        """Of a row group: the columns whose text is behind dictionaries, and the rows of a batch."""
        group = self.file.metadata.row_group(number)
        if not self._texts or group.num_rows == 0:
            return (), self.batch_rows
        # pyarrow ends the process at damaged facts of a column; reading a row of it raises something before
        next(self.file.iter_batches(1, [number], self._wanted), None)
        encodings = {leaf: set(group.column(leaf).encodings) for leaf in self._texts}
        behind = tuple(leaf for leaf in self._texts if can_stay_behind(encodings[leaf]))
        shares = any("DELTA_BYTE_ARRAY" in own for own in encodings.values())
        return behind, min(self.batch_rows, DIFFERENCE_ROWS) if shares else self.batch_rows

    @property
    def _wanted(self) -> list[str]:
        return [self.names[k] for k in self.columns]


def can_stay_behind(encodings: set[str]) -> bool:
    """Whether Arrow can leave text of these encodings behind dictionaries, which it cannot beside differences."""
    return any("DICTIONARY" in name for name in encodings) and not any(name.startswith("DELTA") for name in encodings)


def _is_wide(n_bytes: int, rows: int) -> bool:
    return n_bytes > WIDE_GROUP and n_bytes > _WIDE_ROW * rows


def _rows_of(metadata: pq.FileMetaData) -> int:
    """Rows of `BATCH_BYTES` where rows are widest, by what the file says."""
    rows = ROWS
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        rows = min(rows, BATCH_BYTES * group.num_rows // max(group.total_byte_size, 1))
    return max(rows, 1)


def open_parquet(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a Parquet file."""
    return ParquetTable(path, options, "parquet")
