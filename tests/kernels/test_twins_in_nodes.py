"""Twins inside nodes: base vertices that no candidate tells apart are one bit of the CPU engine, with a weight."""

from __future__ import annotations

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.kernels.reference.tree import Node, Tree, classes_of
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.kernels.suite import SIDES
from tests.kernels.suite_thresholds import with_twins
from tests.support.oracles import deal, graph_of, random_edges, run


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
    """A graph, and thresholds that leave something of it."""
    rng = np.random.default_rng(seed)
    edges = tall(rng)
    a, b = int(rng.choice([1, 2, 5, 20, 60, 150])), int(rng.choice([1, 2, 3, 5]))
    if rng.random() < 0.3:
        edges = edges[:, ::-1][np.lexsort(edges.T)].copy()
        a, b = b, a
    mode = str(rng.choice(["count", "fingerprint", "list"]))
    options = BuildOptions(root_side=str(rng.choice(["auto", *SIDES])))  # type: ignore[arg-type]
    return graph_of(edges, options), Search(mode, min_left=a, min_right=b), rng  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(s, marks=pytest.mark.exhaustive) for s in range(8, 200))])
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


def test_twins_in_nodes_become_one_bit():
    """Half a thousand base vertices have at most 2^8 distinct rows, so that a frame below the root has fewer words."""
    edges = random_edges(np.random.default_rng(1), 500, 8, 0.8)
    graph = graph_of(edges, BuildOptions(root_side="right"))
    engine = CpuEngine()
    run(engine, graph, Search("fingerprint", min_left=5))
    assert engine._memory is not None
    classes = engine._memory[4].class_size
    assert np.count_nonzero(classes) > 64 or classes[:1] > 1


def sides_below(tree: Tree, node: Node) -> list[frozenset[int]]:
    """The base sides of all nodes below."""
    sides = []
    while (child := tree.next_child(node)) is not None:
        sides += [child.base, *sides_below(tree, child)]
    return sides


@pytest.mark.parametrize("seed", range(20))
def test_every_base_side_below_a_node_is_a_union_of_classes(seed):
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
