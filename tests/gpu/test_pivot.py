"""Numbers of p x q bicliques and of cliques on a real device: known graphs, and random ones against the CPU engine."""

from __future__ import annotations

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.results.cliques import cliques_of
from bicliques.pipeline.results.pq import check_leaves
from bicliques.schemas.leaves import Leaves
from tests.support.known import NOT_HERE, dense_edges, known_graph
from tests.support.one_kind import KNOWN as KNOWN_CLIQUES
from tests.support.one_kind import cover_of, right_side, table
from tests.support.oracles import random_edges, whole_graph_of
from tests.support.pivot import KNOWN, MORE, counted, every_size, of_size, slices

pytestmark = pytest.mark.gpu

#: Every warp gives work away whenever another one waits; a problem has room for some 60 vertices of each side.
TIGHT = GpuSizes(given=1 << 16, left_over=1 << 16, pool=1 << 20, warps=64)._replace(row_cap=64, poll=1, give_min=1)


@pytest.mark.parametrize("name", KNOWN)
def test_known_numbers(name):
    assert known_graph(name) is not None, NOT_HERE
    graph = whole_graph_of(dense_edges(known_graph(name)))
    found = counted(BitMatrixEngine(), graph)
    assert tuple(of_size(found, k, k) for k in (2, 3, 4)) == KNOWN[name]
    assert MORE.get(name, {}) == {(p, q): of_size(found, p, q) for p, q in MORE.get(name, {})}
    check_leaves(found, graph, None)


def test_the_numbers_of_a_graph_are_those_of_the_cpu_engine():
    assert known_graph("marvel") is not None, NOT_HERE
    graph = whole_graph_of(dense_edges(known_graph("marvel")))
    expected = every_size(counted(CpuEngine(), graph), 30)
    for sizes, seconds in ((None, None), (TIGHT, None), (GpuSizes(), 0.002)):
        assert every_size(counted(BitMatrixEngine(sizes=sizes), graph, seconds=seconds), 30) == expected


@pytest.mark.parametrize("side", ["left", "right"])
def test_random_graphs_and_turns_with_the_cpu_engine(side):
    rng = np.random.default_rng(7)
    for case in range(16):
        graph = whole_graph_of(random_edges(rng, *rng.integers(20, 90, 2).tolist(), rng.uniform(0.2, 0.4)), side)
        expected = every_size(counted(CpuEngine(), graph))
        engines = [BitMatrixEngine(sizes=TIGHT), CpuEngine()][: 1 + case % 2]
        done = slices(engines, graph, seconds=(None, 0.002)[case % 4 > 1], pieces=(1, 5)[case % 2])
        found = sum((one.total for one in done), Leaves.none())
        assert every_size(found) == expected, case
        check_leaves(found, graph, None)


@pytest.mark.parametrize("name", KNOWN_CLIQUES)
def test_known_numbers_of_cliques(name):
    edges = right_side(name)
    assert edges is not None, NOT_HERE
    cover, (n_edges, largest, numbers, _) = cover_of(edges), KNOWN_CLIQUES[name]
    found = counted(BitMatrixEngine(), cover, "cliques")
    counts = cliques_of(found, cover)
    assert (counts[2], counts.largest, tuple(counts[k] for k in (3, 4, 5, 8))) == (n_edges, largest, numbers)
    if name == "hyper_email_eu":
        engines = BitMatrixEngine(sizes=TIGHT), CpuEngine()
        in_turns = slices(engines, cover, "cliques", seconds=0.002, pieces=5)
        assert table(sum((one.total for one in in_turns), Leaves.none())) == table(found)
