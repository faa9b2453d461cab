"""Objects in memory: the table of what can be read, and the readers of tables, sparse matrices and graphs.

The caller's object is only read. A library is recognised by the module that defines the object's class, or a class
that it inherits from. So none of the libraries is imported or has to be installed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import repeat
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.pipeline.ingest.readers import in_memory
from bicliques.pipeline.ingest.readers.base import (
    NAN_REMEDY,
    ON_LABELS,
    ON_TABLES,
    ON_WEIGHTS,
    SIDES,
    EdgeStream,
    refuse_unused,
    to_batch,
)
from bicliques.pipeline.ingest.readers.in_memory import is_whole, pairs_of, refuse_odd
from bicliques.pipeline.ingest.readers.labels import INTEGER
from bicliques.pipeline.ingest.readers.tables import FURTHER_ROWS, ROWS, Table, TableStream
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions

#: What `Table.take` returns.
_Taken = tuple[pa.Schema, Iterable[pa.RecordBatch]]


def open_object(source: Any, options: IngestOptions) -> EdgeStream:
    """The stream of edges of an object in memory. One of an unknown type is refused, and an option that is not used."""
    name = f"{type(source).__module__.partition('.')[0]}.{type(source).__qualname__}"
    if isinstance(source, io.IOBase):
        raise InputError(f"{name} is an open file; give its path, or a table or pairs that you have read from it")
    found = _reader_of(source)
    if found is None:
        raise InputError(
            f"{name} is not a graph; give a path, a pandas, Polars, Dask or Arrow table, a scipy.sparse matrix, a "
            "networkx or igraph graph, a NumPy array, pairs of labels, or a dict of sets"
        )
    opener, used = found
    if options.format is not None:
        raise InputError(f"{as_option('format')} is for files, but the source is {name}; leave it out")
    refuse_unused(name, used, options)
    return opener(source, name, options)


def _reader_of(source: Any) -> tuple[_Opener, frozenset[str]] | None:
    """What opens an object, and the options that apply to it."""
    modules = [f"{base.__module__}." for base in type(source).__mro__]
    for library, member, opener, used in _LIBRARIES:
        if any(module.startswith(library) for module in modules) and hasattr(source, member):
            return opener, used
    if isinstance(source, (bytes, bytearray, memoryview)):  # which are sequences of numbers, too
        return None
    return next(((opener, used) for kind, opener, used in _CONTAINERS if isinstance(source, kind)), None)


def _open_pandas(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    if options.left is None and frame.shape[1] and all(kind.kind == "b" for kind in frame.dtypes):
        index, columns = frame.index.tolist(), frame.columns.tolist()
        return in_memory.one_hot(name, "pandas", options, index, columns, _booleans(frame, name))
    whole, n_index = _with_index(frame)

    def take(wanted: tuple[int, ...]) -> _Taken:
        table = _chosen(whole, name, wanted, options.label_type == "string")
        return table.schema, table.to_batches(max_chunksize=ROWS)

    def first(positions: list[int]) -> Iterable[list[object]]:
        return (whole.iloc[:FURTHER_ROWS, k].tolist() for k in positions)

    return TableStream(name, "pandas", options, Table(list(whole.columns), take, first, "frame", n_index))


def _with_index(frame: Any) -> tuple[Any, int]:
    """A frame of pandas or Dask with the named levels of its index as its first columns, and how many these are."""
    names = [name for name in frame.index.names if name is not None] if hasattr(frame.index, "names") else []
    names = names or ([frame.index.name] if frame.index.name is not None else [])
    if not names:
        return frame, 0
    is_lazy = hasattr(frame, "npartitions")
    return frame.reset_index() if is_lazy else frame.reset_index(level=names, allow_duplicates=True), len(names)


def _as_arrow(series: Any, as_text: bool) -> pa.Array:
    """A column as Arrow has it. With `as_text` Python's integers, which may be large, become text."""
    kind = series.dtype
    if isinstance(kind, np.dtype) and not kind.isnative:
        series = series.astype(kind.newbyteorder("="))
    try:
        return pa.array(series, from_pandas=True)
    except OverflowError:
        if not as_text:
            raise
        return pa.array(series.map(in_memory.whole_as_text), from_pandas=True)


def _chosen(frame: Any, name: str, wanted: tuple[int, ...], as_text: bool) -> pa.Table:
    """The two columns of labels, and that of weights if there is one."""
    arrays = {}
    for k, side in zip(wanted, (*SIDES, "weight"), strict=False):
        series = frame.iloc[:, k]
        try:
            arrays[side] = _as_arrow(series, as_text and side != "weight")
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise in_memory.odd_value(f"{name}: the {side} column", series, "row", str(error)) from error
    return pa.table(arrays)


def _booleans(frame: Any, name: str) -> Iterator[np.ndarray]:
    for k in range(frame.shape[1]):
        series = frame.iloc[:, k]
        if series.isna().any():
            raise InputError(f"{name}: column {frame.columns[k]!r} has a null; say whether it is true (frame.fillna)")
        yield np.asarray(series, dtype=np.bool_)


def _open_dask(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open a Dask frame. A partition at a time is computed, and of it the two columns."""
    frame, n_index = _with_index(frame)
    as_text = options.label_type == "string"

    def take(wanted: tuple[int, ...]) -> _Taken:
        chosen, places = frame.iloc[:, list(wanted)], tuple(range(len(wanted)))

        def batches() -> Iterator[pa.RecordBatch]:
            for k in range(frame.npartitions):
                part = _chosen(chosen.partitions[k].compute(), f"{name}, partition {k}", places, as_text)
                yield from part.to_batches(max_chunksize=ROWS)

        return _chosen(frame._meta, name, wanted, as_text).schema, batches()

    def first(positions: list[int]) -> Iterable[list[object]]:
        rows = frame.partitions[0].head(FURTHER_ROWS)
        return (rows.iloc[:, k].tolist() for k in positions)

    return TableStream(name, "dask", options, Table(list(frame.columns), take, first, "frame.compute()", n_index))


def _refuse_dask(collection: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Refuse a collection of Dask that is no frame. Its elements would be computed one by one."""
    raise InputError(f"{name} is no frame; give a Dask frame, or what compute() makes of it")


def _open_polars(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open a Polars frame. Of a lazy one only the columns are computed that are needed."""
    schema = frame.collect_schema()
    names, kinds = schema.names(), schema.dtypes()
    lazy = frame.lazy()
    if options.left is None and names and all(str(kind) == "Boolean" for kind in kinds):
        frame = lazy.collect()
        if (nulls := [column.name for column in frame if column.null_count()]) != []:
            raise InputError(f"{name}: column {nulls[0]!r} has a null; say whether it is true (frame.fill_null)")
        rows = list(range(frame.height))
        return in_memory.one_hot(name, "polars", options, rows, names, (column.to_numpy() for column in frame))

    def take(wanted: tuple[int, ...]) -> _Taken:
        try:
            table = lazy.select([names[k] for k in wanted]).collect().to_arrow()
        except pa.ArrowException as error:  # as for a column of 128 bits
            kept = " and ".join(f"{names[k]!r} ({kinds[k]})" for k in wanted)
            raise InputError(f"{name}: Arrow cannot take {kept}; cast them to 64-bit integers or strings") from error
        return table.schema, table.to_batches(max_chunksize=ROWS)

    def first(positions: list[int]) -> Iterable[list[object]]:
        rows = lazy.select([names[k] for k in positions]).head(FURTHER_ROWS).collect()
        return (column.to_list() for column in rows)

    code = f"frame{'.collect()' if hasattr(frame, 'collect') else ''}.to_pandas()"
    return TableStream(name, "polars", options, Table(names, take, first, code))


def _open_arrow(table: Any, name: str, options: IngestOptions) -> EdgeStream:
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"{name} is one column and no table; give a table with a column for each side (of a pandas series, "
            "series.reset_index())"
        ) from error
    rows: list[pa.RecordBatch] = []  # the first ones, because a reader can be read only once

    def read(columns: list[int]) -> Iterator[pa.RecordBatch]:
        for batch in reader:
            rows.append(batch.slice(0, 0 if rows else FURTHER_ROWS))
            yield batch.select(columns)

    frame = "pyarrow.table(table).to_pandas()"
    return TableStream(
        name, "arrow", options, Table.of_arrow(reader.schema, read, lambda fit: rows[0].select(fit), frame)
    )


def _open_dataset(dataset: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open an Arrow dataset. Of its files only the columns are read that are needed."""
    names = dataset.schema.names

    def read(columns: list[int]) -> Iterator[pa.RecordBatch]:
        return iter(dataset.scanner(columns=[names[k] for k in columns]).to_batches())

    def head(columns: list[int]) -> pa.Table:
        return dataset.head(FURTHER_ROWS, columns=[names[k] for k in columns])

    table = Table.of_arrow(dataset.schema, read, head, "dataset.to_table().to_pandas()")
    return TableStream(name, "arrow", options, table)


_Opener = Callable[[Any, str, IngestOptions], EdgeStream]


#: What needs no library but NumPy, opener, and options that apply.
_CONTAINERS: tuple[tuple[type, _Opener, frozenset[str]], ...] = (
    (np.ndarray, in_memory.open_array, ON_LABELS | ON_WEIGHTS),
    (Mapping, in_memory.open_mapping, ON_LABELS),
    (Iterable, in_memory.open_pairs, ON_LABELS | ON_WEIGHTS),
)


def open_scipy(matrix: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open a scipy.sparse matrix or array. Labels are row and column numbers from 0."""
    if len(matrix.shape) != 2:
        raise InputError(
            f"{name} has {number(len(matrix.shape), 'dimension')}; a biadjacency matrix has rows and columns"
        )
    entries = matrix.tocoo()

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(entries.data), ROWS):
            part = slice(start, start + ROWS)
            if options.min_weight is None:
                _refuse_nan(name, entries, part)
            kept = entries.data[part] != 0
            columns = [pa.array(ids[part][kept], INTEGER) for ids in (entries.row, entries.col)]
            if options.min_weight is not None:
                columns.append(pa.array(entries.data[part][kept].astype(np.float64)))
            yield to_batch(*columns)

    return TableStream(name, "scipy", options, batches())


def _refuse_nan(name: str, entries: Any, part: slice) -> None:
    """Refuse NaN, which stands for a missing entry: a dense matrix with it is sparse in name alone."""
    missing = entries.data[part] != entries.data[part]
    if missing.any():
        k = part.start + int(missing.argmax())
        raise InputError(
            f"{name} has NaN in row {entries.row[k]}, column {entries.col[k]}, counted from 0; {NAN_REMEDY}"
        )


def open_networkx(graph: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open a networkx graph whose nodes have the attribute ``bipartite``, unless it has one kind of vertices."""
    if options.undirected:
        weights = {} if options.min_weight is None else {"data": options.weight or "weight"}
        return in_memory.open_pairs(graph.edges(**weights), name, options)
    side = dict(graph.nodes(data="bipartite"))
    for node, value in side.items():
        if value not in (0, 1):
            found = "no attribute 'bipartite'" if value is None else f"bipartite={value!r}"
            raise InputError(f"{name}: node {node!r} has {found}; set it to 0 (left) or 1 (right) on every node")
    as_text = options.label_type == "string"
    for k, word in enumerate(SIDES):
        labels = [node for node, value in side.items() if value == k]
        if not (as_text and all(map(is_whole, labels))):
            refuse_odd(f"{name}: the {word} side", labels, "node", "relabel the nodes")

    edges = graph.edges(data=options.weight or "weight")
    return _open_edges(
        name, "networkx", options, edges, side, lambda node: node, "nodes with bipartite", "relabel the nodes"
    )


def _open_edges(
    name: str,
    format: str,
    options: IngestOptions,
    edges: Iterable[tuple[Any, Any, Any]],
    side: Any,
    label: Callable[[Any], Any],
    what: str,
    remedy: str,
) -> EdgeStream:
    """Open edges with their weights. `side` tells which side a vertex is of, and `label` what it is called."""

    def pairs() -> Iterator[tuple[Any, ...]]:
        for u, v, weight in edges:
            wrong = ""
            if options.min_weight is not None and not isinstance(weight, (Real, Decimal)):
                wrong = f"has {options.weight or 'weight'}={weight!r}, which is no number; set it on every edge"
            elif side[u] == side[v]:
                wrong = f"joins two {what}={side[u]}; remove it or correct the attribute"
            if wrong:
                raise InputError(f"{name}: the edge between {label(u)!r} and {label(v)!r} {wrong}")
            ends = (label(v), label(u)) if side[u] else (label(u), label(v))
            yield ends if options.min_weight is None else (*ends, float(weight))

    n = 2 if options.min_weight is None else 3
    batches = pairs_of(name, pairs(), "edge", remedy, n, options.label_type == "string")
    return TableStream(name, format, options, batches, unit="edge")


def _refuse_names_twice(name: str, label: Sequence[Any], side: Sequence[Any]) -> None:
    """Refuse two vertices of one side with one name, because they would be read as one vertex."""
    seen: set[tuple[Any, bool]] = set()
    for vertex, key in enumerate(zip(label, map(bool, side), strict=True)):
        if key in seen and key[0] is not None:
            raise InputError(
                f"{name}: vertex {vertex} is called {key[0]!r} as another one of its side; rename one, or delete the "
                "attribute 'name'"
            )
        seen.add(key)


def open_igraph(graph: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open an igraph graph with the vertex attribute ``type``. Labels are names, or numbers of vertices."""
    known = graph.vs.attributes()
    if options.undirected and options.min_weight is None:
        label = graph.vs["name"] if "name" in known else range(graph.vcount())
        _refuse_names_twice(name, label, [False] * len(label))
        return in_memory.open_pairs(((label[u], label[v]) for u, v in graph.get_edgelist()), name, options)
    if "type" not in known:
        raise InputError(
            f"{name}: the vertices have no attribute 'type'; set it to False (left) or True (right) on every vertex"
        )
    side = graph.vs["type"]
    for vertex, value in enumerate(side):
        if value not in (False, True):
            raise InputError(f"{name}: vertex {vertex} has type={value!r}; set it to False (left) or True (right)")
    label = graph.vs["name"] if "name" in known else range(len(side))
    _refuse_names_twice(name, label, side)

    what = options.weight or "weight"
    weights = graph.es[what] if what in graph.es.attributes() else repeat(None)
    edges = ((u, v, weight) for (u, v), weight in zip(graph.get_edgelist(), weights, strict=False))
    return _open_edges(
        name, "igraph", options, edges, side, label.__getitem__, "vertices with type", "rename the vertices"
    )


#: Beginning of a module's name, an attribute that only its tables or graphs have, opener, and options that apply.
_LIBRARIES: tuple[tuple[str, str, _Opener, frozenset[str]], ...] = (
    ("pandas.", "itertuples", _open_pandas, ON_TABLES),
    ("polars.", "lazy", _open_polars, ON_TABLES),
    ("dask.", "itertuples", _open_dask, ON_TABLES),
    ("dask.", "__dask_graph__", _refuse_dask, ON_TABLES),
    ("scipy.sparse.", "tocoo", open_scipy, ON_WEIGHTS),
    ("networkx.", "nodes", open_networkx, ON_LABELS | ON_WEIGHTS | {"weight"}),
    ("igraph.", "get_edgelist", open_igraph, ON_LABELS | ON_WEIGHTS | {"weight"}),
    ("pyarrow.", "scanner", _open_dataset, ON_TABLES),
    ("", "__arrow_c_stream__", _open_arrow, ON_TABLES),
)
