"""Edges in containers of Python and in NumPy arrays: pairs, neighbours by label, and tables of 0 and 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.ingest.readers.base import ON_LABELS, SIDES, EdgeStream, refuse_unused, to_batch
from pipeline.ingest.readers.columns import matrix_remedy
from pipeline.ingest.readers.in_memory import COLUMNS, labels_of, pairs_of, weights_of
from pipeline.ingest.readers.tables import ROWS, TableStream
from pipeline.run.progress import number
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["one_hot", "open_array", "open_mapping", "open_pairs"]

_CONVERT = "convert the labels"
#: What the values of a mapping may be. A list may be a column of a table, and so its elements no neighbours.
_NEIGHBOURS = (set, frozenset)
#: Entries of a table that are looked at together.
_ENTRIES = 1 << 24


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
    """Open a mapping from left labels to sets of right labels.

    Raises
    ------
    InputError
        A value is no set. A mapping to lists may be a table, too.
    """
    for label, values in neighbours.items():
        if not isinstance(values, _NEIGHBOURS):
            raise InputError(
                f"{name}: the value of {label!r} is a {type(values).__name__}, which may be neighbours or a column; "
                "give a set of right labels for every left label, or a table (pandas.DataFrame)"
            )
    return open_pairs(((u, v) for u, values in neighbours.items() for v in values), name, options)


def open_array(array: np.ndarray, name: str, options: IngestOptions) -> EdgeStream:
    """Open a NumPy array: a row per edge, with its weight if weights matter, or a row and a column per vertex.

    Raises
    ------
    InputError
        It may be both, or is neither.
    """
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
        return TableStream(name, "numpy", options, _rows(array, name, options.label_type == "string"))
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
            f"{name} has {array.shape[1]} columns of {array.dtype}, but --min-weight needs three: left, right and "
            f"weight; {remedy}"
        )


def _rows(array: np.ndarray, name: str, as_text: bool) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(array), ROWS):
        columns = array[start : start + ROWS].T
        if array.dtype.kind in "iu":
            found = list(map(pa.array, columns.astype(array.dtype.newbyteorder("="), copy=False)))
        else:
            sides = zip(SIDES, columns, strict=False)
            found = [
                labels_of(f"{name}: the {word} side", side.tolist(), "row", _CONVERT, start, as_text)
                for word, side in sides
            ]
            found += [weights_of(name, own.tolist(), "row", start) for own in columns[len(SIDES) :]]
        yield pa.RecordBatch.from_arrays(found, names=COLUMNS[: len(found)])


def _has_only_flags(array: np.ndarray) -> bool:
    """Whether all values are 0 or 1. Nothing is copied if one of the first is another."""
    if array.dtype.kind not in "iufbO" or array.size == 0:
        return False
    step = max(_ENTRIES // array.shape[1], 1)
    return all(bool(np.isin(array[start : start + step], (0, 1)).all()) for start in range(0, len(array), step))


def one_hot(
    name: str,
    format: str,
    options: IngestOptions,
    left: list[Any],
    right: list[Any],
    columns: Iterable[np.ndarray],
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
