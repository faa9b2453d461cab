"""The GPU engines pass the tests of every engine, on a CPU that runs their kernels thread by thread."""

import functools
import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from bicliques.kernels.bitmatrix import engine as gpu_engine
from bicliques.kernels.bitmatrix import items
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.items import subtrees_of
from bicliques.kernels.bitmatrix.kind import KIND
from bicliques.kernels.bitmatrix.layout import ITEM, PATH
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import PHASES
from bicliques.kernels.gpu.records import NOBODY
from bicliques.kernels.reference.engine import ReferenceEngine
from bicliques.schemas import bicliques
from bicliques.schemas.bicliques import emit_to, nowhere
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import EVERYTHING, Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.suite import SIDES, EngineSuite, Subject, edges_of, truth_of
from tests.kernels.suite_largest import LargestSuite
from tests.kernels.suite_marked import MarkedSuite
from tests.kernels.suite_near import LargestNearSuite, NearSuite, questions
from tests.kernels.suite_thresholds import ThresholdSuite
from tests.support.bands import band
from tests.support.emulated import BITMATRIX, BLOCKS, CUMBE, DEVICE, bitmatrix, cumbe, everything
from tests.support.near import near_graph
from tests.support.oracles import graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")


@pytest.mark.values(3)
class TestBitMatrixEngine(EngineSuite, ThresholdSuite, LargestSuite, MarkedSuite):
    subject = Subject(bitmatrix("usual"), (bitmatrix("tightest"), bitmatrix("tight")), small=True)

    marked_cases = 100

    def test_an_emit_with_device_arrays_gets_the_same_bicliques(self, shape, truth):
        rows = []

        def emit(batch):
            assert all(isinstance(array, np.ndarray) for array in batch.arrays.values())
            rows.extend(batch.to_pairs())

        graph = graph_of(shape, BuildOptions())
        found = bitmatrix("tightest")().mine(
            graph, everything(graph), Search("list"), Limits(), emit_to(emit, on_device=True)
        )
        assert len(found.left_over) == 0
        assert sorted(rows) == sorted(truth.rows)

    def test_an_emit_with_device_arrays_gets_the_largest_of_a_batch_first(self, monkeypatch):
        """So readers of large bicliques skip most of a file."""
        monkeypatch.setattr(bicliques, "BLOCK_ROWS", 20)
        batches, rows, engine = [], [], bitmatrix("usual")
        graph = graph_of(edges_of("words", True))
        for emit in (emit_to(batches.append, on_device=True), emit_to(rows.append)):
            engine().mine(graph, everything(graph), Search("list"), Limits(), emit)
        sizes = [[(len(left), len(right)) for left, right in batch.to_pairs()] for batch in batches]
        assert max(map(len, sizes)) > 40
        for own in sizes:
            for start in range(20, len(own), 20):
                assert min(own[:start]) >= max(own[start:])
        assert sorted(pair for batch in batches for pair in batch.to_pairs()) == sorted(
            pair for batch in rows for pair in batch.to_pairs()
        )

    def test_the_host_packs_when_the_device_has_no_room(self, monkeypatch):
        def full(*arguments):
            raise MemoryError

        monkeypatch.setattr("bicliques.kernels.gpu.slice_run.pack", full)
        edges = edges_of("words", True)
        outcome, truth = run(bitmatrix("usual")(), graph_of(edges), Search("list")), truth_of("words", True)
        assert sorted(outcome.rows) == sorted(truth.rows)

    @pytest.mark.parametrize(("values", "records"), [(1 << 14, 256), (1 << 16, 256), (1 << 16, 250)])
    def test_output_may_become_full_in_the_middle_of_a_lattice(self, values, records):
        """Every root has at most ten neighbours, so it is a lattice. 256 records are four chunks, one per warp.

        Of 250 the last ones are no chunk, so they hold what was in the memory before.
        """
        graph = graph_of(random_edges(np.random.default_rng(3), 10, 300, 0.5))
        sizes = BITMATRIX["usual"]._replace(warps=4, records=records, values=values)
        rows = []
        engine, truth = BitMatrixEngine(DEVICE, sizes), run(CpuEngine(), graph, Search("list"))
        found = engine.mine(
            graph, everything(graph), Search("list"), Limits(), emit_to(lambda b: rows.extend(b.to_pairs()))
        )
        assert found.stats.launches > 1
        assert sorted(rows) == sorted(truth.rows)
        assert (found.count, found.fingerprint) == (truth.count, truth.fingerprint)

    @pytest.mark.parametrize("wanted", [1, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (2, 10)), 40])
    def test_what_a_launch_emits_raises_its_bound_also_for_several(self, wanted):
        graph = graph_of(random_edges(np.random.default_rng(0), 60, 40, 0.5))
        engine, search = BitMatrixEngine(DEVICE, BITMATRIX["usual"]._replace(records=1 << 14)), Search(largest=wanted)
        found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
        truth = run(CpuEngine(), graph, search)
        assert found.stats.launches == 1
        assert (found.total.count, found.total.fingerprint) == (wanted, truth.fingerprint)
        assert found.total.seen < 200 + 50 * wanted, "all bicliques are emitted where the bound does not rise"

    @pytest.mark.parametrize(
        "sizes",
        [
            {"least_sifted": 0, "many_roots": 1 << 30},
            {"least_sifted": 0, "many_roots": 0},
            {"least_sifted": 1 << 20, "many_roots": 1 << 30},
        ],
        ids=["sifted", "sifted much", "whole"],
    )
    @pytest.mark.parametrize(
        ("n_left", "n_right", "density", "roots"),
        [(400, 300, 0.1, [100, 250]), (400, 900, 0.1, [300, 750]), (800, 192, 0.125, [0, 1])],
        ids=["small table", "large table", "children of hubs"],
    )
    def test_sifted_rows_are_those_that_matter(self, n_left, n_right, density, roots, sizes, monkeypatch):
        """A problem has some 270, 870 and 150 rows. Those of hubs have members of the closure before their own root."""
        monkeypatch.setattr(items, "FEW_ITEMS", 1)  # a range has all ranks behind its root, as in a large graph
        monkeypatch.setattr(items, "LONG_CHUNK", 1 << 20)
        edges = random_edges(np.random.default_rng(7), n_left, n_right, density)
        graph = graph_of(edges, BuildOptions(root_side="right"))
        engine = BitMatrixEngine(DEVICE, BITMATRIX["usual"]._replace(roots_per_wedge=0, **sizes))
        rows = {"ours": [], "theirs": []}
        for name, own in (("ours", engine), ("theirs", CpuEngine())):
            emit = emit_to(lambda batch, name=name: rows[name].extend(batch.to_pairs()))
            own.mine(graph, Subtrees.of_roots(np.array(roots)), Search("list"), Limits(), emit)
        assert len(rows["theirs"]) > 100
        assert sorted(rows["ours"]) == sorted(rows["theirs"])

    def test_problems_that_may_have_more_rows_than_room_are_sifted(self):
        """The problems of these roots meet some 900 others, a tenth of them at least twice, and have room for 256."""
        graph = graph_of(random_edges(np.random.default_rng(3), 2600, 4000, 0.01), BuildOptions(root_side="right"))
        roots = Subtrees.of_roots(np.arange(1900, 1910))
        found = bitmatrix("tight")().mine(graph, roots, Search("count"), Limits(), nowhere)
        assert found.count == CpuEngine().mine(graph, roots, Search("count"), Limits(), nowhere).count
        assert found.stats.launches == 1, "no problem was set aside for a launch with more room"

    def test_rows_that_only_cover_a_base_vertex_are_not_visited(self):
        """Most roots of this graph share one base vertex or none, so most candidates lead to dead nodes."""
        graph = graph_of(random_edges(np.random.default_rng(4), 300, 300, 0.06), BuildOptions(root_side="right"))
        found = bitmatrix("usual")().mine(graph, everything(graph), Search("count"), Limits(), nowhere)
        truth = CpuEngine().mine(graph, everything(graph), Search("count"), Limits(), nowhere)
        assert found.count == truth.count
        assert found.stats.counters["tests"] < 20_000  # 28,826 when they were

    def test_warps_share_a_dense_graph(self):
        """The graph has few roots and few rows, and most of its bicliques lie below a few of the roots."""
        graph = graph_of(random_edges(np.random.default_rng(2), 40, 24, 0.75))
        engine = BitMatrixEngine(EmulatedDevice(3, n_multiprocessors=4), BITMATRIX["usual"]._replace(warps=16))
        found = engine.mine(graph, everything(graph), Search("count"), Limits(), nowhere)
        assert found.count == CpuEngine().mine(graph, everything(graph), Search("count"), Limits(), nowhere).count
        assert found.stats.counters["given"] > 16
        assert found.stats.busy_ratio > 0.55  # this was 0.34 when the number of rows was the weight of a child

    @pytest.mark.parametrize("sizes", ["tightest", "tight"], ids=["by rows", "by columns"])
    def test_levels_are_given_away_with_their_rows(self, sizes):
        """A warp that takes one has its base vertices, its closure and its rows from a copy, and walks no wedges."""
        graph = graph_of(random_edges(np.random.default_rng(2), 26, 15, 0.7))
        device = EmulatedDevice(3, n_multiprocessors=4)
        engine = BitMatrixEngine(device, BITMATRIX[sizes]._replace(warps=16))
        found, truth = (run(each, graph, Search("fingerprint")) for each in (engine, CpuEngine()))
        assert (found.count, found.fingerprint) == (truth.count, truth.fingerprint)
        counted = engine.mine(graph, everything(graph), Search("count"), Limits(), nowhere)
        assert counted.count == truth.count
        assert (counted.stats.launches, engine._memory is None) == (1, False)
        given = device.read(engine._memory["given"], ITEM, 0, int(counted.stats.counters["given"]))
        assert np.count_nonzero((given["kind"] == PATH) & (given["closure_at"] != NOBODY)) > 16

    def test_hubs_are_begun_before_they_are_given_away(self):
        """Otherwise two candidates of a large root may go from one waiting warp to the next until the room is used up.

        Whether they do depends on the order in which warps run. With about every third of these seeds they did.
        """
        sizes = BITMATRIX["usual"]._replace(warps=16, poll=1, give_min=0, given=1 << 14)
        for seed in range(8):
            graph = graph_of(random_edges(np.random.default_rng(seed), 200, 12, 0.6), BuildOptions(root_side="right"))
            engine = BitMatrixEngine(EmulatedDevice(seed, n_multiprocessors=4), sizes)
            found = engine.mine(graph, everything(graph), Search("count"), Limits(), nowhere)
            assert found.stats.counters["given"] < found.stats.counters["tests"]

    @pytest.mark.exhaustive
    def test_slices_search_no_more_than_one_launch_does(self):
        """A slice writes the candidates of hubs down as lists, and these are sorted like ranges."""
        graph = graph_of(random_edges(np.random.default_rng(1), 250, 50, 0.35), BuildOptions(root_side="right"))
        engine, work, tests, slices = bitmatrix("usual")(), everything(graph), 0.0, 0
        whole = engine.mine(graph, work, Search("count"), Limits(), nowhere)
        while len(work):
            part = engine.mine(graph, work, Search("count"), Limits(seconds=0.0), nowhere)
            work, tests, slices = part.left_over, tests + part.stats.counters["tests"], slices + 1
        assert slices > 20
        assert tests < 1.05 * whole.stats.counters["tests"]  # the factor was 1.2 when lists were not sorted

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("rows", [None, 50])
    def test_problems_larger_than_a_launch_allows_run_in_another(self, shape, truth, side, rows):
        rng = np.random.default_rng(5)
        graph = graph_of(shape, BuildOptions(root_side=side))
        outcome = run(bitmatrix("oversize")(), graph, Search("list"), Limits(rows=rows), shuffle=rng)
        assert (outcome.count, outcome.fingerprint) == (truth.count, truth.fingerprint)
        assert sorted(outcome.rows) == sorted(truth.rows)

    def test_larger_problems_make_progress_in_short_slices(self):
        graph = graph_of(edges_of("wide hubs", True), BuildOptions(root_side="left"))
        engine, work, slices = bitmatrix("oversize")(), everything(graph), 0
        while len(work):
            work = engine.mine(graph, work, Search("count"), Limits(seconds=0.0), nowhere).left_over
            slices += 1
            assert slices < 100


@pytest.mark.values
class TestNearBicliquesOfTheBitMatrixEngine(NearSuite, LargestNearSuite):
    subject = Subject(bitmatrix("usual"), (bitmatrix("tightest"), bitmatrix("tight")), small=True)

    near_cases = 30
    largest_cases = 50

    def test_nodes_are_given_away_with_their_bit_rows(self):
        """A warp that takes one begins at once. To open it anew takes a walk over edges."""
        device = EmulatedDevice(3, n_multiprocessors=4)
        engine = BitMatrixEngine(device, BITMATRIX["usual"]._replace(warps=16, poll=1, give_min=0))
        graph, search, truth = _near_question(20)
        found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
        assert (found.count, found.fingerprint) == (truth.count, truth.fingerprint)
        assert found.stats.launches == 1
        given = device.read(engine._memory["given"], ITEM, 0, int(found.stats.counters["given"]))
        assert np.count_nonzero(given["closure_at"] != NOBODY) > 16
        assert np.count_nonzero(given["bound"] > 0) > 0, "one copy serves for children that are given away later"

    @pytest.mark.parametrize("row_cap", [2, 6])
    def test_problems_without_room_are_opened_anew_or_go_to_another_launch(self, row_cap):
        engine = BitMatrixEngine(DEVICE, BITMATRIX["usual"]._replace(row_cap=row_cap))
        graph, search, truth = _near_question(16)
        found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
        assert (found.count, found.fingerprint) == (truth.count, truth.fingerprint)
        assert found.stats.launches > 1 if row_cap == 2 else found.stats.counters["given"] > 100

    def test_problems_that_fit_on_no_device_are_mined_by_the_cpu_engine(self, monkeypatch):
        monkeypatch.setattr(BitMatrixEngine, "can_grow", lambda self, level, form: False)
        engine = BitMatrixEngine(DEVICE, BITMATRIX["usual"]._replace(row_cap=2))
        graph, search, truth = _near_question(16)
        found = engine.mine(graph, everything(graph), search, Limits(), nowhere)
        assert (found.count, found.fingerprint) == (truth.count, truth.fingerprint)
        assert found.stats.cpu_nodes > 0

    @pytest.mark.parametrize("other", [CpuEngine, ReferenceEngine])
    def test_it_continues_what_another_engine_has_left_over(self, other):
        graph, search, truth = _near_question(12)
        engines, work, count, total, turn = (bitmatrix("tightest")(), other()), everything(graph), 0, 0, 0
        while len(work):
            found = engines[turn % 2].mine(graph, work, search, Limits(rows=max(1, truth.count // 9)), nowhere)
            count, total = count + found.count, (total + found.fingerprint) % 2**64
            work, turn = found.left_over, turn + 1
        assert (count, total) == (truth.count, truth.fingerprint)
        assert turn > 4

    def test_the_host_unpacks_missing_pairs_when_the_device_has_no_room(self, monkeypatch):
        def full(*arguments):
            raise MemoryError

        batches = [[], []]
        graph, search, truth = _near_question(12)
        for rows in batches:
            emit = emit_to(
                lambda found, rows=rows: rows.extend(zip(found.ids.tolist(), found.missing.tolist(), strict=True))
            )
            bitmatrix("usual")().mine(graph, everything(graph), replace(search, mode="list"), Limits(), emit)
            monkeypatch.setattr("bicliques.kernels.gpu.slice_run.pack", full)
        assert sorted(batches[0]) == sorted(batches[1])
        assert len(batches[0]) == truth.count > 10
        assert all(missing == 1 for _, missing in batches[0])


@functools.cache
def _near_question(n: int):
    """A graph of n x n vertices, a search for its groups with one missing pair, and how many there are."""
    graph = near_graph(random_edges(np.random.default_rng(5), n, n, 0.5), questions(1, 1)[0])
    search = replace(questions(1, 1)[0], mode="fingerprint", min_left=3, min_right=3)
    return graph, search, run(CpuEngine(), graph, search)


def sparse_hubs(n_roots: int, seed: int) -> np.ndarray:
    """Edges of a graph in which roots have some 80 neighbours, and most pairs of roots have no common neighbour."""
    rng = np.random.default_rng(seed)
    edges = {(u, int(v)) for u in range(32 * n_roots) for v in rng.integers(0, n_roots, 2 + u % 2)}
    return np.array(sorted(edges), dtype=np.int32)


@pytest.mark.values
@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("limits", [Limits(), Limits(seconds=0.0), Limits(rows=999)], ids=["whole", "short", "rows"])
def test_large_roots_without_common_neighbours_are_not_paired(words, limits, monkeypatch):
    monkeypatch.setattr(items, "FEW_ITEMS", 1)  # a range has all ranks behind its root, as in a large graph
    monkeypatch.setattr(items, "LONG_CHUNK", 1 << 20)
    graph = graph_of(sparse_hubs(160, 5), BuildOptions(root_side="right"))
    assert np.mean(np.diff(graph.root_indptr) > 64) > 0.9
    expected = run(CpuEngine(), graph, Search("fingerprint"))
    sizes = BITMATRIX["usual"]._replace(window_words=words, list_cap=8192, give_min=0)
    found = run(BitMatrixEngine(DEVICE, sizes), graph, Search("fingerprint"), limits, np.random.default_rng(1))
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)


def test_items_and_left_over_nodes_are_made_once(monkeypatch):
    made, calls = [], items.items_of
    graph = graph_of(random_edges(np.random.default_rng(4), 170, 10, 0.5), BuildOptions(root_side="right"))
    expected = run(CpuEngine(), graph, Search("fingerprint"))
    monkeypatch.setattr(items, "items_of", lambda *words: made.append("items") or calls(*words))
    for module in (items, gpu_engine):
        monkeypatch.setattr(module, "subtrees_of", lambda *words: made.append("nodes") or subtrees_of(*words))
    search, engine = Search("fingerprint"), bitmatrix("usual")()
    nodes = KIND.prepare(graph, everything(graph), search)
    assert made == ["items"]
    first = engine.mine(graph, nodes, search, Limits(rows=50), nowhere)
    assert made == ["items"]
    rest = KIND.prepare(graph, first.left_over, search)
    assert made == ["items", "nodes", "items"]
    assert 0 < len(rest) == len(first.left_over)
    second = engine.mine(graph, rest, search, Limits(), nowhere)
    assert made == ["items", "nodes", "items"]
    assert (first.count + second.count, len(second.left_over)) == (expected.count, 0)
    assert (first.fingerprint + second.fingerprint) % 2**64 == expected.fingerprint


def test_hubs_are_left_over_by_their_paths():
    """A list of left vertices and one of candidates would be too long: a hub of a large graph has millions of both."""
    graph = graph_of(random_edges(np.random.default_rng(1), 400, 40, 0.5), BuildOptions(root_side="right"))
    engine = BitMatrixEngine(DEVICE, BITMATRIX["usual"]._replace(least_joined=65))  # levels of merged hubs are listed
    rest = engine.mine(graph, everything(graph), Search("count"), Limits(seconds=0.0), nowhere).left_over
    assert (rest.ranged & (np.diff(rest.path_indptr) > 1)).any(), "below the first level"
    rows = [graph.root_indices[a:b] for a, b in pairwise(graph.root_indptr)]
    for i in np.flatnonzero(~rest.ranged & (rest.todo != EVERYTHING)):
        assert len(functools.reduce(np.intersect1d, [rows[v] for v in rest.path_of(i)])) <= 64


@pytest.mark.pairs
@pytest.mark.parametrize("sizes", BITMATRIX)
@pytest.mark.parametrize("limits", [Limits(), Limits(seconds=0.0)], ids=["whole", "short"])
@pytest.mark.parametrize("search", [Search("list"), Search("count"), Search("list", min_left=15, min_right=2)])
def test_hubs_with_and_without_bit_rows_give_the_same_bicliques(sizes, limits, search):
    """The small graphs of the suite have no bit rows, because twins are one vertex there."""
    graph = graph_of(random_edges(np.random.default_rng(4), 170, 10, 0.5), BuildOptions(root_side="right"))
    assert (np.diff(graph.root_indptr) > 64).all()
    expected = run(CpuEngine(), graph, search)
    found = run(bitmatrix(sizes)(), graph, search, limits, np.random.default_rng(1))
    assert (found.count, sorted(found.rows)) == (expected.count, sorted(expected.rows))
    assert found.count > 100


def test_hubs_deeper_than_the_stack_of_a_warp_are_finished():
    graph = graph_of(np.column_stack(band(np, 170, 50)), BuildOptions(root_side="right", order="id"))
    one = Subtrees.of_roots(np.array([50]))  # 37 hubs one below the other, and a stack of 32
    expected = CpuEngine().mine(graph, one, Search("fingerprint"), Limits(), nowhere)
    found = BitMatrixEngine(DEVICE, BITMATRIX["usual"]._replace(list_cap=8192)).mine(
        graph, one, Search("fingerprint"), Limits(), nowhere
    )
    assert (found.count, found.fingerprint, len(found.left_over)) == (expected.count, expected.fingerprint, 0)


def test_a_pool_that_fills_up_is_cleared_and_the_slice_goes_on():
    graph = graph_of(np.argwhere(np.random.default_rng(5).random((30, 30)) < 0.7))
    expected = run(CpuEngine(), graph, Search("fingerprint"))
    sizes = BITMATRIX["usual"]._replace(pool=1 << 12, poll=2, give_min=0)
    found = BitMatrixEngine(EmulatedDevice(5, n_multiprocessors=4), sizes).mine(
        graph, Subtrees.of_roots(np.arange(graph.n_roots)), Search("fingerprint"), Limits(), nowhere
    )
    assert (found.count, found.fingerprint, len(found.left_over)) == (expected.count, expected.fingerprint, 0)
    assert found.stats.launches > 1


#: Names of engines in which one optimisation is switched off, or in which a launch has another shape.
VARIANTS = {
    "noRS": {"reverse_scan": False},
    "noES": {"early_stop": False},
    "noWS": {"steal_levels": 1},
    "untimed": {"timed": False},
    "as published": {"lanes": 32, "threads": 512, "steal_levels": 2},
    "one lane per vertex": {"lanes": 1, "threads": 32},
}


@pytest.mark.values
class TestCumbeEngine(EngineSuite, ThresholdSuite):
    subject = Subject(cumbe("usual"), (cumbe("tightest"), cumbe("tight")), small=True, short_s=0.02)

    @pytest.mark.parametrize("variant", list(VARIANTS))
    def test_optimisations_change_nothing_but_the_time(self, shape, truth, variant):
        engine = CumbeEngine(BLOCKS, CUMBE["usual"]._replace(**VARIANTS[variant]))
        graph = graph_of(shape)
        found = engine.mine(graph, everything(graph), Search("fingerprint"), Limits(), nowhere)
        assert (found.count, found.fingerprint, len(found.left_over)) == (truth.count, truth.fingerprint, 0)
        stats = found.stats
        phases = [stats.phases[name] for name in (*PHASES[:-1], "others")]
        assert sum(phases) == pytest.approx(stats.kernel_s)
        assert 0 < stats.busy_ratio <= 1
        assert (stats.counters["published"] > 0) == (variant != "noWS")

    def test_blocks_steal_from_one_another(self, shape):
        graph = graph_of(shape)
        stats = cumbe("tightest")().mine(graph, everything(graph), Search("count"), Limits(), nowhere).stats
        assert 0 < stats.counters["stolen"] <= stats.counters["published"]

    def test_memory_that_is_too_small_is_an_error_with_numbers(self):
        graph = graph_of(edges_of("wide hubs", True))
        small = EmulatedDevice()
        small.free_bytes = lambda: 1 << 12
        with pytest.raises(DeviceMemoryError, match=r"needs .* MiB for a root with .* edges around it"):
            CumbeEngine(small, CUMBE["usual"]).mine(graph, everything(graph), Search("count"), Limits(), nowhere)


def test_the_host_watches_a_launch_and_stops_it():
    graph = graph_of(random_edges(np.random.default_rng(3), 60, 60, 0.5))
    whole = everything(graph)
    engine = bitmatrix("usual")()
    seen = []

    def watch():
        while not seen:
            if engine.found:
                seen.append(engine.found)
                engine.stop()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    first = engine.mine(graph, whole, Search("fingerprint"), Limits(), nowhere)
    watcher.join(60)
    expected = run(CpuEngine(), graph, Search("fingerprint"))
    assert 0 < seen[0] <= first.count < expected.count
    rest = CpuEngine().mine(graph, first.left_over, Search("fingerprint"), Limits(), nowhere)
    assert first.count + rest.count == expected.count
    assert (first.fingerprint + rest.fingerprint) % 2**64 == expected.fingerprint
