"""Edges and labels that are Python objects, and the checks of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.ingest.readers.base import SIDES, shorten
from pipeline.ingest.readers.labels import MAX_INTEGER
from pipeline.ingest.readers.tables import ROWS
from schemas.errors import InputError

__all__ = ["COLUMNS", "is_whole", "labels_of", "odd_value", "pairs_of", "refuse_odd", "weights_of", "whole_as_text"]

#: The types that a pair may have. Text of two letters and sets are none.
_PAIRS = (tuple, list, np.ndarray)
#: What an edge is without weights and with them, by its length.
_EDGES = {2: "give pairs of a left and a right one", 3: "give (left, right, weight), or leave --min-weight out"}
#: Names of the columns of a batch of edges.
COLUMNS = (*SIDES, "weight")


def labels_of(
    what: str, values: list[Any], unit: str, remedy: str, n_before: int = 0, as_text: bool = False
) -> pa.Array:
    """Labels that are Python objects as a column of integers or of text.

    Parameters
    ----------
    what : str
        The object and the side, for the message.
    values : list
        Numbers of any type or strings. None is a null.
    unit, remedy : str
        Word for the place of a value, and what to do with one that is no label.
    n_before : int
        Values before these.
    as_text : bool
        Whether integers of any size become text, as the label type "string" has them.
    """
    if as_text and not any(isinstance(value, str) for value in values):  # 7 and "7" may be two vertices
        values = list(map(whole_as_text, values))
    try:
        labels = pa.array(values)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        refuse_odd(what, values, unit, remedy, n_before)
        _refuse_missing(what, values, unit, n_before)
        raise InputError(f"{what}: a label does not fit ({error}); {remedy}") from error
    if not (pa.types.is_integer(labels.type) or pa.types.is_string(labels.type) or pa.types.is_null(labels.type)):
        refuse_odd(what, values, unit, remedy, n_before)
        _refuse_missing(what, values, unit, n_before)
    return labels


def weights_of(name: str, values: Iterable[Any], unit: str, n_before: int = 0) -> pa.Array:
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
    """Batches of edges that are pairs of Python objects, or have a weight behind both labels.

    Parameters
    ----------
    name : str
        The object, for the message.
    pairs : iterable
    unit, remedy, as_text
        As of `labels_of`.
    n : int
        Length of an edge: 2, or 3 with weights. So many columns has a batch.
    """
    pairs, n_before = iter(pairs), 0
    kinds: list[pa.DataType | None] = [None, None]
    while part := list(islice(pairs, ROWS)):
        for place, pair in enumerate(part, n_before + 1):
            if not isinstance(pair, _PAIRS) or len(pair) != n:
                raise InputError(f"{name}: {shorten(repr(pair))} at {unit} {place} is no edge; {_remedy(pair, n)}")
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
            columns.append(weights_of(name, (pair[2] for pair in part), unit, n_before))
        yield pa.RecordBatch.from_arrays(columns, names=COLUMNS[:n])
        n_before += len(part)


def _remedy(pair: Any, n: int) -> str:
    has_weight = isinstance(pair, _PAIRS) and len(pair) == len(COLUMNS)
    return _EDGES[n] + (", and a weight only with --min-weight" if has_weight else "")


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, of Python or of NumPy."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def whole_as_text(value: Any) -> Any:
    """An integer as text. Other values stay as they are."""
    return str(value) if is_whole(value) else value


def _kind(value: Any) -> type:
    if is_whole(value):
        return int
    return str if isinstance(value, str) else type(value)


def _is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, and what pandas has for that."""
    is_nan = isinstance(value, (float, np.floating)) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _refuse_missing(what: str, values: Iterable[Any], unit: str, n_before: int) -> None:
    """Refuse values that stand for none and are not None, which Arrow takes for a null."""
    for place, value in enumerate(values, n_before + 1):
        if value is not None and _is_missing(value):
            raise InputError(f"{what} has {value} at {unit} {place}, which is no label; fill it in, or leave it out")


def refuse_odd(what: str, values: Iterable[Any], unit: str, remedy: str, n_before: int = 0) -> None:
    """Refuse values that are neither all integers of 64 bits nor all strings. Nulls are checked elsewhere."""
    first: type | None = None
    for place, value in enumerate(values, n_before + 1):
        kind = _kind(value)
        if _is_missing(value):
            continue
        if kind not in (int, str):
            raise InputError(
                f"{what} has a {kind.__name__} at {unit} {place} ({shorten(str(value))}), "
                f"but labels are integers or strings; {remedy}"
            )
        if kind is int and not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise InputError(
                f"{what} has {shorten(str(value))} at {unit} {place}, but integer labels go from 0 to 2**63 - 1; "
                "take the labels as text with --label-type string"
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
