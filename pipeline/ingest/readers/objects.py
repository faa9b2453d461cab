"""Graphs in memory, of pandas, Polars, Arrow, scipy.sparse and networkx.

The caller's object is only read. A library is recognised by the module that defines the object's class, or a class
that it inherits from. So none of the libraries is imported or has to be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.ingest.readers.base import (
    ON_LABELS,
    ON_TABLES,
    SIDES,
    EdgeStream,
    refuse_unused,
    shorten,
    to_batch,
)
from pipeline.ingest.readers.columns import find_columns, side_names
from pipeline.ingest.readers.labels import INTEGER
from pipeline.ingest.readers.lists import refuse_lone_list
from pipeline.ingest.readers.sieve import integers_of
from pipeline.ingest.readers.tables import FURTHER_ROWS, ROWS, Pair, TableStream, fit_for_flags
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["open_object"]


@dataclass(frozen=True)
class _Table:
    """Facts about a table in memory.

    Parameters
    ----------
    schema : Schema
        Schema of the batches.
    names : (str, str)
        See `EdgeStream.side_names`.
    further : callable
        See `TableStream.further`.
    """

    schema: pa.Schema
    names: tuple[str, str]
    further: Callable[[], Iterable[Iterable[object]]]


class InMemory(TableStream):
    """Edges of an object in memory.

    Parameters
    ----------
    batches : iterable of RecordBatch
        Consumed once.
    columns : pair of int
        Positions of the left and right labels in each batch.
    table : _Table or None
        Given if the batches come from a table with columns.
    """

    def __init__(
        self,
        source: str,
        format: str,
        options: IngestOptions,
        batches: Iterable[pa.RecordBatch],
        columns: tuple[int, int] = (0, 1),
        table: _Table | None = None,
        unit: str = "row",
    ):
        super().__init__(source, format, options, unit)
        self.batches = batches
        self.columns = columns
        self.table = table
        if table is not None:
            self.integers = integers_of(table.schema, columns)
            self.side_names = table.names
            self.guessed = options.left is None

    def further(self) -> Iterable[Iterable[object]]:
        """See `TableStream`."""
        return self.table.further() if self.table is not None else ()

    def pairs(self) -> Iterator[Pair]:
        """See `TableStream`."""
        for batch in self.batches:
            batch.validate()
            left, right = (batch.column(k) for k in self.columns)
            yield left, right

    def damaged(self, reason: str) -> InputError:
        """See `TableStream`."""
        return InputError(f"{self.source} cannot be read ({reason}); make it anew")


def open_object(source: Any, options: IngestOptions) -> EdgeStream:
    """The stream of edges of an object in memory.

    Raises
    ------
    InputError
        The type of the object is not known, or an option does not apply to it.
    """
    name = f"{type(source).__module__.partition('.')[0]}.{type(source).__qualname__}"
    for library, member, opener, used in _LIBRARIES:
        if not (_comes_from(source, library) and hasattr(source, member)):
            continue
        if options.format is not None:
            raise InputError(f"--format is for files, but the source is {name}; leave it out")
        refuse_unused(name, used, options)
        return opener(source, name, options)
    raise InputError(
        f"{name} is not a graph; give a path, a pandas, Polars or Arrow table, a scipy.sparse matrix "
        "or a networkx graph"
    )


def _comes_from(source: Any, library: str) -> bool:
    modules = [base.__module__ for base in type(source).__mro__]
    return library == "" or any(module == library or module.startswith(f"{library}.") for module in modules)


def _open_pandas(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    if frame.shape[1] == 1:
        refuse_lone_list(name, pa.Table.from_pandas(frame.head(FURTHER_ROWS), preserve_index=False).schema)
    columns = find_columns(name, options, list(frame.columns), frame.shape[1])
    arrays = []
    for k, side in zip(columns, SIDES, strict=True):
        series = frame.iloc[:, k]
        try:
            arrays.append(pa.array(series, from_pandas=True))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise _odd_value(f"{name}: the {side} column", series, "row", str(error)) from error
    table = pa.table(arrays, names=list(SIDES))

    def further() -> Iterator[Iterable[object]]:
        for k in set(range(frame.shape[1])) - set(columns):
            yield frame.iloc[:FURTHER_ROWS, k].tolist()

    known = _Table(table.schema, side_names(list(frame.columns), columns), further)
    return InMemory(name, "pandas", options, table.to_batches(max_chunksize=ROWS), table=known)


def _open_polars(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    frame = frame.collect() if hasattr(frame, "collect") else frame
    refuse_lone_list(name, frame.head(1).to_arrow().schema)
    columns = find_columns(name, options, frame.columns, frame.width)
    table = frame.select([frame.columns[k] for k in columns]).to_arrow()

    def further() -> Iterator[Iterable[object]]:
        first = frame.head(FURTHER_ROWS)
        return (first[:, k].to_list() for k in set(range(frame.width)) - set(columns))

    known = _Table(table.schema, side_names(frame.columns, columns), further)
    return InMemory(name, "polars", options, table.to_batches(max_chunksize=ROWS), table=known)


def _open_arrow(table: Any, name: str, options: IngestOptions) -> EdgeStream:
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"{name} is Arrow data but not a table ({error}); give a pyarrow.Table") from error
    names = reader.schema.names
    refuse_lone_list(name, reader.schema)
    columns = find_columns(name, options, names, len(names))
    others = [k for k, kind in enumerate(reader.schema.types) if k not in columns and fit_for_flags(kind)]
    first: list[pa.RecordBatch] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:  # a reader can be read only once
            first.extend([batch.slice(0, FURTHER_ROWS)] if not first else [])
            yield batch

    def further() -> Iterator[Iterable[object]]:
        return (batch.column(k).to_pylist() for batch in first for k in others)

    return InMemory(
        name, "arrow", options, batches(), columns, _Table(reader.schema, side_names(names, columns), further)
    )


def _open_scipy(matrix: Any, name: str, options: IngestOptions) -> EdgeStream:
    if len(matrix.shape) != 2:
        raise InputError(f"{name} has {len(matrix.shape)} dimension(s); a biadjacency matrix has rows and columns")
    entries = matrix.tocoo()

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(entries.data), ROWS):
            part = slice(start, start + ROWS)
            stored = entries.data[part] != 0
            yield to_batch(*(pa.array(ids[part][stored], INTEGER) for ids in (entries.row, entries.col)))

    return InMemory(name, "scipy", options, batches())


def _open_networkx(graph: Any, name: str, options: IngestOptions) -> EdgeStream:
    side = dict(graph.nodes(data="bipartite"))
    for node, value in side.items():
        if value not in (0, 1):
            found = "no attribute 'bipartite'" if value is None else f"bipartite={value!r}"
            raise InputError(f"{name}: node {node!r} has {found}; set it to 0 (left) or 1 (right) on every node")
    for k, word in enumerate(SIDES):
        labels = [node for node, value in side.items() if value == k]
        _refuse_odd(f"{name}: the {word} side", labels, "node", "relabel the nodes")

    def batches() -> Iterator[pa.RecordBatch]:
        edges = iter(graph.edges())
        while part := list(islice(edges, ROWS)):
            ends = [(u, v) if side[u] == 0 else (v, u) for u, v in part]
            for u, v in ends:
                if side[u] == side[v]:
                    raise InputError(
                        f"{name}: the edge between {u!r} and {v!r} joins two nodes with bipartite={side[u]}; "
                        "remove it or correct the attribute"
                    )
            yield to_batch(*(_to_arrow(name, [end[k] for end in ends]) for k in (0, 1)))

    return InMemory(name, "networkx", options, batches(), unit="edge")


def _to_arrow(name: str, labels: list[Any]) -> pa.Array:
    try:
        return pa.array(labels)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        raise InputError(f"{name}: a label does not fit ({error}); relabel the nodes") from error


def _kind(value: Any) -> type:
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int
    return str if isinstance(value, str) else type(value)


def _refuse_odd(what: str, values: Iterable[Any], unit: str, remedy: str) -> None:
    """Refuse values that are neither all integers nor all strings. Nulls are checked elsewhere."""
    first: type | None = None
    for place, value in enumerate(values, 1):
        kind = _kind(value)
        if value is None or value != value:  # NaN
            continue
        if kind not in (int, str):
            raise InputError(
                f"{what} has a {kind.__name__} at {unit} {place} ({shorten(str(value))}), "
                f"but labels are integers or strings; {remedy}"
            )
        if first is not None and kind is not first:
            raise InputError(
                f"{what} mixes integers and strings ({shorten(str(value))} at {unit} {place}); {remedy} to one of them"
            )
        first = kind


def _odd_value(what: str, values: Iterable[Any], unit: str, reason: str) -> InputError:
    try:
        _refuse_odd(what, values, unit, "convert the column")
    except InputError as error:
        return error
    return InputError(f"{what} cannot be read ({reason}); convert it to 64-bit integers or strings")


_Opener = Callable[[Any, str, IngestOptions], EdgeStream]

#: Library, an attribute that only its tables or graphs have, opener, and options that apply.
_LIBRARIES: tuple[tuple[str, str, _Opener, frozenset[str]], ...] = (
    ("pandas", "itertuples", _open_pandas, ON_TABLES),
    ("polars", "lazy", _open_polars, ON_TABLES),
    ("scipy.sparse", "tocoo", _open_scipy, frozenset()),
    ("networkx", "nodes", _open_networkx, ON_LABELS),
    ("", "__arrow_c_stream__", _open_arrow, ON_TABLES),
)
