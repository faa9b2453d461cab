"""The largest few are the first of a full enumeration that is sorted: tests that engines with this job inherit.

The truth are all bicliques, filtered and sorted: those of `tests.support.oracles.all_pairs`, and of larger graphs
`truth_of`.
"""

from typing import NamedTuple

import numpy as np
import pytest

from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import Bicliques, nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import job_of
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import MEASURES, Limits, Search
from bicliques.schemas.totals import Best, Total
from bicliques.schemas.work import Engine, Subtrees
from tests.kernels.suite import ORDERS, SIDES, Subject, edges_of, truth_of
from tests.kernels.suite_thresholds import with_twins
from tests.support.oracles import all_pairs, graph_of, random_edges


class Question(NamedTuple):
    """A small graph with twins, a search for the largest, and the rows of its answer."""

    graph: MiningGraph
    search: Search
    expected: Best


def random_question(rng: np.random.Generator) -> Question:
    """A question with any measure, thresholds and filters, about a graph with at most some 40 vertices on a side."""
    edges = with_twins(rng, random_edges(rng, *(int(n) for n in rng.integers(1, 13, 2)), float(rng.uniform(0.2, 0.9))))
    left, right = (int(n) for n in rng.integers(1, 6, 2))
    most = [None if rng.random() < 0.5 else int(rng.integers(least, 14)) for least in (left, right)]
    k, by = int(rng.choice([1, 2, 3, 10, 1000])), MEASURES[rng.integers(len(MEASURES))]
    search = Search(min_left=left, min_right=right, max_left=most[0], max_right=most[1], largest=k, by=by)
    options = BuildOptions(root_side=str(rng.choice(SIDES)), order=str(rng.choice(ORDERS)))
    core = (left, right) if rng.random() < 0.5 else (1, 1)
    return Question(graph_of(edges, options, *core), search, first_of(all_pairs(edges), search))


def first_of(rows: list[tuple[tuple[int, ...], tuple[int, ...]]], search: Search) -> Best:
    """The largest of all bicliques that are within the limits of the search."""
    assert search.largest is not None
    kept = [
        (left, right)
        for left, right in rows
        if search.min_left <= len(left) <= (search.max_left or len(left))
        and search.min_right <= len(right) <= (search.max_right or len(right))
    ]
    return Best.of(search.largest, search.by, Bicliques.from_pairs(kept))


def asked(engines: list[Engine], question: Question, limits: Limits, rng: np.random.Generator) -> Total:
    """The answer of several engines, which take turns with random stretches of the work.

    Each gets the bound of a moment: of now, of some time ago, or none.
    """
    job = job_of(question.search)
    total, bound, turn = job.zero, None, 0
    work = Subtrees.of_roots(np.arange(question.graph.n_roots))
    while len(work):
        start, stop = np.sort(rng.integers(0, len(work) + 1, 2)).tolist()
        start, stop = (0, len(work)) if start == stop else (start, stop)
        bound = [job.bound(total), bound, None][rng.integers(3)]
        slice_limits = Limits(limits.seconds, limits.rows, bound)
        engine = engines[turn % len(engines)]
        found = engine.mine(question.graph, work.take(start, stop), question.search, slice_limits, nowhere)
        total, turn = total + found.total, turn + 1
        assert turn < 100_000, "slices make no progress"
        left_over = found.left_over.spread(int(rng.integers(1, 9)))
        work = Subtrees.concat([work.take(0, start), work.take(stop, len(work)), left_over])
    return total


def check(found: Total, question: Question):
    """The rows are those expected, in their order."""
    assert isinstance(found, Best)
    assert found.rows.to_pairs() == question.expected.rows.to_pairs()


@pytest.mark.pairs
class LargestSuite:
    """An engine that prunes by a bound is compared with a full enumeration, also when work comes in pieces."""

    subject: Subject

    @property
    def questions(self) -> int:
        """Questions of a test that draws its own."""
        return 3 if self.subject.small else 60

    @pytest.mark.parametrize("seed", range(6))
    def test_the_largest_of_small_graphs(self, seed):
        rng, engine = np.random.default_rng([seed, 20]), self.subject.ample()
        for _ in range(self.questions):
            question = random_question(rng)
            check(asked([engine], question, Limits(), rng), question)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("workers", [1, 2, 7])
    @pytest.mark.parametrize("limits", [Limits(seconds=0.0), Limits(rows=1), Limits(rows=5)], ids=["short", "1", "5"])
    def test_the_largest_in_slices_that_are_dealt_to_workers(self, limits, workers, seed):
        rng = np.random.default_rng([seed, workers, limits.rows or 0, 20])
        engines = [self.subject.tight[k % 2]() for k in range(workers)]
        for _ in range(self.questions // 3):
            question = random_question(rng)
            check(asked(engines, question, limits, rng), question)

    @pytest.mark.parametrize("seed", range(2))
    def test_engines_continue_each_other_for_the_largest(self, seed):
        from bicliques.kernels.cpu.engine import CpuEngine

        rng = np.random.default_rng([seed, 21])
        engines = [self.subject.tight[0](), ReferenceEngine(), self.subject.ample(), CpuEngine()]
        for _ in range(self.questions):
            question = random_question(rng)
            check(asked(engines, question, Limits(rows=1), rng), question)

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("by", MEASURES)
    @pytest.mark.parametrize("limit", ["whole", "short"])
    @pytest.mark.parametrize("shape", ["wide hubs", "dense hubs", "many roots", "words", "nested"])
    def test_the_largest_of_hubs(self, shape, limit, by, side):
        graph = graph_of(edges_of(shape, self.subject.small), BuildOptions(root_side=side))
        search = Search(largest=5, by=by, min_left=2)
        question = Question(graph, search, first_of(truth_of(shape, self.subject.small).rows, search))
        limits = Limits() if limit == "whole" else Limits(seconds=max(self.subject.short_s, 0.001))
        engine = self.subject.ample() if limit == "whole" else self.subject.tight[side == "left"]()
        check(asked([engine], question, limits, np.random.default_rng(5)), question)

    def test_a_bound_leaves_out_only_what_is_below_it(self):
        """Rows that are equal to the bound count, because the order goes on to other keys."""
        graph = graph_of(edges_of("words", self.subject.small))
        rows = truth_of("words", self.subject.small).rows
        key = Best.of(20, "edges", Bicliques.from_pairs(rows)).least
        work, search = Subtrees.of_roots(np.arange(graph.n_roots)), Search(largest=len(rows))
        total = self.subject.ample().mine(graph, work, search, Limits(bound=key), nowhere).total
        assert isinstance(total, Best)
        assert sorted(total.rows.to_pairs()) == sorted(row for row in rows if len(row[0]) * len(row[1]) >= key)
