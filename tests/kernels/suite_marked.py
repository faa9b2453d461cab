"""Tests of the job that wants only bicliques with a marked edge. An engine that can do it inherits them."""

import numpy as np
import pytest

from bicliques.kernels.graph.members import Restricted
from bicliques.kernels.graph.remains import around_marks, with_marks
from bicliques.schemas.bicliques import emit_to
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.kernels.suite import SIDES, Subject, edges_of
from tests.support.oracles import all_pairs, graph_of, random_edges, run

Pairs = set[tuple[tuple[int, ...], tuple[int, ...]]]
_MARKED = ["whole", "short", "rows"]


def marked_graph(edges: np.ndarray, marks: np.ndarray, side: str, least: tuple[int, int]) -> MiningGraph:
    """The graph that an engine gets for the job: what is around the marked edges, and these in front."""
    ends = marks[:, 0], marks[:, 1]
    kept = around_marks(Restricted(edges[:, 0], edges[:, 1]), *(edges.max(axis=0) + 1).tolist(), ends)
    graph = graph_of(np.column_stack([kept.left, kept.right]), BuildOptions(root_side=side), *least)
    marked = with_marks(graph, ends)
    marked.validate()
    marked.validate_directions()
    return marked


def wanted(edges: np.ndarray, marks: np.ndarray, least: tuple[int, int] = (1, 1)) -> Pairs:
    """The bicliques of these sizes with a marked edge."""
    pairs = {(int(u), int(v)) for u, v in marks}
    return {
        (left, right)
        for left, right in all_pairs(edges)
        if len(left) >= least[0] and len(right) >= least[1] and any((u, v) in pairs for u in left for v in right)
    }


class MarkedSuite:
    """An engine is compared with the bicliques of the whole graph that have a marked edge."""

    subject: Subject
    marked_cases = 300

    def test_random_graphs_give_exactly_the_bicliques_with_a_marked_edge(self):
        rng, makers = np.random.default_rng(43), (self.subject.ample, *self.subject.tight)
        limits = (Limits(), Limits(rows=2), Limits(seconds=0.0))
        found = 0
        for case in range(self.marked_cases):
            edges = random_edges(rng, *rng.integers(1, 11, 2).tolist(), rng.uniform(0.2, 0.95))
            marks = edges[rng.random(len(edges)) < rng.choice([0.02, 0.1, 0.5, 1.0])]
            least = tuple(rng.choice([1, 1, 2, 3], 2).tolist())
            if len(marks) == 0:
                marks = edges[:1]
            graph = marked_graph(edges, marks, SIDES[case % 2], least)
            outcome = run(
                makers[case // 3 % 3](),
                graph,
                Search("list", min_left=least[0], min_right=least[1], marked=True),
                limits[case % 3],
                shuffle=rng if case % 4 else None,
            )
            assert set(outcome.rows) == wanted(edges, marks, least)
            assert len(outcome.rows) == outcome.count == len(set(outcome.rows))
            found += outcome.count
        assert found > self.marked_cases

    @pytest.mark.parametrize("shape", ["wide hubs", "dense hubs", "many roots", "words", "nested"])
    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("least", [(1, 1), (3, 2)])
    @pytest.mark.parametrize("limit", _MARKED)
    def test_large_graphs_give_exactly_the_bicliques_with_a_marked_edge(self, shape, side, least, limit):
        rng = np.random.default_rng(44)
        edges = edges_of(shape, self.subject.small)
        marks = edges[rng.random(len(edges)) < 12 / len(edges)]
        marks = marks if len(marks) else edges[:1]
        expected = wanted(edges, marks, least)
        graph = marked_graph(edges, marks, side, least)
        limits = {"whole": Limits(), "short": Limits(seconds=self.subject.short_s), "rows": Limits(rows=50)}[limit]
        engine = self.subject.tight[limit == "rows"]() if limit != "whole" else self.subject.ample()
        outcome = run(
            engine, graph, Search("list", min_left=least[0], min_right=least[1], marked=True), limits, shuffle=rng
        )
        assert set(outcome.rows) == expected
        assert len(outcome.rows) == outcome.count

    @pytest.mark.parametrize("mode", ["count", "fingerprint"])
    def test_they_are_counted_as_they_are_listed(self, mode):
        edges = edges_of("words", self.subject.small)
        marks = edges[:: len(edges) // 5]
        graph = marked_graph(edges, marks, "left", (1, 1))
        rows = run(self.subject.ample(), graph, Search("list", marked=True))
        counted = run(self.subject.ample(), graph, Search(mode, marked=True, sizes=True))
        assert counted.count == counted.sizes.total == rows.count
        assert mode == "count" or counted.fingerprint == rows.fingerprint

    def test_only_subtrees_of_marked_roots_hold_such_bicliques(self):
        edges = edges_of("nested", self.subject.small)
        graph = marked_graph(edges, edges[:: len(edges) // 3], "left", (1, 1))
        assert 0 < graph.roots_to_search < graph.n_roots
        search, rows = Search("list", marked=True), []
        first = Subtrees.of_roots(np.arange(graph.roots_to_search))
        found = self.subject.ample().mine(graph, first, search, Limits(), emit_to(rows.append))
        assert found.count == run(self.subject.ample(), graph, search).count

    def test_without_a_marked_edge_nothing_is_found(self):
        edges = edges_of("words", self.subject.small)
        graph = with_marks(graph_of(edges), (np.empty(0, int), np.empty(0, int)))
        assert graph.roots_to_search == 0
        assert run(self.subject.ample(), graph, Search("list", marked=True)).count == 0
