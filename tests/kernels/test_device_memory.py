"""The device memory that is told before a run is what an engine takes. The emulated device counts the bytes."""

import numpy as np
import pytest

from bicliques.kernels import engines
from bicliques.kernels.bitmatrix import memory as bitmatrix
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.cumbe import memory as cumbe
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.gpu.pack import DeviceGraph
from bicliques.kernels.gpu.records import RECORD
from bicliques.kernels.gpu.sizes import search_bytes, workspace_bytes
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.work import Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.emulated import BITMATRIX, CUMBE
from tests.support.oracles import graph_of

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")

#: Bytes beside those that are told: the record of the queue, single entries, and the items of the last launch.
LITTLE = 1 << 15
SEARCHES = [Search("count"), Search("list"), Search("count", sizes=True)]
HUBS = graph_of(np.argwhere(np.random.default_rng(4).random((200, 8)) < 0.6), BuildOptions(root_side="right"))
TWINS = graph_of(np.array([(a, b) for a in range(60) for b in range(16) if (a + b // 2) % 5]))


def taken(engine: BitMatrixEngine | CumbeEngine, graph, search: Search) -> EngineStats:
    return engine.mine(graph, Subtrees.of_roots(np.arange(graph.n_roots)), search, Limits(), nowhere).stats


@pytest.mark.parametrize("graph", [HUBS, TWINS], ids=["hubs", "twins"])
@pytest.mark.parametrize("search", SEARCHES, ids=["count", "list", "sizes"])
def test_bitmatrix_takes_what_is_told_and_scratch_memory(search, graph):
    device, sizes = EmulatedDevice(), BITMATRIX["usual"]
    engine = BitMatrixEngine(device, sizes)
    stats = taken(engine, graph, search)
    assert engine._memory.sizes == sizes, "no buffer has grown, so that what is told can be compared"
    scratch = sum(len(launch.scratch) for launch in engine._launches.values())
    told = bitmatrix.device_bytes(graph, search, sizes)
    assert told <= stats.device_bytes - scratch < told + LITTLE
    assert stats.device_bytes == device.used_bytes()


@pytest.mark.parametrize("search", SEARCHES, ids=["count", "list", "sizes"])
def test_cumbe_takes_what_is_told_and_scratch_memory(search):
    engine = CumbeEngine(EmulatedDevice(n_multiprocessors=2), CUMBE["usual"])
    stats = taken(engine, TWINS, search)
    told = search_bytes(TWINS, search, CUMBE["usual"], cumbe.CUMBE_BUFFERS)
    assert told <= stats.device_bytes - len(engine._arenas.arena) < told + LITTLE


def test_the_memory_of_a_graph_and_of_its_members_is_told_to_the_byte():
    device, sizes = EmulatedDevice(), CUMBE["usual"]
    graph = DeviceGraph(device, TWINS)
    assert device.used_bytes() == search_bytes(TWINS, Search("count"), sizes, {})
    members = graph.members(device)
    assert device.used_bytes() == search_bytes(TWINS, Search("list"), sizes, {})
    assert len(members.arrays["root_members"]) > TWINS.n_roots, "so the two sides of the sum differ"


def test_main_memory_holds_lists_and_bicliques_as_read_and_twice_unpacked():
    sizes = CUMBE["usual"]
    lists, all_of_it = (workspace_bytes(sizes, Search(mode)) for mode in ("fingerprint", "list"))
    assert lists == 4 * sizes.pool
    assert all_of_it - lists == 3 * (4 * sizes.values + RECORD.itemsize * sizes.records)


def test_the_bit_rows_of_hubs_are_told_if_there_is_room_for_them():
    sizes = BITMATRIX["usual"]
    n_hubs = int(
        (np.diff(HUBS.root_indptr) > 64).sum()
    )  # the last ones, because roots are in the order of their degrees
    bits = 4 * n_hubs * -(-HUBS.n_base // 32)
    assert bits > 0
    each = [bitmatrix.device_bytes(HUBS, Search(), sizes._replace(hub_bytes=n)) for n in (0, bits - 1, bits)]
    assert each[0] == each[1] == each[2] - bits


def test_engines_with_a_device_tell_its_memory_and_others_tell_none():
    told = {kind.name: kind.device_bytes(HUBS, Search()) for kind in engines.kinds()}
    assert told["cpu"] == told["reference"] == 0
    assert min(told["bitmatrix"], told["cumbe"]) > 1 << 28


def test_of_several_calls_the_most_is_kept():
    assert sum((EngineStats(device_bytes=n) for n in (3, 9, 4)), EngineStats()).device_bytes == 9
