"""A launch ends before its output is full, and warps take room for records in chunks."""

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.layout import ITEM, PATH, QUEUE
from bicliques.kernels.bitmatrix.memory import Launch
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.search import Limits, Search
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.emulated import BITMATRIX, everything
from tests.support.oracles import graph_of

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")


class WatchedDevice(EmulatedDevice):
    """A device that keeps the items and the queues that are read back."""

    def __init__(self, seed: int):
        super().__init__(seed)
        self.items = []
        self.queues = []

    def read(self, handle, dtype, start, n):
        found = super().read(handle, dtype, start, n)
        if dtype == ITEM:
            self.items.append(found)
        if dtype == QUEUE:
            self.queues.append(found)
        return found


def test_a_launch_ends_while_there_is_room_for_open_work():
    """Otherwise each node that waits to be emitted is left over, and the next launch opens it again."""
    graph = graph_of(np.argwhere(np.random.default_rng(5).random((36, 36)) < 0.6))
    device = WatchedDevice(5)
    engine = BitMatrixEngine(device, BITMATRIX["usual"]._replace(values=1 << 19, records=1 << 13, poll=1))
    found = engine.mine(graph, everything(graph), Search("list"), Limits(), nowhere)
    left = np.concatenate(device.items)
    assert found.stats.launches > 5
    assert np.count_nonzero(left["kind"] == PATH) > 50
    assert not np.any((left["kind"] == PATH) & (left["n_cand"] == 0))


@pytest.mark.parametrize(("records", "chunk"), [(1 << 10, 64), (1 << 13, 128), (1 << 20, 256)])
def test_warps_take_many_records_at_a_time_if_there_are_many(records, chunk, monkeypatch):
    """A warp's bicliques stay together in a chunk. The first chunks of all warps take an eighth at most."""
    graph = graph_of(np.argwhere(np.random.default_rng(5).random((30, 30)) < 0.6))
    device, plan, chunks = WatchedDevice(5), Launch.plan, []

    def watched(*arguments):
        launch = plan(*arguments)
        chunks.append(launch.record_chunk)
        return launch

    monkeypatch.setattr(Launch, "plan", watched)
    engine = BitMatrixEngine(device, BITMATRIX["usual"]._replace(records=records))
    engine.mine(graph, everything(graph), Search("list"), Limits(), nowhere)
    assert set(chunks) == {chunk}
    taken = [int(queue["rows"][0]) for queue in device.queues]
    assert max(taken) > 0
    assert all(n % chunk == 0 for n in taken)
