"""Writes a Parquet file whose row groups are encoded on several threads.

Arrow encodes the row groups of a file one after the other. Here every thread encodes a file in memory. The row groups
of these files become one file, with one footer. It is the file that one writer would have written, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.pipeline.output.footer import MAGIC, ROW_GROUPS
from bicliques.pipeline.output.thrift import Struct, read_struct, written
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.run.files import create

#: Numbers of fields in the structs of a footer (https://github.com/apache/parquet-format, parquet.thrift).
_NUM_ROWS = 3  # of FileMetaData
_COLUMNS, _FILE_OFFSET, _ORDINAL = 1, 5, 7  # of RowGroup
_CHUNK_OFFSET, _META_DATA = 2, 3  # of ColumnChunk
_PAGE_OFFSETS = (9, 10, 11)  # of ColumnMetaData: data, index and dictionary

Item = TypeVar("Item")


def write_row_groups(
    path: Path,
    schema: pa.Schema,
    batch_of: Callable[[Item], pa.RecordBatch],
    items: Iterable[Item],
    threads: int,
    **options: Any,
) -> None:
    """Write ``batch_of(item)`` of every item, in the order of the items. Each batch is a row group.

    Parameters
    ----------
    path : Path
        A new file.
    schema : Schema
    batch_of : callable
        The rows of an item, at most 2^20. Several threads call it.
    items : iterable
        At least one.
    threads : int
        The batches and files of one more row group than there are threads are in memory.
    **options
        Of `pyarrow.parquet.ParquetWriter`.

    Raises
    ------
    OSError
        If the file cannot be written.
    """

    def encoded(item: Item) -> pa.Buffer:
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, schema, **options) as writer:
            writer.write_batch(batch_of(item))
        return sink.getvalue()

    footer: Struct | None = None
    with create(path) as file:
        end = file.write(MAGIC)
        for part in in_order(encoded, items, threads):
            data = memoryview(part)
            stop = len(data) - len(MAGIC) - 4
            stop -= int.from_bytes(data[stop : stop + 4], "little")
            one = read_struct(data[stop:])
            _move(one, end - len(MAGIC), 0 if footer is None else len(footer.get_value(ROW_GROUPS)[1]))
            footer = one if footer is None else _joined(footer, one)
            end += file.write(data[len(MAGIC) : stop])
        assert footer is not None, "a file needs a row group"
        last = written(footer)
        file.write(last + len(last).to_bytes(4, "little") + MAGIC)


def _move(footer: Struct, by: int, n_before: int) -> None:
    """Add to every place in the file, and to the number of every row group."""
    for group in footer.get_value(ROW_GROUPS)[1]:
        _shift(group, _FILE_OFFSET, by)
        if _ORDINAL in group:
            group.replace(_ORDINAL, group.get_value(_ORDINAL) + n_before)
        for chunk in group.get_value(_COLUMNS)[1]:
            _shift(chunk, _CHUNK_OFFSET, by)
            for field in _PAGE_OFFSETS:
                _shift(chunk.get_value(_META_DATA), field, by)


def _shift(struct: Struct, field: int, by: int) -> None:
    """Move a place in the file. A field that is not there, or is 0, as in a row group without rows, names no place."""
    if field in struct and struct.get_value(field):
        struct.replace(field, struct.get_value(field) + by)


def _joined(footer: Struct, other: Struct) -> Struct:
    """The footer with the row groups of another one behind its own."""
    footer.get_value(ROW_GROUPS)[1].extend(other.get_value(ROW_GROUPS)[1])
    footer.replace(_NUM_ROWS, footer.get_value(_NUM_ROWS) + other.get_value(_NUM_ROWS))
    return footer
