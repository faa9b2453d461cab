"""Edges that are Python objects or in NumPy arrays: pairs, neighbours by label, and tables of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.pipeline.ingest.readers.base import ON_LABELS, SIDES, EdgeStream, refuse_unused, shorten, to_batch
from bicliques.pipeline.ingest.readers.columns import matrix_remedy
from bicliques.pipeline.ingest.readers.labels import MAX_INTEGER
from bicliques.pipeline.ingest.readers.tables import ROWS, TableStream
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions

#: The types that a pair may have. Text of two letters and sets are none.
_PAIRS = (tuple, list, np.ndarray)
#: What an edge is without weights and with them, by its length.
_EDGES = {
    2: "give pairs of a left and a right one",
    3: f"give (left, right, weight), or leave {as_option('min_weight')} out",
}
_CONVERT = "convert the labels"
#: What the values of a mapping may be. A list may be a column of a table, and so its elements no neighbours.
_NEIGHBOURS = (set, frozenset)
#: Entries of a table that are looked at together.
_ENTRIES = 1 << 24


def labels_of(
    what: str, values: list[Any], unit: str, remedy: str, n_before: int = 0, as_text: bool = False
) -> pa.Array:
    """Labels that are Python objects as a column of integers or of text. None is a null.

    In messages `what` is the object and the side, `unit` is a word for the place of a value, of which `n_before`
    are before these, and `remedy` says what to do with one that is no label. With `as_text` integers of any size
    become text.
    """
    if as_text and not any(isinstance(value, str) for value in values):  # 7 and "7" may be two vertices
        values = list(map(whole_as_text, values))
    try:
        labels = pa.array(values)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        refuse_odd(what, values, unit, remedy, n_before, missing=False)
        raise InputError(f"{what}: a label does not fit ({error}); {remedy}") from error
    if not (pa.types.is_integer(labels.type) or pa.types.is_string(labels.type) or pa.types.is_null(labels.type)):
        refuse_odd(what, values, unit, remedy, n_before, missing=False)
    return labels


def _weights_of(name: str, values: Iterable[Any], unit: str, n_before: int = 0) -> pa.Array:
    """Weights that are Python objects as a column of numbers. None is a null."""
    found = []
    for place, weight in enumerate(values, n_before + 1):
        is_number = isinstance(weight, (Real, Decimal)) and not isinstance(weight, bool)
        if weight is not None and not is_number:
            shown = shorten(repr(weight))
            raise InputError(f"{name}: the weight at {unit} {place} is {shown}, which is no number; convert it to one")
        found.append(None if weight is None else float(weight))
    return pa.array(found, pa.float64())


def pairs_of(
    name: str, pairs: Iterable[Any], unit: str, remedy: str, n: int = 2, as_text: bool = False
) -> Iterator[pa.RecordBatch]:
    """Batches of edges that are pairs of Python objects, or triples with a weight (`n`). See `labels_of`."""
    pairs, n_before = iter(pairs), 0
    kinds: list[pa.DataType | None] = [None, None]
    while part := list(islice(pairs, ROWS)):
        for place, pair in enumerate(part, n_before + 1):
            if not isinstance(pair, _PAIRS) or len(pair) != n:
                has_weight = isinstance(pair, _PAIRS) and len(pair) == 3
                more = f", and a weight only with {as_option('min_weight')}" if has_weight else ""
                raise InputError(f"{name}: {shorten(repr(pair))} at {unit} {place} is no edge; {_EDGES[n]}{more}")
        columns = []
        for k, side in enumerate(SIDES):
            labels = labels_of(f"{name}: the {side} side", [pair[k] for pair in part], unit, remedy, n_before, as_text)
            if kinds[k] is not None and not pa.types.is_null(labels.type) and labels.type != kinds[k]:
                raise InputError(
                    f"{name}: the {side} side mixes integers and strings (from {unit} {n_before + 1} on); {remedy} to "
                    "one of them"
                )
            kinds[k] = labels.type if kinds[k] is None and not pa.types.is_null(labels.type) else kinds[k]
            columns.append(labels)
        if n > len(columns):
            columns.append(_weights_of(name, (pair[2] for pair in part), unit, n_before))
        yield to_batch(*columns)
        n_before += len(part)


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, of Python or of NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole_as_text(value: Any) -> Any:
    """An integer as text. Other values stay as they are."""
    return str(value) if is_whole(value) else value


def _is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, and what pandas has for that."""
    is_nan = isinstance(value, (float, np.floating)) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def refuse_odd(
    what: str, values: Iterable[Any], unit: str, remedy: str, n_before: int = 0, missing: bool = True
) -> None:
    """Refuse values that are neither all integers of 64 bits nor all strings. `missing` ones may be left to others.

    Arrow takes None for a null, which is refused where rows are counted.
    """
    first: type | None = None
    for place, value in enumerate(values, n_before + 1):
        kind = int if is_whole(value) else str if isinstance(value, str) else type(value)
        if _is_missing(value):
            if value is not None and not missing:
                reason = "which is no label; fill it in, or leave it out"
                raise InputError(f"{what} has {value} at {unit} {place}, {reason}")
            continue
        if kind not in (int, str):
            raise InputError(
                f"{what} has a {kind.__name__} at {unit} {place} ({shorten(str(value))}), "
                f"but labels are integers or strings; {remedy}"
            )
        if kind is int and not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise InputError(
                f"{what} has {shorten(str(value))} at {unit} {place}, but integer labels go from 0 to 2**63 - 1; take "
                f"the labels as text with {as_option('label_type', 'string')}"
            )
        if first is not None and kind is not first:
            raise InputError(
                f"{what} mixes integers and strings ({shorten(str(value))} at {unit} {place}); {remedy} to one of them"
            )
        first = kind


def odd_value(what: str, values: Iterable[Any], unit: str, reason: str) -> InputError:
    """The error for a column that Arrow cannot take, for a `reason`."""
    try:
        refuse_odd(what, values, unit, "convert the column")
    except InputError as error:
        return error
    return InputError(f"{what} cannot be read ({reason}); convert it to 64-bit integers or strings")


def open_pairs(pairs: Iterable[Any], name: str, options: IngestOptions) -> EdgeStream:
    """Open an iterable of pairs, with weights behind them if these matter. A generator is consumed by the million."""
    n = _width(options)
    if isinstance(pairs, tuple) and all(isinstance(each, np.ndarray) and each.ndim == 1 for each in pairs):
        lengths = {len(pairs), *map(len, pairs)}
        if lengths == {n}:
            raise InputError(
                f"{name}: {n} arrays of {n} may be columns or edges; give list(zip(*arrays)) if "
                "they are columns, or list(map(tuple, arrays)) if each is an edge"
            )
        if len(pairs) == n and len(set(map(len, pairs))) == 1:
            pairs = zip(*(each.tolist() for each in pairs), strict=True)
    batches = pairs_of(name, pairs, "pair", _CONVERT, n, options.label_type == "string")
    return TableStream(name, "python", options, batches, unit="pair")


def _width(options: IngestOptions) -> int:
    """Columns of edges without a table: two sides, and weights if these matter."""
    return 2 if options.min_weight is None else 3


def open_mapping(neighbours: Mapping[Any, Any], name: str, options: IngestOptions) -> EdgeStream:
    """Open a mapping from left labels to sets of right labels. One to lists may be a table, too, and is refused."""
    for label, values in neighbours.items():
        if not isinstance(values, _NEIGHBOURS):
            raise InputError(
                f"{name}: the value of {label!r} is a {type(values).__name__}, which may be neighbours or a column; "
                "give a set of right labels for every left label, or a table (pandas.DataFrame)"
            )
    return open_pairs(((u, v) for u, values in neighbours.items() for v in values), name, options)


def open_array(array: np.ndarray, name: str, options: IngestOptions) -> EdgeStream:
    """Open a NumPy array: a row per edge, with its weight if weights matter, or a row and a column per vertex."""
    if array.ndim != 2 or array.dtype.names:
        raise InputError(
            f"{name} has {number(array.ndim, 'dimension')} of {array.dtype}; give two columns of labels, or a table of "
            "booleans"
        )
    is_flags = array.dtype == np.bool_
    if options.min_weight is not None:
        _refuse_matrix(array, name, options.min_weight)
    if array.shape[1] == _width(options) and not is_flags:
        if array.dtype.kind in "fc" or _has_only_flags(array):
            raise InputError(
                f"{name} may be columns of labels or a table of 0 and 1; convert labels to integers or strings "
                "(a list of tuples always means edges), or the table with .astype(bool)"
            )
        return TableStream(name, "numpy", options, _rows(array, name, options))
    refuse_unused(name, frozenset(), options)
    if not is_flags and not _has_only_flags(array):
        raise InputError(
            f"{name} has {array.shape[1]} columns and not only 0 and 1; give two columns of labels, or a table of "
            "booleans such as array > 0"
        )
    step = max(_ENTRIES // max(array.shape[1], 1), 1)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(array), step):
            rows, columns = np.nonzero(array[start : start + step])
            yield to_batch(pa.array(rows + start), pa.array(columns))

    return TableStream(name, "numpy", options, batches())


def _refuse_matrix(array: np.ndarray, name: str, least: float) -> None:
    """Refuse what has weights, but no column of them."""
    remedy = matrix_remedy(least)
    if array.dtype.kind in "fc":
        raise InputError(
            f"{name} holds floating-point numbers, which are no labels; give a list of (left, right, weight), or a "
            f"table with a column of weights; {remedy}"
        )
    if array.shape[1] != 3 or array.dtype.kind == "b":
        raise InputError(
            f"{name} has {array.shape[1]} columns of {array.dtype}, but {as_option('min_weight')} needs three: left, "
            f"right and weight; {remedy}"
        )


def _rows(array: np.ndarray, name: str, options: IngestOptions) -> Iterator[pa.RecordBatch]:
    parts = (array[start : start + ROWS] for start in range(0, len(array), ROWS))
    if array.dtype.kind not in "iu":
        rows = (row for part in parts for row in part.tolist())
        yield from pairs_of(name, rows, "row", _CONVERT, array.shape[1], options.label_type == "string")
    for part in parts:
        yield to_batch(*map(pa.array, part.T.astype(array.dtype.newbyteorder("="), copy=False)))


def _has_only_flags(array: np.ndarray) -> bool:
    """Whether all values are 0 or 1. Nothing is copied if one of the first is another."""
    if array.dtype.kind not in "iufbO" or array.size == 0:
        return False
    step = max(_ENTRIES // array.shape[1], 1)
    return all(bool(np.isin(array[start : start + step], (0, 1)).all()) for start in range(0, len(array), step))


def one_hot(
    name: str, format: str, options: IngestOptions, left: list[Any], right: list[Any], columns: Iterable[np.ndarray]
) -> EdgeStream:
    """Open a table of booleans with a column per right vertex. `left` and `right` label the rows and the columns."""
    refuse_unused(name, ON_LABELS, options)
    sides, as_text = [], options.label_type == "string"
    for what, labels in (("index", left), ("row of column names", right)):
        if len(set(labels)) < len(labels):
            twice = next(label for label in labels if labels.count(label) > 1)
            raise InputError(f"{name}: the {what} has {twice!r} twice; rename one, or make an edge of every 1")
        sides.append(labels_of(f"{name}: the {what}", labels, "place", _CONVERT, as_text=as_text))

    def batches() -> Iterator[pa.RecordBatch]:
        for k, column in enumerate(columns):
            rows = np.flatnonzero(column)
            yield to_batch(sides[0].take(pa.array(rows)), sides[1].take(pa.array(np.full(len(rows), k))))

    return TableStream(name, format, options, batches())
