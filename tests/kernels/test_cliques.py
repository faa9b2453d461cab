"""The number of cliques of random and of known graphs, whatever is done first and wherever a slice ends."""

import contextlib
import itertools
from collections import Counter
from dataclasses import replace
from math import comb

import networkx as nx
import numpy as np
import pytest

from bicliques.kernels.cpu import leaves as cpu_leaves
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.results.cliques import cliques, cliques_of
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.leaves import mixes
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.known import NOT_HERE
from tests.support.one_kind import KNOWN, by_definition, cover_of, edges_of, motifs_of, random_graphs, right_side, table
from tests.support.pivot import counted


def expected_table(expected: Counter[int]) -> list[int]:
    return [expected[k] for k in range(1, 30)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in (1, 2))])
def test_all_cliques_of_random_graphs_are_those_of_the_definition(seed):
    engine = CpuEngine()
    for k, graph in enumerate(random_graphs(seed, 150)):
        cover = cover_of(edges_of(graph), ("degree", "id", "two-hop")[k % 3], ("left", "right")[k % 2])
        found, expected = (
            counted(engine, cover, "cliques", (None, 0.0)[k % 4 == 0], (1, 5)[k % 5 == 0]),
            by_definition(graph),
        )
        assert table(found) == expected_table(expected)
        assert cliques(found, (1, None)) == sum(expected.values())
        if k % 4 == 0:
            assert len(cliques_of(found, cover).checks) == 4


def test_motifs_are_those_of_all_sets_of_vertices():
    for graph in random_graphs(7, 60, 8):
        cover = cover_of(edges_of(graph))
        assert cliques_of(counted(CpuEngine(), cover, "cliques"), cover).motifs == motifs_of(graph)


def test_the_reference_counts_as_the_definition_does():
    for k, graph in enumerate(random_graphs(5, 80)):
        cover = cover_of(edges_of(graph), "id")
        found = counted(ReferenceEngine(), cover, "cliques", (None, 0.0)[k % 3 == 0], (1, 5)[k % 5 == 0])
        assert table(found) == expected_table(by_definition(graph))
        assert found.is_whole


def test_a_piece_need_not_have_all_candidates():
    """But those that it has are joined to its path."""
    rng = np.random.default_rng(12)
    for seed in range(100):
        cover = cover_of(edges_of(nx.gnp_random_graph(14, 0.7, seed=seed)))
        indptr, indices = cover.neighbours()
        path = np.array([int(rng.integers(4))], np.int32)
        others = indices[indptr[path[0]] : indptr[path[0] + 1]]
        others = others[(others > path[0]) & (rng.random(len(others)) < 0.7)]
        piece = Subtrees.of_pieces([(path, others, int(rng.integers(len(others) + 1)), bool(rng.random() < 0.5))])
        search, limits = Search("count", pq="cliques"), Limits()
        found, expected = (
            engine.mine(cover, piece, search, limits, nowhere) for engine in (CpuEngine(), ReferenceEngine())
        )
        assert table(found.total) == table(expected.total)


def test_an_engine_counts_bicliques_and_cliques_of_one_graph():
    (graph,), engine = random_graphs(3, 1), CpuEngine()
    cover = cover_of(edges_of(graph))
    for pq in ("cliques", "all", "2x2", "cliques"):
        assert counted(engine, cover, pq) == counted(CpuEngine(), cover, pq)


def test_a_number_of_leaves_that_is_changed_by_one_is_noticed():
    """By the checksum, and often by what the degrees and the wedges say."""
    by_degrees = changed = 0
    for graph in random_graphs(6, 40):
        cover = cover_of(edges_of(graph))
        found = counted(CpuEngine(), cover, "cliques")
        for k, by in itertools.product(range(len(found.number)), (-1, 1)):
            number = found.number.copy()
            number[k] += by
            wrong, changed = replace(found, number=number), changed + 1
            with pytest.raises(IncompleteError, match="do not have their checksum"):
                cliques_of(wrong, cover)
            by_degrees += 1
            fitting = replace(wrong, mix=int((mixes(found.keys) * number.astype(np.uint64)).sum()))
            with contextlib.suppress(IncompleteError):
                cliques_of(fitting, cover)
                by_degrees -= 1
    assert changed >= by_degrees > 0.9 * changed


@pytest.mark.parametrize("n", [3, 64, 65, 200])
def test_rows_of_more_than_one_word(n):
    """A complete graph without a perfect matching: of each of its pairs a clique has one vertex, the other, or none."""
    graph = nx.complete_graph(2 * n)
    graph.remove_edges_from([(2 * k, 2 * k + 1) for k in range(n)])
    small = min(n, 12)
    graph = graph.subgraph(range(2 * small)).copy()
    rest = range(2 * small, 2 * small + n)  # joined to each other and to all others
    graph.add_edges_from(itertools.combinations(rest, 2))
    graph.add_edges_from(itertools.product(range(2 * small), rest))
    found = counted(CpuEngine(), cover_of(edges_of(graph)), "cliques")
    for k in range(1, n + small + 2):
        assert cliques(found, (k, k)) == sum(comb(small, i) * 2**i * comb(n, k - i) for i in range(min(k, small) + 1))


@pytest.mark.parametrize(("limit", "least"), [("_HEAVY", 1), ("_HEAVY", 7), ("_HEAVY", 100), ("_WIDE", 3)])
def test_heavy_pieces_are_divided_and_counted_once(limit, least, monkeypatch):
    graph = nx.gnp_random_graph(24, 0.6, seed=1)
    monkeypatch.setattr(cpu_leaves, limit, least)
    monkeypatch.setattr(cpu_leaves, "_CHILDREN", 3)
    cover = cover_of(edges_of(graph))
    for seconds, pieces in ((None, 1), (0.0, 3)):
        found = counted(CpuEngine(), cover, "cliques", seconds, pieces)
        assert table(found) == expected_table(by_definition(graph))
        cliques_of(found, cover)


def test_tables_of_few_places_are_emptied_in_time(monkeypatch):
    graph = nx.gnp_random_graph(30, 0.7, seed=2)
    cover = cover_of(edges_of(graph))
    expected = counted(CpuEngine(), cover, "cliques")
    monkeypatch.setattr(cpu_leaves, "_PLACES", 8)
    for seconds in (None, 0.0):
        found = counted(CpuEngine(), cover, "cliques", seconds=seconds)
        cliques_of(found, cover)
        assert table(found) == table(expected)


@pytest.mark.golden
@pytest.mark.parametrize("name", KNOWN)
def test_known_numbers(name):
    edges = right_side(name)
    if edges is None:
        pytest.skip(f"{name}.parquet is not here: {NOT_HERE}")
    n_edges, largest, numbers, motifs = KNOWN[name]
    cover = cover_of(edges)
    counts = cliques_of(counted(CpuEngine(), cover, "cliques"), cover)
    assert (counts[2], counts.largest) == (n_edges, largest)
    assert tuple(counts[k] for k in (3, 4, 5, 8)) == numbers
    if motifs is not None:
        assert (
            tuple(counts.motifs[name] for name in ("paths", "stars", "cycles", "tailed triangles", "diamonds"))
            == motifs
        )
    if name == "hyper_ndc_substances":
        assert counts[12] == 151_850_798_513_946
