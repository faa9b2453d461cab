"""Structs of Thrift's compact protocol, in which Parquet says what is where. Only files that Arrow reads come here.

A struct is a dictionary of its fields by their number. A field is a pair of the kind of its value, as in the protocol,
and the value. A list is a pair of the kind of its values, and these.
"""

from __future__ import annotations

from typing import Any

TRUE, FALSE, BYTE, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 5, 6, 7, 8, 9, 10, 12
_INTS = (4, I32, I64)

Struct = dict[int, tuple[int, Any]]


def read_struct(buffer: bytes, at: int = 0) -> tuple[Struct, int]:
    """The struct that begins at `at`, and the position behind it."""
    found: Struct = {}
    number = 0
    while head := buffer[at]:
        kind, at = head & 15, at + 1
        if head >> 4:
            number += head >> 4
        else:
            number, at = _signed(buffer, at)
        value, at = (kind, at) if kind in (TRUE, FALSE) else _value(buffer, at, kind)
        found[number] = kind, value
    return found, at + 1


def write_struct(struct: Struct) -> bytes:
    """The inverse of `read_struct`."""
    out, last = bytearray(), 0
    for number, (kind, value) in sorted(struct.items()):
        out += bytes([number - last << 4 | kind]) if number - last < 16 else bytes([kind]) + _zigzag(number)
        out += b"" if kind in (TRUE, FALSE) else _written(kind, value)
        last = number
    return bytes(out) + b"\0"


def varint(value: int) -> bytes:
    """An unsigned number, 7 bits per byte."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def _unsigned(buffer: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = buffer[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def _signed(buffer: bytes, at: int) -> tuple[int, int]:
    value, at = _unsigned(buffer, at)
    return value >> 1 ^ -(value & 1), at


def _zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else ~value << 1 | 1)


def _value(buffer: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in _INTS:
        return _signed(buffer, at)
    if kind == STRUCT:
        return read_struct(buffer, at)
    if kind in (LIST, SET):
        n, own, at = buffer[at] >> 4, buffer[at] & 15, at + 1
        if n == 15:
            n, at = _unsigned(buffer, at)
        values = []
        for _ in range(n):
            value, at = _value(buffer, at, own)
            values.append(value)
        return (own, values), at
    n = {TRUE: 1, FALSE: 1, BYTE: 1, DOUBLE: 8}.get(kind, 0)  # truth values of a list have a byte each
    if kind == BINARY:
        n, at = _unsigned(buffer, at)
    elif n == 0:
        raise ValueError(f"a value has the kind {kind}, which Parquet does not use")
    return buffer[at : at + n], at + n


def _written(kind: int, value: Any) -> bytes:
    if kind in _INTS:
        return _zigzag(value)
    if kind == STRUCT:
        return write_struct(value)
    if kind in (LIST, SET):
        own, values = value
        head = bytes([len(values) << 4 | own]) if len(values) < 15 else bytes([15 << 4 | own]) + varint(len(values))
        return head + b"".join(_written(own, each) for each in values)
    return (varint(len(value)) if kind == BINARY else b"") + bytes(value)
