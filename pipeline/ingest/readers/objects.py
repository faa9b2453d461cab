"""Objects in memory: the table of what can be read, and the readers of tables of pandas, Polars, Dask and Arrow.

The caller's object is only read. A library is recognised by the module that defines the object's class, or a class
that it inherits from. So none of the libraries is imported or has to be installed.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.ingest.readers.base import ON_LABELS, ON_TABLES, ON_WEIGHTS, SIDES, EdgeStream, refuse_unused
from pipeline.ingest.readers.columns import choose, index_first
from pipeline.ingest.readers.containers import one_hot, open_array, open_mapping, open_pairs
from pipeline.ingest.readers.graphs import open_igraph, open_networkx, open_scipy
from pipeline.ingest.readers.in_memory import InMemory, TableFacts, odd_value, whole_as_text
from pipeline.ingest.readers.lists import refuse_lone_list
from pipeline.ingest.readers.tables import FURTHER_ROWS, ROWS, fit_for_cells
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


def _open_table(
    name: str,
    format: str,
    options: IngestOptions,
    names: list[Any],
    take: Callable[[tuple[int, ...]], tuple[pa.Schema, Iterable[pa.RecordBatch], tuple[int, ...]]],
    first: Callable[[int], Iterable[object]],
    frame: str,
    n_index: int = 0,
) -> EdgeStream:
    """Open a table with columns.

    Parameters
    ----------
    names : list
        Names of its columns.
    take : callable
        It gets the positions of the wanted columns, and returns the schema of the batches, the batches, and the
        positions in them.
    first : callable
        The first values of a column, by its position.
    frame : str
        Python code for a pandas frame of the table.
    n_index : int
        How many of the first columns are named levels of an index.
    """
    choice = choose(name, options, names, len(names), format, n_index)
    schema, batches, places = take(choice.wanted)

    def further() -> Iterator[Iterable[object]]:
        return (first(k) for k in range(len(names)) if k not in choice.wanted)

    known = TableFacts(schema, choice, names, further, frame)
    return InMemory(name, format, options, batches, places, known)


def _open_pandas(frame: Any, name: str, options: IngestOptions) -> EdgeStream:
    if options.left is None and frame.shape[1] and all(kind.kind == "b" for kind in frame.dtypes):
        index, columns = frame.index.tolist(), frame.columns.tolist()
        return one_hot(name, "pandas", options, index, columns, _booleans(frame, name))
    whole, n_index = _with_index(frame)
    if whole.shape[1] == 1:
        refuse_lone_list(name, pa.Table.from_pandas(whole.head(FURTHER_ROWS), preserve_index=False).schema)

    def take(wanted: tuple[int, ...]) -> tuple[pa.Schema, Iterable[pa.RecordBatch], tuple[int, ...]]:
        table = _chosen(whole, name, wanted, options.label_type == "string")
        return table.schema, table.to_batches(max_chunksize=ROWS), tuple(range(table.num_columns))

    def first(k: int) -> Iterable[object]:
        return whole.iloc[:FURTHER_ROWS, k].tolist()

    return _open_table(name, "pandas", options, list(whole.columns), take, first, "frame", n_index)


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
        return pa.array(series.map(whole_as_text), from_pandas=True)


def _chosen(frame: Any, name: str, wanted: tuple[int, ...], as_text: bool) -> pa.Table:
    """The two columns of labels, and that of weights if there is one."""
    arrays = []
    words = (*SIDES, "weight")
    for k, side in zip(wanted, words, strict=False):
        series = frame.iloc[:, k]
        try:
            arrays.append(_as_arrow(series, as_text and side != "weight"))
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
    frame, n_index = _with_index(frame)
    as_text = options.label_type == "string"
    partition = frame.partitions[0]

    def take(wanted: tuple[int, ...]) -> tuple[pa.Schema, Iterable[pa.RecordBatch], tuple[int, ...]]:
        chosen, places = frame.iloc[:, list(wanted)], tuple(range(len(wanted)))

        def batches() -> Iterator[pa.RecordBatch]:
            for k in range(frame.npartitions):
                part = _chosen(chosen.partitions[k].compute(), f"{name}, partition {k}", places, as_text)
                yield from part.to_batches(max_chunksize=ROWS)

        return _chosen(frame._meta, name, wanted, as_text).schema, batches(), places

    rows: list[Any] = []

    def first(k: int) -> Iterable[object]:
        rows.extend([] if rows else [partition.head(FURTHER_ROWS)])
        return rows[0].iloc[:, k].tolist()

    return _open_table(name, "dask", options, list(frame.columns), take, first, "frame.compute()", n_index)


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

    def take(wanted: tuple[int, ...]) -> tuple[pa.Schema, Iterable[pa.RecordBatch], tuple[int, ...]]:
        try:
            table = lazy.select([names[k] for k in wanted]).collect().to_arrow()
        except pa.ArrowException as error:  # as for a column of 128 bits
            kept = " and ".join(f"{names[k]!r} ({kinds[k]})" for k in wanted)
            raise InputError(f"{name}: Arrow cannot take {kept}; cast them to 64-bit integers or strings") from error
        return table.schema, table.to_batches(max_chunksize=ROWS), tuple(range(len(wanted)))

    def first(k: int) -> Iterable[object]:
        return lazy.select(names[k]).head(FURTHER_ROWS).collect().to_series().to_list()

    code = f"frame{'.collect()' if hasattr(frame, 'collect') else ''}.to_pandas()"
    return _open_table(name, "polars", options, names, take, first, code)


def _open_arrow(table: Any, name: str, options: IngestOptions) -> EdgeStream:
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"{name} is one column and no table; give a table with a column for each side (of a pandas series, "
            "series.reset_index())"
        ) from error
    refuse_lone_list(name, reader.schema)
    order, n_index = index_first(reader.schema)
    rows: list[pa.RecordBatch] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:  # a reader can be read only once
            rows.extend([batch.slice(0, FURTHER_ROWS)] if not rows else [])
            yield batch

    def take(wanted: tuple[int, ...]) -> tuple[pa.Schema, Iterable[pa.RecordBatch], tuple[int, ...]]:
        return reader.schema, batches(), tuple(order[k] for k in wanted)

    def first(k: int) -> Iterable[object]:
        return rows[0].column(order[k]).to_pylist() if fit_for_cells(reader.schema.types[order[k]]) else ()

    names = [reader.schema.names[k] for k in order]
    return _open_table(name, "arrow", options, names, take, first, "pyarrow.table(table).to_pandas()", n_index)


def _open_dataset(dataset: Any, name: str, options: IngestOptions) -> EdgeStream:
    """Open an Arrow dataset. Of its files only the columns are read that are needed."""
    schema = dataset.schema
    refuse_lone_list(name, schema)
    order, n_index = index_first(schema)
    names = [schema.names[k] for k in order]

    def take(wanted: tuple[int, ...]) -> tuple[pa.Schema, Iterable[pa.RecordBatch], tuple[int, ...]]:
        chosen = pa.schema([schema.field(order[k]) for k in wanted])
        batches = dataset.scanner(columns=chosen.names).to_batches()
        return chosen, batches, tuple(range(len(wanted)))

    def first(k: int) -> Iterable[object]:
        is_fit = fit_for_cells(schema.types[order[k]])
        return dataset.head(FURTHER_ROWS, columns=[names[k]]).column(0).to_pylist() if is_fit else ()

    return _open_table(name, "arrow", options, names, take, first, "dataset.to_table().to_pandas()", n_index)


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
