"""The number of cliques on the engine of a GPU, which is emulated, and what engines leave to each other."""

import networkx as nx
import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.layout import ITEM
from bicliques.kernels.cpu import leaves as cpu_leaves
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.gpu.records import NOBODY
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.results.cliques import cliques_of
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.emulated import BITMATRIX, DEVICE, bitmatrix, everything
from tests.support.one_kind import by_definition, cover_of, edges_of, random_graphs, table
from tests.support.pivot import counted, slices

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")

CLIQUES = Search("count", pq="cliques")
#: Every warp gives away what it can.
GIVING = BITMATRIX["usual"]._replace(poll=1, give_min=1)


def a_cover(n: int, density: float = 0.6, seed: int = 5) -> tuple[MiningGraph, list[int]]:
    """A random graph, and its numbers by the CPU engine."""
    cover = cover_of(edges_of(nx.gnp_random_graph(n, density, seed=seed)))
    return cover, table(counted(CpuEngine(), cover, "cliques"))


@pytest.mark.parametrize("sizes", ["usual", "tightest", "tight", "oversize"])
def test_all_cliques_of_random_graphs_are_those_of_the_definition(sizes):
    engine = bitmatrix(sizes)()
    for k, graph in enumerate(random_graphs(list(BITMATRIX).index(sizes), 40)):
        cover = cover_of(edges_of(graph), ("degree", "id", "two-hop")[k % 3], ("left", "right")[k % 2])
        found, expected = (
            counted(engine, cover, "cliques", (None, 0.0)[k % 4 == 0], (1, 5)[k % 5 == 0]),
            by_definition(graph),
        )
        assert table(found) == [expected[k] for k in range(1, 30)]
        assert len(cliques_of(found, cover).checks) == 4


@pytest.mark.parametrize("other", [CpuEngine, ReferenceEngine])
@pytest.mark.parametrize("seed", range(4))
def test_engines_go_on_where_others_have_stopped(seed, other, monkeypatch):
    """Candidates of what is left of a node may have lower ranks than its path."""
    cover, expected = a_cover(24 + 4 * seed, seed=seed)
    for name, least in (("_HEAVY", (1, 7)[seed % 2]), ("_CHILDREN", 3), ("_PULSE", 1)):
        monkeypatch.setattr(cpu_leaves, name, least)
    engines = BitMatrixEngine(DEVICE, BITMATRIX["tightest"]), other()
    done = list(slices(engines, cover, "cliques", seconds=0.0, pieces=(1, 5)[seed % 2]))
    lower = 0
    for left in (one.left_over for one in done):
        lists = [(left.path_of(k), left.candidates_of(k)) for k in np.flatnonzero(~left.ranged & (left.todo > 0))]
        lower += sum(len(path) > 0 and len(own) > 0 and own.min() < path.max() for path, own in lists)
    assert lower > 10
    total = sum((one.total for one in done), Leaves.none())
    assert table(total) == expected
    cliques_of(total, cover)


@pytest.mark.parametrize("engine", [CpuEngine, bitmatrix("usual"), bitmatrix("oversize")])
def test_pieces_of_every_form_stand_for_the_same_cliques(engine):
    """A root, or a path and candidates in any order, of which some are to be explored."""
    rng, mine = np.random.default_rng(3), engine()
    for case in range(60):
        cover = cover_of(edges_of(nx.gnp_random_graph(14, 0.7, seed=case)), "degree", ("left", "right")[case % 2])
        indptr, indices = cover.neighbours()
        joined = [set(indices[indptr[v] : indptr[v + 1]].tolist()) for v in range(cover.n_roots)]
        path = [int(rng.integers(6))]
        path += [v for v in sorted(joined[path[0]]) if v > path[0]][: case % 2]
        path, fresh = np.array(path, np.int32), bool(case % 3)
        if case % 4 == 0:
            work = Subtrees.of_roots(path[:1])
        else:
            others = rng.permutation(sorted(set.intersection(*(joined[v] for v in path.tolist())))).astype(np.int32)
            todo = int(rng.integers(0, len(others) + 1))
            work = Subtrees.of_pieces([(path, others, todo, fresh)])
        found, expected = (one.mine(cover, work, CLIQUES, Limits(), nowhere).total for one in (mine, ReferenceEngine()))
        assert table(found) == table(expected), case


def test_nodes_are_given_away_with_their_rows():
    device = EmulatedDevice(3, n_multiprocessors=4)
    engine = BitMatrixEngine(device, GIVING._replace(warps=16))
    cover, expected = a_cover(70, 0.5)
    found = engine.mine(cover, everything(cover), CLIQUES, Limits(), nowhere)
    assert (table(found.total), found.stats.launches) == (expected, 1)
    given = device.read(engine._memory["given"], ITEM, 0, int(found.stats.counters["given"]))
    assert np.count_nonzero(given["closure_at"] != NOBODY) > 16
    assert np.count_nonzero(given["bound"] > 0) > 0, "some have free vertices"


@pytest.mark.parametrize("grows", [True, False])
def test_large_problems_get_another_launch_or_go_to_the_cpu_engine(grows, monkeypatch):
    if not grows:
        monkeypatch.setattr(BitMatrixEngine, "can_grow", lambda self, level, form: False)
    cover, expected = a_cover(120, 0.35)
    engine = BitMatrixEngine(DEVICE, GIVING._replace(row_cap=2))
    found = engine.mine(cover, everything(cover), CLIQUES, Limits(), nowhere)
    assert table(found.total) == expected
    assert found.stats.launches > 1 if grows else found.stats.cpu_nodes > 0


def test_an_engine_counts_bicliques_and_cliques_of_one_graph():
    cover, engine = a_cover(12)[0], bitmatrix("usual")()
    for pq in ("cliques", "all", "cliques"):
        found, expected = counted(engine, cover, pq), counted(CpuEngine(), cover, pq)
        assert found.bicliques((1, None), (0, None)) == expected.bicliques((1, None), (0, None))
        assert found.is_whole
