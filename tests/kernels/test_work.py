"""When work is cut into parts, no node is lost and none is there twice. Each bound leaves bicliques out."""

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.oracles import graph_of, random_edges, run

PATH, CANDIDATES = np.array([0], np.int32), np.arange(1, 11, dtype=np.int32)


def test_nodes_are_picked_by_their_numbers():
    """A node comes with its lists. Some of the lists are empty, and some nodes have ranges."""
    plain = Subtrees.of_pieces([(PATH, CANDIDATES, 5, False), (PATH, CANDIDATES[:0], 0, True)])
    ranges = Subtrees.of_ranges(np.array([0, 2]), np.array([3, 4]), np.array([7]), np.array([2]), np.array([False]))
    work = Subtrees.concat([plain, ranges, Subtrees.of_roots(np.array([6]))])
    for which in ([], [2], [3, 0, 2, 0], [0, 1, 2, 3]):
        picked = work.pick(np.array(which, np.int64))
        one_by_one = Subtrees.concat([work.take(k, k + 1) for k in which])
        for one, other in zip(vars(picked).values(), vars(one_by_one).values(), strict=True):
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype


@pytest.mark.parametrize("pieces", [2, 3, 4, 5, 100])
@pytest.mark.parametrize("todo", [1, 5, 7, 10])
def test_parts_of_a_node_explore_each_of_its_candidates_once(todo, pieces):
    """In some cases the last candidates belong to another piece, or the parts differ in size."""
    parts = Subtrees.of_pieces([(PATH, CANDIDATES, todo, False)]).spread(pieces)
    explored = [parts.candidates_of(i)[: parts.todo[i]].tolist() for i in range(len(parts))]
    assert int(parts.todo.sum()) == todo
    assert [candidate for part in explored for candidate in part] == CANDIDATES[:todo].tolist()
    for i, part in enumerate(explored):  # all later candidates may still join inside of the part
        assert parts.candidates_of(i).tolist() == list(range(part[0], 11))
        assert (parts.path_of(i).tolist(), bool(parts.fresh[i])) == ([0], False)


@pytest.mark.parametrize("pieces", [2, 3, 4, 9, 100])
@pytest.mark.parametrize("todo", [1, 5, 7, 10])
def test_parts_of_a_range_explore_each_rank_once(todo, pieces):
    """A node that keeps only the first of its candidates is cut into ranges that do not overlap."""
    node = Subtrees.of_ranges(np.array([0, 2]), np.array([0, 3]), np.array([4]), np.array([todo]), np.array([False]))
    parts = node.spread(pieces)
    share = max(1, -(-todo // pieces))
    assert len(parts) == -(-todo // share)
    assert parts.ranged.all()
    assert not parts.fresh.any()
    assert int(parts.todo.sum()) == todo
    begins = [int(parts.candidates_of(i)[0]) for i in range(len(parts))]
    explored = [rank for begin, n in zip(begins, parts.todo, strict=True) for rank in range(begin, begin + n)]
    assert explored == list(range(4, 4 + todo))
    assert [parts.path_of(i).tolist() for i in range(len(parts))] == [[0, 3]] * len(parts)


@pytest.mark.parametrize("pieces", [2, 3, 100])
def test_parts_of_a_range_count_the_same(pieces):
    graph = graph_of(random_edges(np.random.default_rng(1), 30, 11, 0.5), BuildOptions(root_side="right", order="id"))
    node = Subtrees.of_ranges(np.array([0, 1]), np.array([0]), np.array([1]), np.array([7]), np.array([False]))
    parts = node.spread(pieces)
    assert len(parts) > 1
    whole, cut = (CpuEngine().mine(graph, work, Search("fingerprint"), Limits(), nowhere) for work in (node, parts))
    assert whole.count > 10
    assert (cut.count, cut.fingerprint) == (whole.count, whole.fingerprint)


@pytest.mark.parametrize("engine", [CpuEngine, ReferenceEngine])
def test_parts_of_a_partly_owned_node_count_the_same(engine):
    graph = graph_of(random_edges(np.random.default_rng(1), 30, 11, 0.5), BuildOptions(root_side="right", order="id"))
    assert graph.n_roots == 11
    node = Subtrees.of_pieces([(PATH, CANDIDATES, 5, False)])
    whole, parts = (
        engine().mine(graph, work, Search("fingerprint"), Limits(), nowhere) for work in (node, node.spread(3))
    )
    assert whole.count > 10
    assert (parts.count, parts.fingerprint) == (whole.count, whole.fingerprint)


@pytest.mark.parametrize(
    ("bound", "side", "fits"),
    [
        ({"min_left": 3}, 0, lambda n: n >= 3),
        ({"min_right": 3}, 1, lambda n: n >= 3),
        ({"max_left": 4}, 0, lambda n: n <= 4),
        ({"max_right": 3}, 1, lambda n: n <= 3),
    ],
    ids=["min_left", "min_right", "max_left", "max_right"],
)
def test_each_bound_alone_leaves_bicliques_out(bound, side, fits):
    """A search without bounds may count bicliques without looking at them, but a search with a single bound may not."""
    graph = graph_of(random_edges(np.random.default_rng(1), 30, 11, 0.5))
    everything = run(CpuEngine(), graph, Search("list")).rows
    wanted = sum(fits(len(row[side])) for row in everything)
    assert 0 < wanted < len(everything)
    for engine in (CpuEngine(), ReferenceEngine()):
        assert run(engine, graph, Search("count", **bound)).count == wanted
