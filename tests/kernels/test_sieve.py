"""The sieve of the CUDA engine where the suites do not go: filters in parts, rows of two words, ties with a bound."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.bitmatrix.engine import BitMatrixEngine
from kernels.cpu.engine import CpuEngine
from schemas.bicliques import Bicliques
from schemas.emit import nowhere
from schemas.options import BuildOptions
from schemas.search import MEASURES, Limits, Search
from schemas.totals import Best
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.suite_largest import first_of
from tests.support.emulated import BITMATRIX, DEVICE, everything
from tests.support.oracles import graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")


def planted(rng: np.random.Generator, n_bicliques: int) -> np.ndarray:
    """Edges of a sparse graph with 3,000 right vertices of degree 6, some of which are in bicliques of 80 x 6."""
    sparse = np.column_stack([rng.integers(0, 200, 18_000), np.repeat(np.arange(3000), 6)])
    dense = [
        np.stack(np.meshgrid(rng.choice(200, 80, False), rng.choice(3000, 6, False)), -1).reshape(-1, 2)
        for _ in range(n_bicliques)
    ]
    return np.unique(np.concatenate([sparse, *dense]), axis=0).astype(np.int32)


def test_a_filter_in_several_parts_loses_no_candidate():
    """A root meets thousands of others, and a launch has room for 64 rows and for 2,048 counters at a time."""
    edges = planted(np.random.default_rng(2), 12)
    graph = graph_of(edges, BuildOptions(root_side="right"))
    search = Search("count", min_left=30, min_right=4)
    found = run(BitMatrixEngine(DEVICE, BITMATRIX["oversize"]._replace(list_cap=2048)), graph, search)
    expected = run(CpuEngine(), graph, search)
    assert found.count == expected.count
    assert expected.count >= 12


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_packed_into_two_words_keep_their_bits(seed):
    edges = random_edges(np.random.default_rng(seed), 600, 13, 0.55)
    graph = graph_of(edges, BuildOptions(root_side="right"))
    search = Search("fingerprint", min_left=20, min_right=4)
    found, expected = (run(engine, graph, search) for engine in (BitMatrixEngine(DEVICE), CpuEngine()))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
    assert found.count > 100


@pytest.mark.parametrize("by", MEASURES)
def test_what_just_reaches_the_bound_is_found(by):
    """The bound is the measure of a row, and all rows with the same measure are wanted."""
    rng, engine = np.random.default_rng(len(by)), BitMatrixEngine(EmulatedDevice(3), BITMATRIX["usual"])
    for _ in range(60):
        edges = random_edges(rng, *(int(n) for n in rng.integers(6, 14, 2)), float(rng.uniform(0.3, 0.8)))
        graph = graph_of(edges, BuildOptions(root_side=str(rng.choice(["left", "right"]))))  # type: ignore[arg-type]
        rows = run(CpuEngine(), graph, Search("list")).rows
        search = Search(largest=len(rows), by=by)
        bound = first_of(rows, Search(largest=1 + int(rng.integers(min(3, len(rows)))), by=by)).least
        total = engine.mine(graph, everything(graph), search, Limits(bound=bound), nowhere).total
        assert isinstance(total, Best)
        expected = Best.of(len(rows), by, Bicliques.from_pairs(rows), bound)
        assert total.rows.to_pairs() == expected.rows.to_pairs()


@pytest.mark.parametrize("seed", range(3))
def test_rows_with_few_bits_lose_no_base_vertex(seed):
    """A biclique of 80 x 6, half of whose left vertices have no other neighbour, among rows of three bits."""
    rng = np.random.default_rng(seed)
    block = np.stack(np.meshgrid(np.arange(80), np.arange(6)), -1).reshape(-1, 2)
    few = np.column_stack(
        [rng.permuted(np.tile(np.arange(40), (300, 1)), axis=1)[:, :3].ravel(), np.repeat(np.arange(6, 306), 3)]
    )
    edges = np.unique(np.concatenate([block, few]), axis=0).astype(np.int32)
    graph = graph_of(edges, BuildOptions(root_side="right"), 3, 6)
    search = Search("fingerprint", min_left=3, min_right=6)
    found, expected = (run(engine, graph, search) for engine in (BitMatrixEngine(DEVICE), CpuEngine()))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
    assert found.count > 1
