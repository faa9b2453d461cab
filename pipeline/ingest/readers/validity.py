"""Checks columns before any offset or index in them is used.

Arrow does not check columns from files and from other libraries. A damaged offset makes it read outside of a buffer,
and text may not be UTF-8.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_bytes", "check_rows", "check_values", "is_text", "not_utf8"]

_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are strings, in any layout."""
    return kind in _BYTES


def as_bytes(column: pa.Array) -> pa.Array:
    """The same column as bytes, which need not be UTF-8. It shares all buffers."""
    return column.view(_BYTES[column.type]) if column.type in _BYTES else column


def check_values(column: pa.Array) -> None:
    """Refuse damaged values of a dictionary. Then `check_rows` need not check them again for every slice.

    Raises
    ------
    ArrowInvalid
        An offset, an index or a length is out of range.
    """
    if pa.types.is_dictionary(column.type):
        check_values(column.dictionary)
        check_rows(column.dictionary)


def check_rows(column: pa.Array) -> None:
    """Refuse damaged rows. UTF-8 is not checked, and of a dictionary column only the indices are.

    Raises
    ------
    ArrowInvalid
        An offset, an index or a length is out of range.
    """
    if not pa.types.is_dictionary(column.type):
        as_bytes(column).validate(full=True)
        return
    column.indices.validate(full=True)
    bounds = pc.min_max(column.indices).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(column.dictionary):
        raise pa.ArrowInvalid(f"an index is outside of its dictionary of {len(column.dictionary)} values")


def not_utf8(texts: pa.Array) -> pa.Array | None:
    """Which rows are not UTF-8, of type bool. None when all are. `check_rows` must have passed the rows."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [value is not None and not _is_utf8(value) for value in as_bytes(texts).to_pylist()], pa.bool_()
        )
    return None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
