"""The CPU engine passes the tests that every engine has to pass."""

import numpy as np
import pytest

from bicliques.kernels.cpu import engine
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import MEASURES, Limits, Search
from bicliques.schemas.work import Subtrees
from tests.kernels.suite import EngineSuite, Subject, edges_of, truth_of
from tests.kernels.suite_largest import LargestSuite
from tests.kernels.suite_marked import MarkedSuite, marked_graph
from tests.kernels.suite_near import LargestNearSuite, NearSuite
from tests.kernels.suite_thresholds import ThresholdSuite
from tests.support.emulated import everything
from tests.support.oracles import graph_of, random_edges, run

#: Workspaces that are so small that bit rows, frames, stacks and output buffers all overflow.
TIGHT = (
    Sizes(hub_bits=0, hub_list=0, hub_frame_bits=0, word_stack=0, rows=2, members=4),
    Sizes(hub_bits=64, hub_list=0, hub_frame_bits=0, word_stack=64, rows=3, members=10),
)
#: One that looks at the clock at every node, so that a slice of no time ends on a graph of a few vertices.
SHORT = Sizes(rows=2, members=4, near=1, steps=1)


@pytest.mark.values(3)
class TestCpuEngine(EngineSuite, ThresholdSuite, LargestSuite, MarkedSuite):
    subject = Subject(CpuEngine, (lambda: CpuEngine(TIGHT[0]), lambda: CpuEngine(TIGHT[1])))


@pytest.mark.values
class TestLargestOfTheReferenceEngine(LargestSuite):
    subject = Subject(ReferenceEngine, (ReferenceEngine, ReferenceEngine), small=True)

    questions = 20


@pytest.mark.values
class TestMarksOfTheReferenceEngine(MarkedSuite):
    subject = Subject(ReferenceEngine, (ReferenceEngine, ReferenceEngine), small=True, short_s=0.02)

    marked_cases = 100


@pytest.mark.values(3)
class TestNearBicliquesOfTheCpuEngine(NearSuite, LargestNearSuite):
    subject = Subject(CpuEngine, (lambda: CpuEngine(SHORT), CpuEngine))


@pytest.mark.values
class TestNearBicliquesOfTheReferenceEngine(NearSuite, LargestNearSuite):
    subject = Subject(ReferenceEngine, (ReferenceEngine, ReferenceEngine), small=True)

    near_cases = 40
    largest_cases = 50
    most_vertices = 8


@pytest.mark.values
class TestThresholdsOfTheReferenceEngine(ThresholdSuite):
    # every slice takes all work in its hands, so slices of one node each would take seconds
    subject = Subject(ReferenceEngine, (ReferenceEngine, ReferenceEngine), small=True, short_s=0.02)

    cases = 20


def test_the_reference_engine_continues_with_closure_members_as_candidates():
    """The candidates are in the order of their ranks, so those that contain L do not come last."""
    graph = graph_of(edges_of("nested", True), BuildOptions(root_side="right", order="id"))
    ranks = np.arange(graph.n_roots, dtype=np.int32)
    work = Subtrees.of_pieces([(ranks[r : r + 1], ranks[r + 1 :], graph.n_roots - r - 1, True) for r in ranks.tolist()])
    count = 0
    while len(work):
        found = ReferenceEngine().mine(graph, work, Search("count"), Limits(rows=20), nowhere)
        count, work = count + found.count, found.left_over
    assert count == truth_of("nested", True).count


@pytest.mark.parametrize("by", MEASURES)
def test_a_better_biclique_raises_the_bound_of_the_cpu_engine_at_once(by):
    """Also while its buffers have room, so as many are looked at as by an engine that hands out each row by itself."""
    graph = graph_of(edges_of("words", False), BuildOptions(root_side="right"))
    seen = []
    for one in (CpuEngine(Sizes(rows=1)), CpuEngine()):
        seen.append(one.mine(graph, everything(graph), Search(largest=1, by=by), Limits(), nowhere).total.seen)
    assert seen[0] == seen[1] < truth_of("words", False).count / 2


@pytest.mark.parametrize("mode", ["count", "fingerprint"])
def test_nodes_of_64_base_vertices_are_put_aside_if_their_stack_is_short(mode, monkeypatch):
    graph = graph_of(random_edges(np.random.default_rng(3), 24, 40, 0.7), BuildOptions(root_side="right"))
    expected = CpuEngine().mine(graph, everything(graph), Search("fingerprint"), Limits(), nowhere)
    aside, drain = [], engine.drain_aside
    monkeypatch.setattr(engine, "drain_aside", lambda out: aside.append(drain(out)) or aside[-1])
    found = CpuEngine(TIGHT[0]).mine(graph, everything(graph), Search(mode), Limits(), nowhere)
    assert sum(map(len, aside)) > 100
    assert (found.count, found.fingerprint) == (expected.count, None if mode == "count" else expected.fingerprint)


@pytest.mark.parametrize("least", [8, 10])
def test_children_of_many_words_that_shrink_to_one_lose_nothing(least):
    """From the right each root has 200 base vertices, and its children have few. From the left, 20 at most."""
    edges = random_edges(np.random.default_rng(0), 500, 20, 0.4)
    from_right, from_left = (
        CpuEngine().mine(graph, everything(graph), Search("fingerprint", min_left=least), Limits(), nowhere)
        for graph in (graph_of(edges, BuildOptions(root_side=side)) for side in ("right", "left"))
    )
    assert (from_right.count, from_right.fingerprint) == (from_left.count, from_left.fingerprint)
    assert from_right.count > 4000


@pytest.mark.parametrize("least", [1, 2])
def test_a_slice_of_no_time_explores_a_child_that_takes_long_to_open(least):
    """Otherwise it leaves over what it was given, and whoever goes on with that never ends."""
    n_base, n_rows = 12_000, 7_000
    rows = np.random.default_rng(1).integers(1, n_rows, (n_base, 3))
    edges = np.column_stack([np.repeat(np.arange(n_base), 4), np.insert(rows, 0, 0, axis=1).ravel()])
    graph = graph_of(np.unique(edges.astype(np.int32), axis=0), BuildOptions(root_side="right", order="id"))
    search, cpu, work = Search("count", min_left=least, min_right=least), CpuEngine(), Subtrees.of_roots(np.arange(1))
    todo = [graph.n_roots]
    for _ in range(3):
        work = cpu.mine(graph, work, search, Limits(0.0), nowhere).left_over
        todo.append(int(work.todo[[len(path) == 1 for path in map(work.path_of, range(len(work)))]].sum()))
    assert todo == sorted({*todo}, reverse=True)


@pytest.mark.parametrize("seed", [10, 16, 24, 26])
def test_hubs_give_exactly_the_bicliques_with_a_marked_edge(seed):
    """Each root has more base vertices than a word has bits. From the other side there are only words."""
    rng = np.random.default_rng(seed)
    n_left, n_right, density = int(rng.integers(90, 260)), int(rng.integers(8, 15)), float(rng.uniform(0.4, 0.8))
    edges = random_edges(rng, n_left, n_right, density)
    marks = edges[rng.random(len(edges)) < 12 / len(edges)]
    pairs = {(int(u), int(v)) for u, v in marks}
    graph = marked_graph(edges, marks, "right", (1, 1))
    found = run(CpuEngine(), graph, Search("list", marked=True), Limits(rows=50), shuffle=rng).rows
    every = run(CpuEngine(), graph_of(edges, BuildOptions(root_side="left")), Search("list")).rows
    expected = {(left, right) for left, right in every if any((u, v) in pairs for u in left for v in right)}
    assert set(found) == expected
    assert len(found) == len(expected) > 100
