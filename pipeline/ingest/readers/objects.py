"""Objects in memory: the table of what can be read, and the readers of tables of pandas, Polars, Dask and Arrow.

The caller's object is only read. A library is recognised by the module that defines the object's class, or a class
that it inherits from. So none of the libraries is imported or has to be installed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.ingest.readers.as_frame import AsFrame
from pipeline.ingest.readers.base import ON_LABELS, ON_TABLES, ON_WEIGHTS, SIDES, EdgeStream, refuse_unused
from pipeline.ingest.readers.columns import find_columns, find_weight, side_names
from pipeline.ingest.readers.containers import one_hot, open_array, open_mapping, open_pairs
from pipeline.ingest.readers.graphs import open_igraph, open_networkx, open_scipy
from pipeline.ingest.readers.in_memory import InMemory, TableFacts, odd_value, whole_as_text
from pipeline.ingest.readers.lists import refuse_lone_list
from pipeline.ingest.readers.tables import FURTHER_ROWS, ROWS, fit_for_flags
from pipeline.ingest.readers.validity import is_text
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["open_object"]


def open_object(source: Any, options: IngestOptions) -> EdgeStream:
    """The stream of edges of an object in memory.

    Raises
    ------
    InputError
        The type of the object is not known, or an option does not apply to it.
    """
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
        raise InputError(f"--format is for files, but the source is {name}; leave it out")
    refuse_unused(name, used, options)
    return opener(source, name, options)


def _reader_of(source: Any) -> tuple[_Opener, frozenset[str]] | None:
    """What opens an object, and the options that apply to it."""
    for library, member, opener, used in _LIBRARIES:
        if _comes_from(source, library) and hasattr(source, member):
            return opener, used
    if isinstance(source, (bytes, bytearray, memoryview)):  # which are sequences of numbers, too
        return None
    for kind, open_it, used in _CONTAINERS:
        if isinstance(source, kind):
            return open_it, used
    return None


def _comes_from(source: Any, library: str) -> bool:
    modules = [base.__module__ for base in type(source).__mro__]
    return library == "" or any(module == library or module.startswith(f"{library}.") for module in modules)


def _as_frame(code: str, names: Sequence[object], labels: pa.Schema) -> AsFrame:
    """What makes a pandas frame of a table with some column names, and with `labels` in its first two columns."""
    return AsFrame(code, repr(names[0]), has_texts=is_text(labels.types[1]))


def _open_pandas(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    if options.left is None and frame.shape[1] and all(kind.kind == "b" for kind in frame.dtypes):
        index, columns = frame.index.tolist(), frame.columns.tolist()
        return one_hot(name, "pandas", options, index, columns, _booleans(frame, name))
    if frame.shape[1] == 1:
        refuse_lone_list(name, pa.Table.from_pandas(frame.head(FURTHER_ROWS), preserve_index=False).schema)
    places = find_columns(name, options, list(frame.columns), frame.shape[1])
    weight = find_weight(name, options, list(frame.columns), frame.shape[1], places)
    table = _chosen(frame, name, places, weight, options.label_type == "string")

    def further() -> Iterator[Iterable[object]]:
        for k in set(range(frame.shape[1])) - {*places, weight}:
            yield frame.iloc[:FURTHER_ROWS, k].tolist()

    names = list(frame.columns)
    known = TableFacts(table.schema, side_names(names, places), further, _as_frame("frame", names, table.schema))
    batches = table.to_batches(max_chunksize=ROWS)
    return InMemory(name, "pandas", options, batches, tuple(range(table.num_columns)), table=known)


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
        return pa.array(series.map(whole_as_text), from_pandas=True)


def _chosen(frame: Any, name: str, columns: tuple[int, int], weight: int | None, as_text: bool) -> pa.Table:
    """The two columns of labels, and that of weights if there is one."""
    arrays = []
    words = (*SIDES, "weight")
    for k, side in zip((*columns, weight), words, strict=True):
        if k is None:
            continue
        series = frame.iloc[:, k]
        try:
            arrays.append(_as_arrow(series, as_text and k != weight))
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise odd_value(f"{name}: the {side} column", series, "row", str(error)) from error
    return pa.table(arrays, names=words[: len(arrays)])


def _booleans(frame: Any, name: str) -> Iterator[np.ndarray]:
    for k in range(frame.shape[1]):
        series = frame.iloc[:, k]
        if series.isna().any():
            raise InputError(f"{name}: column {frame.columns[k]!r} has a null; say whether it is true (frame.fillna)")
        yield np.asarray(series, dtype=np.bool_)


def _open_dask(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open a Dask frame. A partition at a time is computed, and of it the two columns."""
    names = list(frame.columns)
    places = find_columns(name, options, names, len(names))
    weight = find_weight(name, options, names, len(names), places)
    as_text = options.label_type == "string"
    schema = _chosen(frame._meta, name, places, weight, as_text).schema
    first = frame.partitions[0]

    def batches() -> Iterator[pa.RecordBatch]:
        chosen = frame.iloc[:, [k for k in (*places, weight) if k is not None]]
        for k in range(frame.npartitions):
            computed = chosen.partitions[k].compute()
            part = _chosen(computed, f"{name}, partition {k}", (0, 1), None if weight is None else 2, as_text)
            yield from part.to_batches(max_chunksize=ROWS)

    def further() -> Iterator[Iterable[object]]:
        rows = first.head(FURTHER_ROWS)
        return (rows.iloc[:, k].tolist() for k in set(range(len(names))) - {*places, weight})

    as_frame = _as_frame("frame.compute()", names, schema)
    known = TableFacts(schema, side_names(names, places), further, as_frame)
    return InMemory(name, "dask", options, batches(), tuple(range(len(schema))), table=known)


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
        return one_hot(name, "polars", options, rows, names, (column.to_numpy() for column in frame))
    if len(names) == 1:
        refuse_lone_list(name, lazy.head(1).collect().to_arrow().schema)
    columns = find_columns(name, options, names, len(names))
    weight = find_weight(name, options, names, len(names), columns)
    wanted = columns if weight is None else (*columns, weight)
    try:
        table = lazy.select([names[k] for k in wanted]).collect().to_arrow()
    except pa.ArrowException as error:  # as for a column of 128 bits
        kept = " and ".join(f"{names[k]!r} ({kinds[k]})" for k in wanted)
        raise InputError(f"{name}: Arrow cannot take {kept}; cast them to 64-bit integers or strings") from error

    def further() -> Iterator[Iterable[object]]:
        first = lazy.head(FURTHER_ROWS).collect()
        return (first[:, k].to_list() for k in set(range(len(names))) - set(wanted))

    as_frame = _as_frame(f"frame{'.collect()' if hasattr(frame, 'collect') else ''}.to_pandas()", names, table.schema)
    known = TableFacts(table.schema, side_names(names, columns), further, as_frame)
    batches = table.to_batches(max_chunksize=ROWS)
    return InMemory(name, "polars", options, batches, tuple(range(len(wanted))), table=known)


def _open_arrow(table: Any, name: str, options: IngestOptions) -> EdgeStream:
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"{name} is one column and no table; give a table with a column for each side (of a pandas series, "
            "series.reset_index())"
        ) from error
    names = reader.schema.names
    refuse_lone_list(name, reader.schema)
    columns = find_columns(name, options, names, len(names))
    weight = find_weight(name, options, names, len(names), columns)
    wanted = columns if weight is None else (*columns, weight)
    others = [k for k, kind in enumerate(reader.schema.types) if k not in wanted and fit_for_flags(kind)]
    first: list[pa.RecordBatch] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:  # a reader can be read only once
            first.extend([batch.slice(0, FURTHER_ROWS)] if not first else [])
            yield batch

    def further() -> Iterator[Iterable[object]]:
        return (batch.column(k).to_pylist() for batch in first for k in others)

    as_frame = _as_frame("pyarrow.table(table).to_pandas()", names, reader.schema)
    known = TableFacts(reader.schema, side_names(names, columns), further, as_frame)
    return InMemory(name, "arrow", options, batches(), wanted, known)


def _open_dataset(dataset: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open an Arrow dataset. Of its files only the columns are read that are needed."""
    schema = dataset.schema
    refuse_lone_list(name, schema)
    columns = find_columns(name, options, schema.names, len(schema))
    weight = find_weight(name, options, schema.names, len(schema), columns)
    wanted = columns if weight is None else (*columns, weight)
    chosen = pa.schema([schema.field(k) for k in wanted])
    others = [schema.names[k] for k, kind in enumerate(schema.types) if k not in wanted and fit_for_flags(kind)]

    def batches() -> Iterator[pa.RecordBatch]:
        yield from dataset.scanner(columns=chosen.names).to_batches()

    def further() -> Iterator[Iterable[object]]:
        return (column.to_pylist() for column in dataset.head(FURTHER_ROWS, columns=others).columns)

    as_frame = _as_frame("dataset.to_table().to_pandas()", schema.names, chosen)
    known = TableFacts(chosen, side_names(schema.names, columns), further, as_frame)
    return InMemory(name, "arrow", options, batches(), tuple(range(len(wanted))), known)


_Opener = Callable[[Any, str, IngestOptions], EdgeStream]

#: Library, an attribute that only its tables or graphs have, opener, and options that apply.
_LIBRARIES: tuple[tuple[str, str, _Opener, frozenset[str]], ...] = (
    ("pandas", "itertuples", _open_pandas, ON_TABLES),
    ("polars", "lazy", _open_polars, ON_TABLES),
    ("dask", "itertuples", _open_dask, ON_TABLES),
    ("dask", "__dask_graph__", _refuse_dask, ON_TABLES),
    ("scipy.sparse", "tocoo", open_scipy, ON_WEIGHTS),
    ("networkx", "nodes", open_networkx, ON_LABELS | ON_WEIGHTS | {"weight"}),
    ("igraph", "get_edgelist", open_igraph, ON_LABELS | ON_WEIGHTS | {"weight"}),
    ("pyarrow", "scanner", _open_dataset, ON_TABLES),
    ("", "__arrow_c_stream__", _open_arrow, ON_TABLES),
)

#: What needs no library but NumPy, opener, and options that apply.
_CONTAINERS: tuple[tuple[type, _Opener, frozenset[str]], ...] = (
    (np.ndarray, open_array, ON_LABELS | ON_WEIGHTS),
    (Mapping, open_mapping, ON_LABELS),
    (Iterable, open_pairs, ON_LABELS | ON_WEIGHTS),
)
