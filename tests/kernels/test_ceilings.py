"""What a bound leaves of a graph has the same large bicliques, compared with a full enumeration."""

import numpy as np
import pytest

from bicliques.kernels.graph.ceilings import EdgesByCeiling, _levels
from bicliques.kernels.graph.greedy import Found
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import MEASURES, Search, measure
from tests.kernels.suite_thresholds import with_twins
from tests.support.oracles import all_pairs, graph_of, random_edges

Rows = list[tuple[tuple[int, ...], tuple[int, ...]]]


def of_size(rows: Rows, search: Search, bound: int) -> Rows:
    """Those that a search wants and whose measure is `bound` or more."""
    return sorted(
        (left, right)
        for left, right in rows
        if search.min_left <= len(left) <= (search.max_left or len(left))
        and search.min_right <= len(right) <= (search.max_right or len(right))
        and measure(search.by, len(left), len(right)) >= bound
    )


@pytest.mark.values
@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize("seed", range(4))
def test_no_large_biclique_is_lost_and_none_appears(by, seed):
    rng, removed = np.random.default_rng([MEASURES.index(by), seed]), 0
    for _ in range(40):
        shape = (int(n) for n in rng.integers(2, 13, 2))
        edges = with_twins(rng, random_edges(rng, *shape, float(rng.uniform(0.2, 0.9))))
        left, right = (int(n) for n in rng.integers(1, 4, 2))
        most = [None if rng.random() < 0.6 else int(rng.integers(least, 9)) for least in (left, right)]
        search = Search(min_left=left, min_right=right, max_left=most[0], max_right=most[1], largest=1, by=by)
        n_left, n_right = (edges.max(axis=0) + 1).tolist()
        by_ceiling = EdgesByCeiling(*np.ascontiguousarray(edges.T), n_left, n_right, search)
        whole = all_pairs(edges)
        assert not of_size(whole, search, by_ceiling.most + 1)
        for bound in {1, *rng.integers(1, max(by_ceiling.most, 1) + 2, 3).tolist()}:
            kept = np.stack(by_ceiling.reaching(bound), axis=1)
            assert len(kept) <= by_ceiling.n_reaching(bound)
            assert kept.tolist() == sorted(kept.tolist())
            assert of_size(all_pairs(kept), search, bound) == of_size(whole, search, bound)
            removed += len(kept) < len(edges)
    assert removed > 20


def skewed(n: int, m: int, planted: tuple[int, int], seed: int = 1) -> np.ndarray:
    """Edges between `n` vertices on either side, few of which have most edges, and a biclique of others."""
    rng = np.random.default_rng(seed)
    members = [rng.permutation(np.arange(n // 2, n))[:size] for size in planted]
    drawn = np.floor(n * rng.random((m, 2)) ** 2).astype(np.int32)
    both = np.stack([side.ravel() for side in np.meshgrid(*members)], axis=1).astype(np.int32)
    return np.unique(np.concatenate([drawn, both]), axis=0)


def test_a_planted_biclique_of_vertices_of_low_degree_is_what_is_left():
    """Also on threads. A greedy search of the whole graph begins with its hubs, and does not find it as soon."""
    n, search = 40_000, Search(min_left=3, min_right=3, largest=1, by="edges")
    edges = skewed(n, 300_000, (30, 20))
    columns = np.ascontiguousarray(edges.T)
    found = [EdgesByCeiling(*columns, n, n, search, threads).reaching(600) for threads in (1, 3)]
    for one, other in zip(*found, strict=True):
        assert one.tolist() == other.tolist()
    assert len(found[0][0]) < 2 * 600
    wedges = 1 << 20
    assert Found(search).look(prepare(*found[0], n, n, BuildOptions(), 3, 3)[0], 600, wedges) == 600
    assert Found(search).look(prepare(*columns, n, n, BuildOptions(), 3, 3)[0], 0, wedges) < 600


def test_levels():
    levels = _levels(2**31 - 1)
    assert 200 < len(levels) <= 256, "a level is a byte"
    assert (np.diff(levels) > 0).all()
    assert (levels[:40] == np.arange(40)).all()
    assert levels[-1] == 2**31 - 1
    for most in (0, 1, 47, 48, 49, 50, 53, 1000):
        levels = _levels(most)
        assert (levels[-1], len(np.unique(levels))) == (most, len(levels))


@pytest.mark.parametrize("size", range(49, 60))
def test_degrees_between_two_levels_count_as_the_higher_one(size):
    hub = [(u, 0) for u in range(1000)]
    edges = np.array(sorted({*hub, *((u, v) for u in range(size) for v in range(50))}), np.int32)
    by_ceiling = EdgesByCeiling(*np.ascontiguousarray(edges.T), 1000, 50, Search(min_right=2, largest=1, by="edges"))
    assert by_ceiling.most >= 50 * size
    assert len(by_ceiling.reaching(50 * size)[0]) == 50 * size


def test_what_is_not_maximal_in_the_whole_graph_does_not_count_twice():
    """Two cores of one graph may hold it with different members. It is smaller than what the first core is for."""
    graph = graph_of(np.array([(u, v) for u in range(4) for v in range(5)] + [(4, v) for v in range(3)]))
    found = Found(Search(largest=2, by="edges"))
    assert found.look(graph, 21) == 0
    assert found.look(graph, 20) == 0, "the second largest has 15 edges"
    assert found.look(graph, 15) == 15
