"""Walks into the search tree: on average they find what the whole tree has, whatever they happen to draw."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.estimate import walk
from bicliques.pipeline.estimate.walk import Grid, Walk, Walker, drawn_of
from bicliques.schemas.bicliques import Emit
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

    def __init__(self):
        self._engine = ReferenceEngine()

    def mine(self, graph: MiningGraph, work: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        return self._engine.mine(graph, work, search, Limits(0.0), emit)

    def stop(self):
        self._engine.stop()


def walker(graph: MiningGraph, engine=None, **search) -> Walker:
    return Walker(engine or OneNode(), graph, Search("count", sizes=True, **search), GRID)


def through(one: Walker, rng: np.random.Generator, seconds: float = 1e9) -> Walk:
    found = one.walk(seconds, rng, lambda: False)
    assert found is not None
    return found


@pytest.mark.parametrize(("thresholds", "counted"), [({}, 0), ({"min_left": 2, "min_right": 3}, 2)])
@pytest.mark.first(1)
def test_what_is_counted_and_the_mean_of_many_walks_are_the_truth(thresholds, counted, monkeypatch):
    graph = graph_of(random_edges(np.random.default_rng(5), 16, 12, 0.5))
    truth = GRID.counts(run(ReferenceEngine(), graph, Search("count", sizes=True, **thresholds)).sizes)
    assert truth[0, 0] > 50
    monkeypatch.setattr(walk, "_WIDEST", 8)
    rng, one = np.random.default_rng(1), walker(graph, **thresholds)
    for _ in range(counted):
        one.count(0.0)
    assert (one.known.counts[0, 0] > 0) == (counted > 0)
    assert one.known.counts[0, 0] < truth[0, 0] / 2
    counts = np.array([through(one, rng).counts for _ in range(80)])
    error = counts.std(axis=0) / np.sqrt(len(counts))
    assert (np.abs(one.known.counts + counts.mean(axis=0) - truth) <= 4 * error + 1e-9).all()
    assert error[0, 0] < 0.1 * truth[0, 0], "or else the test says little"


def test_a_walk_that_draws_everything_is_exact():
    graph = graph_of(random_edges(np.random.default_rng(2), 12, 9, 0.5))
    found = run(ReferenceEngine(), graph, Search("count", sizes=True)).sizes
    walked = through(walker(graph), np.random.default_rng(0))
    assert np.allclose(walked.counts, GRID.counts(found))
    assert walked.members == pytest.approx(float(((found.n_left + found.n_right) * found.count).sum()))


def test_a_walk_whose_time_is_over_reaches_the_bottom():
    graph = graph_of(random_edges(np.random.default_rng(3), 14, 11, 0.5))
    truth = run(ReferenceEngine(), graph, Search("count", sizes=True)).count
    rng, one = np.random.default_rng(4), walker(graph)
    counts = [through(one, rng, 0.0).counts[0, 0] for _ in range(300)]
    assert abs(np.mean(counts) - truth) < 4 * np.std(counts) / np.sqrt(len(counts))


def test_the_width_of_a_walk_is_what_nodes_have_taken_so_far(monkeypatch):
    """A node takes a second by this clock, so a walk of 40 seconds has about as many nodes, and not a thousand."""
    now, taken = [0.0], []
    monkeypatch.setattr("bicliques.pipeline.estimate.walk.time.perf_counter", lambda: now[0])
    mine = OneNode.mine

    def slow(self: OneNode, *arguments) -> Slice:
        now[0] += 1.0
        taken.append(now[0])
        return mine(self, *arguments)

    monkeypatch.setattr(OneNode, "mine", slow)
    graph = graph_of(random_edges(np.random.default_rng(3), 400, 300, 0.02))
    one, rng = walker(graph), np.random.default_rng(4)
    one.walk(0.0, rng, lambda: len(taken) > 20)  # it measures
    taken.clear()
    through(one, rng, 40.0)
    assert 20 < len(taken) < 80


def test_a_walk_without_any_time_says_nothing():
    graph = graph_of(random_edges(np.random.default_rng(3), 14, 11, 0.5))
    looks = []
    one = walker(graph)
    assert one.walk(1e9, np.random.default_rng(4), lambda: len(looks) == 9 or bool(looks.append(0))) is None
    assert len(looks) == 9


def test_counting_goes_on_where_it_ended():
    graph = graph_of(random_edges(np.random.default_rng(3), 14, 11, 0.5))
    truth, one, counts = run(ReferenceEngine(), graph, Search("count")).count, walker(graph), [0.0]
    while len(one.rest):
        one.count(0.0)
        counts.append(float(one.known.counts[0, 0]))
    assert counts == sorted(counts)
    assert counts[-1] == truth
    assert len({*counts}) > 5


@settings(max_examples=examples(40), deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6), st.integers(1, 9)), max_size=30),
    left=st.sets(st.integers(1, 7), min_size=1),
    right=st.sets(st.integers(1, 7), min_size=1),
)
def test_a_grid_counts_what_is_large_enough(sizes, left, right):
    grid = Grid(tuple(sorted(left)), tuple(sorted(right)))
    columns = np.array(sizes, np.int64).reshape(-1, 3).T
    counts = grid.counts(SizeCounts.of(*columns))
    for i, a in enumerate(grid.left):
        for j, b in enumerate(grid.right):
            assert counts[i, j] == sum(n for x, y, n in sizes if x >= a and y >= b)


def test_entries_are_drawn_as_often_as_their_probability_says():
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
