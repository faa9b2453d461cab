"""Pairs, dicts of sets, arrays, one-hot frames, igraph and Dask give the edges that they mean, or one sentence."""

import io
import re
from collections import UserDict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.ingest.readers import in_memory, open_source
from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.inputs import read_edges

EDGES = [("ann", 1), ("ann", 2), ("bob", 2)]


class Stream:
    """Speaks Arrow's stream protocol, and nothing else."""

    def __init__(self, table: pa.Table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def same_edges() -> dict[str, Any]:
    """The edges of `EDGES` in many forms."""
    flags = {1: [True, False], 2: [True, True]}
    table = pa.table({"who": [u for u, _ in EDGES], "what": [v for _, v in EDGES]})
    return {
        "tuples": EDGES,
        "a tuple of tuples": tuple(EDGES),
        "lists": [list(edge) for edge in EDGES],
        "a set": set(EDGES),
        "a generator": (edge for edge in EDGES),
        "zip": zip(*zip(*EDGES, strict=True), strict=True),
        "numpy's scalars": [(np.str_(u), np.int32(v)) for u, v in EDGES],
        "an object array": np.array(EDGES, object),
        "dict of sets": {"ann": {1, 2}, "bob": {2}},
        "dict of frozensets": UserDict({"ann": frozenset([1, 2]), "bob": frozenset([2]), "cy": frozenset()}),
        "one-hot pandas": pd.DataFrame(flags, index=["ann", "bob"]),
        "one-hot nullable": pd.DataFrame(flags, index=["ann", "bob"]).astype("boolean"),
        "one-hot sparse": pd.DataFrame(flags, index=["ann", "bob"]).astype(pd.SparseDtype(bool)),
        "a dataset": ds.dataset(table),
        "arrow's protocol": Stream(table),
    }


@pytest.mark.parametrize("kind", same_edges())
@pytest.mark.parametrize("at_a_time", [1, 1 << 20])
def test_every_form_gives_the_same_edges(kind: str, at_a_time: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(in_memory, "ROWS", at_a_time)
    assert read_edges(same_edges()[kind], tmp_path)[0] == EDGES


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_a_one_hot_table_may_have_one_column(make: Any, tmp_path: Path) -> None:
    assert read_edges(make({"tea": [True, False, True]}), tmp_path)[0] == [(0, "tea"), (2, "tea")]


@pytest.mark.parametrize(
    "pairs", [np.array([[5, 7], [5, 8], [6, 8]]), np.array([[5, 7], [5, 8], [6, 8]], np.uint16, order="F")]
)
def test_two_columns_of_numpy_are_pairs(pairs: np.ndarray, tmp_path: Path) -> None:
    assert read_edges(pairs, tmp_path)[0] == [(5, 7), (5, 8), (6, 8)]
    assert read_edges(pairs.astype(str), tmp_path)[0] == [("5", "7"), ("5", "8"), ("6", "8")]
    assert read_edges(pairs, tmp_path, label_type="string")[0] == [("5", "7"), ("5", "8"), ("6", "8")]


@pytest.mark.parametrize("dtype", [bool, np.int8, float, object])
def test_an_array_of_0_and_1_is_a_matrix(dtype: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = np.random.default_rng(3).random((40, 7)) < 0.3
    wanted = [(int(u), int(v)) for u, v in np.argwhere(matrix)]
    assert read_edges(matrix.astype(dtype), tmp_path)[0] == wanted
    monkeypatch.setattr(in_memory, "_ENTRIES", 20)
    assert read_edges(np.asfortranarray(matrix.astype(dtype)), tmp_path)[0] == wanted
    assert read_edges(matrix[:, :2], tmp_path)[0] == [edge for edge in wanted if edge[1] < 2], "of two columns, too"


def test_a_polars_frame_of_booleans_numbers_its_rows(tmp_path: Path) -> None:
    frame = pl.DataFrame({"milk": [True, False, True], "bread": [False, False, True]})
    assert read_edges(frame, tmp_path)[0] == [(0, "milk"), (2, "bread"), (2, "milk")]
    assert read_edges(frame.lazy(), tmp_path)[1].format == "polars"


def test_a_dask_frame_is_read_by_partitions(tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe needs pandas")
    frame = pd.DataFrame({"price": [1.5] * 5, "who": list("abcab"), "what": [1, 2, 1, 2, 2]})
    parts = dd.from_pandas(frame, npartitions=3)
    found, summary = read_edges(parts, tmp_path, left="who", right="what")
    assert found == [("a", 1), ("a", 2), ("b", 2), ("c", 1)]
    assert (summary.format, summary.left_name, summary.duplicates) == ("dask", "who", 1)
    with pytest.raises(InputError, match=r"the first two columns are 'rating' and 'user', but 'user' and 'item'"):
        read_edges(dd.from_pandas(pd.DataFrame({"rating": [1], "user": [1], "item": [2]}), npartitions=1), tmp_path)
    flags = dd.from_pandas(pd.DataFrame({"user": [1, 2, 3], "a": [0, 1, 0], "b": [1, 1, 0]}), npartitions=1)
    with pytest.raises(InputError, match="looks like a table with a column per vertex"):
        read_edges(flags, tmp_path)


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "lazy": pl.LazyFrame, "table": pa.table, "file": pa.table}


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.parametrize("kind", FRAMES)
def test_two_columns_of_0_and_1_are_doubted_or_refused_unless_they_are_named(kind: str, n: int, tmp_path: Path) -> None:
    """Four rows may be all edges between two vertices of each side."""
    source: Any = FRAMES[kind]({"tea": [0, 1, 1, 1, 0][:n], "milk": [1, 0, 1, 1, 1][:n]})
    if kind == "file":
        pq.write_table(source, tmp_path / "x.parquet")
        source = tmp_path / "x.parquet"
    remedy = r"in Python, give bq\.from_table\(.*\)"
    assert not read_edges(source, tmp_path / "named", left="tea", right="milk")[1].notes
    if n == 5:
        with pytest.raises(InputError, match=f"looks like a table with a column per vertex, .*; {remedy}"):
            read_edges(source, tmp_path / "out")
        return
    [note] = read_edges(source, tmp_path / "out")[1].notes
    both = "tea and milk"
    says = f"{both} have only 0 and 1, and are read as the left and the right ends of edges; if {both} are two right "
    assert re.fullmatch(f"{says}vertices, and a row is a left one, {remedy}", note)


_FLAGS = {"tea": [0, 1, 1, 1, 0], "milk": [1, 0, 1, 1, 1], "rice": [1, 1, 0, 0, 1]}
_OF_FLAGS = {
    "two columns": {"tea": _FLAGS["tea"], "milk": _FLAGS["milk"]},
    "wide": _FLAGS,
    "text": {name: list(map(str, column)) for name, column in _FLAGS.items()},
    "labelled rows": {"who": list("abcde"), **_FLAGS},
    "labelled rows of text": {
        "who": list("abcde"),
        **{name: list(map(str, column)) for name, column in _FLAGS.items()},
    },
    "numbered rows": {"who": [5, 6, 7, 8, 9], **_FLAGS},
    "booleans": {name: list(map(bool, column)) for name, column in _FLAGS.items()},
    "two booleans": {name: list(map(bool, _FLAGS[name])) for name in ("tea", "milk")},
}


def _dask_frame(columns: dict[str, list]) -> Any:
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe needs pandas")
    return dd.from_pandas(pd.DataFrame(columns), npartitions=2)


_TABLES = {
    "pandas": ("frame", pd.DataFrame),
    "polars": ("frame", pl.DataFrame),
    "lazy": ("frame", pl.LazyFrame),
    "dask": ("frame", _dask_frame),
    "table": ("table", pa.table),
    "batch": ("table", pa.RecordBatch.from_pydict),
    "dataset": ("dataset", lambda columns: ds.dataset(pa.table(columns))),
    "parquet": ("frame", pa.table),
}


#: Such frames are read as they are, and of other tables text in other columns is not looked at.
_READ = {(kind, columns) for kind in ("pandas", "polars", "lazy") for columns in ("booleans", "two booleans")}
_READ |= {(kind, "labelled rows of text") for kind in ("table", "batch", "dataset", "parquet")}


@pytest.mark.values
@pytest.mark.parametrize(("kind", "columns"), [pair for pair in product(_TABLES, _OF_FLAGS) if pair not in _READ])
def test_the_code_that_is_advised_reads_a_table_of_0_and_1(kind: str, columns: str, tmp_path: Path) -> None:
    name, make = _TABLES[kind]
    table: Any = make(_OF_FLAGS[columns])
    source = table
    if kind == "parquet":
        pq.write_table(table, tmp_path / "x.parquet")
        source, table = tmp_path / "x.parquet", pd.read_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError) as refused:
        read_edges(source, tmp_path)
    code = re.search(r"in Python, give (bq\.from_table\(.*?\)), or (name|cast)", str(refused.value))[1]
    frame = eval(code, {name: table, "pyarrow": pa, "pandas": pd, "bq": bq})
    rows = _OF_FLAGS[columns].get("who", range(5))
    wanted = {
        (row, label)
        for label, column in _OF_FLAGS[columns].items()
        if label != "who"
        for row, flag in zip(rows, column, strict=True)
        if int(flag)
    }
    assert set(read_edges(frame, tmp_path)[0]) == wanted


def test_an_igraph_graph(tmp_path: Path) -> None:
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    graph = igraph.Graph.Bipartite([0, 0, 1, 1, 1], [(0, 2), (3, 0), (1, 3), (0, 2)])
    assert read_edges(graph, tmp_path)[0] == [(0, 2), (0, 3), (1, 3)]
    assert read_edges(igraph.Graph.Bipartite([1, 0], [(0, 1)]), tmp_path)[0] == [(1, 0)], "the right one first"
    graph.vs["name"] = ["ann", "bob", "x", "y", "alone"]
    assert read_edges(graph, tmp_path)[0] == [("ann", "x"), ("ann", "y"), ("bob", "y")]
    graph.add_edge(0, 1)
    with pytest.raises(InputError, match="the edge between 'ann' and 'bob' joins two vertices with type=False"):
        read_edges(graph, tmp_path)
    with pytest.raises(InputError, match="the vertices have no attribute 'type'; set it to False"):
        read_edges(igraph.Graph([(0, 1)]), tmp_path)
    graph.vs["type"] = [None] * 5
    with pytest.raises(InputError, match="vertex 0 has type=None"):
        read_edges(graph, tmp_path)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ([(1, 2), (1, 2, 3)], r"builtins.list: '\(1, 2, 3\)' at pair 2 is no edge; give pairs of a left and a right"),
        ([(1, 2), {3, 4}], r"'\{3, 4\}' at pair 2 is no edge"),
        ([1, 2], "'1' at pair 1 is no edge"),
        ([(1, 2), (1.5, 2)], r"the left side has a float at pair 2 \('1.5'\), but labels are integers or strings"),
        ([(1, 2), (True, 2)], r"the left side has a bool at pair 2"),
        ([(1, 2), ("a", 2)], r"the left side mixes integers and strings \('a' at pair 2\); convert the labels to one"),
        ([(1, None)], "pair 1: the right label is null"),
        ([(1, 2), (1, -2)], "pair 2: the right label '-2' is a negative integer"),
        (
            [(1, 2), (1, 2**63)],
            r"the right side has '9223372036854775808' at pair 2, .* from 0 to .* label_type='string'",
        ),
        (pd.DataFrame({"u": [2**70], "i": [1]}), r"the left column has '1180591620717411303424' at row 1, but integer"),
        ([("a", 1), (np.nan, 2)], "the left side has nan at pair 2, which is no label; fill it in, or leave it out"),
        ([(1, 2), (1, np.nan)], "the right side has nan at pair 2"),
        ([(1, 2), (1, pd.NA)], "the right side has <NA> at pair 2"),
        (pd.DataFrame({"u": [1], "i": [2]}).groupby("u"), "the right side has a DataFrame at pair 1"),
        (pd.Series({"ann": {1, 2}}), r"pandas.Series is one column and no table; give a table with .*reset_index\(\)"),
        (
            pl.DataFrame({"u": [1], "i": [2]}).cast(pl.Int128),
            r"Arrow cannot take 'u' \(Int128\) and .* 64-bit integers",
        ),
        (io.StringIO("1 2"), "_io.StringIO is an open file; give its path"),
        ("", "the path of the source is empty; name a file"),
        (pd.DataFrame([[True] * 2], columns=["x", "x"]), "the row of column names has 'x' twice"),
        ([], "there are no edges in builtins.list; give one with edges"),
        ({}, "no edges in builtins.dict"),
        (
            {"user": [1, 2], "item": [3, 4]},
            "the value of 'user' is a list, which may be neighbours or a column; give a",
        ),
        ({"a": {1: 2}}, "the value of 'a' is a dict"),
        (np.array([[0, 1], [1, 1]]), r"may be columns of labels or a table of 0 and 1; .*\.astype\(bool\)"),
        (np.array([[0.5, 1], [1, 1]]), "may be columns of labels or a table of 0 and 1"),
        (np.array([[0, 1, 2]]), r"numpy.ndarray has 3 columns and not only 0 and 1; .* such as array > 0"),
        (np.array([1, 2]), r"has 1 dimension of int64; give two columns of labels, or a table of booleans"),
        (np.array([(1, 2)], [("u", int), ("v", int)]), r"has 1 dimension"),
        (np.array([[b"a", b"b"]]), "the left side has a bytes at row 1"),
        (pd.DataFrame({"a": [True], "b": [None]}).astype("boolean"), "column 'b' has a null; say whether it is true"),
        (pl.DataFrame({"a": [True], "b": [None]}, schema={"a": pl.Boolean, "b": pl.Boolean}), "column 'b' has a null"),
        (pd.DataFrame({"a": [True] * 2, "b": [True] * 2}, index=["x", "x"]), "the index has 'x' twice; rename one"),
        (pd.DataFrame({"a": [True], "b": [True]}, index=[1.5]), "the index has a float at place 1"),
    ],
)
def test_what_is_no_edges_is_refused_in_one_sentence(source: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        ingest(source, IngestOptions(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("order", "<>")
def test_arrays_of_another_byte_order_are_read(order: str, tmp_path: Path) -> None:
    array = np.array([[7, 1], [7, 300], [8, 1]], f"{order}i4")
    wanted = [(7, 1), (7, 300), (8, 1)]
    assert read_edges(array, tmp_path)[0] == wanted
    assert read_edges(pd.DataFrame(array), tmp_path)[0] == wanted


LARGE = [(2**63, "x"), (-5, "y"), (7, "x")]


@pytest.mark.parametrize("kind", ["pairs", "object array", "pandas", "networkx", "igraph"])
def test_integers_of_any_size_can_be_taken_as_text(kind: str, tmp_path: Path) -> None:
    nx, igraph = pytest.importorskip("networkx"), pytest.importorskip("igraph")
    graph = nx.Graph(LARGE)
    nx.set_node_attributes(graph, {node: int(isinstance(node, str)) for node in graph}, "bipartite")
    named = igraph.Graph.Bipartite([0, 0, 0, 1, 1], [(0, 3), (1, 4), (2, 3)])
    named.vs["name"] = [*(left for left, _ in LARGE), "x", "y"]
    source = {
        "pairs": LARGE,
        "object array": np.array(LARGE, object),
        "pandas": pd.DataFrame(LARGE),
        "networkx": graph,
        "igraph": named,
    }[kind]
    found, _ = read_edges(source, tmp_path, label_type="string")
    assert found == [("-5", "y"), ("7", "x"), ("9223372036854775808", "x")]
    with pytest.raises(InputError, match=r"'9223372036854775808' at .*label_type='string'|mixes integers and strings"):
        read_edges(source, tmp_path)
    with pytest.raises(InputError, match="mixes integers and strings"):
        read_edges([(7, 1), ("7", 2)], tmp_path, label_type="string")


def test_two_vertices_of_one_name_are_not_merged(tmp_path: Path) -> None:
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    graph = igraph.Graph.Bipartite([0, 0, 1], [(0, 2), (1, 2)])
    graph.vs["name"] = ["ann", "bob", "ann"]
    assert read_edges(graph, tmp_path)[0] == [("ann", "ann"), ("bob", "ann")], "sides are separate"
    graph.vs["name"] = ["ann", "ann", "x"]
    with pytest.raises(InputError, match="vertex 1 is called 'ann' as another one of its side; rename one"):
        read_edges(graph, tmp_path)


def test_collections_of_dask_that_are_no_frames_are_refused(tmp_path: Path) -> None:
    da, db = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    for source in (da.eye(3), db.from_sequence([(1, 2)])):
        with pytest.raises(InputError, match=r"dask\.(Array|Bag) is no frame; give a Dask frame, or what compute"):
            read_edges(source, tmp_path)


def test_a_column_has_a_name_or_a_position() -> None:
    for name in ("left", "right", "weight"):
        for wrong in (True, 1.5, ("a", "b")):
            with pytest.raises(InputError, match=f"^{name} must be the name of a column or its position from 0, not "):
                IngestOptions(**{name: wrong, "min_weight": 1})


def test_a_mixture_is_found_in_a_later_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "ROWS", 2)
    with pytest.raises(InputError, match=r"the right side mixes integers and strings \(from pair 3 on\)"):
        list(open_source([(1, 2), (3, 4), (5, "x")], IngestOptions()).chunks())
    with pytest.raises(InputError, match=r"the left side has a float at pair 4"):
        list(open_source([(1, 2), (3, 4), (5, 6), (7.5, 8)], IngestOptions()).chunks())


def test_options_that_an_object_cannot_use_are_refused(tmp_path: Path) -> None:
    matrix = np.eye(3, dtype=bool)
    for source, options in (
        (EDGES, {"left": 0, "right": 1}),
        (EDGES, {"format": "csv"}),
        (matrix, {"label_type": "string"}),
        ({"a": {1}}, {"delimiter": ","}),
    ):
        with pytest.raises(InputError, match=r"leave (it|the option) out"):
            read_edges(source, tmp_path, **options)


def test_the_calls_take_them(tmp_path: Path) -> None:
    results = bq.mine(EDGES, tmp_path / "out", progress=False, report=False)
    assert sorted(results.to_pandas()["left"].map(list)) == [["ann"], ["ann", "bob"]]
    assert bq.count({1: {2, 3}, 4: {3}}, progress=False).count == 2
