"""Columns of lists, as of a table with a row per transaction: every item of a list is an edge to the label beside it.

An empty list and a null in the place of a list have no edges. A null in a list is a bad label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest.readers.sieve import as_bytes, check_rows, check_values, is_list
from schemas.errors import InputError

__all__ = ["Slice", "refuse_lone_list", "slices"]


@dataclass(frozen=True)
class Slice:
    """Some edges of a table.

    Parameters
    ----------
    left, right : Array
        Of the same length, without lists.
    start, stop : int
        The rows of the table that they are of.
    rows : ndarray or None
        The row of every edge, counted from `start`. None if every row is an edge.
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


def refuse_lone_list(place: str, schema: pa.Schema) -> None:
    """Refuse a table whose only column holds lists."""
    if len(schema) == 1 and is_list(schema.types[0]):
        raise InputError(
            f"{place}: column {schema.names[0]!r} holds lists, but there is no column of labels beside it; add one "
            "that numbers the rows (pandas: frame.reset_index())"
        )


def slices(place: str, left: pa.Array, right: pa.Array, most: int) -> Iterator[Slice]:
    """The edges of two columns, at most about `most` at a time, checked for damage.

    Raises
    ------
    ArrowInvalid
        A column is damaged, or one has more rows than the other.
    InputError
        Both columns hold lists.
    """
    if len(left) != len(right):
        raise pa.ArrowInvalid(f"one column has {len(left)} rows and the other one {len(right)}")
    lists = [is_list(column.type) for column in (left, right)]
    if all(lists):
        raise InputError(f"{place}: both columns hold lists; one of the two needs a label per row")
    if any(lists):
        yield from _of_lists(left, right, most, lists[0])
        return
    for column in (left, right):
        check_values(column)
    for start in range(0, len(left), most):
        rows = left.slice(start, most), right.slice(start, most)
        for column in rows:
            check_rows(column)
        yield Slice(*rows, start, start + len(rows[0]))


def _of_lists(left: pa.Array, right: pa.Array, most: int, left_has_lists: bool) -> Iterator[Slice]:
    lists, labels = (left, right) if left_has_lists else (right, left)
    _check_lists(lists)
    check_values(labels)
    check_rows(labels)
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
    """Refuse damaged offsets, and damaged items as `check_rows` does, whether or not text is UTF-8."""
    lists.validate()
    if pa.types.is_list(lists.type) or pa.types.is_large_list(lists.type):
        type(lists).from_arrays(lists.offsets, as_bytes(lists.values)).validate(full=True)
    else:
        lists.validate(full=True)
    check_values(lists.values)
    check_rows(lists.flatten())


def _taken(labels: pa.Array, places: pa.Array) -> pa.Array:
    if labels.type == pa.string_view():  # Arrow's `take` does not support it
        labels = labels.dictionary_encode()
    if not pa.types.is_dictionary(labels.type):
        return labels.take(places)
    return pa.DictionaryArray.from_arrays(labels.indices.take(places), labels.dictionary)
