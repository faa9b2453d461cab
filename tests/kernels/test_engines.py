"""Every engine against three oracles, against the others, and against itself in pieces."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.cpu.engine import CpuEngine
from kernels.cpu.workspace import Sizes
from kernels.reference import ReferenceEngine, closed_pairs
from schemas.bicliques import Bicliques, fingerprint
from schemas.options import BuildOptions
from schemas.work import Limits, Search, Subtrees
from tests.oracles import cliques, graph_of, random_edges, run

SIDES = ("left", "right")
ORDERS = ("degree", "two-hop", "unilateral", "id")
#: Workspaces in which everything that can overflow does: bit rows, frames, stacks, output buffers.
TIGHT = [
    Sizes(hub_bits=0, hub_list=0, hub_frame_bits=0, word_stack=0, rows=2, members=4),
    Sizes(hub_bits=64, hub_list=0, hub_frame_bits=0, word_stack=64, rows=3, members=10),
]


@st.composite
def small_graphs(draw):
    n_left, n_right = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    cells = st.tuples(st.integers(0, n_left - 1), st.integers(0, n_right - 1))
    return np.array(sorted(draw(st.sets(cells, min_size=1))), dtype=np.int32)


@given(small_graphs(), st.sampled_from(SIDES), st.sampled_from(ORDERS))
def test_three_oracles_and_the_engine_agree(edges, side, order):
    closed = {(tuple(sorted(a)), tuple(sorted(b))) for a, b in closed_pairs({tuple(map(int, e)) for e in edges})}
    assert closed == cliques(edges)
    graph = graph_of(edges, BuildOptions(side, order))
    for engine in (ReferenceEngine(), CpuEngine()):
        outcome = run(engine, graph, Search("list"))
        assert len(outcome.rows) == outcome.count == len(closed)
        assert set(outcome.rows) == closed
        assert outcome.fingerprint == fingerprint(Bicliques.from_pairs(sorted(closed)))


def shapes(rng):
    """Graphs with hubs on either side, and without: (edges, name)."""
    return [
        (random_edges(rng, int(rng.integers(90, 260)), int(rng.integers(5, 20)), 0.5), "wide hubs"),
        (random_edges(rng, int(rng.integers(200, 300)), int(rng.integers(5, 12)), 0.8), "dense hubs"),
        (random_edges(rng, int(rng.integers(5, 12)), int(rng.integers(80, 200)), 0.4), "many roots"),
        (random_edges(rng, int(rng.integers(20, 90)), int(rng.integers(20, 30)), 0.2), "words"),
    ]


@pytest.fixture(params=range(4), ids=["wide hubs", "dense hubs", "many roots", "words"])
def shape(request):
    rng = np.random.default_rng(20261121 + request.param)
    return shapes(rng)[request.param][0]


@pytest.fixture
def truth(shape):
    """Count and fingerprint by the reference engine, all rows by the CPU engine left alone."""
    graph = graph_of(shape)
    reference = run(ReferenceEngine(), graph, Search("prove"))
    rows = run(CpuEngine(), graph, Search("list"))
    assert (rows.count, rows.fingerprint) == (reference.count, reference.fingerprint)
    assert len(set(rows.rows)) == reference.count
    return rows


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("order", ORDERS)
def test_side_and_order_do_not_matter(shape, truth, side, order):
    outcome = run(CpuEngine(), graph_of(shape, BuildOptions(side, order)), Search("prove"))
    assert (outcome.count, outcome.fingerprint) == (truth.count, truth.fingerprint)


@pytest.mark.parametrize("sizes", TIGHT, ids=["tightest", "tight"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    "limits", [Limits(), Limits(seconds=0.0), Limits(rows=7)], ids=["whole", "short", "seven rows"]
)
def test_pieces_buffers_and_redealing_do_not_matter(shape, truth, sizes, side, limits):
    rng = np.random.default_rng(7)
    outcome = run(CpuEngine(sizes), graph_of(shape, BuildOptions(side)), Search("list"), limits, shuffle=rng)
    assert (outcome.count, outcome.fingerprint) == (truth.count, truth.fingerprint)
    assert sorted(outcome.rows) == sorted(truth.rows)


def test_counting_in_short_slices(shape, truth):
    outcome = run(CpuEngine(TIGHT[0]), graph_of(shape), Search("count"), Limits(seconds=0.0), np.random.default_rng(3))
    assert outcome.count == truth.count


@pytest.mark.parametrize("mode", ["count", "list"])
@pytest.mark.parametrize(
    "bounds", [(3, 1, None, None), (1, 3, None, None), (70, 2, None, None), (2, 2, 9, None), (1, 1, 66, 3)]
)
def test_thresholds_and_filters(shape, truth, mode, bounds):
    min_left, min_right, max_left, max_right = bounds
    expected = {
        (left, right)
        for left, right in truth.rows
        if min_left <= len(left) <= (max_left or len(left)) and min_right <= len(right) <= (max_right or len(right))
    }
    for side in SIDES:
        graph = graph_of(shape, BuildOptions(side), min_left, min_right)
        outcome = run(CpuEngine(TIGHT[1]), graph, Search(mode, *bounds))
        assert outcome.count == len(expected)
        assert set(outcome.rows) == (expected if mode == "list" else set())


def test_engines_continue_each_other(shape, truth):
    """What one engine leaves over, another finishes."""
    graph = graph_of(shape)
    work = Subtrees.of_roots(np.arange(graph.n_roots))
    count = total = turn = 0
    cpu, reference = CpuEngine(TIGHT[1]), ReferenceEngine()
    few = max(1, truth.count // 9)
    while len(work):
        engine, limits = ((cpu, Limits(rows=few)), (reference, Limits(rows=few)))[turn % 2]
        result = engine.mine(graph, work, Search("prove"), limits, lambda _: None)
        count, total = count + result.count, (total + result.fingerprint) % 2**64
        work, turn = result.left_over, turn + 1
    assert (count, total) == (truth.count, truth.fingerprint)
    assert turn > 2


def metamorphic(edges, change, rng):
    """(changed edges, how the count of the original relates to the count of the changed one)."""
    n_left, n_right = edges.max(axis=0) + 1
    if change == "relabel":
        new = np.column_stack([rng.permutation(n_left)[edges[:, 0]], rng.permutation(n_right)[edges[:, 1]]])
        return new, 1
    if change == "transpose":
        return edges[:, ::-1], 1
    if change == "disjoint union":
        return np.concatenate([edges, edges + edges.max(axis=0) + 1]), 2
    if change == "left twin":
        twin = edges[edges[:, 0] == edges[0, 0]].copy()
        twin[:, 0] = n_left
        return np.concatenate([edges, twin]), 1
    twin = edges[edges[:, 1] == edges[0, 1]].copy()
    twin[:, 1] = n_right
    return np.concatenate([edges, twin]), 1


@pytest.mark.parametrize("change", ["relabel", "transpose", "disjoint union", "left twin", "right twin"])
def test_metamorphic(shape, truth, change):
    changed, factor = metamorphic(shape, change, np.random.default_rng(11))
    changed = np.unique(changed.astype(np.int32), axis=0)
    assert run(CpuEngine(), graph_of(changed), Search("count")).count == factor * truth.count


def test_root_column_names_the_first_level_subtree(shape):
    graph = graph_of(shape)
    firsts = []

    def check(batch):
        rank_of = np.empty(max(graph.n_left, graph.n_right), dtype=np.int64)
        rank_of[graph.root_members] = np.repeat(np.arange(graph.n_roots), np.diff(graph.root_members_indptr))
        indptr, ids = (
            (batch.left_indptr, batch.left) if graph.root_side == "left" else (batch.right_indptr, batch.right)
        )
        smallest = np.minimum.reduceat(rank_of[ids], indptr[:-1])
        firsts.append((graph.root_members[graph.root_members_indptr[smallest]] == batch.root).all())

    CpuEngine().mine(graph, Subtrees.of_roots(np.arange(graph.n_roots)), Search("list"), Limits(), check)
    assert firsts
    assert all(firsts)


def test_a_dead_piece_is_dropped():
    """A path whose closure has a member that is neither in the path nor a candidate belongs to an earlier piece."""
    graph = graph_of(np.array([[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]], dtype=np.int32), BuildOptions("right", "id"))
    last = graph.n_roots - 1
    dead = Subtrees(
        np.array([0, 1]),
        np.array([last], np.int32),
        np.array([0, 0]),
        np.empty(0, np.int32),
        np.zeros(1, np.int32),
        np.ones(1, bool),
    )
    for engine in (CpuEngine(), ReferenceEngine()):
        alive = engine.mine(graph, dead, Search("prove"), Limits(), lambda _: None)
        assert alive.count == 1  # nothing else contains its L
    smaller = Subtrees(
        np.array([0, 2]),
        np.array([0, 1], np.int32),
        np.array([0, 0]),
        np.empty(0, np.int32),
        np.zeros(1, np.int32),
        np.ones(1, bool),
    )
    inside = graph_of(
        np.array([[0, 0], [0, 1], [0, 2], [1, 0], [2, 1], [3, 2]], dtype=np.int32), BuildOptions("right", "id")
    )
    for engine in (CpuEngine(), ReferenceEngine()):
        assert engine.mine(inside, smaller, Search("prove"), Limits(), lambda _: None).count == 0


def test_spread_keeps_the_work(shape, truth):
    graph = graph_of(shape)
    first = CpuEngine().mine(
        graph, Subtrees.of_roots(np.arange(graph.n_roots)), Search("prove"), Limits(rows=1), lambda _: None
    )
    pieces = first.left_over.spread(64)
    assert len(pieces) >= len(first.left_over)
    count, total = first.count, first.fingerprint
    for i in range(len(pieces)):
        part = CpuEngine().mine(graph, pieces.take(i, i + 1), Search("prove"), Limits(), lambda _: None)
        count, total = count + part.count, (total + part.fingerprint) % 2**64
    assert (count, total) == (truth.count, truth.fingerprint)
