"""Twins inside hubs of the GPU engine: base vertices that no candidate tells apart are one bit of a word problem."""

from collections import Counter

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.suite_marked import marked_graph, wanted
from tests.support.emulated import BITMATRIX, DEVICE, everything
from tests.support.oracles import all_pairs, deal, graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")

#: With the room that a class of thousands of base vertices needs. Every hub is merged that can be.
MERGING = BITMATRIX["usual"]._replace(list_cap=1 << 14, least_joined=0)
#: The same, and every warp gives parts of its work away whenever another one waits.
GIVING = MERGING._replace(poll=1, give_min=0, warps=16)
#: The same without room for copies of rows, so whoever takes a part of a merged hub merges it anew.
POOR = GIVING._replace(pool=1 << 13)
SEEDS = [4, 10, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(20, 40))]


def tall(seed: int) -> tuple[MiningGraph, np.ndarray]:
    """A graph of few columns and many rows, of which most have twins inside the nodes, and its edges.

    Columns of few rows are early roots, so they are excluded below the others, and have a part of nearly every class.
    """
    rng = np.random.default_rng(seed)
    edges = random_edges(rng, int(rng.integers(400, 1200)), int(rng.integers(8, 11)), float(rng.uniform(0.5, 0.7)))
    n_left, n_right = (edges.max(axis=0) + 1).tolist()
    rare = np.argwhere(rng.random((n_left, 3)) < [0.1, 0.2, 0.3])
    rare[:, 1] += n_right
    edges = np.vstack([edges, rare]).astype(np.int32)
    edges = edges[np.lexsort(edges.T[::-1])]
    return graph_of(edges, BuildOptions(root_side="right")), edges


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["count", "fingerprint"])
@pytest.mark.parametrize("sizes", [MERGING, GIVING, POOR], ids=["merging", "giving", "poor"])
def test_merged_hubs_have_the_same_bicliques(sizes, mode, seed):
    graph, search = tall(seed)[0], Search(mode)
    expected = run(ReferenceEngine(), graph, search)
    engine = BitMatrixEngine(EmulatedDevice(seed, n_multiprocessors=4), sizes)
    found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
    assert (found.count, len(found.left_over)) == (expected.count, 0)
    assert mode == "count" or found.fingerprint == expected.fingerprint
    whole = BitMatrixEngine(DEVICE, MERGING._replace(least_joined=65))  # no hub has so many candidates
    tests = whole.mine(graph, everything(graph), search, Limits(), nowhere).stats.counters["tests"]
    assert found.stats.counters["tests"] < 0.9 * tests, "lattices find what hubs would visit"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sizes", [MERGING, GIVING], ids=["merging", "giving"])
def test_what_merged_hubs_leave_over_is_continued_by_any_engine(sizes, seed):
    graph, search = tall(seed)[0], Search("fingerprint")
    expected = run(CpuEngine(), graph, search)
    gpu = BitMatrixEngine(EmulatedDevice(seed, n_multiprocessors=4), sizes)
    engines = [gpu, ReferenceEngine(), gpu, CpuEngine()]
    found = deal(engines, graph, search, Limits(seconds=0.0), np.random.default_rng(seed))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)


@pytest.mark.parametrize("seed", SEEDS)
def test_classes_are_weighed_for_sizes_and_filters(seed):
    graph, edges = tall(seed)
    search = Search("count", max_left=150, max_right=5, sizes=True)
    found = run(BitMatrixEngine(DEVICE, MERGING), graph, search)
    sizes = Counter((len(left), len(right)) for left, right in all_pairs(edges) if len(left) <= 150 and len(right) <= 5)
    keys = zip(found.sizes.n_left.tolist(), found.sizes.n_right.tolist(), strict=True)
    assert dict(zip(keys, found.sizes.count.tolist(), strict=True)) == sizes


@pytest.mark.parametrize("limits", [Limits(), Limits(rows=7)], ids=["whole", "rows"])
def test_hubs_that_are_listed_are_not_merged(limits):
    """The members of a class would be missing from the rows."""
    graph, edges = tall(3)
    sizes = MERGING._replace(values=1 << 18)
    found = run(BitMatrixEngine(DEVICE, sizes), graph, Search("list"), limits, np.random.default_rng(1))
    assert sorted(found.rows) == sorted(all_pairs(edges))


def test_a_row_limit_is_kept_where_hubs_would_be_merged():
    graph, search = tall(3)[0], Search("fingerprint")
    expected = run(CpuEngine(), graph, search)
    found = run(BitMatrixEngine(DEVICE, MERGING), graph, search, Limits(rows=7), np.random.default_rng(1))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)


def test_a_search_for_marked_edges_merges_no_hubs():
    """A mark belongs to a base vertex, not to its class."""
    edges = tall(3)[1]
    marks = edges[np.random.default_rng(3).choice(len(edges), 3)]
    graph = marked_graph(edges, marks, "right", (1, 1))
    found = run(BitMatrixEngine(DEVICE, MERGING), graph, Search("count", marked=True))
    assert found.count == len(wanted(edges, marks, (1, 1)))
