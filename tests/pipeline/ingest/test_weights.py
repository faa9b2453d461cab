"""`--min-weight` keeps the edges that have a row of that weight, in every format that has weights."""

import io
from decimal import Decimal
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.pipeline.cli import main
from bicliques.pipeline.ingest.readers import blocks, in_memory, tables, text
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.examples import examples
from tests.support.inputs import read_edges, write

Rows = list[tuple[int, int, float]]


def as_text(rows: Rows, between: str, head: str = "") -> str:
    return head + "".join(f"{u}{between}{v}{between}{w}\n" for u, v, w in rows)


def as_csv(rows: Rows) -> str:
    out = io.StringIO()
    pd.DataFrame([(w, u, v) for u, v, w in rows], columns=["Weight", "u", "v"]).to_csv(out, index=False)
    return out.getvalue()


def sources(rows: Rows, folder: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The rows in every format with weights, and the options that it needs."""
    table = pa.table({"u": [r[0] for r in rows], "w": [r[2] for r in rows], "v": [r[1] for r in rows]})
    named = {"left": "u", "right": "v", "weight": "w"}
    market = f"%%MatrixMarket matrix coordinate real general\n9 9 {len(rows)}\n"
    most = [max(row[k] for row in rows) for k in (0, 1)]
    folder.mkdir(exist_ok=True)
    frame = table.to_pandas()
    found: dict[str, tuple[Any, dict[str, Any]]] = {
        "konect": (write(folder / "out.x", as_text(rows, "\t", f"% bip\n% {len(rows)} {most[0]} {most[1]}\n")), {}),
        "snap": (write(folder / "x.el", as_text(rows, " ")), {}),
        "matrix-market": (write(folder / "x.mtx", as_text(rows, " ", market)), {}),
        "csv": (write(folder / "x.csv", as_csv(rows)), {"left": "u", "right": "v"}),
        "tsv": (write(folder / "x.tsv", as_text(rows, "\t")), {"weight": 2}),
        "parquet": (write(folder / "x.parquet", table), named),
        "arrow": (write(folder / "x.arrow", table), named),
        "arrow table": (table, named),
        "pandas": (frame, named),
        "polars": (pl.from_arrow(table), named),
        "lazy polars": (pl.from_arrow(table).lazy(), named),  # type: ignore[union-attr]
        "dataset": (ds.dataset(table), named),
        "tuples": (list(rows), {}),
        "lists of a generator": (([u, v, w] for u, v, w in rows), {}),
        "decimals": ([(u, v, Decimal(w)) for u, v, w in rows], {}),
        "array": (np.array(rows, object), {}),
        "two files": (
            [write(folder / "a.el", as_text(rows[:1], " ")), write(folder / "b.el", as_text(rows[1:], " "))],
            {},
        ),
    }
    try:
        import dask.dataframe as dd
    except ImportError:
        return found
    return found | {"dask": (dd.from_pandas(frame, npartitions=2), named)}


WEIGHTS = st.sampled_from([-1.0, 0.5, 1.0, 2.0, 2.5, 1e9])
ROWS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), WEIGHTS), min_size=1, max_size=15)


@settings(max_examples=examples(12), deadline=None)
@given(ROWS, st.sampled_from([0, 1.0, 2, 2.5]), st.sampled_from([1, 1 << 20]))
def test_an_edge_needs_a_row_of_the_smallest_weight(tmp_path_factory, rows, least, most):
    place = tmp_path_factory.mktemp("weights")
    rows = [*rows, (1, 1, 1e9)]  # so that there is an edge
    wanted = sorted({(u, v) for u, v, w in rows if w >= least})
    with pytest.MonkeyPatch.context() as patch:
        for module in (tables, in_memory):
            patch.setattr(module, "ROWS", most)
        patch.setattr(blocks, "BLOCK_BYTES", 30)
        patch.setattr(text, "LARGE_BYTES", 0 if most == 1 else 1 << 40)
        for name, (source, options) in sources(rows, place / "in").items():
            found, summary = read_edges(source, place / "out", min_weight=least, **options)
            assert found == wanted, name
            assert summary.light_rows == sum(w < least for _, _, w in rows), name
            assert summary.duplicates == sum(w >= least for _, _, w in rows) - len(wanted), name


def test_without_a_smallest_weight_all_are_edges(tmp_path: Path) -> None:
    rows = [(1, 2, 0.0), (3, 4, -5.0)]
    source = write(tmp_path / "x.el", as_text(rows, " "))
    assert read_edges(source, tmp_path)[0] == [(1, 2), (3, 4)]


def test_matrices_and_graphs(tmp_path: Path) -> None:
    matrix = scipy.sparse.coo_array(([3.0, 1.0, 0.0], ([0, 1, 2], [0, 1, 2])))
    found, summary = read_edges(matrix, tmp_path, min_weight=2)
    assert (found, summary.light_rows) == ([(0, 0)], 1), "a stored zero is no edge anyway"
    graph = nx.Graph()
    graph.add_nodes_from(["a", "b"], bipartite=0)
    graph.add_node("x", bipartite=1)
    graph.add_edge("x", "a", weight=2, stars=1)
    graph.add_edge("b", "x", weight=1, stars=4)
    assert read_edges(graph, tmp_path, min_weight=2)[0] == [("a", "x")]
    assert read_edges(graph, tmp_path, min_weight=2, weight="stars")[0] == [("b", "x")]
    with pytest.raises(InputError, match=r"the edge between '.' and '.' has price=None, which is no number; set it"):
        read_edges(graph, tmp_path, min_weight=2, weight="price")


def test_three_columns_of_integers_are_edges_with_weights(tmp_path: Path) -> None:
    rows = np.array([[5, 7, 3], [5, 8, 1], [6, 8, 2]])
    for array in (rows, rows.astype(np.uint8), np.asfortranarray(rows), rows[::1, :].astype(np.int16)):
        found, summary = read_edges(array, tmp_path, min_weight=2)
        assert (found, summary.light_rows) == ([(5, 7), (6, 8)], 1)
    assert read_edges(rows, tmp_path, min_weight=2, label_type="string")[0] == [("5", "7"), ("6", "8")]
    with pytest.raises(InputError, match=r"has 3 columns and not only 0 and 1; give two columns of labels"):
        read_edges(rows, tmp_path)
    with pytest.raises(InputError, match=r"give pairs of a left and a right one, and a weight only with min_weight$"):
        read_edges(rows.tolist(), tmp_path)


def test_a_matrix_of_weights_is_given_as_booleans(tmp_path: Path) -> None:
    """As the sentence about it says."""
    frame = pd.DataFrame({"tea": [5, 0], "milk": [1, 3]}, index=["ann", "bob"])
    assert read_edges(frame >= 2, tmp_path)[0] == [("ann", "tea"), ("bob", "milk")]
    assert read_edges(frame.to_numpy() >= 2, tmp_path)[0] == [(0, 0), (1, 1)]


def test_an_igraph_graph(tmp_path: Path) -> None:
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    graph = igraph.Graph.Bipartite([0, 0, 1], [(0, 2), (1, 2)])
    with pytest.raises(InputError, match="has weight=None, which is no number"):
        read_edges(graph, tmp_path, min_weight=2)
    graph.es["weight"] = [3, 1]
    assert read_edges(graph, tmp_path, min_weight=2)[0] == [(0, 2)]


def test_lists_share_the_weight_of_their_row(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "items": [["a", "b"], ["a"], ["c"]], "weight": [5, 1, 5]})
    found, summary = read_edges(table, tmp_path, min_weight=2)
    assert (found, summary.light_rows) == ([(1, "a"), (1, "b"), (3, "c")], 1)


def test_a_bad_item_is_named_by_its_row_where_light_rows_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "items": [["a", "b", "c"], ["a"], ["c", None]], "weight": [5, 1, 5]})
    with pytest.raises(InputError, match="row 3: "):
        read_edges(table, tmp_path, min_weight=2)


@pytest.mark.parametrize(
    ("source", "options", "said"),
    [
        ("1 2\n", {}, r"x\.el, line 1: no weight \('1 2'\); add a third column, or leave min_weight out"),
        ("1 2 x\n", {}, r"line 1: the weight 'x' is not a number"),
        ("1 2 1\n", {}, r"no edges in .* \(1 edge has a weight below the smallest one\)"),
        (pa.table({"u": [1], "v": [2]}), {}, "0 columns are called weight; name the one for min_weight in weight"),
        (pa.table({"u": [1], "v": [2], "weight": [3], "Weight": [1]}), {}, "2 columns are called weight; name the one"),
        (pa.table({"u": [1], "v": [2]}), {"weight": "w"}, "no column 'w'; the columns are 'u', 'v'"),
        (pa.table({"u": [1], "v": [2]}), {"weight": 1}, "the column of weights is one of the labels, too"),
        (pa.table({"u": [1], "v": [2], "weight": ["3"]}), {}, "the column of weights is string; cast it to numbers"),
        (
            pa.table({"u": [1, 2], "v": [2, 2], "weight": [3, None]}),
            {},
            "row 2: the weight is null; fill it in, or leave",
        ),
        (
            pd.DataFrame({"tea": [5, 0], "milk": [1, 3]}, index=["ann", "bob"]),
            {},
            r"0 columns are called weight; .* \(a matrix of weights is given from Python as booleans: matrix >= 2\)",
        ),
        (pl.DataFrame({"tea": [True], "milk": [False]}), {}, "min_weight compares weights, which format polars"),
        ({"ann": {"tea"}}, {}, "min_weight compares weights, which format builtins.dict does not have; leave the"),
        ([(1, 2)], {}, r"'\(1, 2\)' at pair 1 is no edge; give \(left, right, weight\), or leave min_weight out$"),
        ([(1, 2, 3), (1, 2, "4")], {}, "the weight at pair 2 is \"'4'\", which is no number; convert it to one"),
        ([(1, 2, True)], {}, "the weight at pair 1 is 'True', which is no number"),
        ([(1, 2, 3), (1, 3, None)], {}, "pair 2: the weight is null; fill it in, or leave"),
        (np.array([["a", "b", "3"]]), {}, "the weight at row 1 is \"'3'\", which is no number"),
        (np.array([[1, 2, 2.5]]), {}, r"holds floating-point numbers, .* give a list of \(left, right, weight\), or a"),
        (np.array([[1, 2]]), {}, "has 2 columns of int64, but min_weight needs three: left, right and weight; a ma"),
        (np.array([[0, 3, 1, 2]]), {}, r"has 4 columns of int64, .* from Python as booleans: matrix >= 2$"),
        (np.ones((2, 3), bool), {}, "has 3 columns of bool, but min_weight needs three"),
        (np.ones((2, 3), int), {}, "may be columns of labels or a table of 0 and 1; convert labels"),
    ],
)
def test_what_has_no_weights_is_refused(source: Any, options: dict[str, Any], said: str, tmp_path: Path) -> None:
    source = write(tmp_path / "x.el", source) if isinstance(source, str) else source
    with pytest.raises(InputError, match=said):
        read_edges(source, tmp_path / "out", min_weight=2, **options)


def test_the_place_of_a_weight_is_told_in_later_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_memory, "ROWS", 2)
    rows = [(1, 2, 3), (1, 3, 3), (2, 2, 3), (2, 3, "x")]
    for source, unit in ((rows, "pair"), (np.array(rows, object), "row")):
        with pytest.raises(InputError, match=f"the weight at {unit} 4 is"):
            read_edges(source, tmp_path, min_weight=2)


def test_options_that_do_not_fit_each_other() -> None:
    with pytest.raises(InputError, match="'w' is to hold weights, but there is no smallest one; give min_weight, too"):
        IngestOptions(weight="w")
    with pytest.raises(InputError, match="min_weight must be a number, not nan"):
        IngestOptions(min_weight=float("nan"))


def test_bad_weights_can_be_left_out(tmp_path: Path) -> None:
    table = pa.table({"u": [1, 2, 3], "v": [2, 2, 2], "weight": [3, None, float("nan")]})
    found, summary = read_edges(table, tmp_path, min_weight=2, skip_bad_lines=True)
    assert (found, summary.skipped_lines, summary.light_rows) == ([(1, 2)], 1, 1)


def test_the_card_says_how_many_edges_were_light(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = write(tmp_path / "x.csv", "user,item,weight\n1,2,3\n1,3,1\n2,2,1\n")
    assert main.main(["count", str(source), "--min-weight", "1.5", "--quiet"]) == 0
    assert (
        "1 user (left), 1 item (right), 1 edge, 2 edges below the smallest weight left out" in capsys.readouterr().out
    )
    assert main.main(["count", str(source), "--min-weight", "x", "--quiet"]) == 2
