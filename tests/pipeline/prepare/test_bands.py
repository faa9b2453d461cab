"""The bands of small graphs, searched one by one, hold exactly the largest of a full enumeration."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.graph.ceilings import EdgesByCeiling
from bicliques.kernels.graph.greedy import Found, first_bound
from bicliques.kernels.graph.members import Restricted
from bicliques.kernels.graph.sorting import prepare_on
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.pipeline.prepare.bands import Bounded, make_bands, reach_of, what_a_bound_leaves
from bicliques.schemas.bands import Band, gap_in
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import job_of
from bicliques.schemas.options import BuildOptions, RootSide
from bicliques.schemas.search import MEASURES, By, Limits, Search
from bicliques.schemas.totals import Best, keys_of
from bicliques.schemas.work import Subtrees
from tests.kernels.suite_largest import first_of
from tests.kernels.suite_thresholds import with_twins
from tests.support.oracles import all_pairs, graph_of, random_edges


@pytest.mark.parametrize("by", MEASURES)
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in (1, 2))])
def test_the_bands_of_small_graphs(by: By, seed: int) -> None:
    rng, engines = np.random.default_rng([MEASURES.index(by), seed]), (CpuEngine(), ReferenceEngine())
    cut = 0
    for turn in range(50):
        edges = with_twins(
            rng, random_edges(rng, *(int(n) for n in rng.integers(2, 13, 2)), float(rng.uniform(0.2, 0.9)))
        )
        left, right = (int(n) for n in rng.integers(1, 4, 2))
        search = Search(min_left=left, min_right=right, largest=int(rng.choice([1, 3, 10])), by=by)
        expected = first_of(all_pairs(edges), search)
        kept, sides = Restricted(*np.ascontiguousarray(edges.T)), edges.max(axis=0) + 1
        reach, options = reach_of(kept), (*sides.tolist(), BuildOptions())
        bounded = Bounded(Found(search), None, kept)
        if turn % 2:
            by_ceiling = EdgesByCeiling(kept.left, kept.right, *sides.tolist(), search)
            prepare = partial(graph_of_edges, options, left, right)
            bounded = what_a_bound_leaves(search, by_ceiling, kept, prepare)
        core = graph_of_edges(options, left, right, bounded.kept)
        bands = make_bands(search, bounded, reach, core, partial(graph_of_edges, options, kept=bounded.kept))
        bound = bands.facts["bound"]
        assert bound <= (expected.least or 0), "it is of bicliques that are there"
        told = [Band(one["first"], one["last"], one["min_right"]) for one in bands.facts["bands"]]
        assert gap_in(told, search, bound, reach) is None
        total = job_of(search).zero
        for band, graph, one in zip(told, bands.graphs, bands.facts["bands"], strict=True):
            work = Subtrees.of_roots(np.arange(graph.n_roots))
            found = engines[turn // 2 % 2].mine(graph, work, band.of(search), Limits(bound=bound), nowhere).total
            assert isinstance(found, Best)
            assert keys_of(found.rows, by)[0].max(initial=0) <= one["ceiling"]
            total += found
        assert isinstance(total, Best)
        assert total.rows.to_pairs() == expected.rows.to_pairs()
        cut += len(told) > 1
    assert cut >= (10 if by in ("edges", "vertices") else 0)


def graph_of_edges(options: tuple[Any, ...], min_left: int, min_right: int, kept: Restricted) -> MiningGraph:
    return prepare_on(np, lambda: (kept.left, kept.right), *options, min_left, min_right)[0]


@pytest.mark.parametrize("root_side", ["left", "right"])
def test_the_vertices_of_a_band_are_told_by_side(root_side: RootSide) -> None:
    edges = random_edges(np.random.default_rng(3), 40, 6, 0.6)
    search, kept = Search(largest=1), Restricted(*np.ascontiguousarray(edges.T))
    options = (*(edges.max(axis=0) + 1).tolist(), BuildOptions(root_side=root_side))
    core = graph_of_edges(options, 1, 1, kept)
    prepare = partial(graph_of_edges, options, kept=kept)
    bands = make_bands(search, Bounded(Found(search), None, kept), reach_of(kept), core, prepare).facts["bands"]
    assert {one["root_side"] for one in bands} == {root_side}
    assert all(one["right"] <= 6 < one["left"] for one in bands)


def test_a_first_bound_without_steps_and_of_too_few() -> None:
    graph = graph_of(random_edges(np.random.default_rng(1), 20, 20, 0.3))
    assert first_bound(graph, Search(largest=1), wedges=0) == 0
    assert first_bound(graph, Search(largest=10**6)) == 0
    assert first_bound(graph, Search(largest=1)) == first_bound(graph, Search(largest=1)) > 0
