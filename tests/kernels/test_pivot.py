"""The number of p x q bicliques of random and of known graphs, whatever is done first and wherever a slice ends."""

import contextlib
import itertools
from math import comb

import numpy as np
import pytest

from bicliques.kernels.cpu import leaves as cpu_leaves
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.results.pq import check_leaves
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.leaves import Leaves, bounds_of, mixes
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.known import NOT_HERE, dense_edges, known_graph
from tests.support.oracles import bicliques_by_size, random_edges, whole_graph_of
from tests.support.pivot import KNOWN, MORE, check, counted, of_size, random_graphs


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in (1, 2))])
def test_all_sizes_of_random_graphs_are_those_of_the_definition(seed):
    engine = CpuEngine()
    for k, graph, expected in random_graphs(seed, 500):
        found = counted(engine, graph, "all", (None, 0.0)[k % 3 == 0], (1, 5)[k % 5 == 0])
        check(found, expected)
        assert found.bicliques((1, None), (1, None)) == sum(expected.values())
        if k % 4 == 0:
            assert len(check_leaves(found, graph, None)) == 6
            bounded = counted(engine, graph, "2x4")
            check(bounded, expected, (2, 4))
            check_leaves(bounded, graph, bounds_of("2x4"))


def test_the_reference_counts_as_the_definition_does():
    for k, graph, expected in random_graphs(5, 150):
        found = counted(ReferenceEngine(), graph, "all", (None, 0.0)[k % 3 == 0], (1, 5)[k % 5 == 0])
        check(found, expected)
        check_leaves(found, graph, None)
        check(counted(ReferenceEngine(), graph, "3x1"), expected, (3, 1))


def test_a_number_of_leaves_that_is_changed_by_one_is_noticed():
    """By the checksum, and where a leaf has few held vertices also by what degrees and wedges say."""
    by_degrees = changed = 0
    for _, graph, _ in random_graphs(6, 40):
        found = counted(CpuEngine(), graph)
        for k, by in itertools.product(range(len(found.number)), (-1, 1)):
            number = found.number.copy()
            number[k] += by
            wrong, changed = Leaves(found.keys, number, found.mix), changed + 1
            with pytest.raises(IncompleteError, match="do not have their checksum"):
                check_leaves(wrong, graph, None)
            by_degrees += 1
            fitting = Leaves(found.keys, number, int((mixes(found.keys) * number.astype(np.uint64)).sum()))
            with contextlib.suppress(IncompleteError):
                check_leaves(fitting, graph, None)
                by_degrees -= 1
    assert changed >= by_degrees > 0.9 * changed


@pytest.mark.parametrize("shape", [(3, 200), (130, 70), (64, 64), (65, 63)])
def test_rows_of_more_than_one_word(shape):
    """Left vertex u is joined to the right vertices from u on. Of p chosen ones, the last decides what all share."""
    left, right = shape
    found = counted(CpuEngine(), whole_graph_of(np.argwhere(np.triu(np.ones(shape, bool))).astype(np.int32)))
    rng = np.random.default_rng(1)
    for p, q in [(1, 1), (2, 2), *rng.integers(1, 9, (20, 2)).tolist()]:
        assert of_size(found, p, q) == sum(comb(u, p - 1) * comb(right - u, q) for u in range(min(left, right)))
    large = of_size(found, 20, 20)
    assert large == sum(comb(u, 19) * comb(right - u, 20) for u in range(min(left, right)))
    assert shape != (130, 70) or large > 2**63


@pytest.mark.parametrize(("limit", "least"), [("_HEAVY", 1), ("_HEAVY", 7), ("_HEAVY", 100), ("_WIDE", 3)])
def test_heavy_pieces_are_divided_and_counted_once(limit, least, monkeypatch):
    graph = whole_graph_of(random_edges(np.random.default_rng(3), 16, 12, 0.5))
    expected = counted(CpuEngine(), graph)
    monkeypatch.setattr(cpu_leaves, limit, least)
    monkeypatch.setattr(cpu_leaves, "_CHILDREN", 3)
    found = counted(CpuEngine(), graph)
    assert found != expected
    for p, q in itertools.product(range(1, 9), range(1, 9)):
        assert of_size(found, p, q) == of_size(expected, p, q)
    check_leaves(found, graph, None)


def test_tables_of_few_places_are_emptied_in_time(monkeypatch):
    graph = whole_graph_of(random_edges(np.random.default_rng(4), 20, 25, 0.5))
    expected = counted(CpuEngine(), graph)
    assert len(expected.number) > 100
    monkeypatch.setattr(cpu_leaves, "_PLACES", 32)
    for seconds in (None, 0.0):  # also where a slice ends just then
        found = counted(CpuEngine(), graph, seconds=seconds)
        check_leaves(found, graph, None)
        assert found.bicliques((1, None), (1, None)) == expected.bicliques((1, None), (1, None))


def test_a_slice_of_no_time_ends_and_leaves_the_rest(monkeypatch):
    monkeypatch.setattr(cpu_leaves, "_PULSE", 1)
    graph = whole_graph_of(random_edges(np.random.default_rng(3), 60, 60, 0.5))
    search, engine = Search("count", pq="all"), CpuEngine()
    first = engine.mine(graph, Subtrees.of_roots(np.arange(graph.n_roots)), search, Limits(0.0), nowhere)
    assert len(first.left_over)
    whole = counted(CpuEngine(), graph).bicliques((1, None), (1, None))
    rest = engine.mine(graph, first.left_over, search, Limits(), nowhere)
    assert (first.total + rest.total).bicliques((1, None), (1, None)) == whole
    engine.stop()
    stopped = engine.mine(graph, first.left_over, search, Limits(), nowhere)
    assert len(stopped.left_over)


def marks(name: str) -> list[pytest.MarkDecorator]:
    if name in ("movielens_ui", "youtube", "fimi_mushroom"):
        return [pytest.mark.golden, pytest.mark.exhaustive]
    return [] if name.startswith("debian") else [pytest.mark.golden]


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in KNOWN])
def test_known_numbers(name):
    if known_graph(name) is None:
        pytest.skip(f"{name}.parquet is not here: {NOT_HERE}")
    graph = whole_graph_of(dense_edges(known_graph(name)))
    found = counted(CpuEngine(), graph)
    assert tuple(of_size(found, k, k) for k in (2, 3, 4)) == KNOWN[name]
    assert MORE.get(name, {}) == {(p, q): of_size(found, p, q) for p, q in MORE.get(name, {})}
    check_leaves(found, graph, None)
    if name == "ucforum":
        assert found.bicliques((1, None), (1, None)) == 85236745948052059954262681344636984797
    if name == "debian12_package_tag":
        assert 6 * 10**3092 <= found.bicliques((1, None), (1, None)) < 7 * 10**3092
    if name == "movielens_ut":  # a program that adds up floats prints 519669910723772288
        assert of_size(found, 2, 8) > 2**53
        assert 0 < abs(of_size(found, 2, 8) - 519669910723772288) < 100


def test_every_vertex_has_the_bicliques_that_contain_it(monkeypatch):
    """They are all bicliques without those of the graph that lacks the vertex."""
    rng = np.random.default_rng(11)
    for k in range(100):
        edges = random_edges(rng, *rng.integers(1, 8, 2).tolist(), rng.uniform(0.3, 0.95))
        graph, whole = whole_graph_of(edges, ("left", "right")[k % 2]), bicliques_by_size(edges)
        monkeypatch.setattr(cpu_leaves, "_WIDE", (1 << 19, 3)[k % 3 == 0])
        for p, q in ((1, 1), (2, 2), (1, 3), (3, 2)):
            sizes = (p, q) if graph.root_side == "left" else (q, p)
            counter = cpu_leaves.LeafCounter(graph, sizes)
            own = counter.shares(*sizes)
            members = graph.root_members, graph.base_members
            columns = (0, 1) if graph.root_side == "left" else (1, 0)
            for column, shares, ids in zip(columns, own, members, strict=True):
                for vertex, share in zip(ids.tolist(), shares.tolist(), strict=True):
                    others = bicliques_by_size(edges[edges[:, column] != vertex])
                    assert share == whole[p, q] - others[p, q]
