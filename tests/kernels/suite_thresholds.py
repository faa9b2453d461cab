"""Thresholds give exactly the bicliques of a full enumeration that are large enough: tests that every engine inherits.

The truth are all bicliques, filtered: those of `tests.support.oracles.all_pairs`, and of larger graphs `truth_of`.
"""

from typing import NamedTuple

import numpy as np
import pytest

from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import Bicliques, fingerprint
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from tests.kernels.suite import ORDERS, SIDES, Subject, edges_of, truth_of
from tests.support.oracles import Outcome, Pairs, all_pairs, deal, graph_of, random_edges, run

#: Thresholds (left, right) for graphs of the shapes of `tests.kernels.suite`.
BOUNDS = ((2, 2), (4, 3), (3, 5), (1, 6), (20, 2), (40, 4), (2, 20), (9, 9))


class Case(NamedTuple):
    """A small graph with twins, thresholds, and the bicliques that are large enough."""

    graph: MiningGraph
    search: Search
    expected: Pairs


def with_twins(rng: np.random.Generator, edges: np.ndarray) -> np.ndarray:
    """Put copies of some vertices of either side next to them, up to three of each."""
    for side in (0, 1):
        copies = rng.choice([1, 1, 1, 2, 4], edges[:, side].max() + 1)
        first = np.cumsum(copies) - copies
        times = copies[edges[:, side]]
        edges = np.repeat(edges, times, axis=0)
        nth = np.arange(len(edges)) - np.repeat(np.cumsum(times) - times, times)
        edges[:, side] = first[edges[:, side]] + nth
    return np.unique(edges, axis=0).astype(np.int32)


def random_case(rng: np.random.Generator, mode: str = "list") -> Case:
    """A case whose graph has at most some 40 vertices on a side."""
    edges = random_edges(rng, *(int(n) for n in rng.integers(1, 13, 2)), float(rng.uniform(0.2, 0.9)))
    edges = with_twins(rng, edges)
    left, right = (int(n) for n in rng.integers(1, 9, 2))
    options = BuildOptions(root_side=str(rng.choice(SIDES)), order=str(rng.choice(ORDERS)))
    search = Search(mode, min_left=left, min_right=right)
    # sometimes without the core, so that the search itself has to leave everything out
    core = (left, right) if rng.random() < 0.5 else (1, 1)
    return Case(graph_of(edges, options, *core), search, large_enough(all_pairs(edges), left, right))


def large_enough(rows: list[tuple[tuple[int, ...], tuple[int, ...]]], left: int, right: int) -> Pairs:
    """The bicliques with at least so many members on either side."""
    return {row for row in rows if len(row[0]) >= left and len(row[1]) >= right}


def check(outcome: Outcome, search: Search, expected: Pairs):
    """Count, fingerprint and rows are those expected, as far as the mode has them."""
    assert outcome.count == len(expected)
    if search.mode != "count":
        assert outcome.fingerprint == fingerprint(Bicliques.from_pairs(sorted(expected)))
    if search.mode == "list":
        assert sorted(outcome.rows) == sorted(expected)


@pytest.mark.pairs
class ThresholdSuite:
    """An engine with thresholds is compared with a filtered enumeration, also when work comes in pieces."""

    subject: Subject

    @property
    def cases(self) -> int:
        """Cases of a test that draws its own."""
        return 3 if self.subject.small else 60

    @pytest.mark.values
    @pytest.mark.parametrize("seed", range(8))
    @pytest.mark.parametrize("mode", ["list", "fingerprint", "count"])
    def test_small_graphs_with_twins(self, mode, seed):
        rng, engine = np.random.default_rng([seed, len(mode)]), self.subject.ample()
        for _ in range(self.cases):
            case = random_case(rng, mode)
            check(run(engine, case.graph, case.search), case.search, case.expected)

    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("workers", [1, 2, 7])
    @pytest.mark.parametrize("limits", [Limits(seconds=0.0), Limits(rows=1), Limits(rows=5)], ids=["short", "1", "5"])
    def test_slices_that_are_dealt_to_workers(self, limits, workers, seed):
        """Left-overs go to any worker, and are cut anywhere."""
        rng = np.random.default_rng([seed, workers, limits.rows or 0])
        engines = [self.subject.tight[k % 2]() for k in range(workers)]
        for _ in range(self.cases // 3):
            case = random_case(rng)
            check(deal(engines, case.graph, case.search, limits, rng), case.search, case.expected)

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("bounds", BOUNDS, ids=str)
    @pytest.mark.parametrize("limit", ["whole", "short", "rows"])
    @pytest.mark.parametrize("mode", ["list", "count"])
    @pytest.mark.parametrize("shape", ["wide hubs", "dense hubs", "many roots", "words", "nested"])
    def test_hubs(self, shape, mode, limit, bounds, side):
        expected = large_enough(truth_of(shape, self.subject.small).rows, *bounds)
        limits = {"whole": Limits(), "short": Limits(seconds=self.subject.short_s), "rows": Limits(rows=50)}[limit]
        graph = graph_of(edges_of(shape, self.subject.small), BuildOptions(root_side=side), *bounds)
        search = Search(mode, min_left=bounds[0], min_right=bounds[1])
        engine = self.subject.ample() if limit == "whole" else self.subject.tight[side == "left"]()
        check(deal([engine], graph, search, limits, np.random.default_rng(5)), search, expected)

    @pytest.mark.parametrize("seed", range(2))
    def test_engines_continue_each_other_with_thresholds(self, seed):
        """The reference engine, the CPU engine and this one take turns with the same left-overs."""
        from bicliques.kernels.cpu.engine import CpuEngine

        rng = np.random.default_rng([seed, 17])
        engines = [self.subject.tight[0](), ReferenceEngine(), self.subject.ample(), CpuEngine()]
        for _ in range(self.cases):
            case = random_case(rng)
            check(deal(engines, case.graph, case.search, Limits(rows=1), rng), case.search, case.expected)

    def test_thresholds_that_leave_nothing(self):
        graph = graph_of(edges_of("words", self.subject.small))
        search = Search("list", min_left=1000, min_right=1000)
        check(run(self.subject.ample(), graph, search), search, set())
