"""Tests of the search for near-bicliques. An engine that can do it inherits them."""

from dataclasses import replace

import numpy as np
import pytest

from bicliques.schemas.bicliques import Bicliques, emit_to, fingerprint, nowhere
from bicliques.schemas.jobs import job_of
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import MEASURES, Limits, Search
from bicliques.schemas.totals import Best
from bicliques.schemas.work import Subtrees
from tests.kernels.suite import SIDES, Subject
from tests.support.emulated import everything
from tests.support.near import missing_of, near_graph, near_pairs
from tests.support.oracles import Pairs, deal, random_edges, run

ORDERS = ("degree", "id", "two-hop")
LIMITS = (Limits(), Limits(seconds=0.0), Limits(rows=1), Limits(seconds=0.0))


def questions(k: int, other: int) -> list[Search]:
    """Both models, with one number and with two, and the least thresholds that are allowed."""
    asked = [{"missing_pairs": k}, {"missing_each": k}, {"missing_left": k, "missing_right": other}]
    found = []
    for one in asked:
        near = Search(**one).near
        found.append(Search("list", min_left=near.least("left"), min_right=near.least("right"), **one))
    return found


class NearSuite:
    """An engine is compared with all groups of small graphs."""

    subject: Subject
    near_cases = 150
    most_vertices = 10

    @pytest.mark.parametrize("engine", ["ample", "tight"])
    @pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
    def test_random_graphs_give_exactly_the_maximal_near_bicliques(self, engine, times):
        rng = np.random.default_rng(42)
        order = np.random.default_rng(7)  # of slices, whose number depends on the clock; the graphs must not
        make = self.subject.ample if engine == "ample" else self.subject.tight[0]
        found = 0
        for case in range(self.near_cases * times):
            k, other = int(rng.choice([1, 1, 1, 2, 2, 3])), int(rng.choice([1, 1, 2, 3]))
            search = questions(k, other)[case % 3]
            more = rng.integers(0, 2, 2).tolist()
            search = replace(search, min_left=search.min_left + more[0], min_right=search.min_right + more[1])
            search = replace(search, max_left=5, max_right=6) if case % 5 == 0 else search
            edges = random_edges(rng, *rng.integers(2, self.most_vertices, 2).tolist(), rng.uniform(0.5, 0.97))
            graph = near_graph(edges, search, BuildOptions(root_side=SIDES[case // 3 % 2], order=ORDERS[case // 6 % 3]))
            limits = LIMITS[case % 4]
            if case % 7:
                outcome = run(make(), graph, search, limits, shuffle=order if case % 2 else None)
            else:
                outcome = deal([make() for _ in range((1, 2, 7)[case % 3])], graph, search, limits, order)
            expected = near_pairs(edges, search)
            assert set(outcome.rows) == expected, case
            assert len(outcome.rows) == outcome.count == len(expected)
            assert outcome.fingerprint == fingerprint(Bicliques.from_pairs(sorted(expected)))
            found += outcome.count
        assert found > self.near_cases * times

    @pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
    def test_those_with_given_members_are_those_of_all_that_contain_them(self, times):
        rng, order, found = np.random.default_rng(44), np.random.default_rng(7), 0
        for case in range(self.near_cases * times // 2):
            search = questions(int(rng.choice([1, 1, 2, 3])), int(rng.choice([1, 2])))[case % 3]
            edges = random_edges(rng, *rng.integers(4, self.most_vertices, 2).tolist(), rng.uniform(0.5, 0.97))
            given = [rng.permutation(n + 1)[: rng.integers(0, 3)].astype(np.int32) for n in edges.max(axis=0)]
            sides = [side for side, some in zip(("left", "right"), given, strict=True) if len(some)]
            if not sides:
                continue
            options = BuildOptions(root_side=sides[case % len(sides)], order=ORDERS[case // 6 % 3])
            graph = near_graph(edges, search, options, given)
            make = (self.subject.ample, *self.subject.tight)[case % 3]
            outcome = deal([make() for _ in range((1, 2, 7)[case % 3])], graph, search, LIMITS[case % 4], order)
            left, right = (set(some.tolist()) for some in given)
            expected = {pair for pair in near_pairs(edges, search) if left <= {*pair[0]} and right <= {*pair[1]}}
            assert set(outcome.rows) == expected, case
            assert len(outcome.rows) == len(expected)
            found += len(expected)
        assert found > self.near_cases * times // 4

    @pytest.mark.parametrize("mode", ["count", "fingerprint"])
    def test_near_bicliques_are_counted_as_they_are_listed(self, mode):
        edges = random_edges(np.random.default_rng(7), 9, 9, 0.8)
        for search in questions(1, 2):
            graph, rows = near_graph(edges, search), []
            listed = self.subject.ample().mine(graph, everything(graph), search, Limits(), emit_to(rows.append))
            counted = run(self.subject.ample(), graph, replace(search, mode=mode, sizes=True))
            assert counted.count == counted.sizes.total == listed.count > 3
            assert mode == "count" or counted.fingerprint == listed.fingerprint

    def test_rows_say_how_many_pairs_are_missing(self):
        edges = random_edges(np.random.default_rng(8), 9, 9, 0.8)
        for search in questions(2, 1):
            graph, rows = near_graph(edges, search), list[Bicliques]()
            emit = emit_to(lambda batch: rows.append(batch.pick(np.arange(len(batch)))))  # noqa: B023
            self.subject.ample().mine(graph, everything(graph), search, Limits(), emit)
            batch = Bicliques.concat(rows)
            assert batch.missing.tolist() == [missing_of(edges, pair) for pair in batch.to_pairs()]
            assert batch.missing.max() > 0

    def test_a_search_without_missing_pairs_says_nothing_of_them(self):
        edges, rows = random_edges(np.random.default_rng(9), 6, 6, 0.7), []
        search = Search("list", min_left=2, min_right=2, missing_pairs=0)
        assert search.near is None
        graph = near_graph(edges, search)
        self.subject.ample().mine(graph, everything(graph), search, Limits(), emit_to(rows.append))
        assert rows
        assert all(batch.missing is None for batch in rows)

    def test_left_overs_name_vertices_of_both_sides(self):
        edges = random_edges(np.random.default_rng(10), 9, 9, 0.8)
        search = questions(1, 1)[0]
        graph = near_graph(edges, search)
        work, seen = everything(graph), 0
        for _ in range(20):
            work = self.subject.tight[0]().mine(graph, work, search, Limits(seconds=0.0), nowhere).left_over
            work = Subtrees.from_bytes(work.to_bytes()).check(graph.n_roots + graph.n_base)
            seen += int((work.path >= graph.n_roots).sum() + (work.candidates >= graph.n_roots).sum())
        assert seen > 0


class LargestNearSuite:
    """An engine that prunes by a bound is compared with all near-bicliques of small graphs, sorted."""

    subject: Subject
    largest_cases = 80
    most_vertices = 9

    def test_random_graphs_give_exactly_the_largest_near_bicliques(self):
        rng, fewer = np.random.default_rng(43), 0
        chance = np.random.default_rng(44)  # of its own: how often it is asked depends on how long slices take
        for case in range(self.largest_cases):
            asked = questions(int(rng.choice([1, 1, 2])), 1)[case % 3]
            k, by = int(rng.choice([1, 3, 50])), MEASURES[rng.integers(len(MEASURES))]
            search = replace(asked, largest=k, by=by, **({"max_left": 5, "max_right": 6} if case % 4 == 0 else {}))
            edges = random_edges(rng, *rng.integers(3, self.most_vertices, 2).tolist(), rng.uniform(0.5, 0.97))
            pairs = near_pairs(edges, search)
            expected = largest_of(edges, search, pairs)
            graph = near_graph(edges, search, BuildOptions(root_side=SIDES[case // 3 % 2], order=ORDERS[case % 3]))
            job, work, bound = job_of(search), everything(graph), None
            engine, total = (self.subject.ample, *self.subject.tight)[case % 3](), job.zero
            while len(work):
                bound = (job.bound(total), bound, None)[chance.integers(3)]
                limits = Limits(LIMITS[case % 4].seconds, LIMITS[case % 4].rows, bound)
                found = engine.mine(graph, work, search, limits, nowhere)
                total, work = total + found.total, found.left_over
            fewer += total.seen < len(pairs)
            total = Best.from_json(total.to_json(), k, by)
            assert total.rows.to_pairs() == expected.rows.to_pairs(), (case, search)
            assert total.rows.missing.tolist() == expected.rows.missing.tolist()
        assert fewer > self.largest_cases // 10, "what is below the bound is not looked at"

    def test_a_bound_leaves_out_only_near_bicliques_below_it(self):
        """Pairs that are missing are no edges, and rows that are equal to the bound count."""
        edges = random_edges(np.random.default_rng(11), 9, 9, 0.8)
        for asked in questions(2, 1):
            search = replace(asked, largest=10_000)
            graph, best = near_graph(edges, search), largest_of(edges, search)
            keys = best.rows.missing  # as many rows as there are
            pairs = np.diff(best.rows.left_indptr) * np.diff(best.rows.right_indptr)
            bound = int((pairs - keys)[len(best.rows) // 3])
            found = self.subject.ample().mine(graph, everything(graph), search, Limits(bound=bound), nowhere).total
            assert isinstance(found, Best)
            assert found.rows.to_pairs() == best.rows.to_pairs()[: int((pairs - keys >= bound).sum())]


def largest_of(edges: np.ndarray, search: Search, pairs: Pairs | None = None) -> Best:
    """The largest by definition, of all near-bicliques if these are known."""
    pairs = sorted(pairs or near_pairs(edges, search))
    rows, missing = Bicliques.from_pairs(pairs), np.array([missing_of(edges, pair) for pair in pairs], np.int32)
    assert search.largest is not None
    return Best.of(search.largest, search.by, Bicliques(**rows.arrays, missing=missing))
