"""Counts by size equal those of the listed bicliques, in every mode, also in pieces, and with twins."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import USUAL, Sizes
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import CumbeSizes
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.work import Subtrees
from tests.emulation import device as emulated
from tests.emulation.device import EmulatedDevice
from tests.support.oracles import graph_of, random_edges, run

MODES = ("count", "fingerprint", "list")
GPU_ENGINES = [
    (BitMatrixEngine, GpuSizes(row_cap=1024, list_cap=2048, given=4096, warps=8)),
    (CumbeEngine, CumbeSizes(pool=1 << 18, threads=64, min_blocks=1, lanes=8)),
]


def sizes_of(rows: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> SizeCounts:
    return SizeCounts.of(*(np.array([len(row[side]) for row in rows], np.int32) for side in (0, 1)))


def with_twins(rng: np.random.Generator) -> np.ndarray:
    """Edges of a random graph in which some vertices of both sides have twins."""
    edges = random_edges(rng, 60, 14, 0.35)
    lefts, rights = (np.sort(rng.integers(0, edges[:, side].max() + 1, 90)) for side in (0, 1))
    pairs = {(int(u), int(v)) for u, v in edges}
    there = [(i, j) for i, u in enumerate(lefts) for j, v in enumerate(rights) if (int(u), int(v)) in pairs]
    return np.array(there, np.int32)


def hubs(rng: np.random.Generator) -> np.ndarray:
    """Edges of a graph with some 700 left members per root, more than the table of sizes has."""
    return random_edges(rng, 1000, 7, 0.7)


def test_sizes_are_counted_within_the_most_of_each_side():
    graph = graph_of(with_twins(np.random.default_rng(5)), BuildOptions())
    search = Search("count", sizes=True, max_left=9)
    rows = [row for row in run(CpuEngine(), graph, Search("list")).rows if len(row[0]) <= 9]
    assert run(CpuEngine(), graph, search).sizes == sizes_of(rows)
    assert sum(len(row[1]) > 9 for row in rows) > 0


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("make", [with_twins, hubs])
@pytest.mark.parametrize("mode", MODES)
def test_sizes_are_those_of_the_listed_bicliques(side, make, mode):
    graph = graph_of(make(np.random.default_rng(5)), BuildOptions(root_side=side))
    listed = run(CpuEngine(), graph, Search("list"))
    outcome = run(CpuEngine(), graph, Search(mode, sizes=True))
    assert outcome.sizes == sizes_of(listed.rows)
    assert outcome.count == listed.count
    if mode != "count":
        assert outcome.fingerprint == listed.fingerprint


def test_the_graphs_have_the_sizes_that_are_to_be_tested():
    twins = graph_of(with_twins(np.random.default_rng(5)))
    assert len(twins.root_members) > twins.n_roots
    assert len(twins.base_members) > twins.n_base
    sizes = run(CpuEngine(), graph_of(hubs(np.random.default_rng(5))), Search("count", sizes=True)).sizes
    assert sizes.n_left.max() >= USUAL
    assert sizes.n_left.min() < USUAL


@given(st.integers(0, 2**32), st.sampled_from(MODES), st.integers(1, 4), st.integers(1, 4))
def test_the_reference_engine_counts_the_same_sizes(seed, mode, min_left, min_right):
    edges = random_edges(np.random.default_rng(seed), 9, 8, 0.5)
    graph = graph_of(edges, None, min_left, min_right)
    search = Search(mode, min_left=min_left, min_right=min_right, max_left=7, sizes=True)
    found = [run(engine, graph, search).sizes for engine in (ReferenceEngine(), CpuEngine())]
    listed = run(ReferenceEngine(), graph, Search("list", min_left=min_left, min_right=min_right, max_left=7))
    assert found[0] == found[1] == sizes_of(listed.rows)


@pytest.mark.parametrize("limits", [Limits(seconds=0.0), Limits(rows=7), Limits(seconds=0.001, rows=50)])
def test_sizes_are_counted_in_pieces_with_tiny_buffers(limits):
    rng = np.random.default_rng(8)
    for make in (with_twins, hubs):
        graph = graph_of(make(rng))
        whole = run(CpuEngine(), graph, Search("count", sizes=True))
        tight = CpuEngine(Sizes(hub_bits=64, word_stack=64, rows=3, members=10, odd=1))
        for mode in MODES:
            outcome = run(tight, graph, Search(mode, sizes=True), limits, rng)
            assert outcome.slices > 1 or limits.rows is None
            assert (outcome.count, outcome.sizes) == (whole.count, whole.sizes)


def test_no_sizes_are_counted_unless_asked_for():
    graph = graph_of(random_edges(np.random.default_rng(1), 8, 8, 0.5))
    for engine in (CpuEngine(), ReferenceEngine()):
        work = Subtrees.of_roots(np.arange(graph.n_roots))
        assert engine.mine(graph, work, Search("count"), Limits(), nowhere).total.sizes is None


def test_size_counts_are_merged_and_survive_json():
    one = SizeCounts.of(np.array([3, 1, 3]), np.array([2, 5, 2]))
    assert (one.n_left.tolist(), one.n_right.tolist(), one.count.tolist()) == ([1, 3], [5, 2], [1, 2])
    both = SizeCounts.merge(
        [one, SizeCounts.of(np.array([3, 70_000]), np.array([2, 2**31 - 1]), np.array([10, 2**40]))]
    )
    assert both.count.tolist() == [1, 12, 2**40]
    assert both.n_right.tolist() == [5, 2, 2**31 - 1]
    for counts in (both, SizeCounts.empty()):
        assert SizeCounts.from_json(counts.to_json()) == counts
    assert SizeCounts.merge([]) == SizeCounts.empty() == SizeCounts.merge([SizeCounts.empty(), SizeCounts.empty()])
    assert SizeCounts.of(np.array([1]), np.array([1]), np.array([0])) == SizeCounts.empty()
    for damaged in ({}, both.to_json() | {"count": [1]}, both.to_json() | {"n_left": ["x"] * 3}):
        with pytest.raises(IncompleteError, match="counts by size are damaged"):
            SizeCounts.from_json(damaged)


@pytest.mark.skipif(emulated.why_not() is not None, reason=str(emulated.why_not()))
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("engine", "sizes"), GPU_ENGINES)
def test_the_gpu_engines_count_the_same_sizes(side, engine, sizes):
    graph = graph_of(with_twins(np.random.default_rng(5)), BuildOptions(root_side=side))
    expected = run(CpuEngine(), graph, Search("count", sizes=True))
    outcome = run(engine(EmulatedDevice(), sizes), graph, Search("count", sizes=True), Limits(seconds=0.05))
    assert outcome.sizes == expected.sizes
    assert outcome.count == expected.count
    tiny = run(engine(EmulatedDevice(), sizes._replace(size_slots=8)), graph, Search("count", sizes=True))
    assert tiny.count == expected.count
    assert tiny.sizes == expected.sizes, "a table of sizes that is too short must grow"
