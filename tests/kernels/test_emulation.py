"""The emulated device sees each write beside a buffer. A full list at the end of memory is such a place."""

import ctypes
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.emulation import device
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.bands import band, bicliques_of_band
from tests.support.oracles import graph_of

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")


def test_a_kernel_is_compiled_once_for_many_threads(monkeypatch, tmp_path):
    """Threads stand for processes here, because each thread opens the lock for itself."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    compiled, really = [], device._compile
    monkeypatch.setattr(device, "_compile", lambda *what: compiled.append(what) or really(*what))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: device._library.__wrapped__("hub_bits", ()), range(4)))
    assert len(compiled) == 1
    assert sorted(path.suffix for path in (tmp_path / "bicliques-emulation").iterdir()) == [".lock", ".so"]


@pytest.mark.parametrize("kind", ["empty", "zeros"])
@pytest.mark.parametrize(("at", "side"), [(-1, "before"), (40, "behind"), (40 + 31 * 4, "behind")])
def test_a_write_outside_of_a_buffer_is_noticed(kind, at, side):
    device = EmulatedDevice()
    kept = getattr(device, kind)(10, np.int32)
    device.upload(np.arange(3))  # this buffer is freed at once, and is not checked any more
    device._check_guards("kernel")
    ctypes.memset(device.address(kept) + at, 0, 1)
    with pytest.raises(AssertionError, match=f"kernel has written {side} a buffer of 40 bytes"):
        device._check_guards("kernel")
    device._check_guards("kernel")


def test_a_closure_that_does_not_fit_into_the_list_is_not_begun(monkeypatch):
    """Hubs lie one below the other, until the list of their warp is full.

    There is one warp, and its list ends where the memory of the kernel ends. So a write behind the list is seen.
    """
    monkeypatch.setattr("bicliques.kernels.bitmatrix.memory.THREADS", 32)
    sizes = GpuSizes(row_cap=128, list_cap=320, given=4096, left_over=1 << 14, pool=1 << 18, values=1 << 16, warps=1)
    graph = graph_of(np.column_stack(band(np, 90, 36)), BuildOptions(root_side="right", order="id"))
    engine = BitMatrixEngine(EmulatedDevice(3, n_multiprocessors=1), sizes)
    found = engine.mine(graph, Subtrees.of_roots(np.arange(graph.n_roots)), Search("count"), Limits(), nowhere)
    assert found.count == bicliques_of_band(90, 36)
