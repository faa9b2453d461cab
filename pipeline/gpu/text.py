"""Text files read on a device, block by block; the host's reader decides wherever a block is not plain.

A block is plain when what cuDF parsed, written out again, would be the block byte for byte: every line has its
columns, every integer its digits and no more. That is checked by counting: lines, and bytes of all fields. Any
other block (comments, quotes, blanks, a bad line) goes through the host's reader, which also has the words for it.
"""

from __future__ import annotations

import hashlib
import mmap
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.gpu.arrays import Arrays
from pipeline.readers.blocks import COMPRESSIONS, LINE_BYTES, block_of, blocks, hashed, long_line, open_file
from pipeline.readers.delimited import Delimited
from pipeline.readers.edge_list import EdgeList
from pipeline.readers.labels import INTEGER
from pipeline.readers.text import TextStream
from schemas.errors import InputError

__all__ = ["text_batches"]

#: Bytes of a block: a device needs long ones, and several to overlap reading with parsing.
BLOCK_BYTES = 256 << 20
#: Bytes read from a compressed file at a time, where decompressing is what takes the time.
_DECOMPRESSED_BYTES = 64 << 20

#: Bytes that are hashed at a time.
_HASHED_BYTES = 16 << 20
#: What is not plain is cut into so many pieces, down to so many bytes, before the host reads it.
_PIECES, _PIECE_BYTES = 16, 4 << 20
#: Bytes in which the end of a line is looked for.
_LOOK = 1 << 16
_MARK = b"\xef\xbb\xbf"

_LF, _CR = ord("\n"), ord("\r")
_POWERS = 10 ** np.arange(1, 19, dtype=np.int64)


@dataclass(frozen=True)
class _Shape:
    """What every line of a plain block is.

    Parameters
    ----------
    delimiter : str
    n_columns : int
    labels : (int, int)
        Columns of the labels.
    special : bytes
        Characters that mean something else here; a block that has one of them is not plain.
    numeric : bool
        Whether the other columns have to be numbers.
    """

    delimiter: str
    n_columns: int
    labels: tuple[int, int]
    special: bytes
    numeric: bool


def text_batches(stream: TextStream, arrays: Arrays) -> Iterator[tuple[Any, Any]]:
    """Labels of both sides, batch after batch, as columns on the device; counts what `TextStream.chunks` counts.

    Raises
    ------
    InputError
        At the first bad line, unless they are skipped.
    """
    if stream.path.suffix.lower() in COMPRESSIONS:
        with hashed(stream.path) as file:
            for block in blocks(stream.path, file, _DECOMPRESSED_BYTES):
                yield from _batches(stream, arrays, block.number, memoryview(block.data))
            stream.set_digest(file.finish())
        return
    with open_file(stream.path) as file:
        if stream.path.stat().st_size == 0:
            raise InputError(f"{stream.path} is empty; name a file that holds edges")
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    given_up = threading.Event()
    hashing = ThreadPoolExecutor(1)  # a second look at every byte, while the device works
    stream.set_digest(hashing.submit(_sha256, whole, given_up))
    hashing.shutdown(wait=False)
    number = 1
    try:
        for text in _pieces(whole, BLOCK_BYTES):
            if len(text) > BLOCK_BYTES + LINE_BYTES:
                raise long_line(stream.path, number)
            number += yield from _batches(stream, arrays, number, text)
    except BaseException:
        given_up.set()
        raise


def _batches(
    stream: TextStream, arrays: Arrays, number: int, text: memoryview
) -> Generator[tuple[Any, Any], None, int]:
    """Left and right labels of whole lines from line `number` on; returns how many lines those were."""
    start, n_lines = _head(stream, number, text)
    plain = _parse(stream, arrays, text[start:]) if start < len(text) else None
    if plain is not None:
        stream.rows += (n := arrays.rows(plain[0]))
        yield plain
        return n_lines + n
    if len(text) > _PIECE_BYTES and _line_end(text, 0) < len(text):  # most of it may still be plain
        first = number
        for piece in _pieces(text, max(len(text) // _PIECES, 1)):
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
    """Where the edges begin, below a byte order mark, a header and comments, and how many lines those are."""
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
    """Where the next line begins."""
    while start < len(text):
        some = bytes(text[start : start + _LOOK])
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


def _shape(stream: TextStream, first_line: bytes) -> _Shape | None:
    if isinstance(stream, EdgeList):
        delimiter, other = ("\t", b" ") if b"\t" in first_line else (" ", b"\t")
        n_columns = first_line.count(delimiter.encode()) + 1
        return _Shape(delimiter, n_columns, (0, 1), other, True) if 2 <= n_columns <= 4 else None
    if isinstance(stream, Delimited) and stream.layout.delimiter.isascii():
        layout = stream.layout
        return _Shape(layout.delimiter, layout.n_columns, layout.columns, b'"', False)
    return None


def _parse(stream: TextStream, arrays: Arrays, text: memoryview) -> tuple[Any, Any] | None:
    """The labels of a plain text, or None."""
    shape = _shape(stream, bytes(text[:_LOOK]).split(b"\n", 1)[0].rstrip(b"\r"))
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
    if all(kind == INTEGER for kind in stream.kinds) and bool(digits.all()):
        return _integers_only(stream, arrays, raw, shape, n_lines)
    if bool((raw >= 128).any()) and not _is_utf8(text):
        return None
    del ends, borders, digits
    return _mixed(stream, arrays, raw, shape, n_lines)


def _upload(arrays: Arrays, text: memoryview) -> Any | None:
    """The bytes on the device, LF at the end of every line; None with a carriage return that ends no line."""
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
    """Digits and borders alone, no field empty: wrong is only a field that is longer than its number."""
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
    """All fields as strings: their bytes must add up; then integers are made of those that should be."""
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
        _labels(arrays, columns[k], kind, stream.lowest) for k, kind in zip(shape.labels, stream.kinds, strict=True)
    ]
    return None if labels[0] is None or labels[1] is None else (labels[0], labels[1])


def _labels(arrays: Arrays, column: Any, kind: pa.DataType, lowest: int) -> Any | None:
    """Strings as labels of a kind; None when one of them is not, or may not be, one."""
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


def _sha256(whole: memoryview, given_up: threading.Event) -> str:
    digest = hashlib.sha256()
    for start in range(0, len(whole), _HASHED_BYTES):
        if given_up.is_set():
            break
        digest.update(whole[start : start + _HASHED_BYTES])
    return digest.hexdigest()
