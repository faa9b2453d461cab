"""Output buffers of the device grow with what is listed."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.bitmatrix import BitMatrixEngine
from kernels.gpu.buffers import OutputBuffers
from kernels.gpu.layout import QUEUE
from schemas.options import BuildOptions
from schemas.work import Limits, Search, Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.test_gpu_engines import BITMATRIX
from tests.oracles import graph_of, random_edges


def used(values: int, records: int) -> np.void:
    queue = np.zeros(1, QUEUE)
    queue["values"], queue["rows"] = values, records
    return queue[0]


@pytest.mark.parametrize(
    ("values", "records", "factor"), [(700, 70, 1), (701, 0, 2), (0, 71, 2), (9000, 9000, 2)], ids=str
)
def test_they_double_when_a_launch_nearly_filled_them(values, records, factor):
    buffers = OutputBuffers(EmulatedDevice(), 800, 80)
    buffers.grow(used(values, records))
    assert (buffers.n_values, buffers.n_records) == (800 * factor, 80 * factor)
    assert (len(buffers.values), len(buffers.records)) == (4 * 800 * factor, 16 * 80 * factor)
    assert buffers.params["values"] == buffers.values.ctypes.data


def test_they_take_a_small_share_of_the_device():
    device = EmulatedDevice()
    buffers = OutputBuffers(device, 800, 80)  # twice 4,480 bytes
    device.free_bytes = lambda: 32 * 8960 - 1
    buffers.grow(used(800, 80))
    assert buffers.n_values == 800
    device.free_bytes = lambda: 32 * 8960
    buffers.grow(used(800, 80))
    assert buffers.n_values == 1600


@pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")
def test_fewer_launches_where_bicliques_stay_on_the_device():
    graph = graph_of(random_edges(np.random.default_rng(4), 36, 36, 0.5), BuildOptions())

    def launches(emit):
        engine = BitMatrixEngine(EmulatedDevice(5), BITMATRIX["usual"]._replace(records=256 * 3))
        roots = Subtrees.of_roots(np.arange(graph.n_roots))
        found = engine.mine(graph, roots, Search("list"), Limits(), emit)
        assert len(found.left_over) == 0
        return found.stats["launches"], found.count

    def keep(batch):
        pass

    there, n = launches(keep)
    keep.on_device = True
    on_device, same = launches(keep)
    assert n == same
    assert on_device < there
