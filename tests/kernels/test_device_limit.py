"""Mining within a limit of device memory: the emulated device refuses more, as CuPy's pool does with its limit."""

import numpy as np
import pytest

from bicliques.kernels.bitmatrix import memory
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.gpu.cuda import SCRATCH_SHARE
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Search
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.emulated import BITMATRIX
from tests.support.oracles import graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")

GRAPH = graph_of(random_edges(np.random.default_rng(4), 170, 11, 0.5), BuildOptions(root_side="right"))
SIZES = BITMATRIX["usual"]._replace(row_cap=64, list_cap=128, warps=None, poll=1, give_min=0)
#: The record of the queue, single entries, and the items of a launch.
LITTLE = 1 << 15


class LimitedDevice(EmulatedDevice):
    """A device of which no more than a number of bytes is taken. It remembers the most that was."""

    def __init__(self, limit: int):
        super().__init__(5, n_multiprocessors=64)
        self.limit, self.most = limit, 0

    def free_bytes(self) -> int:
        return max(self.limit - self.used_bytes(), 0)

    def _buffer(self, n_bytes: int) -> np.ndarray:
        if n_bytes > self.free_bytes():
            raise DeviceMemoryError(f"{n_bytes} bytes are more than {self.free_bytes()}")
        made = super()._buffer(n_bytes)
        self.most = max(self.most, self.used_bytes())
        return made


@pytest.mark.values
@pytest.mark.parametrize(
    "search", [Search("list"), Search("fingerprint", min_left=9, min_right=3)], ids=["all", "some"]
)
@pytest.mark.parametrize("room", [1.3, 3, 40])
def test_a_search_takes_no_more_than_its_limit_and_what_was_told(search, room):
    """There is room for the graph, the buffers, and so many times the scratch memory of one block."""
    told = memory.device_bytes(GRAPH, search, SIZES)
    form = memory.Form(plain=False, measured=True, sieving=search.has_thresholds)
    block = memory.THREADS // 32 * form.scratch(SIZES.row_cap, SIZES.list_cap).itemsize
    device = LimitedDevice(told + int(room * block / SCRATCH_SHARE))
    found = run(BitMatrixEngine(device, SIZES), GRAPH, search)
    expected = run(CpuEngine(), GRAPH, search)
    assert (found.count, found.fingerprint) == (expected.count, expected.fingerprint)
    scratch = SCRATCH_SHARE * (device.limit - told)
    assert told < device.most <= device.limit
    if search.mode != "list":  # what a launch has listed is put together in what is left
        assert device.most <= told + scratch + LITTLE


def test_a_search_without_room_for_a_block_is_refused_in_a_sentence():
    told = memory.device_bytes(GRAPH, Search("list"), SIZES)
    with pytest.raises(DeviceMemoryError, match=r"one block with .* rows a warp needs"):
        run(BitMatrixEngine(LimitedDevice(told + LITTLE), SIZES), GRAPH, Search("list"))
