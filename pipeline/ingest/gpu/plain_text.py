"""Parses the labels of a text by cuDF, if the text is plain.

A text is plain if the parsed fields, written out again, would be the same text, byte for byte. Then every line has all
columns, and every integer has its digits only. The number of lines and the bytes of all fields are counted to check it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.pipeline.ingest.gpu.arrays import Arrays
from bicliques.pipeline.ingest.readers.delimited import Delimited
from bicliques.pipeline.ingest.readers.edge_list import EdgeList
from bicliques.pipeline.ingest.readers.labels import INTEGER
from bicliques.pipeline.ingest.readers.text import TextStream

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
    delimiter : str
    n_columns : int
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
        _labels(arrays, columns[k], kind, stream.lowest) for k, kind in zip(shape.labels, stream.kinds, strict=True)
    ]
    return None if labels[0] is None or labels[1] is None else (labels[0], labels[1])


def _labels(arrays: Arrays, column: Any, kind: pa.DataType, lowest: int) -> Any | None:
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
