"""When memory is too short, a GPU engine makes buffers longer, then uses fewer warps, and at last the CPU engine."""

import functools
import sys
import weakref
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import Launch
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes
from bicliques.kernels.cumbe import engine as cumbe_engine
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import Arenas
from bicliques.kernels.gpu.buffers import Buffers
from bicliques.kernels.gpu.device import CudaDevice
from bicliques.kernels.graph.ranges import in_lists
from bicliques.schemas.bicliques import emit_to, nowhere
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.suite import closure_of_path, edges_of, truth_of
from tests.support.emulated import BITMATRIX, BLOCKS, CUMBE, bitmatrix, everything
from tests.support.oracles import graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")


#: Sizes that make one buffer too short for anything. The last entry makes all of them too short.
SHORT = [{"left_over": 1}, {"pool": 8}, {"values": 8}, {"records": 1}, {"size_slots": 2}]
SHORT.append({name: n for short in SHORT for name, n in short.items()})
HUBS, WORD_PROBLEMS = (170, 7), (20, 16)


def short_engine(name: str, short: dict[str, int], device: EmulatedDevice | None = None):
    if name == "cumbe":
        return CumbeEngine(device or BLOCKS, CUMBE["tightest"]._replace(**short))
    return BitMatrixEngine(device or EmulatedDevice(5), BITMATRIX["usual"]._replace(**short, poll=1, give_min=0))


class WatchedDevice(EmulatedDevice):
    """A device that remembers how many blocks the launches of each kernel had."""

    def __init__(self):
        super().__init__(7, n_multiprocessors=2)
        self.n_blocks = {}

    def launch(self, kernel, defines, n_blocks, *rest):
        self.n_blocks.setdefault(kernel, []).append(n_blocks)
        return super().launch(kernel, defines, n_blocks, *rest)


@functools.cache
def found_on_a_core(shape, search: Search):
    graph = graph_of(random_edges(np.random.default_rng(4), *shape, 0.5), BuildOptions(root_side="right"))
    return graph, run(CpuEngine(), graph, search)


@pytest.mark.pairs
@pytest.mark.parametrize("has_room", [True, False], ids=["it becomes longer", "the device is full"])
@pytest.mark.parametrize("limits", [Limits(), Limits(rows=60), Limits(seconds=0.0)], ids=["whole", "rows", "short"])
@pytest.mark.parametrize("short", SHORT, ids="-".join)
@pytest.mark.parametrize("shape", [HUBS, WORD_PROBLEMS], ids=["hubs", "word problems"])
@pytest.mark.parametrize("name", ["bitmatrix", "cumbe"])
def test_a_buffer_that_is_too_short_ends_no_slice(name, shape, short, limits, has_room, monkeypatch):
    if not has_room:
        monkeypatch.setattr(Buffers, "grow", lambda *_: False)
    for search in (Search("list"), Search("fingerprint", sizes=True)):
        graph, expected = found_on_a_core(shape, search)
        found = run(short_engine(name, short), graph, search, limits)
        assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
        assert sorted(found.rows) == sorted(expected.rows)
        assert found.sizes == expected.sizes


@pytest.mark.parametrize("name", ["bitmatrix", "cumbe"])
@pytest.mark.parametrize("short", SHORT[:-1], ids="-".join)
def test_a_buffer_that_is_too_short_becomes_longer(name, short):
    (knob,) = short
    search = Search("fingerprint", sizes=True) if knob == "size_slots" else Search("list")
    graph, _ = found_on_a_core(WORD_PROBLEMS, search)
    engine = short_engine(name, short)
    found = engine.mine(graph, everything(graph), search, Limits(rows=60), nowhere)
    assert found.stats.cpu_nodes == 0
    assert engine._memory.sizes._asdict()[knob] > short[knob]
    assert (found.stats.voided > 0) == (knob in ("left_over", "pool", "size_slots"))


@pytest.mark.parametrize("name", ["bitmatrix", "cumbe"])
@pytest.mark.parametrize("short", SHORT[:-1], ids="-".join)
def test_on_a_full_device_fewer_warps_or_a_core_do_the_rest(name, short, monkeypatch):
    monkeypatch.setattr(Buffers, "grow", lambda *_: False)
    (knob,) = short
    search = Search("fingerprint", sizes=True) if knob == "size_slots" else Search("list")
    graph, _ = found_on_a_core(WORD_PROBLEMS, search)
    found = short_engine(name, short).mine(graph, everything(graph), search, Limits(rows=60), nowhere)
    assert found.count == 60
    assert found.stats.cpu_nodes > 0 or found.stats.voided > 0


def test_nodes_that_wait_are_searched_if_the_lists_of_others_are_too_long(monkeypatch):
    monkeypatch.setattr(Buffers, "grow", lambda *_: False)
    monkeypatch.setattr("bicliques.kernels.cumbe.engine.in_lists", functools.partial(in_lists, most=40))
    graph, _ = found_on_a_core(WORD_PROBLEMS, Search("list"))
    roots = np.array([r for r in range(graph.n_roots) if closure_of_path(graph, np.array([r])) == {r}])
    each = np.arange(len(roots) + 1)
    work = Subtrees.of_ranges(each, roots, roots + 1, graph.n_roots - 1 - roots, np.zeros(len(roots), bool))
    assert all(map(len, in_lists(graph, work, 40))), "some nodes wait while others are in lists"
    found, expected = (
        engine.mine(graph, work, Search("fingerprint"), Limits(), nowhere)
        for engine in (short_engine("cumbe", {"pool": 8}), CpuEngine())
    )
    assert (found.count, found.fingerprint, len(found.left_over)) == (expected.count, expected.fingerprint, 0)
    assert found.count > 50


def test_a_processor_core_solves_problems_too_large_for_scratch_memory(monkeypatch):
    graph, plan = graph_of(edges_of("many roots", True), BuildOptions(root_side="right")), Launch.plan

    def scarce(device, row_cap, *rest):
        if row_cap > 64:
            raise DeviceMemoryError("the toy has 3 MiB free, 4 MiB more are needed")
        return plan(device, row_cap, *rest)

    monkeypatch.setattr(Launch, "plan", scarce)
    found = run_once(bitmatrix("oversize")(), graph, Search("fingerprint"))
    expected = truth_of("many roots", True)
    assert (found.count, found.fingerprint, len(found.left_over)) == (expected.count, expected.fingerprint, 0)
    assert found.stats.cpu_nodes > 0


def test_scratch_memory_is_freed_before_that_of_larger_problems(monkeypatch):
    """Otherwise the launch that needs most memory cannot have three fifths of the device."""
    plan, kept, planned = Launch.plan, [], []

    def watched(device, row_cap, *rest):
        planned.append((row_cap, sum(one() is not None for one in kept)))
        launch = plan(device, row_cap, *rest)
        kept.append(weakref.ref(launch))
        return launch

    monkeypatch.setattr(Launch, "plan", watched)
    graph = graph_of(edges_of("many roots", True), BuildOptions(root_side="right"))
    run_once(bitmatrix("oversize")(), graph, Search("count"))
    assert [row_cap for row_cap, _ in planned[:2]] == [64, 512]
    assert planned[1][1] == 0


def test_an_emit_may_keep_arrays_that_the_cpu_engine_found(monkeypatch):
    """The writer on a GPU encodes on other threads, and by then the CPU engine has filled its own arrays again."""
    monkeypatch.setattr(Buffers, "grow", lambda *_: False)
    monkeypatch.setattr("bicliques.kernels.bitmatrix.engine.cpu_engine", lambda: CpuEngine(Sizes(rows=7)))
    batches = []
    keep = emit_to(batches.append, on_device=True)
    graph, expected = found_on_a_core(WORD_PROBLEMS, Search("list"))
    found = short_engine("bitmatrix", {"values": 8}).mine(graph, everything(graph), Search("list"), Limits(), keep)
    assert found.stats.cpu_nodes > 0
    assert len(batches) > 10
    assert sorted(row for batch in batches for row in batch.to_pairs()) == sorted(expected.rows)


@pytest.mark.parametrize("name", ["bitmatrix", "cumbe"])
@pytest.mark.parametrize("has_room", [True, False], ids=["it becomes longer", "the device is full"])
def test_void_launches_only_count_their_time(name, has_room, monkeypatch):
    if not has_room:
        monkeypatch.setattr(Buffers, "grow", lambda *_: False)
    search = Search("fingerprint", sizes=True)
    graph, expected = found_on_a_core(WORD_PROBLEMS, search)
    stats = run_once(short_engine(name, {"size_slots": 2}), graph, search).stats
    assert stats.voided > 0
    assert 0 < stats.busy_ratio <= 1
    assert stats.phases.get("others", 0.0) >= -1e-9
    assert (stats.counters["tests"] > 0) == has_room
    assert stats.counters["tests"] <= 3 * expected.count


@pytest.mark.parametrize("name", ["bitmatrix", "cumbe"])
def test_a_full_table_of_sizes_does_not_change_the_number_of_blocks(name, monkeypatch):
    """Fewer blocks would meet as many sizes, and later slices would have only one block."""
    monkeypatch.setattr(Buffers, "grow", lambda *_: False)
    search = Search("fingerprint", sizes=True)
    graph, _ = found_on_a_core(WORD_PROBLEMS, search)
    device = WatchedDevice()
    engine = short_engine(name, {"size_slots": 2}, device)
    for _ in range(2):
        found = run_once(engine, graph, search)
        assert (found.stats.launches, found.stats.voided) == (1, 1)
    assert device.n_blocks[name] == [device.n_multiprocessors] * 2


@pytest.fixture
def calls(monkeypatch):
    """The calls that reach CuPy. A stand-in takes the place of the module, and its device is full."""
    calls = []

    def full(*arguments, **options):
        raise MemoryError

    pool = SimpleNamespace(free_bytes=lambda: 0, used_bytes=lambda: 0, get_limit=lambda: 0)
    runtime = SimpleNamespace(
        CUDARuntimeError=RuntimeError,
        getDeviceCount=lambda: 1,
        getDeviceProperties=lambda device: {"name": b"the toy", "multiProcessorCount": 1},
        memGetInfo=lambda: (3 << 20, 8 << 20),
        setDevice=lambda device: calls.append(("device", device)),
    )
    cuda = SimpleNamespace(
        runtime=runtime,
        memory=SimpleNamespace(OutOfMemoryError=MemoryError),
        Device=lambda: SimpleNamespace(id=1003),  # which no other test has a stream of
        Stream=lambda **options: nullcontext(),
    )
    toy = SimpleNamespace(cuda=cuda, empty=full, get_default_memory_pool=lambda: pool)
    monkeypatch.setitem(sys.modules, "cupy", toy)
    return calls


def test_a_device_without_memory_names_what_can_be_chosen(calls):
    with pytest.raises(DeviceMemoryError, match=r"toy has 3 MiB free, 4 MiB more are needed; .* engine='cpu'"):
        CudaDevice().empty(1 << 20, np.int32)


def test_a_thread_gets_the_context_of_the_device_before_anything_else(calls):
    """A launch makes no context, and where all memory comes from the pool it is the first call of a thread."""
    with CudaDevice().active():
        assert calls == [("device", 1003)]


def run_once(engine, graph, search: Search):
    return engine.mine(graph, everything(graph), search, Limits(), nowhere)


@pytest.mark.parametrize("name", ["bitmatrix", "cumbe"])
@pytest.mark.parametrize("search", [Search("count"), Search("list"), Search("fingerprint", sizes=True)], ids=str)
def test_a_graph_that_thresholds_make_empty_has_no_bicliques(name, search):
    graph = graph_of(np.array([[0, 0], [0, 1], [1, 0]], np.int32), None, 2, 2)
    assert graph.n_roots == 0
    found = short_engine(name, {}).mine(graph, everything(graph), search, Limits(), nowhere)
    assert (found.count, found.fingerprint) == (0, None if search.mode == "count" else 0)
    assert len(found.left_over) == 0
    assert (found.total.sizes is not None) == search.sizes


def test_a_cumbe_run_without_room_halves_its_blocks_until_there_is_one():
    run = object.__new__(cumbe_engine._Run)
    run.arenas = Arenas(4, None, None, None, None, {})
    assert [run._take_fewer_blocks() for _ in range(3)] == [True, True, False]
    assert run.arenas.n_blocks == 1
