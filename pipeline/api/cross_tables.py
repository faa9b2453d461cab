"""Edges of a table in memory with a column per right vertex, such as `pandas.crosstab` makes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.pipeline.ingest.readers.base import shorten
from bicliques.pipeline.ingest.readers.cells import cells_of, has_edge, is_empty
from bicliques.pipeline.ingest.readers.columns import find_column
from bicliques.pipeline.ingest.readers.in_memory import is_whole, labels_of
from bicliques.schemas.errors import InputError
from bicliques.schemas.option import as_plain

#: Rows of the other columns that are looked at when the first one may have labels, and the fewest that can tell.
_LOOKED_AT, _FEWEST = 100, 3


def from_table(frame: Any, above: float = 0, labels: str | int | bool | None = None) -> pa.Table:
    """Read the edges of a table with a column per right vertex.

    A cell is an edge if it is a number larger than `above`, true, or a mark such as X, yes or y. Empty cells, nulls,
    false, and marks such as no, n and a dot are none.

    Parameters
    ----------
    frame : table of pandas, Polars, Dask or Arrow, or array of NumPy
        Rows are left vertices, and the names of the columns are the labels of the right ones. Those of an array are
        numbered from 0.
    above : float
        Numbers up to this one are no edges.
    labels : str, int, bool or None
        The column, or the level of a pandas index, that has the labels of the left vertices. False: there is none, and
        rows are numbered from 0. None: the index of a pandas frame, if it has a name or is not 0, 1, 2 and so on; or
        else the first column, if its values are no cells; or else none.

    Returns
    -------
    Table
        Columns ``left`` and ``right``, a row per edge, as a source for the other calls.

    Raises
    ------
    InputError
        A label is there twice, or is neither an integer nor text, a cell is neither a number nor a known mark, or it
        is unclear whether the first column has labels or cells.

    Examples
    --------
    >>> import pandas as pd, bicliques as bq
    >>> visits = pd.crosstab(["sage", "sage", "mint"], ["bee", "fly", "bee"])
    >>> bq.count(bq.from_table(visits), progress=False).count
    2
    """
    name = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__qualname__}"
    if type(above := as_plain(above)) not in (int, float) or above != above:
        raise InputError(f"{name}: above must be a number, not {above!r:.60}")
    if type(labels := as_plain(labels)) not in (str, int, bool, type(None)) or labels is True:
        raise InputError(f"{name}: labels must be a column (str or int), False or None, not {labels!r:.60}")
    left, names, columns = _parts(frame, name, labels)
    own = None
    if left is None and labels is None:
        own = 0 if columns and _has_labels(name, names, columns, isinstance(frame, np.ndarray)) else None
    elif left is None and labels is not False:
        own = find_column(name, labels, names, len(names))
    if own is not None:
        left = _values(columns.pop(own))
        del names[own]
    left = list(range(len(columns[0]) if columns else 0)) if left is None else left
    sides = []
    for what, values in (("the labels of the rows", left), ("the names of the columns", names)):
        side = labels_of(f"{name}: {what}", values, "place", "convert them")
        if side.null_count:
            raise InputError(f"{name}: {what} have none at place {values.index(None) + 1}; fill it in")
        if len(set(values)) < len(values):
            twice = next(value for value in values if values.count(value) > 1)
            raise InputError(f"{name}: {what} have {twice!r} twice; rename one, or name other labels with labels=")
        sides.append(side)
    found = [np.flatnonzero(_edges_of(f"{name}: column {names[k]!r}", columns[k], above)) for k in range(len(columns))]
    places = np.repeat(np.arange(len(found)), [len(rows) for rows in found])
    rows = np.concatenate([np.empty(0, np.int64), *found])
    return pa.table({"left": sides[0].take(pa.array(rows)), "right": sides[1].take(pa.array(places))})


def _parts(frame: Any, name: str, labels: str | int | None) -> tuple[list[Any] | None, list[Any], list[Any]]:
    """The labels of the rows, if the table has them beside its columns; the names of the columns; and the columns."""
    if isinstance(frame, np.ndarray) and frame.ndim == 2:
        return None, list(range(frame.shape[1])), list(np.asfortranarray(frame).T)
    for compute in ("compute", "collect"):
        frame = getattr(frame, compute)() if hasattr(type(frame), compute) else frame  # no column of this name
    if not hasattr(type(frame), "iloc"):
        try:
            table = pa.table(frame)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InputError(
                f"{name} is no table; give a frame of pandas or Polars, an Arrow table, or an array of NumPy"
            ) from error
        if table.schema.pandas_metadata is None:
            return None, list(table.column_names), list(table.columns)
        frame = table.to_pandas()  # its index is among the columns
    if frame.ndim != 2:
        raise InputError(f"{name} is one column and no table; give a frame (series.unstack(), if it has two levels)")
    names, levels = frame.columns.tolist(), list(frame.index.names)
    columns = [frame.iloc[:, k] for k in range(len(names))]
    if labels is not None and labels in levels and labels not in names:
        return frame.index.get_level_values(labels).tolist(), names, columns
    is_numbered = levels == [None] and frame.index.equals(type(frame)(index=range(len(frame))).index)
    if is_numbered or labels is not None:
        return None, names, columns
    if len(levels) > 1:
        raise InputError(f"{name}: the index has {len(levels)} levels; make one of them, or name one with labels=")
    return frame.index.tolist(), names, columns


def _has_labels(name: str, names: Sequence[Any], columns: Sequence[Any], is_array: bool) -> bool:
    """Whether the first column has labels and no cells. Numbers that are all different may be both."""
    first = _values(columns[0])
    if None in map(has_edge, dict.fromkeys(map(str, first))):
        return True
    fit = all(isinstance(value, str) or (is_whole(value) and value >= 0) for value in first)
    is_alone = is_array or len(columns) == 1 or not first
    if is_alone or not fit or len(set(first)) < len(first) or any(map(is_empty, first)):
        return False
    others = cells_of(_values(column, _LOOKED_AT) for column in columns[1:])
    is_ascending = all(map(is_whole, first)) and all(a < b for a, b in pairwise(first))
    if is_ascending and len(first) >= _FEWEST and others in ("flags", "marks"):
        return True
    raise InputError(
        f"{name}: column {names[0]!r} may have the labels of the rows or cells, as the others; say "
        f"labels={names[0]!r}, or labels=False"
    )


def _edges_of(what: str, column: Any, above: float) -> np.ndarray:
    """Which cells of a column are edges."""
    if hasattr(column, "iloc") and column.dtype.kind in "biuf":  # which of pandas may have nulls
        edges = column if column.dtype.kind == "b" else column > above
        return np.asarray(edges.to_numpy(np.bool_, na_value=False))
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return np.asarray(values if values.dtype.kind == "b" else values > above)
    cells = list(map(str, _values(column)))
    known = {cell: has_edge(cell, above) for cell in dict.fromkeys(cells)}
    odd = next((row for row, cell in enumerate(cells) if known[cell] is None), None)
    if odd is not None:
        shown = shorten(cells[odd])
        raise InputError(
            f"{what} has {shown} in row {odd + 1}, which is neither a number nor a mark such as X; correct it, or name "
            "the column of the rows' labels with labels="
        )
    return np.array([known[cell] for cell in cells], np.bool_)


def _values(column: Any, n: int | None = None) -> list[Any]:
    """The first `n` values of a column, or all."""
    part = (column.iloc if hasattr(column, "iloc") else column)[:n]
    values: list[Any] = (part.to_pylist if isinstance(part, pa.ChunkedArray) else part.tolist)()
    return values
