"""Parquet, Arrow and objects in memory: columns, types, bad rows, and what is refused."""

import decimal

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse

from bicliques.pipeline.ingest.readers import objects, open_source, tables
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions


def edges_in(source, **options):
    stream = open_source(source, IngestOptions(**options))
    edges = []
    for batch in stream.chunks():
        kinds = {column.type.value_type if pa.types.is_dictionary(column.type) else column.type for column in batch}
        assert kinds <= {pa.int64(), pa.large_string()}
        edges.extend(zip(batch["left"].to_pylist(), batch["right"].to_pylist(), strict=True))
    return (edges, stream.skipped) if options.get("skip_bad_lines") else edges


TABLE = pa.table({"w": [0.5, 0.5], "user": ["ann", "bob"], "a.b": [7, 8], "user.x": [1, 2]})


@pytest.fixture(params=["parquet", "arrow", "pandas", "polars", "table"])
def store(request, tmp_path):
    """Put a table where a reader finds it: in a file, or in an object of a library."""

    def put(table: pa.Table):
        if request.param == "parquet":
            pq.write_table(table, tmp_path / "x.parquet")
            return tmp_path / "x.parquet"
        if request.param == "arrow":
            with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            return tmp_path / "x.arrow"
        if request.param == "pandas":
            return table.to_pandas(types_mapper=pd.ArrowDtype)
        return pl.from_arrow(table) if request.param == "polars" else table

    return put


def test_columns_by_name_and_position(store):
    source = store(TABLE)
    assert edges_in(source, left="user", right="a.b") == [("ann", 7), ("bob", 8)]
    assert edges_in(source, left=3, right=1) == [(1, "ann"), (2, "bob")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"left": "user", "right": "item"}, "no column 'item'; the columns are 'w', 'user', 'a.b', 'user.x'"),
        ({"left": "user", "right": 9}, "no column 9; positions go from 0 to 3"),
        ({"left": "user", "right": 1}, "'user' and 1 are the same column"),
        ({"left": "user"}, "only one of left and right is given"),
        ({}, "the left column is double, but labels are integers or strings; cast it"),
        ({"header": True}, "leave the option out"),
    ],
)
def test_columns_that_cannot_be_used(store, options, message):
    with pytest.raises(InputError, match=message):
        edges_in(store(TABLE), **options)


@pytest.mark.parametrize(
    ("column", "wanted"),
    [
        (pa.int8(), pa.int32()),
        (pa.int32(), pa.int32()),
        (pa.int64(), pa.int64()),
        (pa.uint16(), pa.int32()),
        (pa.uint32(), pa.int64()),
        (pa.uint64(), pa.int64()),
        (pa.string(), pa.int64()),
    ],
    ids=str,
)
def test_integer_labels_have_the_width_of_their_column(store, column, wanted):
    table = pa.table({"w": pa.array([1], pa.int64()), "u": pa.array([1]).cast(column), "v": pa.array([2], pa.int64())})
    source = store(table)
    assert open_source(source, IngestOptions(left="u", right="v")).integers == (wanted, pa.int64())
    assert open_source(source, IngestOptions(left="v", right="u")).integers == (pa.int64(), wanted)


def test_integer_labels_of_a_dictionary_have_its_width():
    table = pa.table({"u": pa.array([1], pa.int32()).dictionary_encode(), "v": pa.array([2]).dictionary_encode()})
    assert open_source(table, IngestOptions()).integers == (pa.int32(), pa.int64())


def test_positions_in_a_matrix_are_64_bits_wide():
    assert open_source(scipy.sparse.eye(3), IngestOptions()).integers == (pa.int64(), pa.int64())


def test_two_columns_of_one_name(tmp_path):
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"])
    pq.write_table(table, tmp_path / "x.parquet")
    assert edges_in(tmp_path / "x.parquet") == [(1, 2)]
    assert edges_in(tmp_path / "x.parquet", left="b", right=1) == [(3, 2)]
    with pytest.raises(InputError, match="2 columns are called 'a'"):
        edges_in(tmp_path / "x.parquet", left="a", right="b")


@pytest.mark.parametrize(
    ("left", "row", "reason"),
    [
        (pa.array([1, None, 3]), 2, "left label is null"),
        (pa.array(["a", "b", None]), 3, "left label is null"),
        (pa.array(["a", "", "c"]), 2, "left label is empty"),
        (pa.array([1, -2, 3]), 2, "left label '-2' is a negative integer; take the labels as text with"),
        (pa.array([1, 2, 2**64 - 1], pa.uint64()), 3, r"left label '18446744073709551615' is larger than 2\*\*63"),
        (pa.array(["a", None, "c"]).dictionary_encode(), 2, "left label is null"),
        (pa.array([None, None, None]), 1, "left label is null"),
    ],
)
def test_bad_rows(store, left, row, reason):
    table = pa.table({"left": left, "right": [4, 5, 6]})
    with pytest.raises(InputError, match=f"row {row}: the {reason}"):
        edges_in(store(table))
    kept = [(u, v) for u, v in zip(left.to_pylist(), (4, 5, 6), strict=True) if u not in (None, "", -2, 2**64 - 1)]
    assert edges_in(store(table), skip_bad_lines=True) == (kept, 3 - len(kept))


def test_bad_rows_are_counted_over_batches(monkeypatch):
    monkeypatch.setattr(tables, "ROWS", 2)
    monkeypatch.setattr(objects, "ROWS", 2)
    for source in (pa.table({"l": [1, 2, 3, 4, -5], "r": [1] * 5}), pd.DataFrame({"l": [1, 2, 3, 4, -5], "r": 1})):
        with pytest.raises(InputError, match="row 5: the left label '-5'"):
            edges_in(source)
        assert edges_in(source, label_type="string")[-1] == ("-5", "1")


def test_label_types_of_typed_columns(store):
    table = pa.table({"l": ["1", "22"], "r": pa.array([1, 2], pa.uint8())})
    assert edges_in(store(table)) == [("1", 1), ("22", 2)]
    assert edges_in(store(table), label_type="int") == [(1, 1), (22, 2)]
    assert edges_in(store(table), label_type="string") == [("1", "1"), ("22", "2")]
    table = pa.table({"l": ["1", "007"], "r": [1, 2]})
    with pytest.raises(InputError, match="row 2: the left label '007' is not a plain integer"):
        edges_in(store(table), label_type="int")
    assert edges_in(store(table), label_type="int", skip_bad_lines=True) == ([(1, 1)], 1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a", 2], "the left column mixes integers and strings .'a' at row 2.; convert the column"),
        (["a", None, 2], "the left column mixes integers and strings .'2' at row 3."),
        ([(1, 2), 3, 4], r"the left column has a tuple at row 1 .*labels are integers or strings; convert"),
        ([True, 2, 3], "the left column has a bool at row 1"),
        ([decimal.Decimal(1), 2, 3], r"the left column is decimal128\(1, 0\), but labels are"),
        ([2**70, 2, 3], "the left column has '1180591620717411303424' at row 1, .* label_type='string'"),
        ([1.5, 2.0, 3.0], "the left column is double, but labels are integers or strings; cast it"),
    ],
)
def test_mixed_and_odd_pandas_columns(values, message):
    frame = pd.DataFrame({"l": pd.Series(values, dtype=object if not isinstance(values[0], float) else None), "r": 1})
    with pytest.raises(InputError, match=f"^pandas.DataFrame: {message}"):
        edges_in(frame)


def test_whole_number_columns_with_gaps_are_not_guessed():
    with pytest.raises(InputError, match="the left column is double"):
        edges_in(pd.DataFrame({"l": [1.0, np.nan], "r": [1, 2]}))
    frame = pd.DataFrame({"l": pd.array([1, None], dtype="Int64"), "r": [1, 2]})
    assert edges_in(frame, skip_bad_lines=True) == ([(1, 1)], 1)


def test_categories_without_rows_are_not_labels():
    frame = pl.DataFrame({"l": ["a", "b"], "r": [1, 2]}, schema_overrides={"l": pl.Categorical})
    assert edges_in(frame.head(1)) == [("a", 1)]
    frame = pl.DataFrame({"l": ["a", "b"], "r": [1, 2]}, schema_overrides={"l": pl.Enum(["b", "a"])})
    assert edges_in(frame) == [("a", 1), ("b", 2)]


# --- matrices ---


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "lil", "dok", "bsr", "dia"])
def test_sparse_layouts_and_stored_zeros(layout):
    dense = np.array([[0, 3, 0], [-1, 0, 0]])
    matrix = scipy.sparse.csr_array(dense).asformat(layout)
    assert sorted(edges_in(matrix)) == [(0, 1), (1, 0)]
    stored = scipy.sparse.coo_matrix(([0.0, 2.0, 1.0, 1.0], ([0, 0, 1, 1], [0, 2, 1, 1])))
    assert edges_in(stored) == [(0, 2), (1, 1), (1, 1)]


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_missing_entries_are_no_edges_of_a_sparse_matrix(layout, monkeypatch):
    """A pivot table with NaN for what is missing would be a complete graph."""
    monkeypatch.setattr("bicliques.pipeline.ingest.readers.objects.ROWS", 2)
    ratings = scipy.sparse.csr_array(np.array([[5.0, 0, 3], [4, np.nan, 0]])).asformat(layout)
    with pytest.raises(InputError, match="has NaN in row 1, column 1, counted from 0; if there is no edge, make it 0"):
        edges_in(ratings)
    assert sorted(edges_in(ratings, min_weight=4)) == [(0, 0), (1, 0)]
    assert sorted(edges_in(np.nan_to_num(ratings.toarray()) > 0)) == [(0, 0), (0, 2), (1, 0)]


def test_a_sparse_vector_is_refused():
    with pytest.raises(InputError, match=r"1 dimension"):
        edges_in(scipy.sparse.coo_array(np.array([1, 0, 1])))


def test_options_that_do_not_apply_to_a_matrix():
    with pytest.raises(InputError, match="label_type='string' takes labels as text, which"):
        edges_in(scipy.sparse.eye_array(3), label_type="string")
    with pytest.raises(InputError, match="format is for files"):
        edges_in(scipy.sparse.eye_array(3), format="matrix-market")


# --- networkx ---


def bipartite(edges: list, left: set, kind: type = nx.Graph) -> nx.Graph:
    graph = kind()
    for u, v in edges:
        graph.add_node(u, bipartite=int(u not in left))
        graph.add_node(v, bipartite=int(v not in left))
    graph.add_edges_from(edges)
    return graph


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_the_attribute_decides_the_side(kind):
    graph = bipartite([("b", 1), (2, "a")], {1, 2}, kind)
    assert sorted(edges_in(graph)) == [(1, "b"), (2, "a")]


def test_many_networkx_edges_come_in_batches(monkeypatch):
    monkeypatch.setattr(objects, "ROWS", 2)
    edges = [(u, f"v{u}") for u in range(5)]
    assert edges_in(bipartite(edges, set(range(5)))) == edges


def graph_with(edit) -> nx.Graph:
    graph = bipartite([(1, "a"), (2, "b")], {1, 2})
    edit(graph)
    return graph


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda g: g.add_node(3), r"node 3 has no attribute 'bipartite'; set it to 0 \(left\) or 1 \(right\)"),
        (lambda g: g.add_node(3, bipartite="left"), "node 3 has bipartite='left'; set it"),
        (lambda g: g.add_edge(1, 2), "the edge between 1 and 2 joins two nodes with bipartite=0; remove it"),
        (lambda g: g.add_node(3, bipartite=1), "the right side mixes integers and strings .'3' at node 3.; relabel"),
        (lambda g: g.add_node((1, 2), bipartite=0), "the left side has a tuple at node 3 .*; relabel the nodes"),
        (lambda g: g.add_edge(-7, "a") or g.add_node(-7, bipartite=0), "edge 2: the left label '-7' is a negative"),
        (lambda g: g.add_edge(2**64, "a") or g.add_node(2**64, bipartite=0), "'18446744073709551616' at node 3"),
    ],
)
def test_bad_networkx_graphs(edit, message):
    with pytest.raises(InputError, match=message):
        edges_in(graph_with(edit))


# --- what is none of these ---


@pytest.mark.parametrize("source", [None, 7, pd.Series([1, 2]), nx, len, object])
def test_other_objects_are_refused(source):
    with pytest.raises(InputError, match=r"is not a graph; give a path, a pandas, Polars|is one column and no table"):
        edges_in(source)
