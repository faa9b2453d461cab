"""Text for other programs can be read back, whatever a label holds, and forms of other libraries say the same."""

import csv
import io
import json
import re
import sys
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.cli.exporting import FORMATS as NAMED
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.results import exporting, forms
from bicliques.pipeline.results.exporting import FORMATS
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.rows import tabular
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.runs import QUIET, random_edges, write_edges

HOSTILE = [
    'a"b',
    "a,b",
    "<script>",
    '=HYPERLINK("http://x")',
    "+1",
    "-1",
    "@SUM(A1)",
    "é 東京 🌟",
    "a|b;c",
    "'",
    "[",
    "\\",
]

Pairs = set[tuple[frozenset[Any], frozenset[Any]]]


def hostile_edges(*more: str) -> list[tuple[str, str]]:
    labels = [*HOSTILE, *more]
    return [(a, b) for i, a in enumerate(labels) for j, b in enumerate(labels) if (i * 7 + j * 3) % 5 < 3]


@pytest.fixture(scope="module", params=["text", "numbers", "dense"])
def results(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "text":
        return bq.mine(hostile_edges(), folder / "run", **QUIET)
    source = write_edges(folder / "g.parquet", random_edges(20, 15, 0.4, 1) * 3)
    return bq.mine(source, folder / "run", ids="dense" if request.param == "dense" else "labels", **QUIET)


def pairs(found) -> Pairs:
    return {(frozenset(left), frozenset(right)) for left, right in found}


def text_of(results: Results, name: str) -> str:
    stream = io.BytesIO()
    results.export(name, stream)
    return stream.getvalue().decode()


def test_csv_is_read_back_and_no_cell_can_be_a_formula(results):
    text = text_of(results, "csv")
    assert "\r" not in text
    found = list(csv.DictReader(io.StringIO(text)))
    assert list(found[0]) == ["id", "n_left", "n_right", "left", "right"]
    sides = [(json.loads(row["left"]), json.loads(row["right"])) for row in found]
    assert sides == [tuple(row) for row in results]
    assert [(int(row["n_left"]), int(row["n_right"])) for row in found] == [(len(a), len(b)) for a, b in results]
    assert [row["id"] for row in found] == [str(row.id) for row in results]
    assert not [cell for row in found for cell in row.values() if re.match(r"[=+@\t\r]|-(?!\d+$)", cell)]


def test_jsonl_is_read_back(results):
    lines = text_of(results, "jsonl").splitlines()
    told = [json.loads(line) for line in lines]
    assert [(row["left"], row["right"]) for row in told] == [tuple(row) for row in results]
    assert [(row["n_left"], row["n_right"]) for row in told] == [(len(a), len(b)) for a, b in results]
    assert [row["id"] for row in told] == [str(row.id) for row in results]


def test_spmf_holds_the_closed_itemsets_with_their_support(results):
    lines = text_of(results, "spmf").splitlines()
    names = dict(re.fullmatch(r"@ITEM=(\d+)=(.*)", line).groups() for line in lines if line.startswith("@ITEM"))
    assert (lines[0] == "@CONVERTED_FROM_TEXT") == bool(names)
    found = []
    for line in (line for line in lines if not line.startswith("@")):
        items, _, support = line.partition(" #SUP: ")
        numbers = [int(item) for item in items.split(" ")]
        assert numbers == sorted(set(numbers))
        assert numbers[0] >= 0
        found.append((frozenset(names[str(number)] if names else number for number in numbers), int(support)))
    assert found == [
        (frozenset(str(label) if names else label for label in right), len(left)) for left, right in results
    ]


def test_the_graph_as_adjacency_lists_has_the_same_bicliques(results, tmp_path):
    results.export("adj", tmp_path / "g.adj")
    text = (tmp_path / "g.adj").read_text()
    left, right = (results.labels(side).to_pylist() for side in ("left", "right"))
    assert len(text.splitlines()) == len(left)
    found = bq.mine(tmp_path / "g.adj", tmp_path / "run", **QUIET)
    wanted = results
    if results._mined.options.ids == "labels":
        found = [([left[a] for a in one], [right[b] for b in two]) for one, two in found]
    assert pairs(found) == pairs(wanted)


def test_the_graph_as_a_cross_table_has_every_edge(results):
    lines = text_of(results, "cxt").split("\n")
    n_left, n_right = int(lines[2]), int(lines[3])
    left, right = (results.labels(side).to_pylist() for side in ("left", "right"))
    assert (lines[0], lines[1], lines[4], lines[-1]) == ("B", "", "", "")
    assert lines[5 : 5 + n_left + n_right] == [str(label) for label in [*left, *right]]
    table = lines[5 + n_left + n_right : -1]
    assert (len(table), {len(line) for line in table}) == (n_left, {n_right})
    edges = pa.parquet.read_table(results.path / "edges" / "edges.parquet").to_pydict()
    crosses = {(i, j) for i, line in enumerate(table) for j, cell in enumerate(line) if cell == "X"}
    assert crosses == set(zip(edges["left"], edges["right"], strict=True))
    assert {cell for line in table for cell in line} <= {"X", "."}


def test_small_batches_and_pieces_change_nothing(results, monkeypatch):
    whole = {name: text_of(results, name) for name in FORMATS}
    monkeypatch.setitem(tabular.FEW_AT_A_TIME, "batch_size", 7)
    monkeypatch.setattr(exporting, "_EDGES", 5)
    monkeypatch.setattr(exporting, "_PIECE", 11)
    assert {name: text_of(results, name) for name in FORMATS} == whole


@pytest.mark.parametrize("name", ["spmf", "cxt"])
def test_a_label_with_a_line_break_is_refused_where_it_would_be_two(name, tmp_path):
    results = bq.mine(hostile_edges("two\nlines"), tmp_path / "run", **QUIET)
    for stays in ("csv", "jsonl", "adj"):
        results.export(stays, tmp_path / stays)
    (tmp_path / name).write_text("before")
    with pytest.raises(InputError, match=rf"the label 'two\\nlines' has a line break, which {name} cannot hold"):
        results.export(name, tmp_path / name)
    assert (tmp_path / name).read_text() == "before"


def test_a_cross_table_that_is_too_large_is_refused(results, monkeypatch):
    monkeypatch.setattr(exporting, "_MOST_CELLS", 10)
    with pytest.raises(InputError, match=r"vertices would take .* GB; choose another format"):
        text_of(results, "cxt")


def test_what_cannot_be_exported_is_refused(tmp_path, results):
    counted = bq.mine(hostile_edges(), tmp_path / "counted", count_only=True, **QUIET)
    with pytest.raises(InputError, match="holds no bicliques"):
        counted.export("csv", tmp_path / "x.csv")
    counted.export("adj", tmp_path / "x.adj")
    with pytest.raises(InputError, match="exported as csv, jsonl, spmf, cxt, adj, not as 'xml'"):
        results.export("xml", tmp_path / "x.xml")
    with pytest.raises(InputError, match="does not exist; make it or name another file"):
        results.export("csv", tmp_path / "no" / "x.csv")
    with pytest.raises(InputError, match=f"{counted.path} is a folder; name a file"):  # and not "move it away"
        results.export("csv", counted.path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["counted", "x.adj"]


def test_no_rows_are_a_file_without(tmp_path):
    none = bq.mine(hostile_edges(), tmp_path / "none", min_left=12, min_right=12, **QUIET)
    assert text_of(none, "csv") == "id,n_left,n_right,left,right\n"
    assert text_of(none, "jsonl") == ""
    assert (none.memberships("left").num_rows, none.to_sparse().shape[0], len(none.to_networkx())) == (0, 0, 0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_long_table_and_the_matrix_say_who_is_where(results, side):
    every = list(results)
    table = results.memberships(side)
    assert table.column_names == ["id", side]
    assert table.to_pylist() == [{"id": row.id, side: member} for row in every for member in getattr(row, side)]
    matrix = results.to_sparse(side)
    assert matrix.shape == (len(every), len(results.labels(side)))
    assert set(matrix.data.tolist()) == {1}
    labels = results.labels(side).to_pylist()
    if results._mined.options.ids == "dense":
        labels = list(range(len(labels)))
    for number, row in enumerate(every):
        assert {labels[k] for k in matrix[[number]].nonzero()[1]} == set(getattr(row, side))
    assert np.array_equal(matrix.sum(axis=1), [len(getattr(row, side)) for row in every])
    with pytest.raises(InputError, match="the side must be left or right, not 'top'"):
        results.memberships("top")


def test_the_graph_of_some_bicliques_has_their_edges(results):
    every = list(results)
    graph = results.to_networkx(slice(0, 4))
    wanted = {}
    for left, right in every[:4]:
        for edge in ((a, b) for a in left for b in right):
            wanted[edge] = wanted.get(edge, 0) + 1
    found = {(a[1], b[1]): n for a, b, n in graph.edges(data="bicliques")}
    assert found == wanted
    assert nx.is_bipartite(graph)
    assert {data["bipartite"] for (side, _), data in graph.nodes(data=True) if side == "left"} == {0}
    assert all(data["label"] == label for (_, label), data in graph.nodes(data=True))
    assert (
        results.to_networkx().number_of_edges()
        == pa.parquet.read_metadata(results.path / "edges" / "edges.parquet").num_rows
    ), "every edge is in a maximal biclique"


def test_a_library_that_is_missing_is_named_with_its_extra(results, monkeypatch):
    for name in ("scipy", "scipy.sparse", "networkx"):
        monkeypatch.setitem(sys.modules, name, None)
    for call, library in ((results.to_sparse, "SciPy"), (results.to_networkx, "NetworkX")):
        with pytest.raises(ResourceError, match=rf"needs {library}, which is not installed \(pip install 'bicliques\["):
            call()
    assert forms.Forms.to_sparse.__doc__


def test_the_command_writes_what_the_call_writes(results, tmp_path, capfdbinary):
    assert tuple(FORMATS) == NAMED
    for name in FORMATS:
        assert main(["export", str(results.path), "--format", name]) == 0
        assert capfdbinary.readouterr().out == text_of(results, name).encode()
    file = tmp_path / "x.csv"
    assert main(["export", str(results.path), "--format", "csv", "-o", str(file)]) == 0
    assert capfdbinary.readouterr().out == f"{len(results):,} bicliques in {file}\n".encode()
    assert file.read_bytes() == text_of(results, "csv").encode()
    assert main(["export", str(results.path), "--format", "adj", "-o", str(file), "--json"]) == 0
    found = {"file": str(file), "format": "adj", "count": len(results), "replaced": True}
    assert json.loads(capfdbinary.readouterr().out) == found
    assert file.read_bytes() == text_of(results, "adj").encode()
    assert main(["export", str(results.path), "--format", "adj", "-o", str(file)]) == 0
    assert capfdbinary.readouterr().out == f"the graph in {file}, in place of the file that was there\n".encode()
    assert main(["export", str(results.path), "--format", "csv", "--json"]) == 2
    assert main(["export", str(results.path)]) == 0
    assert capfdbinary.readouterr().out == text_of(results, "csv").encode()


def test_what_is_not_complete_is_exported_with_a_word(tmp_path, capsys):
    bq.mine(hostile_edges(), tmp_path / "run", max_results=3, **QUIET)
    assert main(["export", str(tmp_path / "run"), "--format", "jsonl", "-o", str(tmp_path / "x")]) == 3
    assert len((tmp_path / "x").read_text().splitlines()) == 3
    assert "bicliques: not complete; go on with: bicliques resume" in capsys.readouterr().err
