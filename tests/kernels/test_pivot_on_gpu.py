"""The number of p x q bicliques on the engine of a GPU, which is emulated, and what engines leave to each other."""

import functools
from math import comb

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.layout import ITEM
from bicliques.kernels.cpu import leaves as cpu_leaves
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.gpu.records import NOBODY
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.results.pq import check_leaves
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves, bounds_of
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.emulated import BITMATRIX, DEVICE, bitmatrix, everything
from tests.support.oracles import random_edges, whole_graph_of
from tests.support.pivot import check, counted, every_size, random_graphs, slices

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")

ALL = Search("count", pq="all")
OTHERS = {"cpu": CpuEngine, "reference": ReferenceEngine}
#: Every warp gives away what it can.
GIVING = BITMATRIX["usual"]._replace(poll=1, give_min=1)


@functools.cache
def a_graph(n_left: int, n_right: int, density: float = 0.5) -> tuple[MiningGraph, list[int]]:
    """A random graph, and its numbers by the CPU engine."""
    graph = whole_graph_of(random_edges(np.random.default_rng(5), n_left, n_right, density))
    return graph, every_size(counted(CpuEngine(), graph))


@pytest.mark.parametrize("sizes", ["usual", "tightest", "tight", "oversize"])
def test_all_sizes_of_random_graphs_are_those_of_the_definition(sizes):
    engine = bitmatrix(sizes)()
    for k, graph, expected in random_graphs(list(BITMATRIX).index(sizes), 40):
        found = counted(engine, graph, "all", (None, 0.0)[k % 3 == 0], (1, 5)[k % 5 == 0])
        check(found, expected)
        assert found.bicliques((1, None), (1, None)) == sum(expected.values())
        assert len(check_leaves(found, graph, None)) == 6
        if k % 4 == 0:
            bounded = counted(engine, graph, "2x4")
            check(bounded, expected, (2, 4))
            check_leaves(bounded, graph, bounds_of("2x4"))
            assert bounded.keys[:, 0].max() <= 2
            assert bounded.keys[:, 2].max() <= 4


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("seed", range(4))
def test_engines_go_on_where_others_have_stopped(seed, other, monkeypatch):
    """What is left of a node has vertices of both sides. A heavy one is divided on the CPU, and parts may go back."""
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, *rng.integers(14, 26, 2).tolist(), 0.5)
    graph = whole_graph_of(edges, ("left", "right")[seed % 2])
    expected = every_size(counted(CpuEngine(), graph))
    for name, least in (
        ("_HEAVY", (1, 7)[seed % 2]),
        ("_CHILDREN", 3),
        ("_PULSE", 1),
        ("_WIDE", (1 << 19, 3)[seed // 2]),
    ):
        monkeypatch.setattr(cpu_leaves, name, least)
    engines = BitMatrixEngine(DEVICE, BITMATRIX["tightest"]), OTHERS[other]()
    done = list(slices(engines, graph, seconds=0.0, pieces=(1, 5)[seed % 2]))
    assert sum(bool((one.left_over.path >= graph.n_roots).any()) for one in done) > 4, "base vertices are held"
    total = sum((one.total for one in done), Leaves.none())
    assert every_size(total) == expected
    check_leaves(total, graph, None)


@pytest.mark.parametrize("engine", [*OTHERS.values(), bitmatrix("usual"), bitmatrix("oversize")])
def test_pieces_of_every_form_stand_for_the_same_bicliques(engine):
    """A path and candidates of either side, of which some are to be explored, or a range of roots."""
    rng, mine = np.random.default_rng(3), engine()
    for case in range(60):
        graph = whole_graph_of(random_edges(rng, 7, 8, 0.6), ("left", "right")[case % 2])
        joined = np.zeros((graph.n_roots, graph.n_base), bool)
        joined[np.repeat(np.arange(graph.n_roots), np.diff(graph.root_indptr)), graph.root_indices] = True
        path = np.sort(rng.choice(graph.n_roots // 2, rng.integers(1, 3), replace=False)).astype(np.int32)
        base, held = np.flatnonzero(joined[path].all(axis=0)), np.empty(0, int)
        roots = np.arange(path.max() + 1, graph.n_roots)
        roots, fresh = roots[rng.integers(0, len(roots)) :], bool(case % 3)
        todo = int(rng.integers(0, len(roots) + 1))
        if case % 4 == 0:
            work = Subtrees.of_ranges(np.array([0, len(path)]), path, roots[:1], np.array([todo]), np.array([fresh]))
        elif case % 4 == 1 or len(base) < 2:  # all common neighbours
            work = Subtrees.of_pieces([(path, roots := rng.permutation(roots), todo, fresh)])
        else:
            n_held = int(rng.integers(0, 2))
            held, base = base[:n_held], rng.permutation(base[n_held:])[:3]
            roots = rng.permutation(roots[joined[roots][:, held].all(axis=1)])
            lists = np.append(path, graph.n_roots + held), np.append(roots, graph.n_roots + base)
            todo = min(todo, len(roots))
            work = Subtrees.of_pieces([(*lists, len(lists[1]) if fresh and todo == len(roots) else todo, fresh)])
        found = mine.mine(graph, work, ALL, Limits(), nowhere)
        assert len(found.left_over) == 0
        expected = np.zeros((9, 9), int)
        for members in range(1 << len(roots)):
            chosen = [k for k in range(len(roots)) if members >> k & 1]
            if chosen[0] < todo if chosen else fresh:
                free = int(joined[np.ix_(roots[chosen], base)].all(axis=0).sum())
                for k in range(free + 1):
                    expected[len(path) + len(chosen), len(held) + k] += comb(free, k)
        expected = expected if graph.root_side == "left" else expected.T
        for p in range(1, 9):
            assert [found.total.bicliques((p, p), (q, q)) for q in range(1, 9)] == expected[p, 1:].tolist(), case


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_any_number_of_workers_shares_what_is_left(workers):
    """Engines of both kinds take parts of it, and their totals are added up in another order."""
    graph, expected = a_graph(16, 16, 0.6)
    engines = [(BitMatrixEngine(DEVICE, BITMATRIX["tightest"]), CpuEngine())[k % 3 == 2] for k in range(workers)]
    work, totals = everything(graph), []
    while len(work):
        dealt = work.spread(workers)
        parts = [(k, dealt.pick(np.arange(k, len(dealt), workers))) for k in range(min(workers, len(dealt)))]
        done = [engines[k].mine(graph, part, ALL, Limits(0.0), nowhere) for k, part in parts]
        totals += [one.total for one in done]
        work = Subtrees.concat([one.left_over for one in done])
    total = sum(np.random.default_rng(1).permutation(np.array(totals, object)).tolist(), Leaves.none())
    assert (every_size(total), total.is_whole) == (expected, True)
    assert len(totals) > workers


def test_nodes_are_given_away_with_their_rows():
    device = EmulatedDevice(3, n_multiprocessors=4)
    engine = BitMatrixEngine(device, GIVING._replace(warps=16))
    graph, expected = a_graph(30, 40, 0.4)
    found = engine.mine(graph, everything(graph), ALL, Limits(), nowhere)
    assert (every_size(found.total), found.stats.launches) == (expected, 1)
    given = device.read(engine._memory["given"], ITEM, 0, int(found.stats.counters["given"]))
    assert np.count_nonzero(given["closure_at"] != NOBODY) > 16
    assert np.count_nonzero(given["bound"] > 0) > 0, "some have free vertices"


@pytest.mark.parametrize("row_cap", [2, 6])
def test_nodes_without_room_become_items_and_large_problems_another_launch(row_cap):
    graph, expected = a_graph(45, 70, 0.3)
    found = BitMatrixEngine(DEVICE, GIVING._replace(row_cap=row_cap)).mine(
        graph, everything(graph), ALL, Limits(), nowhere
    )
    assert every_size(found.total) == expected
    assert found.stats.launches > 1 if row_cap == 2 else found.stats.counters["given"] > 20


def test_problems_that_fit_on_no_device_are_counted_by_the_cpu_engine(monkeypatch):
    monkeypatch.setattr(BitMatrixEngine, "can_grow", lambda self, level, form: False)
    graph, expected = a_graph(45, 70, 0.3)
    found = BitMatrixEngine(DEVICE, GIVING._replace(row_cap=2)).mine(graph, everything(graph), ALL, Limits(), nowhere)
    assert every_size(found.total) == expected
    assert found.stats.cpu_nodes > 0


@pytest.mark.parametrize("sizes", [{"size_slots": 8}, {"pool": 1 << 10, "left_over": 8, "given": 600}])
def test_tables_and_lists_that_overflow_make_a_launch_void(sizes):
    graph, expected = a_graph(16, 16, 0.6)
    engine = BitMatrixEngine(DEVICE, GIVING._replace(**sizes))
    done = list(slices([engine], graph, seconds=None if "size_slots" in sizes else 0.0))
    total = sum((one.total for one in done), Leaves.none())
    assert (every_size(total), total.is_whole) == (expected, True)
    assert done[0].stats.voided > 0


def test_a_launch_that_is_stopped_at_once_counts_something():
    graph, expected = a_graph(16, 16, 0.6)
    engine = BitMatrixEngine(DEVICE, GIVING)
    work, total, n = everything(graph), Leaves.none(), 0
    while len(work):
        engine.stop()
        done = engine.mine(graph, work, ALL, Limits(), nowhere)
        assert done.total.count > 0
        work, total, n = done.left_over, total + done.total, n + 1
    assert (every_size(total), n > 3) == (expected, True)
