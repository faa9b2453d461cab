"""Any source as batches of labels on a device: what a device reads well there, all else through the host's reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipeline.gpu.arrays import Arrays
from pipeline.gpu.text import text_batches
from pipeline.readers.base import EdgeStream
from pipeline.readers.columnar import ParquetTable
from pipeline.readers.delimited import Delimited
from pipeline.readers.edge_list import EdgeList

__all__ = ["device_batches"]

#: Rows of Parquet row groups read together.
ROWS = 1 << 26


def device_batches(stream: EdgeStream, arrays: Arrays) -> Iterator[tuple[Any, Any]]:
    """Labels of both sides as columns on the device; see `EdgeStream.chunks` for what else it does.

    Raises
    ------
    InputError
        Where the host's reader would raise it, in the same words.
    """
    if isinstance(stream, (EdgeList, Delimited)):
        yield from text_batches(stream, arrays)
    elif isinstance(stream, ParquetTable) and stream.options.label_type != "string" and stream.is_exact:
        yield from _parquet_batches(stream, arrays)
    else:
        for batch in stream.chunks():
            if len(batch):
                yield arrays.from_arrow(batch["left"]), arrays.from_arrow(batch["right"])


def _parquet_batches(stream: ParquetTable, arrays: Arrays) -> Iterator[tuple[Any, Any]]:
    metadata = stream.file.metadata
    groups: list[int] = []
    n_before = n = 0
    with stream.file:
        for group in range(metadata.num_row_groups):
            groups.append(group)
            n += metadata.row_group(group).num_rows
            if n >= ROWS or group == metadata.num_row_groups - 1:
                yield from _some_groups(stream, arrays, groups, n_before)
                groups, n_before, n = [], n_before + n, 0


def _some_groups(stream: ParquetTable, arrays: Arrays, groups: list[int], n_before: int) -> Iterator[tuple[Any, Any]]:
    columns = arrays.read_parquet(Path(stream.path), groups, [stream.names[k] for k in stream.columns])
    labels = None if columns is None else [_labels(stream, arrays, column) for column in columns]
    if labels is not None and labels[0] is not None and labels[1] is not None:
        if arrays.rows(labels[0]):
            yield labels[0], labels[1]
        return
    for batch in stream.groups(groups, n_before):
        if len(batch):
            yield arrays.from_arrow(batch["left"]), arrays.from_arrow(batch["right"])


def _labels(stream: ParquetTable, arrays: Arrays, column: Any) -> Any | None:
    """A column as it is, if all of it are labels; None where the host has to look closer."""
    if arrays.rows(column) == 0:
        return None
    if isinstance(column, arrays.xp.ndarray):
        return column if int(column.min()) >= 0 else None
    return column if stream.options.label_type == "auto" and int(arrays.lengths(column).min()) > 0 else None
