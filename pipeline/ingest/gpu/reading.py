"""Any source as batches of labels on a device. The device reads some formats, and the host's reader all others."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.gpu.arrays import Arrays
from bicliques.pipeline.ingest.gpu.text import text_batches
from bicliques.pipeline.ingest.readers.base import EdgeStream
from bicliques.pipeline.ingest.readers.blocks import LINE_BYTES
from bicliques.pipeline.ingest.readers.columnar import ParquetTable
from bicliques.pipeline.ingest.readers.delimited import Delimited
from bicliques.pipeline.ingest.readers.edge_list import EdgeList
from bicliques.pipeline.ingest.readers.several import SeveralFiles

logger = logging.getLogger(__name__)

#: Rows of Parquet row groups that are read together.
ROWS = 1 << 26
#: Least bytes of a line, with two labels.
_LINE_BYTES = 4
#: Bytes of text that are decoded from dictionaries at a time, because labels may be long and repeat.
TEXT_BYTES = 1 << 28


def device_batches(stream: EdgeStream, arrays: Arrays, most: int = ROWS) -> Iterator[tuple[Any, Any]]:
    """Labels of both sides as columns on the device. Otherwise it does the same as `EdgeStream.chunks`.

    Raises `InputError`: the host's reader would raise it, in the same words.

    Parameters
    ----------
    most : int
        Most edges of a batch, about.
    """
    if isinstance(stream, SeveralFiles):
        for part in stream.parts():
            yield from device_batches(part, arrays, most)
    elif isinstance(stream, (EdgeList, Delimited)) and stream.options.min_weight is None:
        yield from text_batches(stream, arrays, _LINE_BYTES * most)
    elif isinstance(stream, ParquetTable) and _fits(stream):
        yield from _parquet_batches(stream, arrays, min(ROWS, most))
    else:
        yield from _uploaded(stream.chunks(), arrays)


def _fits(stream: ParquetTable) -> bool:
    """Whether the device may read the columns of a Parquet file as labels."""
    is_plain = not stream.has_lists and stream.options.min_weight is None
    return stream.options.label_type != "string" and stream.is_exact and is_plain


def _uploaded(batches: Iterable[pa.RecordBatch], arrays: Arrays) -> Iterator[tuple[Any, Any]]:
    """Batches of the host's reader, decoded from dictionaries."""
    for batch in batches:
        for left, right in _decoded(batch):
            yield arrays.from_arrow(left), arrays.from_arrow(right)


def _decoded(batch: pa.RecordBatch) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The columns of a batch without dictionaries, in pieces of about `TEXT_BYTES`."""
    columns = batch.columns
    behind = [column for column in columns if pa.types.is_dictionary(column.type)]
    widths = [pc.binary_length(column.dictionary).to_numpy()[column.indices.to_numpy()] for column in behind]
    until = np.cumsum(sum(widths, np.zeros(len(batch), np.int64)))
    start = 0
    while start < len(batch):
        before = until[start - 1] if start else 0
        stop = max(int(np.searchsorted(until, before + TEXT_BYTES, side="right")), start + 1)
        left, right = (_plain(column.slice(start, stop - start)) for column in columns)
        yield left, right
        start = stop


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _parquet_batches(stream: ParquetTable, arrays: Arrays, most: int) -> Iterator[tuple[Any, Any]]:
    metadata = stream.file.metadata
    groups: list[int] = []
    n_before = n = 0
    with stream.file:
        for group in range(metadata.num_row_groups):
            rows = metadata.row_group(group).num_rows
            if groups and n + rows > most:
                yield from _some_groups(stream, arrays, groups, n_before, n <= most)
                groups, n_before, n = [], n_before + n, 0
            groups.append(group)
            n += rows
        if groups:
            yield from _some_groups(stream, arrays, groups, n_before, n <= most)


def _some_groups(
    stream: ParquetTable, arrays: Arrays, groups: list[int], n_before: int, fit: bool
) -> Iterator[tuple[Any, Any]]:
    """Row groups as a batch. If they do not fit on the device together, the host reads them."""
    columns = None
    if fit:
        columns = arrays.read_parquet(Path(stream.path), groups, [stream.names[k] for k in stream.columns])
    else:
        text = "the CPU reads row group %d of %s, because the GPU has no room for all of it"
        logger.warning(text, groups[0], stream.path)
    labels = None if columns is None else [_labels(stream, arrays, column) for column in columns]
    if labels is not None and labels[0] is not None and labels[1] is not None:
        if arrays.rows(labels[0]):
            yield labels[0], labels[1]
        return
    yield from _uploaded(stream.groups(groups, n_before), arrays)


def _labels(stream: ParquetTable, arrays: Arrays, column: Any) -> Any | None:
    """The column, if all of its values are labels. None where the host has to read it."""
    if arrays.rows(column) == 0:
        return None
    if isinstance(column, arrays.xp.ndarray):
        return column if int(column.min()) >= 0 else None
    lengths = arrays.lengths(column)
    is_plain = stream.options.label_type == "auto" and int(lengths.min()) > 0 and int(lengths.max()) <= LINE_BYTES
    return column if is_plain and arrays.is_utf8(column) else None
