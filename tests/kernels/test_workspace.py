"""The workspace of the CPU engine is no longer than a graph can fill, and long enough for it."""

import tracemalloc

import numpy as np
import pytest

from bicliques.kernels import engines
from bicliques.kernels.cpu import engine
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes, workspace_bytes
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.oracles import graph_of
from tests.support.runs import random_edges

#: Deep problems of one word, of many words, and of many rows.
GRAPHS = {
    "all but one": np.argwhere(~np.eye(13, dtype=bool)).astype(np.int32),
    "stairs": np.argwhere(np.tri(200, dtype=bool)).astype(np.int32),
    "dense": random_edges(30, 24, 0.7, 1),
    "many roots": random_edges(150, 40, 0.25, 2),
    "many base vertices": random_edges(13, 400, 0.8, 3),
}
SEARCHES = {"all": Search(), "thresholds": Search(min_left=3, min_right=3), "largest": Search(largest=3)}


def put_aside(edges: np.ndarray, search: Search, sizes: Sizes, monkeypatch: pytest.MonkeyPatch) -> int:
    """Nodes for which there was no room."""
    graph, found = graph_of(edges, BuildOptions()), list[int]()
    drain = engine.drain_aside

    def watched(out) -> Subtrees:
        pieces = drain(out)
        found.append(len(pieces))
        return pieces

    monkeypatch.setattr(engine, "drain_aside", watched)
    CpuEngine(sizes).mine(graph, Subtrees.of_roots(np.arange(graph.n_roots)), search, Limits(), nowhere)
    return sum(found)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_no_node_of_a_small_graph_is_put_aside(graph, search, monkeypatch):
    assert put_aside(GRAPHS[graph], SEARCHES[search], Sizes(), monkeypatch) == 0


@pytest.mark.parametrize("search", SEARCHES)
def test_nodes_are_put_aside_where_there_is_no_room(search, monkeypatch):
    sizes = Sizes(hub_bits=64, hub_list=16, hub_frame_bits=16, word_stack=16)
    assert put_aside(GRAPHS["many base vertices"], SEARCHES[search], sizes, monkeypatch) > 0


def test_a_small_graph_has_a_small_workspace():
    for search in SEARCHES.values():
        assert (
            workspace_bytes(graph_of(GRAPHS["dense"], BuildOptions()), Search("count", min_left=search.min_left))
            < 2 << 20
        )


def test_a_search_with_time_enough_leaves_nothing_over():
    """It takes more than one call of the compiled search, and the clock is looked at after each."""
    graph = graph_of(random_edges(100, 70, 0.4, 1), BuildOptions())
    work = Subtrees.of_roots(np.arange(graph.n_roots))
    found = CpuEngine().mine(graph, work, Search("count"), Limits(seconds=1e6), nowhere)
    assert found.count > 20_000
    assert len(found.left_over) == 0


def test_the_reference_takes_no_more_than_its_bound():
    graph = graph_of(np.array([[0, 0], [1, 1]], np.int32), BuildOptions())
    work = Subtrees.of_roots(np.arange(graph.n_roots))
    tracemalloc.start()
    try:
        engines.kind("reference").make(0).mine(graph, work, Search(), Limits(), nowhere)
        assert 0 < tracemalloc.get_traced_memory()[1] <= engines.kind("reference").workspace_bytes(graph, Search())
    finally:
        tracemalloc.stop()
