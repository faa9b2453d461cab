"""Which labels are integers, which are text, and what is refused.

One rule for every format: a text is an integer label exactly when it is the plain decimal writing of a
number from 0 to 2**63 - 1, so that writing the number gives the text back. ``007``, ``+7``, ``0x7`` and
``7.0`` are not integers: read as 7 they would merge with vertex 7, and come out altered.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.readers.base import BadLineError, shorten
from schemas.errors import InputError
from schemas.options import LabelType

__all__ = [
    "INTEGER",
    "MAX_INTEGER",
    "TEXT",
    "integers_of",
    "looks_integer",
    "parse_label",
    "sieve",
    "to_integers",
    "why_bad",
    "without_empty",
]

INTEGER = pa.int64()
TEXT = pa.large_string()
MAX_INTEGER = 2**63 - 1

_TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)

_AS_TEXT = "take the labels as text with --label-type string"


def integers_of(schema: pa.Schema, columns: tuple[int, int]) -> tuple[pa.DataType, pa.DataType]:
    """`EdgeStream.integers` of a table whose label columns are at these positions."""
    left, right = (_integer_of(schema.field(k).type) for k in columns)
    return left, right


def _integer_of(column: pa.DataType) -> pa.DataType:
    """int32 where all numbers of the type fit."""
    if pa.types.is_dictionary(column):
        column = column.value_type
    narrow = pa.types.is_integer(column) and column.bit_width < (33 if pa.types.is_signed_integer(column) else 32)
    return pa.int32() if narrow else INTEGER


def to_integers(texts: pa.Array, lowest: int = 0) -> pa.Array | None:
    """Labels as int64, or None when one of them is not an integer label of at least `lowest`.

    Blanks around a number are not part of it.
    """
    numbers = _exact(texts)
    if numbers is None:
        numbers = _exact(pc.ascii_trim(texts, " \t"))
    if numbers is None or (len(numbers) and pc.min(numbers).as_py() < lowest):
        return None
    return numbers


def _exact(texts: pa.Array) -> pa.Array | None:
    try:
        numbers = pc.cast(texts, INTEGER)
    except pa.ArrowInvalid:
        return None
    # Arrow reads 0x10 as 16 and 007 as 7: only what is written back the same way is an integer label.
    same = pc.all(pc.equal(pc.cast(numbers, texts.type), texts), min_count=0)
    return numbers if same.as_py() else None


def without_empty(texts: pa.Array) -> pa.Array | None:
    """`texts` itself, or None when one of them is empty."""
    return None if pc.any(pc.equal(texts, ""), min_count=0).as_py() else texts


def looks_integer(text: str) -> bool:
    """Whether a column that starts with `text` is meant as integers, good or bad ones."""
    digits = text.strip(" \t").removeprefix("-")
    return digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")


def parse_label(text: str, side: str, kind: pa.DataType, lowest: int = 0) -> int | str:
    """One label of the slow pass: the value, or the reason why it is none.

    Parameters
    ----------
    text : str
        The field as it stands in the file.
    side : str
        "left" or "right", for the message.
    kind : DataType
        `INTEGER` or `TEXT`.
    lowest : int
        Smallest integer the format knows.

    Raises
    ------
    BadLineError
        If it is empty, or not an integer label where one is wanted.
    """
    if not text:
        raise BadLineError(f"the {side} label is empty", "fill it in")
    if kind != INTEGER:
        return text
    digits = text.strip(" \t")
    if digits.isascii() and digits.isdigit() and digits[0] != "0" and len(digits) < len(str(MAX_INTEGER)):
        return int(digits)  # most of them; anything else is looked at closely
    if not looks_integer(digits):
        raise BadLineError(
            f"the {side} label {shorten(text)} is not a plain integer, but the column holds integers", _AS_TEXT
        )
    if digits[0] == "-":
        raise BadLineError(f"the {side} label {shorten(text)} is a negative integer", _AS_TEXT)
    if len(digits) > len(str(MAX_INTEGER)) or int(digits) > MAX_INTEGER:
        raise BadLineError(f"the {side} label {shorten(text)} is larger than 2**63 - 1", _AS_TEXT)
    if int(digits) < lowest:
        raise BadLineError(f"the {side} label {digits} is below {lowest}, the first one of this format", _AS_TEXT)
    return int(digits)


def sieve(column: pa.Array, what: str, label_type: LabelType) -> tuple[pa.Array, pa.Array]:
    """Labels of a typed column (Parquet, Arrow, data frames), and which rows hold none.

    Parameters
    ----------
    column : Array
        Integers of any width, strings of any layout, or a dictionary of either.
    what : str
        The source and the side, for the message.
    label_type : "auto", "int" or "string"
        ``int`` reads integers out of strings, ``string`` writes integers as text.

    Returns
    -------
    labels : Array
        int64 or large_string.
    bad : Array of bool
        Rows whose label is null, empty, negative, beyond int64 or (with ``int``) not an integer.

    Raises
    ------
    InputError
        If the column holds neither integers nor strings.
    """
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_integer(column.type):
        return _sieve_integers(column, label_type)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), TEXT), pa.array([True] * len(column), pa.bool_())
    if not any(is_text(column.type) for is_text in _TEXT_TYPES):
        raise InputError(f"{what} column is {column.type}, but labels are integers or strings; cast it to one of them")
    texts = pc.cast(column, TEXT)
    bad = pc.fill_null(pc.equal(texts, ""), True)
    return _integers_in(texts, bad) if label_type == "int" else (texts, bad)


def _sieve_integers(column: pa.Array, label_type: LabelType) -> tuple[pa.Array, pa.Array]:
    if label_type == "string":
        return pc.cast(column, TEXT), pc.is_null(column)
    # A uint64 beyond int64 wraps to a negative number: both are caught by one comparison.
    numbers = pc.cast(column, INTEGER, safe=False)
    return numbers, pc.fill_null(pc.less(numbers, 0), True)


def _integers_in(texts: pa.Array, bad: pa.Array) -> tuple[pa.Array, pa.Array]:
    numbers = to_integers(pc.drop_null(texts)) if not pc.any(bad, min_count=0).as_py() else None
    if numbers is not None:
        return numbers, bad
    values: list[int | str | None] = []
    for text in texts.to_pylist():
        try:
            values.append(parse_label(text or "", "", INTEGER))
        except BadLineError:
            values.append(None)
    numbers = pa.array(values, INTEGER)
    return numbers, pc.is_null(numbers)


def why_bad(value: object, side: str) -> BadLineError:
    """The reason for a row that `sieve` marked, from its original value."""
    if value is None:
        return BadLineError(f"the {side} label is null", "fill it in")
    try:
        label = parse_label(str(value), side, INTEGER)
    except BadLineError as bad:
        return bad
    raise AssertionError(f"sieve marked the good label {label!r}")
