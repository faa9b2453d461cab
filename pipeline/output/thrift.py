"""Reads and writes the compact protocol of Thrift, in which the footer of a Parquet file is written.

It knows no names of fields. What is read and written again is the same, byte for byte, because there is only one way to
write a struct. The protocol: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import Any

#: Types of fields.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
#: From so many entries on, the size of a list follows its type.
_LONG = 15


class Struct(dict[int, tuple[int, Any]]):
    """The fields of a struct: type and value by number, in the order in which they are written.

    Integers are `int`, text and bytes are `bytes`, and a list is (type of its entries, entries). A flag has no value,
    as its type says what it is.
    """

    def get_value(self, field: int) -> Any:
        """The value of a field."""
        return self[field][1]

    def replace(self, field: int, value: Any) -> None:
        """Give a field, which is there, another value."""
        self[field] = (self[field][0], value)


def read_struct(data: memoryview) -> Struct:
    """The struct that `data` begins with.

    Raises
    ------
    ValueError
        The struct has a type that no footer has: a map.
    """
    return _Reader(data).struct()


def written(struct: Struct) -> bytes:
    """The bytes of a struct."""
    out = bytearray()
    _write(out, STRUCT, struct)
    return bytes(out)


class _Reader:
    def __init__(self, data: memoryview):
        self.data, self.at = data, 0

    def struct(self) -> Struct:
        fields, number = Struct(), 0
        while head := self.byte():
            number = number + (head >> 4) if head >> 4 else self.integer()
            fields[number] = (head & 15, self.value(head & 15))
        return fields

    def value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return None
        if kind in (I16, I32, I64):
            return self.integer()
        if kind == STRUCT:
            return self.struct()
        if kind in (BYTE, DOUBLE, BINARY):
            n = {BYTE: 1, DOUBLE: 8}.get(kind) or self.size()
            self.at += n
            return bytes(self.data[self.at - n : self.at])
        if kind in (LIST, SET):
            head = self.byte()
            n = head >> 4 if head >> 4 < _LONG else self.size()
            of_flags = head & 15 in (TRUE, FALSE)  # a flag in a list is a byte
            return head & 15, [self.byte() if of_flags else self.value(head & 15) for _ in range(n)]
        raise ValueError(f"a field has type {kind}, which no footer has")

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def size(self) -> int:
        """Seven bits per byte, the lowest first. All bytes but the last have the eighth bit set."""
        n = shift = 0
        while (byte := self.byte()) & 128:
            n |= (byte & 127) << shift
            shift += 7
        return n | byte << shift

    def integer(self) -> int:
        n = self.size()
        return n >> 1 ^ -(n & 1)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind == STRUCT:
        before = 0
        for number, (of_kind, field) in value.items():
            if 0 < number - before <= _LONG:
                out.append((number - before) << 4 | of_kind)
            else:
                out.append(of_kind)
                _write(out, I16, number)
            _write(out, of_kind, field)
            before = number
        out.append(0)
    elif kind in (I16, I32, I64):
        _write_size(out, value << 1 ^ value >> 63)
    elif kind == BINARY:
        _write_size(out, len(value))
        out += value
    elif kind in (BYTE, DOUBLE):
        out += value
    elif kind in (LIST, SET):
        of_kind, entries = value
        out.append(min(len(entries), _LONG) << 4 | of_kind)
        if len(entries) >= _LONG:
            _write_size(out, len(entries))
        for entry in entries:
            if of_kind in (TRUE, FALSE):
                out.append(entry)
            else:
                _write(out, of_kind, entry)


def _write_size(out: bytearray, n: int) -> None:
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
