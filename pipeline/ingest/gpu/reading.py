"""Any source as batches of labels on a device. The device reads some formats, and the host's reader all others.

Text files are read block by block. A block that is plain is parsed by cuDF. One that is not has comments, quotes,
blanks or a bad line. The host's reader parses it, and says what is wrong with it.
"""

from __future__ import annotations

import logging
import mmap
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.gpu.arrays import Arrays
from bicliques.pipeline.ingest.readers.base import EdgeStream
from bicliques.pipeline.ingest.readers.blocks import LINE_BYTES, block_of, blocks, refuse_long_lines
from bicliques.pipeline.ingest.readers.columnar import ParquetTable
from bicliques.pipeline.ingest.readers.delimited import Delimited
from bicliques.pipeline.ingest.readers.edge_list import EdgeList
from bicliques.pipeline.ingest.readers.labels import INTEGER
from bicliques.pipeline.ingest.readers.opening import COMPRESSIONS, Digest, digest_on_all_cores, hashed, open_file
from bicliques.pipeline.ingest.readers.several import SeveralFiles
from bicliques.pipeline.ingest.readers.text import TextStream
from bicliques.schemas.errors import InputError

_LF, _CR = ord("\n"), ord("\r")
#: Bytes of a line behind the first after which it is asked whether any place is left that may have it.
_SOME = 3
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)
#: Bytes in which the first line must end. Otherwise its columns cannot be counted.
_FIRST_LINE_BYTES = 1 << 16


@dataclass(frozen=True)
class _Shape:
    """The form of every line of a plain block.

    Parameters
    ----------
    labels : (int, int)
        Columns of the labels.
    special : bytes
        Characters with a special meaning. A block with one of them is not plain.
    numeric : bool
        Whether the other columns must be numbers.
    """

    delimiter: str
    n_columns: int
    labels: tuple[int, int]
    special: bytes
    numeric: bool


def _shape(stream: TextStream, first_line: bytes) -> _Shape | None:
    if isinstance(stream, EdgeList):
        delimiter, other = ("\t", b" ") if b"\t" in first_line else (" ", b"\t")
        return _Shape(delimiter, stream.n_columns, (0, 1), other, True)
    if isinstance(stream, Delimited) and stream.delimiter == stream.separator and stream.delimiter.isascii():
        return _Shape(stream.delimiter, stream.n_columns, stream.columns, b'"', False)
    return None


def parse_plain(stream: TextStream, arrays: Arrays, text: memoryview) -> tuple[Any, Any] | None:
    """The labels of a plain text, or None."""
    shape = _shape(stream, bytes(text[:_FIRST_LINE_BYTES]).split(b"\n", 1)[0].rstrip(b"\r"))
    raw = None if shape is None else _upload(arrays, text)
    if shape is None or raw is None or any(bool((raw == special).any()) for special in shape.special):
        return None
    ends = raw == _LF
    borders = ends | (raw == ord(shape.delimiter))
    if bool(borders[0]) or bool((borders[1:] & borders[:-1]).any()):  # an empty field, or a blank line
        return None
    n_lines, n_fields = int(ends.sum()), int(borders.sum())
    if n_fields != n_lines * shape.n_columns:
        return None
    digits = ((raw >= ord("0")) & (raw <= ord("9"))) | borders
    if isinstance(stream, Delimited) and stream.may_repeat_header and _has(raw, stream.header.encode()):
        return None
    if all(kind == INTEGER for kind in stream.kinds) and bool(digits.all()):
        return _integers_only(stream, arrays, raw, shape, n_lines)
    if bool((raw >= 128).any()) and not _is_utf8(text):
        return None
    del ends, borders, digits
    return _mixed(stream, arrays, raw, shape, n_lines)


def _has(raw: Any, line: bytes) -> bool:
    """Whether the bytes of a line, with its end, occur in a text on the device."""
    wanted = line + b"\n"
    places = len(raw) - len(wanted) + 1
    there = raw[: max(places, 0)] == wanted[0]
    for k in range(1, len(wanted) if places > 0 else 0):
        there &= raw[k : places + k] == wanted[k]
        if k == _SOME and not bool(there.any()):
            return False
    return bool(there.any())


def _upload(arrays: Arrays, text: memoryview) -> Any | None:
    """The bytes on the device, with LF at the end of every line. None if a carriage return ends no line."""
    xp = arrays.xp
    raw = arrays.upload(text)
    returns = raw == _CR
    if bool(returns.any()):
        if bool(returns[-1]) or not bool((raw[1:][returns[:-1]] == _LF).all()):
            return None
        raw = raw[~returns]
    if text[-1] != _LF:
        raw = xp.concatenate([raw, xp.full(1, _LF, dtype=np.uint8)])
    return raw


def _integers_only(stream: TextStream, arrays: Arrays, raw: Any, shape: _Shape, n_lines: int) -> tuple[Any, Any] | None:
    """Labels of a text of digits and borders only, without empty fields. A field must not be longer than its number."""
    columns = arrays.read_csv(raw, shape.delimiter, [False] * shape.n_columns)
    if columns is None or any(len(column) != n_lines for column in columns):
        return None
    n_bytes = n_lines * shape.n_columns
    for column in columns:
        if int(column.min()) < 0:  # beyond 63 bits
            return None
        powers = arrays.on_device(_POWERS)
        n_bytes += n_lines + int(arrays.xp.searchsorted(powers, column, side="right").sum())
    if n_bytes != len(raw):  # leading zeros, or more than 64 bits
        return None
    left, right = (columns[k] for k in shape.labels)
    return (left, right) if min(int(left.min()), int(right.min())) >= stream.lowest else None


def _mixed(stream: TextStream, arrays: Arrays, raw: Any, shape: _Shape, n_lines: int) -> tuple[Any, Any] | None:
    """Labels of other texts. Fields are read as strings, whose bytes must add up. Then some become integers."""
    columns = arrays.read_csv(raw, shape.delimiter, [True] * shape.n_columns)
    if columns is None:
        return None
    n_bytes = n_lines * shape.n_columns
    for column in columns:
        lengths = arrays.lengths(column)
        if len(lengths) != n_lines:
            return None
        n_bytes += int(lengths.sum())
    if n_bytes != len(raw):
        return None
    others = [columns[k] for k in range(shape.n_columns) if k not in shape.labels]
    if shape.numeric and not all(arrays.are_numbers(column) for column in others):
        return None
    labels = [
        _text_labels(arrays, columns[k], kind, stream.lowest)
        for k, kind in zip(shape.labels, stream.kinds, strict=True)
    ]
    return None if labels[0] is None or labels[1] is None else (labels[0], labels[1])


def _text_labels(arrays: Arrays, column: Any, kind: pa.DataType, lowest: int) -> Any | None:
    """Strings as labels of a kind. None when one of them is not a label of that kind, or may not be."""
    if kind != INTEGER:
        return column
    numbers = arrays.integers(column)
    if numbers is None or int(numbers.min()) < lowest:
        return None
    digits = 1 + arrays.xp.searchsorted(arrays.on_device(_POWERS), numbers, side="right")
    return numbers if bool((digits == arrays.lengths(column)).all()) else None


def _is_utf8(text: memoryview) -> bool:
    try:
        str(text, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


#: Bytes of a block. A device needs long blocks, and several of them to overlap reading with parsing.
BLOCK_BYTES = 256 << 20
#: Bytes that are read from a compressed file at a time. Decompression takes most of the time there.
DECOMPRESSED_BYTES = 64 << 20

#: A block that is not plain is cut into so many pieces, down to so many bytes, before the host reads it.
_PIECES, PIECE_BYTES = 16, 4 << 20
#: Bytes in which the end of a line is searched.
LOOK = 1 << 16
_MARK = b"\xef\xbb\xbf"


def text_batches(stream: TextStream, arrays: Arrays, most: int) -> Iterator[tuple[Any, Any]]:
    """Labels of both sides, batch after batch, as columns on the device. It counts what `TextStream.chunks` counts.

    Parameters
    ----------
    most : int
        Bytes of a block that the device has room for.
    """
    if stream.path.suffix.lower() in COMPRESSIONS:
        with hashed(stream.path) as file:
            for block in blocks(stream.path, file, min(DECOMPRESSED_BYTES, most)):
                yield from _batches(stream, arrays, block.number, memoryview(block.data))
            stream.stored = file.finish()
        return
    with open_file(stream.path) as file:
        if stream.path.stat().st_size == 0:
            raise InputError(f"{stream.path} is empty; name a file that holds edges")
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    digest, number = digest_on_all_cores(), 1
    updates: list[Future[Any]] = []
    hashing = ThreadPoolExecutor(1)  # hashes every block while the device works on it
    try:
        for text in _pieces(whole, min(BLOCK_BYTES, most)):
            refuse_long_lines(stream.path, number, text)
            number += yield from _batches(stream, arrays, number, text)
            updates.append(hashing.submit(digest.update, text))
        stream.stored = hashing.submit(_finished, digest, updates)
    finally:
        hashing.shutdown(wait=False)


def _batches(
    stream: TextStream, arrays: Arrays, number: int, text: memoryview
) -> Generator[tuple[Any, Any], None, int]:
    """Left and right labels of whole lines from line `number` on. Returns the number of lines."""
    start, n_lines = _head(stream, number, text)
    plain = parse_plain(stream, arrays, text[start:]) if start < len(text) else None
    if plain is not None:
        stream.rows += (n := arrays.rows(plain[0]))
        yield plain
        return n_lines + n
    pieces = list(_pieces(text, max(len(text) // _PIECES, 1))) if len(text) > PIECE_BYTES else []
    if len(pieces) > 1:  # most of it may still be plain
        first = number
        for piece in pieces:
            number += yield from _batches(stream, arrays, number, piece)
        return number - first
    data = bytes(text)
    block = block_of(stream.path, number, data if data.endswith(b"\n") else data + b"\n")
    for batch in stream.batches_of(block.starting_at(stream.first_line)):
        if len(batch):
            stream.rows += len(batch)
            yield arrays.from_arrow(batch["left"]), arrays.from_arrow(batch["right"])
    return block.data.count(b"\n")


def _head(stream: TextStream, number: int, text: memoryview) -> tuple[int, int]:
    """Where the edges begin, behind a byte order mark, a header and comments, and how many lines are before them."""
    comment = stream.comment.encode() if isinstance(stream, EdgeList) else None
    start, lines = len(_MARK) if number == 1 and text[: len(_MARK)] == _MARK else 0, 0
    while start < len(text):
        is_comment = comment is not None and text[start : start + len(comment)] == comment
        if number + lines >= stream.first_line and not is_comment:
            break
        start = _line_end(text, start)
        lines += 1
    return start, lines


def _line_end(text: memoryview, start: int) -> int:
    """Position where the next line begins."""
    while start < len(text):
        some = bytes(text[start : start + LOOK])
        end = some.find(b"\n")
        if end >= 0:
            return start + end + 1
        start += len(some)
    return start


def _pieces(text: memoryview, size: int) -> Iterator[memoryview]:
    start = 0
    while start < len(text):
        stop = _line_end(text, min(start + size, len(text)) - 1)
        yield text[start:stop]
        start = stop


def _finished(digest: Digest, updates: list[Future[Any]]) -> str:
    """The digest. Raises the error of a block that could not be hashed."""
    for update in updates:
        update.result()
    return digest.hexdigest()


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
