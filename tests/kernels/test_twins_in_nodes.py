"""Twins inside nodes: base vertices that no candidate tells apart are one bit of the CPU engine, with a weight."""

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.kernels.reference.tree import Node, Tree
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import MEASURES, Limits, Search
from bicliques.schemas.work import Subtrees
from tests.kernels.suite import SIDES
from tests.kernels.suite_largest import Question, asked, first_of
from tests.kernels.suite_largest import check as check_largest
from tests.kernels.suite_marked import marked_graph, wanted
from tests.kernels.suite_thresholds import check, large_enough, with_twins
from tests.support.oracles import all_pairs, deal, graph_of, random_edges, run


def classes_of(tree: Tree, node: Node) -> list[frozenset[int]]:
    """The base vertices of a node, in classes of twins inside the node (R7)."""
    classes: dict[tuple[bool, ...], set[int]] = {}
    for u in node.base:
        classes.setdefault(tuple(u in tree.neighbours[p] for p in node.candidates), set()).add(u)
    return [frozenset(one) for one in classes.values()]


def tall(rng: np.random.Generator) -> np.ndarray:
    """Edges of a graph with many left and few right vertices, of which the last ones follow the first ones mostly.

    Some left vertices have copies. So nodes have more than 64 base vertices, and few distinct rows below the roots.
    """
    edges = random_edges(rng, int(rng.integers(70, 320)), int(rng.integers(3, 9)), float(rng.uniform(0.4, 0.9)))
    adjacent = np.zeros(edges.max(axis=0) + 1, bool)
    adjacent[tuple(edges.T)] = True
    noise = rng.random(adjacent.shape) < rng.choice([0.01, 0.1])
    return with_twins(rng, np.argwhere(np.hstack([adjacent, adjacent ^ noise])).astype(np.int32))


def tall_case(seed: int) -> tuple[MiningGraph, Search, np.random.Generator]:
    """A graph, and thresholds that leave something of it. Every third one has none."""
    rng = np.random.default_rng(seed)
    edges = tall(rng)
    a, b = int(rng.choice([1, 2, 5, 20, 60, 150])), int(rng.choice([1, 2, 3, 5]))
    a, b = (1, 1) if seed % 3 == 0 else (a, b)
    if rng.random() < 0.3:
        edges = edges[:, ::-1][np.lexsort(edges.T)].copy()
        a, b = b, a
    mode = str(rng.choice(["count", "fingerprint", "list"]))
    options = BuildOptions(root_side=str(rng.choice(["auto", *SIDES])))
    return graph_of(edges, options), Search(mode, min_left=a, min_right=b), rng


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(8, 24))])
def test_merged_twins_change_no_biclique(seed):
    graph, search, rng = tall_case(seed)
    expected = run(ReferenceEngine(), graph, search)
    found = run(CpuEngine(), graph, search)
    assert (found.count, found.fingerprint, sorted(found.rows)) == (
        expected.count,
        expected.fingerprint,
        sorted(expected.rows),
    )
    dealt = deal([CpuEngine(), ReferenceEngine(), CpuEngine()], graph, search, Limits(seconds=0.0), rng)
    assert (dealt.count, dealt.fingerprint) == (expected.count, expected.fingerprint)


@cache
def deep(seed: int) -> tuple[MiningGraph, list[tuple[tuple[int, ...], tuple[int, ...]]]]:
    """A graph in which classes of twins are merged again, level after level, and all its bicliques.

    Each right vertex that is left halves the number of distinct rows, and there are more left vertices than rows.
    """
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, int(rng.integers(1200, 2200)), int(rng.integers(8, 11)), float(rng.uniform(0.45, 0.6)))
    rows = all_pairs(edges)
    if rng.random() < 0.5:
        edges = edges[:, ::-1][np.lexsort(edges.T)].copy()
        rows = [row[::-1] for row in rows]
    roots = "left" if edges[:, 0].max() < edges[:, 1].max() else "right"
    return graph_of(edges, BuildOptions(root_side=roots)), rows


DEEP = [9, 23, *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(4))]


@pytest.mark.parametrize("seed", DEEP)
@pytest.mark.parametrize("mode", ["list", "fingerprint", "count"])
@pytest.mark.parametrize("prunes", [True, False], ids=["thresholds", "all"])
def test_classes_of_classes_have_all_their_members(prunes, mode, seed):
    (graph, rows), (a, b) = deep(seed), ((2, 1), (5, 2), (2, 2), (3, 3))[seed % 4] if prunes else (1, 1)
    search = Search(mode, min_left=a, min_right=b)
    check(run(CpuEngine(), graph, search), search, large_enough(rows, a, b))


@pytest.mark.parametrize("seed", DEEP)
@pytest.mark.parametrize("limits", [Limits(seconds=0.0), Limits(rows=7)], ids=["short", "rows"])
@pytest.mark.parametrize("least", [2, 1])
def test_classes_are_left_over_as_root_vertices(least, limits, seed):
    """Other engines and workers continue what a slice leaves, with classes of their own or with none."""
    graph, rows = deep(seed)
    search = Search("list" if least > 1 else "fingerprint", min_left=least, min_right=least)
    rng = np.random.default_rng(seed)
    tiny = Sizes(hub_bits=1 << 13, hub_list=256, rows=16, members=1 << 12)
    engines = [CpuEngine(), CpuEngine(sizes=tiny), ReferenceEngine()]
    check(deal(engines, graph, search, limits, rng), search, large_enough(rows, least, least))


@pytest.mark.parametrize("seed", DEEP)
@pytest.mark.parametrize("most", [(None, 3), (300, None), (90, 40)], ids=str)
@pytest.mark.parametrize("least", [2, 1])
def test_classes_are_weighed_for_filters_and_sizes(least, most, seed):
    graph, rows = deep(seed)
    mode = "list" if least > 1 else "fingerprint"
    search = Search(mode, min_left=least, max_left=most[0], max_right=most[1], sizes=True)
    most_left, most_right = most[0] or graph.n_left, most[1] or graph.n_right
    expected = {row for row in large_enough(rows, least, 1) if len(row[0]) <= most_left and len(row[1]) <= most_right}
    found = run(CpuEngine(), graph, search)
    check(found, search, expected)
    counted = run(CpuEngine(), graph, replace(search, mode="count"))
    sizes = Counter((len(left), len(right)) for left, right in expected)
    for one in (counted.sizes, found.sizes):
        keys = zip(one.n_left.tolist(), one.n_right.tolist(), strict=True)
        assert dict(zip(keys, one.count.tolist(), strict=True)) == sizes


@pytest.mark.parametrize("seed", DEEP)
@pytest.mark.parametrize("by", MEASURES)
def test_classes_are_weighed_for_the_largest(by, seed):
    graph, rows = deep(seed)
    search = Search(largest=5, by=by, min_right=2)
    question, rng = Question(graph, search, first_of(rows, search)), np.random.default_rng(seed)
    check_largest(asked([CpuEngine()], question, Limits(), rng), question)
    check_largest(asked([CpuEngine(), ReferenceEngine()], question, Limits(seconds=0.0), rng), question)


@pytest.mark.parametrize("seed", DEEP)
def test_a_search_for_marked_edges_merges_no_twins(seed):
    """A mark belongs to a base vertex. A class of twins would hide it, and its number would point elsewhere."""
    graph, rows = deep(seed)
    edges = np.array(sorted({(u, v) for left, right in rows for u in left for v in right}), dtype=np.int32)
    marks, least = edges[np.random.default_rng(seed).choice(len(edges), 3)], (5, 2)
    marked = marked_graph(edges, marks, graph.root_side, least)
    engine, search = CpuEngine(), Search("list", min_left=least[0], min_right=least[1], marked=True)
    check(run(engine, marked, search), search, wanted(edges, marks, least))
    assert engine._memory[4].frame["n_classes"].max() == 0


@pytest.mark.parametrize("mode", ["fingerprint", "list"])
def test_twins_that_only_early_candidates_tell_apart_stay_two(mode):
    """Of 100 candidates, 90 large ones have both or none of 8 pairs of patterns, and 10 small ones tell these apart.

    Of each pattern there are 32 copies, which differ by a neighbour of their own.
    """
    rng = np.random.default_rng(3)
    rows = np.vstack([np.repeat(rng.random((90, 8)) < 0.6, 2, axis=1), rng.random((10, 16)) < 0.3])
    own = np.eye(512, dtype=bool)
    edges = np.argwhere(np.hstack([np.repeat(rows, 32, axis=1).T, own])).astype(np.int32)
    graph, search = graph_of(edges, BuildOptions(root_side="right")), Search(mode, min_left=2)
    expected, found = run(ReferenceEngine(), graph, search), run(CpuEngine(), graph, search)
    assert expected.count > 100
    assert (found.count, found.fingerprint, sorted(found.rows)) == (
        expected.count,
        expected.fingerprint,
        sorted(expected.rows),
    )


@pytest.mark.parametrize("least", [{}, {"min_left": 5, "min_right": 2}], ids=["all", "thresholds"])
def test_nodes_with_few_distinct_rows_get_classes(least):
    """The frames that a search has used last tell how many classes there were up to each."""
    graph, _ = deep(23)
    engine = CpuEngine()
    run(engine, graph, Search("fingerprint", **least))
    assert engine._memory[4].frame["n_classes"].max() > 0


def test_small_base_sides_of_leaves_are_not_counted():
    """A plain count finds the sides of small nodes at once, and weighs them together."""
    rng = np.random.default_rng(46)
    for _ in range(200):
        edges = with_twins(rng, random_edges(rng, 10, 7, float(rng.uniform(0.4, 0.8))))
        least = int(rng.integers(2, 6))
        graph = graph_of(edges, BuildOptions(root_side="right"))
        found = run(CpuEngine(), graph, Search("count", min_left=least))
        assert found.count == sum(len(left) >= least for left, _ in all_pairs(edges))


def sides_below(tree: Tree, node: Node) -> list[frozenset[int]]:
    """The base sides of all nodes below."""
    sides = []
    while (child := tree.next_child(node)) is not None:
        sides += [child.base, *sides_below(tree, child)]
    return sides


def test_every_base_side_below_a_node_is_a_union_of_classes():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = graph_of(with_twins(rng, random_edges(rng, 12, 6, 0.6)))
        tree = Tree(graph, Search(min_left=int(rng.integers(1, 4)), min_right=int(rng.integers(1, 3))))
        for root in range(graph.n_roots):
            node = tree.piece(Subtrees.of_roots(np.array([root])), 0)
            if node is not None:
                classes = classes_of(tree, node)
                assert frozenset().union(*classes) == node.base
                for side in sides_below(tree, node):
                    assert all(one <= side or not one & side for one in classes)
