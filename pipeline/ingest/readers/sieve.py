"""Labels of typed columns (Parquet, Arrow, data frames): what may hold them, and which rows have none.

A column may hold lists, as of a table with a row per transaction: every item of a list is an edge to the label beside
it. An empty list and a null in the place of a list have no edges. A null in a list is a bad label.

Arrow does not check columns from files and from other libraries, whose damaged offsets make it read outside of a
buffer. So columns are checked first. Text that repeats keeps its dictionary: two thousand labels of one megabyte, of
which four are different, take four megabytes of memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.readers.base import BadLineError, shorten
from bicliques.pipeline.ingest.readers.blocks import LINE_BYTES
from bicliques.pipeline.ingest.readers.labels import INTEGER, TEXT, parse_label, to_integers
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import LabelType

_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
_LISTS = (pa.ListType, pa.LargeListType, pa.FixedSizeListType, pa.ListViewType, pa.LargeListViewType)


def is_text(kind: pa.DataType) -> bool:
    """Whether values of this type are strings, in any layout."""
    return kind in _BYTES


def is_list(kind: pa.DataType) -> bool:
    """Whether values of this type are lists, in any layout."""
    return isinstance(kind, _LISTS)


def _label_type_of(kind: pa.DataType) -> pa.DataType:
    """The type of the labels in a column: of its values, of what its lists hold, or of what its dictionary holds."""
    kind = kind.value_type if is_list(kind) else kind
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def integers_of(schema: pa.Schema) -> tuple[pa.DataType, pa.DataType]:
    """`EdgeStream.integers` of a left and a right column: int32 if all numbers of the type fit into it."""

    def integer_of(column: pa.DataType) -> pa.DataType:
        narrow = pa.types.is_integer(column) and column.bit_width < (33 if pa.types.is_signed_integer(column) else 32)
        return pa.int32() if narrow else INTEGER

    return integer_of(_label_type_of(schema.types[0])), integer_of(_label_type_of(schema.types[1]))


def kinds_of(schema: pa.Schema, label_type: LabelType) -> tuple[pa.DataType | None, pa.DataType | None]:
    """`EdgeStream.kinds` of a left and a right column."""

    def kind_of(column: pa.DataType) -> pa.DataType | None:
        is_integer = pa.types.is_integer(column)
        if not is_integer and not is_text(column):
            return None
        return INTEGER if label_type == "int" or (label_type == "auto" and is_integer) else TEXT

    return kind_of(_label_type_of(schema.types[0])), kind_of(_label_type_of(schema.types[1]))


def _as_bytes(column: pa.Array) -> pa.Array:
    """The same column as bytes, which need not be UTF-8. It shares all buffers."""
    return column.view(_BYTES[column.type]) if column.type in _BYTES else column


def _check_values(column: pa.Array) -> None:
    """Refuse damaged values of a dictionary. Then `_check_rows` need not check them again for every slice."""
    if pa.types.is_dictionary(column.type):
        _check_values(column.dictionary)
        _check_rows(column.dictionary)


def _check_rows(column: pa.Array) -> None:
    """Refuse damaged rows. UTF-8 is not checked, and of a dictionary column only the indices are.

    Raises `ArrowInvalid`: an offset, an index or a length is out of range.
    """
    if not pa.types.is_dictionary(column.type):
        _as_bytes(column).validate(full=True)
        return
    column.indices.validate(full=True)
    bounds = pc.min_max(column.indices).as_py()
    if bounds["min"] is not None and not 0 <= bounds["min"] <= bounds["max"] < len(column.dictionary):
        raise pa.ArrowInvalid(f"an index is outside of its dictionary of {len(column.dictionary)} values")


def not_utf8(texts: pa.Array) -> pa.Array | None:
    """Which rows are not UTF-8, of type bool. None when all are. `_check_rows` must have passed the rows."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        values = _as_bytes(texts).to_pylist()
        return pa.array([value is not None and not _is_utf8(value) for value in values], pa.bool_())
    return None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def sieve(column: pa.Array, what: str, label_type: LabelType) -> tuple[pa.Array, pa.Array]:
    """Labels of a column, and which rows have none. `what` is the source and the side, for the message.

    The column has integers of any width, strings of any layout, or a dictionary of either, and its structure is
    checked. It is refused if it has others. The labels are int64, large_string, or a dictionary of large_string in
    which every value occurs. A row has none if its label is null, empty, too long, not UTF-8, negative, beyond
    int64, or no integer although the label type is "int".
    """
    if column.type == pa.string_view():  # rows may share their bytes
        column = column.dictionary_encode()
    if pa.types.is_dictionary(column.type):
        return _sieve_dictionary(column, what, label_type)
    if pa.types.is_integer(column.type):
        return _sieve_integers(column, label_type)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), TEXT), pa.array(np.ones(len(column), np.bool_))
    if not is_text(column.type):
        raise InputError(f"{what} column is {column.type}, but labels are integers or strings; cast it to one of them")
    texts = pc.cast(column, TEXT)
    n_bytes = pc.fill_null(pc.binary_length(texts), 0)
    bad = pc.or_(pc.equal(n_bytes, 0), pc.greater(n_bytes, LINE_BYTES))
    if (broken := not_utf8(texts)) is not None:
        bad = pc.or_(bad, broken)
        texts = pc.if_else(bad, pa.scalar(None, TEXT), texts)  # bad rows must not be read as text
    return _integers_in(texts, bad) if label_type == "int" else (texts, bad)


def only_used(column: pa.Array) -> pa.Array:
    """A dictionary column without values that no row has. Other columns are unchanged."""
    if not pa.types.is_dictionary(column.type):
        return column
    there = np.zeros(len(column.dictionary), np.bool_)
    rows = pc.drop_null(column.indices).to_numpy()
    there[rows] = True
    if there.all():
        return column
    places = pa.array(np.cumsum(there, dtype=np.int32) - 1)
    return pa.DictionaryArray.from_arrays(
        places.take(column.indices), column.dictionary.take(pa.array(np.flatnonzero(there)))
    )


def _sieve_dictionary(column: pa.DictionaryArray, what: str, label_type: LabelType) -> tuple[pa.Array, pa.Array]:
    values, rows = column.dictionary, column.indices
    if values.type == pa.string_view():  # Arrow's `take` does not support it
        encoded = values.dictionary_encode()
        values, rows = encoded.dictionary, encoded.indices.take(rows)
        values = pc.cast(values, TEXT)
    column = only_used(pa.DictionaryArray.from_arrays(rows, values))
    labels, bad_values = sieve(column.dictionary, what, label_type)
    bad = pc.fill_null(bad_values.take(column.indices), True)
    if labels.type != TEXT:
        return labels.take(column.indices), bad
    return pa.DictionaryArray.from_arrays(column.indices, labels), bad


def _sieve_integers(column: pa.Array, label_type: LabelType) -> tuple[pa.Array, pa.Array]:
    if label_type == "string":
        return pc.cast(column, TEXT), pc.is_null(column)
    # A uint64 beyond int64 wraps to a negative number, so one comparison finds both.
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


def why_bad(column: pa.Array, row: int, side: str) -> BadLineError:
    """The reason for a row that `sieve` marked. It got the column, and the side is "left" or "right"."""
    value = _stored(column, row)
    if value is None:
        return BadLineError(f"the {side} label is null", "fill it in")
    if isinstance(value, bytes):
        if len(value) > LINE_BYTES:
            return BadLineError(f"the {side} label has {len(value):,} bytes, and {LINE_BYTES:,} are the most", "cut it")
        try:
            text = value.decode()
        except UnicodeDecodeError as error:
            reason = f"byte {error.start + 1} of the {side} label {shorten(value)} is not UTF-8"
            return BadLineError(reason, "write it as UTF-8")
    else:
        text = str(value)
    try:
        label = parse_label(text, side, INTEGER)
    except BadLineError as bad:
        return bad
    raise AssertionError(f"sieve marked the good label {label!r}")


def _stored(column: pa.Array, row: int) -> object:
    """The value of a row. Text is returned as bytes, because it may not be UTF-8."""
    if pa.types.is_dictionary(column.type):
        place = column.indices[row].as_py()
        return None if place is None else _stored(column.dictionary, place)
    return _as_bytes(column)[row].as_py()


@dataclass(frozen=True)
class Slice:
    """Some edges of a table: two arrays without lists, of the same length.

    They are of the rows from `start` to `stop`. `rows` has the row of every edge, counted from `start`, or is None
    if every row is an edge.
    """

    left: pa.Array
    right: pa.Array
    start: int
    stop: int
    rows: np.ndarray | None = None

    def only(self, rows: np.ndarray) -> Slice:
        """The edges of some rows, which are marked by bools."""
        of = np.arange(self.stop - self.start) if self.rows is None else self.rows
        edges = np.flatnonzero(rows[of])
        places = pa.array(edges, pa.int64())
        return Slice(_taken(self.left, places), _taken(self.right, places), self.start, self.stop, of[edges])

    def row(self, edge: int) -> int:
        """The row of the table that has an edge of the slice."""
        return self.start + (edge if self.rows is None else int(self.rows[edge]))


def slices(place: str, left: pa.Array, right: pa.Array, most: int) -> Iterator[Slice]:
    """The edges of two columns, at most about `most` at a time. ArrowInvalid: a column is damaged."""
    if len(left) != len(right):
        raise pa.ArrowInvalid(f"one column has {len(left)} rows and the other one {len(right)}")
    lists = [is_list(column.type) for column in (left, right)]
    if all(lists):
        raise InputError(f"{place}: both columns hold lists; one of the two needs a label per row")
    if any(lists):
        yield from _of_lists(left, right, most, lists[0])
        return
    for column in (left, right):
        _check_values(column)
    for start in range(0, len(left), most):
        rows = left.slice(start, most), right.slice(start, most)
        for column in rows:
            _check_rows(column)
        yield Slice(*rows, start, start + len(rows[0]))


def _of_lists(left: pa.Array, right: pa.Array, most: int, left_has_lists: bool) -> Iterator[Slice]:
    lists, labels = (left, right) if left_has_lists else (right, left)
    _check_lists(lists)
    _check_values(labels)
    _check_rows(labels)
    if not pa.types.is_dictionary(labels.type) and not pa.types.is_integer(labels.type):
        labels = labels.dictionary_encode()  # a label is needed once per item
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    until = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    start = 0
    while start < len(lists):
        stop = max(int(np.searchsorted(until, until[start] + most, side="right")) - 1, start + 1)
        rows = np.repeat(np.arange(stop - start), lengths[start:stop])
        items = lists.slice(start, stop - start).flatten()
        beside = _taken(labels.slice(start, stop - start), pa.array(rows, pa.int64()))
        yield Slice(*((items, beside) if left_has_lists else (beside, items)), start, stop, rows)
        start = stop


def _check_lists(lists: pa.Array) -> None:
    """Refuse damaged offsets, and damaged items as `_check_rows` does, whether or not text is UTF-8."""
    lists.validate()
    if pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type):
        type(lists).from_arrays(lists.offsets, _as_bytes(lists.values)).validate(full=True)
    else:
        lists.validate(full=True)
    _check_values(lists.values)
    _check_rows(lists.flatten())


def _taken(labels: pa.Array, places: pa.Array) -> pa.Array:
    if labels.type == pa.string_view():  # Arrow's `take` does not support it
        labels = labels.dictionary_encode()
    if not pa.types.is_dictionary(labels.type):
        return labels.take(places)
    return pa.DictionaryArray.from_arrays(labels.indices.take(places), labels.dictionary)
