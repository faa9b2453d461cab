"""Counts of cliques from Python and on the command line."""

import json
import threading

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.pipeline.results import cliques
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.search import Search
from tests.support.commands import run
from tests.support.known import ROOT
from tests.support.one_kind import by_definition, motifs_of, random_graphs

GRAPH = nx.gnp_random_graph(14, 0.5, seed=4)
EXPECTED = by_definition(GRAPH)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "g.el"
    path.write_text("".join(f"{u} {v}\n" for u, v in GRAPH.edges()))
    return path


@pytest.mark.parametrize(
    ("engine", "workers"), [("reference", 0), ("cpu", 0), pytest.param("cpu", 2, marks=pytest.mark.exhaustive)]
)
def test_every_number_of_vertices_has_its_number(source, engine, workers):
    counts = bq.clique_counts(source, engine=engine, workers=workers, slice_seconds=0.01)
    assert counts.table() == [EXPECTED[k] for k in range(1, counts.largest + 1)]
    assert counts[counts.largest + 1] == 0
    assert (counts.total, counts.largest) == (sum(EXPECTED.values()), max(EXPECTED))
    assert counts.motifs == motifs_of(GRAPH)
    assert counts.checks == ("checksum of the leaves", "vertices", "edges", "triangles")
    assert repr(counts) == f"<{counts.total:,} cliques of up to {counts.largest} vertices>"
    with pytest.raises(InputError, match="at least 1"):
        counts[0]


def test_directions_loops_and_edges_that_are_there_again_do_not_count():
    rng = np.random.default_rng(2)
    for graph in random_graphs(8, 6):
        edges = [edge if rng.random() < 0.5 else edge[::-1] for edge in graph.edges()]
        again = [edge[::-1] if rng.random() < 0.5 else edge for edge in edges if rng.random() < 0.5]
        mixed = rng.permutation([*edges, *again, *((v, v) for v in list(graph)[:3])])
        counts = bq.clique_counts(list(map(tuple, mixed.tolist())), workers=0)
        joined = graph.subgraph([v for v in graph if graph.degree(v)])
        assert counts.table() == [by_definition(joined)[k] for k in range(1, counts.largest + 1)]
        named = bq.clique_counts([(f"v{u:03}", f"v{v:03}") for u, v in mixed.tolist()], workers=0)
        assert named.leaves == counts.leaves


def test_labels_of_both_columns_are_one_set():
    """Sides of other types and orders, and a vertex that is on one side alone."""
    table = pa.table({"from": pa.array([5, 7, 2**40], pa.int64()), "to": pa.array([7, 900, 5], pa.int32())})
    assert bq.clique_counts(table, workers=0).table() == [4, 3]
    assert bq.clique_counts([("b", "a"), ("c", "b"), ("a", "c"), ("d", "a")], workers=0).table() == [4, 4, 1]
    coded = pa.table({"from": pa.array(["x", "y", "x"]).dictionary_encode(), "to": pa.array(["y", "z", "z"])})
    assert bq.clique_counts(coded, workers=0).table() == [3, 3, 1]
    with pytest.raises(InputError, match="from has integers and to has text, so they are not labels of one kind"):
        bq.clique_counts(pa.table({"from": [1, 2], "to": ["1", "3"]}), workers=0)


def test_graphs_of_networkx_and_igraph_need_no_sides():
    karate = nx.karate_club_graph()
    assert bq.clique_counts(karate, workers=0).table() == [34, 78, 45, 11, 2]
    assert bq.clique_counts(karate.to_directed(), workers=0).table() == [34, 78, 45, 11, 2]
    few = bq.clique_counts(karate, workers=0, min_weight=4)
    heavy = nx.Graph((u, v) for u, v, weight in karate.edges(data="weight") if weight >= 4)
    assert few.table() == [by_definition(heavy)[k] for k in range(1, few.largest + 1)]
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    named = igraph.Graph([(0, 1), (1, 2), (2, 0), (2, 3)])
    assert bq.clique_counts(named, workers=0).table() == [4, 4, 1]
    named.vs["name"] = ["a", "b", "c", "a"]
    with pytest.raises(InputError, match="vertex 3 is called 'a' as another one"):
        bq.clique_counts(named, workers=0)


def test_the_command_prints_both_tables(source, capsys):
    code, text, _ = run(capsys, "cliques", source, "--quiet")
    assert code == 0
    assert f"cliques: {sum(EXPECTED.values()):,}\n" in text
    assert f"{source}: 14 vertices, {GRAPH.number_of_edges()} edges" in text
    assert "as the input says: checksum of the leaves, vertices, edges, triangles" in text
    assert not {"left", "right", "bicliques:"} & set(text.split("read as")[0].split())
    assert f"3  {EXPECTED[3]:,}".split() in [line.split() for line in text.splitlines()]
    code, text, _ = run(capsys, "cliques", source, "--quiet", "--json")
    told = json.loads(text)
    assert (code, told["count"]) == (0, sum(EXPECTED.values()))
    assert told["pq"]["table"] == [str(EXPECTED[k]) for k in range(1, max(EXPECTED) + 1)]
    assert told["pq"]["motifs"]["cycles"] == str(motifs_of(GRAPH)["cycles"])


def test_the_page_has_the_numbers_of_the_graph_that_ships(capsys):
    """A C++ program has the same."""
    page = (ROOT / "docs" / "cliques.md").read_text()
    code, text, _ = run(capsys, *page.split("```sh\nbicliques ")[1].split("\n")[0].split(), "--quiet")
    assert code == 0
    assert text.partition("\n\n")[2].strip() == page.split("```text\n")[1].split("```")[0].strip()


def test_the_card_tells_of_loops(tmp_path, capsys):
    (tmp_path / "g.el").write_text("1 2\n2 1\n3 3\n2 2\n")
    code, text, _ = run(capsys, "cliques", tmp_path / "g.el", "--quiet")
    assert code == 0
    assert "2 vertices, 1 edge; note: 2 edges join a vertex with itself and are left out" in text
    code, _, errors = run(capsys, "cliques", tmp_path / "g.el", "--quiet", "--strict")
    assert code == 2
    assert "is doubtful: 2 edges join a vertex with itself and are left out; mend it" in errors
    (tmp_path / "g.el").write_text("1 1\n2 2\n")
    code, _, errors = run(capsys, "cliques", tmp_path / "g.el", "--quiet")
    assert code == 2
    assert "there are no edges in" in errors
    assert "(2 edges join a vertex with itself); check the input" in errors


@pytest.mark.parametrize("options", [("--min-left", "2"), ("--max-results", "3"), ("--sizes",), ("--per-vertex", "V")])
def test_other_options_of_a_count_are_refused(source, options, capsys):
    code, text, errors = run(capsys, "cliques", source, *options, "--quiet")
    assert (code, text, errors.count("\n")) == (2, "", 1)


def test_a_run_that_has_read_two_kinds_of_vertices_is_refused(source, tmp_path, capsys):
    bq.mine(source, tmp_path / "RUN", report=False, progress=False, workers=0)
    code, _, errors = run(capsys, "cliques", tmp_path / "RUN", "--quiet")
    assert code == 2
    assert "is a run that has read two kinds of vertices, not one; name the edge list itself" in errors


def test_an_engine_that_does_not_count_them_says_so():
    assert engines.kind("cumbe").lacks(Search("count", pq="cliques")) == "it cannot do the job 'cliques'"


def test_a_count_that_was_stopped_has_no_numbers(source, capsys):
    stop = threading.Event()
    stop.set()
    with pytest.raises(IncompleteError, match="count again, with a later time_limit if it had one"):
        bq.clique_counts(source, workers=0, stop=stop)


def test_numbers_that_contradict_the_wedges_are_refused(source, monkeypatch):
    monkeypatch.setattr(cliques, "count_common", lambda *arrays: arrays[5].__setitem__(1, 3))
    with pytest.raises(IncompleteError, match="triangles, and the input has 1; count again"):
        bq.clique_counts(source, workers=0)
