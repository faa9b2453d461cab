"""A left-over reaches the next worker node by node, whether it is passed on whole, cut, or divided first."""

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes
from bicliques.pipeline.prepare.weights import RootWeights
from bicliques.pipeline.slices import left_over
from bicliques.pipeline.slices.left_over import LeftOver, Roots, unpacked
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.oracles import graph_of, random_edges

GRAPH = graph_of(random_edges(np.random.default_rng(4), 40, 30, 0.4))
#: With small bit rows some nodes of its left-over are ranged.
ENGINE = CpuEngine(Sizes(hub_bits=0, hub_list=0, hub_frame_bits=0, word_stack=0, rows=2, members=400))


def some_nodes() -> Subtrees:
    """What a slice leaves over: opened nodes, with lists and ranges, and whole roots."""
    work = Subtrees.of_roots(np.arange(GRAPH.n_roots))
    ranged = Subtrees.of_ranges(
        np.arange(4), np.array([0, 2, 5]), np.array([3, 4, 7]), np.array([2, 9, 5]), np.zeros(3)
    )
    mined = ENGINE.mine(GRAPH, work, Search("count"), Limits(rows=300), nowhere).left_over
    return Subtrees.concat([mined, ranged])


def pieces(nodes: Subtrees) -> list[tuple[object, ...]]:
    return [
        (
            nodes.path_of(i).tolist(),
            nodes.candidates_of(i).tolist(),
            *(int(column[i]) for column in (nodes.todo, nodes.fresh, nodes.ranged)),
        )
        for i in range(len(nodes))
    ]


@pytest.mark.parametrize("most", [0, 1 << 30], ids=["cut by the driver", "cut by the worker"])
def test_workers_get_the_nodes_they_are_dealt(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(left_over, "_PASSED_ON", most)
    nodes = some_nodes()
    assert len(nodes) > 12
    whole = LeftOver.of(nodes)
    cuts = [(0, 1), (1, 7), (7, len(nodes) - 2), (len(nodes) - 2, len(nodes)), (0, len(nodes))]
    for start, stop in cuts:
        assert pieces(unpacked([whole.some(start, stop)])) == pieces(nodes)[start:stop]
    assert pieces(unpacked([whole.some(*cut) for cut in cuts[:-1]])) == pieces(nodes)


def test_the_weights_are_those_of_the_nodes_that_are_packed() -> None:
    weights, nodes = RootWeights(GRAPH), some_nodes()
    for left in (LeftOver.of(nodes), LeftOver.of(nodes).spread(200)):
        there = Subtrees.from_bytes(left.packed)
        assert len(left) == len(there)
        assert weights.of_shapes(left.shapes).tolist() == weights.of(there).tolist()
    assert len(LeftOver.of(nodes).spread(200)) > len(nodes)


def test_what_cannot_be_divided_stays_as_it_came() -> None:
    roots = LeftOver.of(Subtrees.of_roots(np.arange(5)))
    assert roots.spread(100) is roots
    assert LeftOver().spread(100) == LeftOver.of(Subtrees.empty()) == LeftOver()
    assert len(LeftOver()) == len(LeftOver().shapes) == 0


def test_roots_of_the_plan_come_as_whole_subtrees_beside_packed_nodes() -> None:
    first, packed = np.array([7, 3, 5], np.int32), Subtrees.of_roots(np.array([1, 2])).to_bytes()
    nodes = unpacked([Roots.of(first), (packed, 1, 2)])
    assert nodes.to_bytes() == Subtrees.of_roots(np.array([7, 3, 5, 2])).to_bytes()
    alone = unpacked([Roots.of(first)])
    assert alone.path.flags.writeable, "compiled code would be compiled again for arrays that cannot be written"
