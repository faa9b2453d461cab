"""The GPU engines on a real device: the whole engine suite, known graphs, and ten thousand random ones."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes, Launch
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import CumbeSizes
from bicliques.kernels.gpu.device import CudaDevice
from bicliques.kernels.graph.prepare import prepare
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas.bicliques import Bicliques, fingerprint, nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.kernels.suite import EngineSuite, Subject
from tests.kernels.suite_largest import LargestSuite
from tests.kernels.suite_marked import MarkedSuite
from tests.kernels.suite_thresholds import ThresholdSuite
from tests.support.known import FOLDERS, GOLDEN, dense_edges, known_graph
from tests.support.known_largest import LARGEST, sizes_of_the_largest
from tests.support.oracles import graph_of, random_edges, run

pytestmark = pytest.mark.gpu

#: Memory in which everything that can overflow does; warps give work away whenever another one waits.
_TIGHT = GpuSizes(
    row_cap=512, list_cap=512, given=1 << 16, left_over=1 << 16, pool=1 << 20, values=1 << 15, records=1 << 12, warps=64
)._replace(poll=1, give_min=0)
SIZES = {
    "ample": GpuSizes(),
    "tightest": _TIGHT,
    "tight": _TIGHT._replace(row_cap=256, narrow=0, warps=32, poll=2, hub_bytes=0),
}


def bitmatrix(sizes: str):
    return lambda: BitMatrixEngine(sizes=SIZES[sizes])


class TestBitMatrixOnDevice(EngineSuite):
    subject = Subject(bitmatrix("ample"), (bitmatrix("tightest"), bitmatrix("tight")))


class TestBitMatrixThatPrunesOnDevice(ThresholdSuite, LargestSuite, MarkedSuite):
    subject = Subject(bitmatrix("ample"), (bitmatrix("tightest"), bitmatrix("tight")), small=True)


_NARROW = CumbeSizes(
    left_over=1 << 14, pool=1 << 18, values=1 << 15, records=1 << 10, blocks=8, shared_ints=256, poll=1
)
CUMBE = {"ample": CumbeSizes(), "tightest": _NARROW._replace(threads=32, shared_ints=0, records=64), "tight": _NARROW}


def cumbe(sizes: str):
    return lambda: CumbeEngine(sizes=CUMBE[sizes])


class TestCumbeOnDevice(EngineSuite):
    subject = Subject(cumbe("ample"), (cumbe("tightest"), cumbe("tight")))


ENGINES = {"bitmatrix": bitmatrix, "cumbe": cumbe}
#: What the paper of cuMBE switches off.
WITHOUT = {"noRS": {"reverse_scan": False}, "noES": {"early_stop": False}, "noWS": {"steal_levels": 1}}


def graph_file(name: str) -> Path:
    path = known_graph(name)
    assert path is not None, f"{name}.parquet is in none of {', '.join(map(str, FOLDERS))}; set BICLIQUES_DATA"
    return path


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(GOLDEN))
def test_known_count_and_fingerprint(name, engine):
    edges = dense_edges(graph_file(name))
    sizes = (int(edges[:, 0].max()) + 1, int(edges[:, 1].max()) + 1)
    graph, _ = prepare(*map(np.ascontiguousarray, edges.T), *sizes, BuildOptions())
    subject = ENGINES[engine]("ample")()
    proven = run(subject, graph, Search("fingerprint"))
    assert (proven.count, proven.fingerprint) == (GOLDEN[name]["bicliques"], int(GOLDEN[name]["fingerprint"]))
    if engine == "bitmatrix":  # its mode count is another kernel
        assert run(subject, graph, Search("count")).count == proven.count


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(("bounds", "count"), [((30, 30), 1542), ((40, 40), 0), ((20, 50), 0)], ids=str)
def test_known_counts_with_thresholds(bounds, count, side):
    """A prototype and the CPU engine count these, too (docs/lab/thresholds.md)."""
    graph = graph_of(dense_edges(graph_file("movielens_100k")), BuildOptions(root_side=side), *bounds)
    search = Search("count", min_left=bounds[0], min_right=bounds[1])
    assert run(bitmatrix("ample")(), graph, search).count == count


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_known_largest_biclique(side):
    graph = graph_of(dense_edges(graph_file("youtube")), BuildOptions(root_side=side), 5, 5)
    search = Search(min_left=5, min_right=5, largest=1)
    work = Subtrees.of_roots(np.arange(graph.n_roots))
    total = bitmatrix("ample")().mine(graph, work, search, Limits(bound=300), nowhere).total
    assert [(len(left), len(right)) for left, right in total.rows.to_pairs()] == [(71, 5)]


@pytest.mark.parametrize(("name", "by", "least", "size"), LARGEST)
def test_the_largest_in_publications(name, by, least, size, tmp_path):
    assert sizes_of_the_largest(name, by, least, "bitmatrix", tmp_path) == ([size] if size else [])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["marvel", "movielens_ut", "dbpedia_locations"])
def test_short_slices_of_a_real_graph_that_are_dealt_anew(name, engine):
    edges = dense_edges(graph_file(name))
    graph = graph_of(edges)
    limits, shuffle = Limits(seconds=0.005), np.random.default_rng(1)
    outcome = run(ENGINES[engine]("ample")(), graph, Search("fingerprint"), limits, shuffle)
    assert (outcome.count, outcome.fingerprint) == (GOLDEN[name]["bicliques"], int(GOLDEN[name]["fingerprint"]))


@pytest.mark.parametrize(
    "eager",
    [
        lambda: BitMatrixEngine(sizes=GpuSizes(poll=1, give_min=0)),
        lambda: CumbeEngine(sizes=CumbeSizes(poll=1, steal_levels=9)),
    ],
    ids=ENGINES,
)
def test_forced_donations_on_a_real_graph(eager):
    graph, known = graph_of(dense_edges(graph_file("movielens_ut"))), GOLDEN["movielens_ut"]
    outcome = run(eager(), graph, Search("fingerprint"))
    assert (outcome.count, outcome.fingerprint) == (known["bicliques"], int(known["fingerprint"]))


def test_the_first_call_of_a_thread_may_be_about_a_kernel(monkeypatch):
    """All memory may come from the pool; the thread has then made no call of the runtime, which gives it a context."""
    device, graph = CudaDevice(), graph_of(random_edges(np.random.default_rng(1), 40, 30, 0.3))
    plan, planned = Launch.plan, []

    def watched(*arguments):
        planned.append(plan(*arguments))
        return planned[-1]

    monkeypatch.setattr(Launch, "plan", watched)
    run(BitMatrixEngine(device), graph, Search("count"))
    (launch,) = planned

    def resident_blocks() -> int:
        with device.active():
            return device.resident_blocks("bitmatrix", launch.defines, 128)

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(resident_blocks).result() > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_of_two_threads_do_not_mix_their_launches(engine):
    graph, known = graph_of(dense_edges(graph_file("movielens_ut"))), GOLDEN["movielens_ut"]

    def mine(subject) -> list[tuple[int, int]]:
        outcomes = [run(subject, graph, Search("fingerprint"), Limits(seconds=0.002)) for _ in range(5)]
        return [(outcome.count, outcome.fingerprint) for outcome in outcomes]

    with ThreadPoolExecutor(2) as threads:  # both have the same kernel, which has one parameter block
        for outcomes in threads.map(mine, [ENGINES[engine]("ample")() for _ in range(2)]):
            assert outcomes == [(known["bicliques"], int(known["fingerprint"]))] * 5


@pytest.mark.parametrize("without", WITHOUT)
def test_cumbe_without_an_optimisation(without):
    graph, known = graph_of(dense_edges(graph_file("marvel"))), GOLDEN["marvel"]
    outcome = run(CumbeEngine(sizes=CumbeSizes()._replace(**WITHOUT[without])), graph, Search("fingerprint"))
    assert (outcome.count, outcome.fingerprint) == (known["bicliques"], int(known["fingerprint"]))


def many_graphs(n: int) -> list[np.ndarray]:
    """Random graphs of up to 64 x 64 vertices, the denser the smaller."""
    rng = np.random.default_rng(20261121)
    graphs = []
    for _ in range(n):
        n_left, n_right = (int(x) for x in rng.integers(1, 65, 2))
        density = min(0.9, float(rng.uniform(0.5, 6)) / min(n_left, n_right))
        edges = random_edges(rng, n_left, n_right, density)
        _, left = np.unique(edges[:, 0], return_inverse=True)
        _, right = np.unique(edges[:, 1], return_inverse=True)
        graphs.append(np.column_stack([left, right]).astype(np.int32))
    return graphs


def by_definition(edges: np.ndarray) -> set:
    return set(run(ReferenceEngine(), graph_of(edges), Search("list")).rows)


@pytest.fixture(scope="module")
def batch():
    """Ten thousand graphs, and the bicliques of each by definition."""
    graphs = many_graphs(10_000)
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as processes:
        return graphs, list(processes.map(by_definition, graphs, chunksize=100))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("engine", ENGINES)
def test_ten_thousand_random_graphs_in_one_batch(engine, side, batch):
    """Their disjoint union in one launch: every biclique of it belongs to one of them."""
    graphs, truths = batch
    starts = np.cumsum([np.zeros(2, np.int64), *(g.max(axis=0) + 1 for g in graphs)], axis=0)
    union = np.concatenate([g + start for g, start in zip(graphs, starts[:-1], strict=True)]).astype(np.int32)
    graph = graph_of(union, BuildOptions(root_side=side))
    found = run(ENGINES[engine]("ample")(), graph, Search("list"))
    assert found.fingerprint == fingerprint(Bicliques.from_pairs(found.rows))
    expected = run(CpuEngine(), graph, Search("fingerprint"))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
    assert found.count == sum(map(len, truths))
    by_graph: list[set] = [set() for _ in graphs]
    owners = np.searchsorted(starts[1:, 0], [left[0] for left, _ in found.rows], side="right")
    for at, (left, right) in zip(owners.tolist(), found.rows, strict=True):
        first_left, first_right = starts[at].tolist()
        by_graph[at].add((tuple(u - first_left for u in left), tuple(v - first_right for v in right)))
    assert by_graph == truths
