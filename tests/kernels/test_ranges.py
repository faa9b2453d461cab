"""Ranges of candidates become lists; the tests compare these with lists that sets of neighbours give."""

from itertools import pairwise

import numpy as np
import pytest

from bicliques.kernels.graph.ranges import candidates_of, in_lists
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.work import Subtrees
from tests.support.oracles import graph_of
from tests.support.runs import random_edges


@pytest.mark.parametrize(("density", "least", "most"), [(0.03, 50, 199), (0.6, 0, 20)])
def test_a_range_becomes_the_neighbours_of_its_node_if_these_are_fewer(density, least, most):
    """In the sparse graph many nodes have fewer wedges than there are ranks, and in the dense one few nodes have."""
    graph = graph_of(random_edges(90, 70, density, 3), BuildOptions())
    rng = np.random.default_rng(1)
    lists = [rng.choice(graph.n_base, rng.integers(1, 6), replace=False).astype(np.int32) for _ in range(200)]
    n = np.array([len(own) for own in lists])
    begin = rng.integers(0, graph.n_roots + 1, len(lists))
    end = begin + rng.integers(0, graph.n_roots + 1 - begin)
    indptr, candidates, todo = candidates_of(graph, np.concatenate(lists), np.cumsum(n) - n, n, begin, end)
    rows = [graph.base_indices[a:b].tolist() for a, b in pairwise(graph.base_indptr)]
    listed = 0
    for i, own in enumerate(lists):
        expected = list(range(begin[i], graph.n_roots))
        if sum(len(rows[u]) for u in own) < len(expected):
            expected = sorted({v for u in own for v in rows[u] if v >= begin[i]})
            listed += 1
        assert candidates[indptr[i] : indptr[i + 1]].tolist() == expected
        assert todo[i] == sum(v < end[i] for v in expected)
    assert least <= listed <= most
    assert (indptr.dtype, candidates.dtype, todo.dtype) == (np.int64, np.int32, np.int32)


def test_ranges_become_lists_a_few_at_a_time_and_nothing_is_lost():
    graph = graph_of(random_edges(90, 70, 0.2, 3), BuildOptions())
    path, begin = np.array([0, 1, 2, 3, 4], np.int32), np.array([1, 30, 3, 4, 5])
    ranges = Subtrees.of_ranges(np.arange(6), path, begin, np.array([2, 1, 5, 0, 9]), np.ones(5, bool))
    plain = Subtrees.of_roots(np.array([7, 8]))
    work = Subtrees.concat([plain.take(0, 1), ranges.take(0, 2), plain.take(1, 2), ranges.take(2, 5)])
    rows = [graph.root_indices[a:b].tolist() for a, b in pairwise(graph.root_indptr)]
    seen = []
    while len(work):
        n_before = int(work.ranged.sum())
        now, work = in_lists(graph, work, most=2 * graph.n_roots)
        assert not now.ranged.any()
        assert int(work.ranged.sum()) < max(n_before, 1)
        for i in range(len(now)):
            root, candidates = int(now.path_of(i)[0]), now.candidates_of(i).tolist()
            if root in path:
                meets = [v for v in range(begin[root], graph.n_roots) if set(rows[v]) & set(rows[root])]
                assert set(meets) <= set(candidates) <= set(range(begin[root], graph.n_roots))
                assert now.todo[i] == sum(v < begin[root] + ranges.todo[root] for v in candidates)
            seen.append((root, len(candidates), int(now.fresh[i])))
    assert sorted(root for root, _, _ in seen) == [0, 1, 2, 3, 4, 7, 8]


def test_ranges_wait_while_there_are_enough_lists():
    """Otherwise slices that finish few of their nodes would write out more and more, until all nodes are lists."""
    graph = graph_of(random_edges(90, 70, 0.2, 3), BuildOptions())
    roots = np.arange(graph.n_roots - 1)
    work = Subtrees.of_ranges(
        np.arange(len(roots) + 1), roots, roots + 1, graph.n_roots - 1 - roots, np.zeros(len(roots), bool)
    )
    most, n_ranged, slices = 500, len(work), 0
    while work.ranged.any():
        now, later = in_lists(graph, work, most)
        assert len(now)
        assert len(now.candidates) <= most
        n_ranged, slices = int(later.ranged.sum()), slices + 1
        work = Subtrees.concat([now, later]) if slices % 2 else later  # every other slice finishes no list
        assert slices < 2 * len(roots) + 2
    assert slices > 4
    assert n_ranged == 0


def test_a_hub_with_more_neighbours_than_the_limit_comes_alone():
    """The common neighbours of the hub are found again for each of its ranges, however few candidates these have."""
    graph = graph_of(random_edges(90, 70, 0.5, 3), BuildOptions())
    last = graph.n_roots - 2
    work = Subtrees.of_ranges(np.arange(9), np.full(8, last), np.full(8, last + 1), np.ones(8), np.zeros(8, bool))
    now, later = in_lists(graph, work, most=3)
    assert (len(now), len(later)) == (1, 7)
