"""Twins inside nodes of the GPU engine: base vertices that no candidate tells apart are one bit of a word problem."""

import functools
from collections import Counter

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import HubGraph
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.suite_marked import marked_graph, wanted
from tests.support.emulated import BITMATRIX, DEVICE, everything
from tests.support.oracles import Outcome, all_pairs, deal, graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")

#: With the room that a class of thousands of base vertices needs. Every hub is merged that can be.
MERGING = BITMATRIX["usual"]._replace(list_cap=1 << 14, least_joined=0)
#: The same, and every warp gives parts of its work away whenever another one waits.
GIVING = MERGING._replace(poll=1, give_min=0, warps=16)
#: The same without room for copies of rows, so whoever takes a part of a merged hub merges it anew.
POOR = GIVING._replace(pool=1 << 13)
SEEDS = [4, 10, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (20, 21))]


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


@functools.cache
def known(seed: int) -> tuple[Outcome, float]:
    """What the reference engine finds in a tall graph, and how often the GPU engine tests if it merges no hub."""
    graph, search = tall(seed)[0], Search("fingerprint")
    whole = BitMatrixEngine(DEVICE, MERGING._replace(least_joined=65))  # no hub has so many candidates
    tests = whole.mine(graph, everything(graph), search, Limits(), nowhere).stats.counters["tests"]
    return run(ReferenceEngine(), graph, search), tests


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["count", "fingerprint"])
@pytest.mark.parametrize("sizes", [MERGING, GIVING, POOR], ids=["merging", "giving", "poor"])
def test_merged_hubs_have_the_same_bicliques(sizes, mode, seed):
    graph, search = tall(seed)[0], Search(mode)
    expected, tests = known(seed)
    engine = BitMatrixEngine(EmulatedDevice(seed, n_multiprocessors=4), sizes)
    found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
    assert (found.count, len(found.left_over)) == (expected.count, 0)
    assert mode == "count" or found.fingerprint == expected.fingerprint
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


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("mode", ["count", "fingerprint", "list"])
@pytest.mark.parametrize("narrow", [16, 0], ids=["narrow", "wide"])
def test_base_vertices_of_word_problems_are_joined(narrow, mode, seed):
    """No node is a hub here. Nodes with more base vertices than a lattice has are solved by their classes."""
    edges = random_edges(np.random.default_rng(seed), 45, 14, 0.6)
    graph, search = graph_of(edges, BuildOptions(root_side="right")), Search(mode)
    sizes = GIVING._replace(narrow=narrow, values=1 << 13, records=1 << 8)
    found = run(BitMatrixEngine(EmulatedDevice(seed, n_multiprocessors=4), sizes), graph, search)
    rows = all_pairs(edges)
    assert found.count == len(rows)
    assert mode == "count" or found.fingerprint == run(ReferenceEngine(), graph, Search("fingerprint")).fingerprint
    assert mode != "list" or sorted(found.rows) == sorted(rows)


@pytest.mark.parametrize(("search", "joins"), [(Search("count"), True), (Search("count", marked=True), False)])
def test_lattices_of_classes_take_fewer_visits(search, joins):
    edges = random_edges(np.random.default_rng(1), 45, 14, 0.6)
    graph = marked_graph(edges, edges, "right", (1, 1))
    engine = BitMatrixEngine(DEVICE, MERGING)
    found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
    assert found.count == len(all_pairs(edges))
    assert (found.stats.counters["tests"] < found.count / 4) == joins


def test_twins_of_a_sparse_graph_are_not_merged():
    """Its kernel has nothing of all this, which would cost it some percent."""
    dense, sparse = tall(3)[0], graph_of(random_edges(np.random.default_rng(1), 400, 400, 0.02))
    assert [HubGraph(DEVICE, graph, 1 << 20).is_dense for graph in (dense, sparse)] == [True, False]


@pytest.mark.parametrize("seed", SEEDS)
def test_classes_are_weighed_for_sizes_and_filters(seed):
    graph, edges = tall(seed)
    search = Search("count", max_left=150, max_right=5, sizes=True)
    found = run(BitMatrixEngine(DEVICE, MERGING), graph, search)
    sizes = Counter((len(left), len(right)) for left, right in all_pairs(edges) if len(left) <= 150 and len(right) <= 5)
    keys = zip(found.sizes.n_left.tolist(), found.sizes.n_right.tolist(), strict=True)
    assert dict(zip(keys, found.sizes.count.tolist(), strict=True)) == sizes


@pytest.mark.parametrize("seed", [4, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (10, 20))])
@pytest.mark.parametrize(
    ("sizes", "limits"),
    [
        pytest.param(MERGING, Limits(), id="merging", marks=pytest.mark.exhaustive),
        pytest.param(MERGING, Limits(rows=500), id="limited"),
        pytest.param(GIVING, Limits(), id="giving", marks=pytest.mark.exhaustive),
        pytest.param(POOR, Limits(), id="poor"),
    ],
)
def test_the_rows_of_merged_hubs_have_all_members_of_each_class(sizes, limits, seed):
    """Some of them when the output is full, and nodes that wait to be emitted are left over then."""
    graph, edges = tall(seed)
    engine = BitMatrixEngine(EmulatedDevice(seed, n_multiprocessors=4), sizes._replace(values=1 << 15, records=1 << 9))
    found = run(engine, graph, Search("list"), limits, np.random.default_rng(1))
    assert sorted(found.rows) == sorted(all_pairs(edges))


def test_a_row_limit_is_kept_where_hubs_are_merged():
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
