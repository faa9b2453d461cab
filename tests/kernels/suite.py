"""Tests that every engine has to pass: a class that the tests of each engine inherit.

A subclass sets ``subject``. On an emulated device graphs are small.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import Bicliques, emit_to, fingerprint, nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Engine, Subtrees
from tests.support.oracles import Outcome, all_pairs, cliques, closed_pairs, graph_of, random_edges, run

SIDES = ("left", "right")
ORDERS = ("degree", "two-hop", "unilateral", "id")
#: Name -> a large and a small shape: bounds of the number of left vertices, those of right vertices, and the density.
#: Some shapes have hubs on the left side or on the right side, and some have none.
SHAPES = {
    "wide hubs": (((500, 700), (24, 34), 0.13), ((500, 540), (16, 20), 0.14)),  # no dense graphs
    "dense hubs": (((200, 300), (5, 12), 0.8), ((120, 180), (8, 11), 0.8)),
    "many roots": (((5, 12), (80, 200), 0.4), ((8, 11), (80, 160), 0.4)),
    "words": (((20, 90), (20, 30), 0.2), ((24, 36), (24, 36), 0.3)),
    "nested": (((180, 260), (6, 9), 0.7), ((110, 140), (6, 8), 0.7)),
}


class Subject(NamedTuple):
    """An engine under test.

    Parameters
    ----------
    ample : callable
        () -> engine with its usual memory.
    tight : tuple of two callables
        Engines whose memory is so small that every buffer overflows, and which share work whenever they can.
    small : bool
        Use small graphs: the device is slow.
    short_s : float
        Seconds of a short slice; with 0, every worker of the device does one node.
    """

    ample: Callable[[], Engine]
    tight: tuple[Callable[[], Engine], Callable[[], Engine]]
    small: bool = False
    short_s: float = 0.0


def with_supersets(rng: np.random.Generator, edges: np.ndarray) -> np.ndarray:
    """Add a right vertex for each: it has the same neighbours, and a third of the other left vertices."""
    adjacent = np.zeros(edges.max(axis=0) + 1, bool)
    adjacent[tuple(edges.T)] = True
    return np.argwhere(np.hstack([adjacent, adjacent | (rng.random(adjacent.shape) < 1 / 3)])).astype(np.int32)


@functools.cache
def edges_of(name: str, small: bool) -> np.ndarray:
    """Edges of a random graph of a shape. The same name always gives the same graph."""
    rng = np.random.default_rng(20261121 + list(SHAPES).index(name))
    left, right, density = SHAPES[name][small]
    edges = random_edges(rng, int(rng.integers(*left)), int(rng.integers(*right)), density)
    return with_supersets(rng, edges) if name == "nested" else edges


@functools.cache
def truth_of(name: str, small: bool) -> Outcome:
    """The bicliques of a shape. The rows are those of the CPU engine, and the reference engine has confirmed them."""
    graph = graph_of(edges_of(name, small))
    reference = run(ReferenceEngine(), graph, Search("fingerprint"))
    rows = run(CpuEngine(), graph, Search("list"))
    assert (rows.count, rows.fingerprint) == (reference.count, reference.fingerprint)
    assert len(set(rows.rows)) == reference.count
    return rows


def closure_of_path(graph: MiningGraph, path: np.ndarray) -> set[int]:
    """The root vertices that are adjacent to all common neighbours of a path."""
    adjacent = _adjacency(graph.root_indptr.tobytes(), graph.root_indices.tobytes(), graph.n_base)
    return set(np.flatnonzero(adjacent[:, adjacent[path].all(axis=0)].all(axis=1)).tolist())


@functools.lru_cache(1)
def _adjacency(indptr: bytes, indices: bytes, n_base: int) -> np.ndarray:
    """A row of flags for each root vertex."""
    starts, base = np.frombuffer(indptr, np.int64), np.frombuffer(indices, np.int32)
    adjacent = np.zeros((len(starts) - 1, n_base), bool)
    adjacent[np.repeat(np.arange(len(adjacent)), np.diff(starts)), base] = True
    return adjacent


@st.composite
def small_graphs(draw):
    n_left, n_right = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    cells = st.tuples(st.integers(0, n_left - 1), st.integers(0, n_right - 1))
    return np.array(sorted(draw(st.sets(cells, min_size=1))), dtype=np.int32)


@pytest.mark.pairs
class EngineSuite:
    """An engine is compared with four oracles, with the other engines, and with itself when work comes in pieces."""

    subject: Subject

    @pytest.fixture(params=list(SHAPES))
    def shape(self, request):
        return edges_of(request.param, self.subject.small)

    @pytest.fixture
    def truth(self, request):
        return truth_of(request.node.callspec.params["shape"], self.subject.small)

    @settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors])
    @given(edges=small_graphs(), side=st.sampled_from(SIDES), order=st.sampled_from(ORDERS))
    def test_four_oracles_and_the_engine_agree(self, edges, side, order):
        closed = {(tuple(sorted(a)), tuple(sorted(b))) for a, b in closed_pairs({tuple(map(int, e)) for e in edges})}
        assert closed == cliques(edges) == set(all_pairs(edges))
        graph = graph_of(edges, BuildOptions(root_side=side, order=order))
        for engine in (ReferenceEngine(), self.subject.ample()):
            outcome = run(engine, graph, Search("list"))
            assert len(outcome.rows) == outcome.count == len(closed)
            assert set(outcome.rows) == closed
            assert outcome.fingerprint == fingerprint(Bicliques.from_pairs(sorted(closed)))

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("order", ORDERS)
    def test_root_side_and_order_do_not_change_the_result(self, shape, truth, side, order):
        outcome = run(
            self.subject.ample(), graph_of(shape, BuildOptions(root_side=side, order=order)), Search("fingerprint")
        )
        assert (outcome.count, outcome.fingerprint) == (truth.count, truth.fingerprint)

    @pytest.mark.parametrize("tight", [0, 1], ids=["tightest", "tight"])
    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("limit", ["whole", "short", "rows"])
    def test_short_slices_tiny_buffers_and_order_of_work_change_nothing(self, shape, truth, tight, side, limit):
        rng = np.random.default_rng(7)
        few = max(7, truth.count // 40) if self.subject.small else 7
        short = Limits(seconds=self.subject.short_s)
        limits = {"whole": Limits(), "short": short, "rows": Limits(rows=few)}[limit]
        engine = self.subject.tight[tight]()
        outcome = run(engine, graph_of(shape, BuildOptions(root_side=side)), Search("list"), limits, shuffle=rng)
        assert (outcome.count, outcome.fingerprint) == (truth.count, truth.fingerprint)
        assert sorted(outcome.rows) == sorted(truth.rows)
        all_begin_at_once = limit == "short" and len(np.unique(shape[:, SIDES.index(side)])) <= 10
        assert limit == "whole" or tight == 1 or outcome.slices > 1 or all_begin_at_once

    def test_short_slices_count_the_same(self, shape, truth):
        rng = np.random.default_rng(3)
        outcome = run(self.subject.tight[0](), graph_of(shape), Search("count"), Limits(seconds=0.0), rng)
        assert outcome.count == truth.count

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("mode", ["count", "list"])
    @pytest.mark.parametrize(
        "bounds",
        [
            (3, 1, None, None),
            (1, 3, None, None),
            (70, 2, None, None),
            (2, 2, 9, None),
            (1, 1, 66, 3),
            (1, 1, None, 3),  # a search with a single bound must not count as one without
            (1, 1, 4, None),
        ],
    )
    def test_thresholds_and_filters_keep_exactly_the_bicliques_that_fit(self, shape, truth, mode, bounds, side):
        min_left, min_right, max_left, max_right = bounds
        expected = {
            (left, right)
            for left, right in truth.rows
            if min_left <= len(left) <= (max_left or len(left)) and min_right <= len(right) <= (max_right or len(right))
        }
        graph = graph_of(shape, BuildOptions(root_side=side), min_left, min_right)
        names = ("min_left", "min_right", "max_left", "max_right")
        outcome = run(self.subject.tight[1](), graph, Search(mode, **dict(zip(names, bounds, strict=True))))
        assert outcome.count == len(expected)
        assert set(outcome.rows) == (expected if mode == "list" else set())

    @pytest.mark.parametrize("other", ["reference", "cpu"])
    def test_engines_continue_each_other(self, shape, truth, other):
        """Two engines take turns, and each goes on with what the other left over."""
        graph = graph_of(shape)
        work = Subtrees.of_roots(np.arange(graph.n_roots))
        count = total = turn = 0
        engines = (self.subject.tight[1](), ReferenceEngine() if other == "reference" else CpuEngine())
        few = max(1, truth.count // 9)
        while len(work):
            result = engines[turn % 2].mine(graph, work, Search("fingerprint"), Limits(rows=few), nowhere)
            count, total = count + result.count, (total + result.fingerprint) % 2**64
            work, turn = result.left_over, turn + 1
        assert (count, total) == (truth.count, truth.fingerprint)
        assert turn > 2

    def test_a_call_that_is_told_to_end_leaves_the_rest_over(self, shape, truth):
        """It is told before it begins. The next call does not know of it."""
        graph, engine, rows = graph_of(shape), self.subject.tight[0](), []
        emit = emit_to(lambda found: rows.extend(found.to_pairs()))
        engine.stop()
        everything = Subtrees.of_roots(np.arange(graph.n_roots))
        first = engine.mine(graph, everything, Search("list"), Limits(), emit)
        assert first.count < truth.count
        rest = engine.mine(graph, first.left_over, Search("list"), Limits(), emit)
        assert len(rest.left_over) == 0
        assert sorted(rows) == sorted(truth.rows)

    @pytest.mark.parametrize("order", ORDERS)
    def test_left_over_nodes_that_are_not_fresh_have_their_closure_in_the_path(self, shape, truth, order):
        """`Subtrees.spread` may cut such a node, because nothing of its closure is missing."""
        graph, engine = graph_of(shape, BuildOptions(order=order)), self.subject.tight[0]()
        work, count, total = Subtrees.of_roots(np.arange(graph.n_roots)), 0, 0
        while len(work):
            limits = Limits(rows=max(7, truth.count // 9))
            result = engine.mine(graph, work, Search("fingerprint"), limits, nowhere)
            count, total = count + result.count, (total + result.fingerprint) % 2**64
            for i in np.flatnonzero(~result.left_over.fresh):
                assert closure_of_path(graph, result.left_over.path_of(i)) <= set(result.left_over.path_of(i).tolist())
            work = result.left_over.spread(60)
        assert (count, total) == (truth.count, truth.fingerprint)

    @pytest.mark.parametrize("change", ["relabel", "transpose", "disjoint union", "left twin", "right twin"])
    def test_changes_of_the_graph_multiply_the_count_as_expected(self, shape, truth, change):
        changed, factor = metamorphic(shape, change, np.random.default_rng(11))
        changed = np.unique(changed.astype(np.int32), axis=0)
        assert run(self.subject.ample(), graph_of(changed), Search("count")).count == factor * truth.count

    def test_root_column_names_the_first_level_subtree(self, shape):
        graph = graph_of(shape)
        firsts = []

        def check(batch):
            rank_of = np.empty(max(graph.n_left, graph.n_right), dtype=np.int64)
            rank_of[graph.root_members] = np.repeat(np.arange(graph.n_roots), np.diff(graph.root_members_indptr))
            sides = ((batch.left_indptr, batch.left), (batch.right_indptr, batch.right))
            indptr, ids = sides[graph.root_side == "right"]
            smallest = np.minimum.reduceat(rank_of[ids], indptr[:-1])
            firsts.append((graph.root_members[graph.root_members_indptr[smallest]] == batch.root).all())

        self.subject.ample().mine(
            graph, Subtrees.of_roots(np.arange(graph.n_roots)), Search("list"), Limits(), emit_to(check)
        )
        assert firsts
        assert all(firsts)

    def test_a_dead_piece_is_dropped(self):
        """A path whose closure has a member that is neither in the path nor a candidate belongs to an earlier piece."""
        chain = graph_of(
            np.array([[0, 0], [0, 1], [1, 1], [1, 2], [2, 2]], np.int32), BuildOptions(root_side="right", order="id")
        )
        last = chain.n_roots - 1
        inside = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [2, 1], [3, 2]], dtype=np.int32)
        for graph, path, alive in (
            (chain, [last], 1),
            (graph_of(inside, BuildOptions(root_side="right", order="id")), [0, 1], 0),
        ):
            piece = Subtrees.of_pieces([(np.array(path, np.int32), np.empty(0, np.int32), 0, True)])
            for engine in (self.subject.ample(), ReferenceEngine()):
                assert engine.mine(graph, piece, Search("fingerprint"), Limits(), nowhere).count == alive

    @pytest.mark.parametrize("side", SIDES)
    def test_first_level_subtrees_may_come_as_paths(self, shape, truth, side):
        """Every rank behind the root is a candidate, and some candidates are members of the closure."""
        graph = graph_of(shape, BuildOptions(root_side=side, order="id"))
        ranks = np.arange(graph.n_roots, dtype=np.int32)
        pieces = [(ranks[r : r + 1], ranks[r + 1 :], graph.n_roots - r - 1, True) for r in range(graph.n_roots)]
        for work in (Subtrees.of_pieces(pieces), Subtrees.of_pieces(pieces).spread(1000)):
            found = self.subject.ample().mine(graph, work, Search("fingerprint"), Limits(), nowhere)
            assert (found.count, found.fingerprint) == (truth.count, truth.fingerprint)

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("pieces", [1, 1000])
    def test_candidates_may_be_all_ranks_from_a_given_one_on(self, shape, truth, side, pieces):
        """The work is all live first-level subtrees, cut anywhere. The bicliques of their roots are counted apart."""
        graph = graph_of(shape, BuildOptions(root_side=side))
        closures = [sorted(closure_of_path(graph, np.array([r]))) for r in range(graph.n_roots)]
        roots = np.array([r for r, closure in enumerate(closures) if closure[0] == r])
        indptr = np.cumsum([0, *(len(closures[r]) for r in roots)])
        path, todo = np.concatenate([closures[r] for r in roots]), graph.n_roots - 1 - roots
        work = Subtrees.of_ranges(indptr, path, roots + 1, todo, np.zeros(len(roots), bool)).spread(pieces)
        assert work.ranged.all()
        assert (len(work) > len(roots)) == (pieces > 1)
        work = Subtrees.from_bytes(Subtrees.concat([work.take(3, len(work)), work.take(0, 3)]).to_bytes())
        found = self.subject.ample().mine(graph, work, Search("fingerprint"), Limits(), nowhere)
        assert found.count == truth.count - len(roots)
        fresh = Subtrees.of_ranges(indptr, path, roots + 1, 0 * todo, np.ones(len(roots), bool))
        nodes = self.subject.ample().mine(graph, fresh, Search("fingerprint"), Limits(), nowhere)
        assert nodes.count == len(roots)
        assert (found.fingerprint + nodes.fingerprint) % 2**64 == truth.fingerprint

    def test_a_candidate_may_be_in_the_closure(self):
        """A left-over range of a root has such candidates. Here earlier roots still exclude all nodes below."""
        sides = {w: range(50 + w) for w in range(4)}  # exclude all below
        sides |= {4: range(100), 5: range(40), 6: range(8)}
        sides |= {7 + b: [*range(100), 100 + b] for b in range(8)}  # candidates in the closure of 4
        sides |= {15 + b: [u for u in range(108) if u >> b & 1] for b in range(7)}  # so that there are no twins
        edges = np.array(sorted((u, v) for v, us in sides.items() for u in us), np.int32)
        graph = graph_of(edges, BuildOptions(root_side="right", order="id"))
        assert (graph.n_roots, graph.n_base) == (22, 108)
        piece = Subtrees.of_pieces([(np.array([4], np.int32), np.arange(5, 15, dtype=np.int32), 2, False)])
        for engine in (self.subject.ample(), ReferenceEngine()):
            assert engine.mine(graph, piece, Search("fingerprint"), Limits(), nowhere).count == 0

    def test_a_left_over_cut_into_pieces_gives_the_same_bicliques(self, shape, truth):
        graph = graph_of(shape)
        whole = Subtrees.of_roots(np.arange(graph.n_roots))
        first = CpuEngine().mine(graph, whole, Search("fingerprint"), Limits(rows=1), nowhere)
        pieces = first.left_over.spread(64)
        assert len(pieces) >= len(first.left_over)
        count, total, engine = first.count, first.fingerprint, self.subject.ample()
        for i in range(len(pieces)):
            part = engine.mine(graph, pieces.take(i, i + 1), Search("fingerprint"), Limits(), nowhere)
            count, total = count + part.count, (total + part.fingerprint) % 2**64
        assert (count, total) == (truth.count, truth.fingerprint)


def metamorphic(edges, change, rng):
    """The changed edges, and the factor by which the change multiplies the count."""
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
