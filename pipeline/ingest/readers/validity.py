"""Whether columns are what they claim: asked before anything follows an offset or an index in them.

Arrow takes columns from files and from other libraries as they are, and reads outside of a buffer when an offset
says so. What is text is not known to be UTF-8 either.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_bytes", "check_rows", "check_values", "is_text", "not_utf8"]

_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are strings, however they are laid out."""
    return kind in _BYTES


def as_bytes(column: pa.Array) -> pa.Array:
    """The same column, without the claim that it is UTF-8; shares all buffers."""
    return column.view(_BYTES[column.type]) if column.type in _BYTES else column


def check_values(column: pa.Array) -> None:
    """Refuse a dictionary's values that are damaged, so that `check_rows` need not look at them for every slice.

    Raises
    ------
    ArrowInvalid
        If an offset, an index or a length lies outside.
    """
    if pa.types.is_dictionary(column.type):
        check_values(column.dictionary)
        check_rows(column.dictionary)


def check_rows(column: pa.Array) -> None:
    """Refuse rows that are damaged, whether they are UTF-8 or not; of a dictionary column the indices alone.

    Raises
    ------
    ArrowInvalid
        If an offset, an index or a length lies outside.
    """
    if not pa.types.is_dictionary(column.type):
        as_bytes(column).validate(full=True)
        return
    column.indices.validate(full=True)
    bounds = pc.min_max(column.indices).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(column.dictionary):
        raise pa.ArrowInvalid(f"an index is outside of its dictionary of {len(column.dictionary)} values")


def not_utf8(texts: pa.Array) -> pa.Array | None:
    """Which rows are not UTF-8, of type bool; None when all are. The rows are `check_rows`."""
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
