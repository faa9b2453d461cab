"""Walks into the search tree: on average they find what the whole tree has, whatever they happen to draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.estimate.walk import Grid, Walk, Walker, drawn_of
from bicliques.pipeline.prepare.weights import RootWeights
from bicliques.schemas.emit import Emit
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.work import Slice, Subtrees
from tests.support.examples import examples
from tests.support.oracles import graph_of, random_edges, run

GRID = Grid((1, 2, 3), (1, 2, 4))


class OneNode:
    """The reference engine, which is late after its first node. So a walk does not depend on the clock."""

    name = "one node"

    def __init__(self) -> None:
        self._engine = ReferenceEngine()

    def mine(self, graph: MiningGraph, work: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        return self._engine.mine(graph, work, search, Limits(0.0), emit)

    def stop(self) -> None:
        self._engine.stop()


def walker(graph: MiningGraph, engine: Any = None, **search: Any) -> Walker:
    return Walker(engine or OneNode(), graph, RootWeights(graph), Search("count", sizes=True, **search), GRID)


@pytest.mark.parametrize("thresholds", [{}, {"min_left": 2, "min_right": 3}], ids=str)
def test_the_mean_of_many_walks_is_the_truth(thresholds: dict[str, int]) -> None:
    graph = graph_of(random_edges(np.random.default_rng(5), 16, 12, 0.5))
    truth = GRID.counts(run(ReferenceEngine(), graph, Search("count", sizes=True, **thresholds)).sizes)
    assert truth[0, 0] > 50
    rng, one = np.random.default_rng(1), walker(graph, **thresholds)
    counts = np.array([one.walk(5, 1e9, rng).counts for _ in range(200)])
    error = counts.std(axis=0) / np.sqrt(len(counts))
    assert (np.abs(counts.mean(axis=0) - truth) <= 4 * error + 1e-9).all()
    assert error[0, 0] < 0.05 * truth[0, 0], "or else the test says little"


def test_a_walk_that_draws_everything_is_exact() -> None:
    graph = graph_of(random_edges(np.random.default_rng(2), 12, 9, 0.5))
    found = run(ReferenceEngine(), graph, Search("count", sizes=True)).sizes
    walk = walker(graph).walk(10**6, 1e9, np.random.default_rng(0))
    assert np.allclose(walk.counts, GRID.counts(found))
    assert walk.members == pytest.approx(float(((found.n_left + found.n_right) * found.count).sum()))


def test_a_walk_whose_time_is_over_reaches_the_bottom_with_one_node_per_round() -> None:
    graph = graph_of(random_edges(np.random.default_rng(3), 14, 11, 0.5))
    truth = run(ReferenceEngine(), graph, Search("count", sizes=True)).count
    rng, one = np.random.default_rng(4), walker(graph)
    counts = [one.walk(8, 0.0, rng).counts[0, 0] for _ in range(300)]
    assert abs(np.mean(counts) - truth) < 4 * np.std(counts) / np.sqrt(len(counts))


def test_a_search_in_full_is_exact_or_says_how_long_it_has_taken() -> None:
    graph = graph_of(random_edges(np.random.default_rng(3), 14, 11, 0.5))
    whole = walker(graph, ReferenceEngine()).whole(1e9)
    assert isinstance(whole, Walk)
    assert whole.counts[0, 0] == run(ReferenceEngine(), graph, Search("count")).count
    assert isinstance(walker(graph).whole(1e9), float)


@settings(max_examples=examples(40), deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 9)), max_size=30),
    left=st.sets(st.integers(1, 7), min_size=1),
    right=st.sets(st.integers(1, 7), min_size=1),
)
def test_a_grid_counts_what_is_large_enough(sizes: list[tuple[int, int, int]], left: set[int], right: set[int]) -> None:
    grid = Grid(tuple(sorted(left)), tuple(sorted(right)))
    columns = np.array(sizes, np.int64).reshape(-1, 3).T
    counts = grid.counts(SizeCounts.of(*columns))
    for i, a in enumerate(grid.left):
        for j, b in enumerate(grid.right):
            assert counts[i, j] == sum(n for x, y, n in sizes if x >= a and y >= b)


def test_entries_are_drawn_as_often_as_their_probability_says() -> None:
    work, rng = np.array([0.1, 5.0, 1.0, 1.0, 90.0, 2.0, 0.5, 3.0]), np.random.default_rng(0)
    often, n = np.zeros(len(work)), 4000
    for _ in range(n):
        drawn, probability = drawn_of(work, 3, rng)
        assert len(drawn) <= 3
        assert len(set(drawn.tolist())) == len(drawn)
        often[drawn] += 1 / probability
    assert often[4] == n, "it is drawn each time"
    assert np.abs(often / n - 1).max() < 0.25
    everything, probability = drawn_of(work, 8, rng)
    assert everything.tolist() == list(range(8))
    assert (probability == 1).all()
