"""The sieve of the CUDA engine where the suites do not go: filters in parts, rows of two words, ties with a bound."""

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.schemas.bicliques import Bicliques, nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import MEASURES, Limits, Search
from bicliques.schemas.totals import Best
from bicliques.schemas.work import Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.suite_largest import first_of
from tests.support.emulated import BITMATRIX, DEVICE, everything
from tests.support.oracles import graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")


def planted(rng: np.random.Generator, n_left: int, n_right: int, n_bicliques: int) -> np.ndarray:
    """Edges of a sparse graph whose right vertices have degree 6, and some of them are in bicliques of 80 x 6."""
    sparse = np.column_stack([rng.integers(0, n_left, 6 * n_right), np.repeat(np.arange(n_right), 6)])
    dense = [
        np.stack(np.meshgrid(rng.choice(n_left, 80, False), rng.choice(n_right, 6, False)), -1).reshape(-1, 2)
        for _ in range(n_bicliques)
    ]
    return np.unique(np.concatenate([sparse, *dense]), axis=0).astype(np.int32)


@pytest.mark.parametrize(("n_left", "n_right"), [(200, 6000), (2000, 16_000)], ids=["ranks", "filter"])
def test_counters_in_several_parts_lose_no_candidate(n_left, n_right):
    """A launch has room for 128 rows and for 4,096 counters at a time, and a root meets more others than that.

    Of 6,000 roots each has a counter. Of 16,000 few are met, so that several of them share a counter.
    """
    edges = planted(np.random.default_rng(2), n_left, n_right, 12)
    graph = graph_of(edges, BuildOptions(root_side="right", order="id"))
    search = Search("fingerprint", min_left=30, min_right=4)
    found = run(BitMatrixEngine(DEVICE, BITMATRIX["oversize"]._replace(row_cap=128, list_cap=2048)), graph, search)
    expected = run(CpuEngine(), graph, search)
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
    assert expected.count >= 12


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_rows_that_are_packed_into_two_words_keep_their_bits(seed):
    edges = random_edges(np.random.default_rng(seed), 400, 12, 0.55)
    graph = graph_of(edges, BuildOptions(root_side="right"))
    search = Search("fingerprint", min_left=20, min_right=4)
    found, expected = (run(engine, graph, search) for engine in (BitMatrixEngine(DEVICE), CpuEngine()))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
    assert found.count > 100


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
@pytest.mark.parametrize("by", MEASURES)
def test_what_just_reaches_the_bound_is_found(by, seed):
    """The bound is the measure of a row, and all rows with the same measure are wanted."""
    rng, engine = np.random.default_rng([len(by), seed]), BitMatrixEngine(EmulatedDevice(3), BITMATRIX["usual"])
    for _ in range(20):
        edges = random_edges(rng, *(int(n) for n in rng.integers(6, 14, 2)), float(rng.uniform(0.3, 0.8)))
        graph = graph_of(edges, BuildOptions(root_side=str(rng.choice(["left", "right"]))))
        rows = run(CpuEngine(), graph, Search("list")).rows
        search = Search(largest=len(rows), by=by)
        bound = first_of(rows, Search(largest=1 + int(rng.integers(min(3, len(rows)))), by=by)).least
        total = engine.mine(graph, everything(graph), search, Limits(bound=bound), nowhere).total
        assert isinstance(total, Best)
        expected = Best.of(len(rows), by, Bicliques.from_pairs(rows), bound)
        assert total.rows.to_pairs() == expected.rows.to_pairs()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_rows_with_few_bits_lose_no_base_vertex(seed):
    """Most children of the roots with 79 left vertices have eight of them, in two words."""
    rng = np.random.default_rng(seed)
    block = np.stack(np.meshgrid(np.arange(80), np.arange(6)), -1).reshape(-1, 2)
    block = block[block[:, 0] != block[:, 1]]
    few = rng.permuted(np.tile(np.arange(6, 80), (300, 1)), axis=1)[:, :8].ravel()
    rows = np.column_stack([few, np.repeat(np.arange(6, 306), 8)])
    edges = np.unique(np.concatenate([block, rows]), axis=0).astype(np.int32)
    graph = graph_of(edges, BuildOptions(root_side="right", order="id"), 3, 9)
    search = Search("fingerprint", min_left=3, min_right=9)
    found, expected = (run(engine, graph, search) for engine in (BitMatrixEngine(DEVICE), CpuEngine()))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
    assert found.count > 1


def test_a_root_that_holds_more_than_a_narrow_counter_can_count():
    """With so many roots, shared memory has room for counters of eight bits, and two roots share 300 vertices."""
    rng = np.random.default_rng(4)
    few = np.column_stack([rng.integers(0, 320, 3 * 2008), np.repeat(np.arange(2, 2010), 3)])
    many = np.concatenate([np.column_stack([np.arange(10 * k, 10 * k + 310), np.full(310, k)]) for k in (0, 1)])
    edges = np.unique(np.concatenate([few, many]), axis=0).astype(np.int32)
    graph = graph_of(edges, BuildOptions(root_side="right"))
    assert graph.n_roots > 1984
    assert run(BitMatrixEngine(DEVICE), graph, Search("count", min_left=100, min_right=2)).count == 1


def test_children_opened_one_by_one_stay_together_when_a_slice_ends():
    """A root has 59 candidates and 2,400 base vertices, for whose bits a warp has no room. As nodes of their own, its
    children would have copies of 1,200 candidates after the first slice."""
    edges = random_edges(np.random.default_rng(6), 8000, 60, 0.3)
    graph = graph_of(edges, BuildOptions(root_side="right", order="id"))
    search = Search("fingerprint", min_left=100, min_right=3)
    engine = BitMatrixEngine(EmulatedDevice(5), BITMATRIX["oversize"]._replace(row_cap=128, list_cap=4096, warps=8))
    work, count, fingerprint, most = Subtrees.of_roots(np.zeros(1, np.int32)), 0, 0, 0
    expected = CpuEngine().mine(graph, work, search, Limits(), nowhere)
    while len(work):
        part = engine.mine(graph, work, search, Limits(rows=expected.count // 3), nowhere)
        count, fingerprint = count + part.count, (fingerprint + (part.fingerprint or 0)) % 2**64
        work = part.left_over
        most = max(most, len(work.candidates))
    assert (count, fingerprint) == (expected.count, expected.fingerprint)
    assert expected.count > 1000
    assert 0 < most < 600


def test_a_count_with_thresholds_ends_at_its_limit():
    graph = graph_of(random_edges(np.random.default_rng(0), 40, 13, 0.5), BuildOptions())
    found = BitMatrixEngine(DEVICE).mine(graph, everything(graph), Search("count", min_left=2), Limits(rows=7), nowhere)
    assert found.count == 7


def test_a_count_with_one_threshold_is_that_of_the_list():
    graph = graph_of(random_edges(np.random.default_rng(3), 30, 25, 0.5))
    listed = run(CpuEngine(), graph, Search("list")).rows
    assert run(CpuEngine(), graph, Search("count", min_right=5)).count == sum(len(right) >= 5 for _, right in listed)
