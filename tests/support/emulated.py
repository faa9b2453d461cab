"""The GPU engines on a CPU that runs their kernels thread by thread, with little memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes
from bicliques.kernels.cumbe.engine import CumbeEngine
from bicliques.kernels.cumbe.memory import CumbeSizes
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.work import Engine, Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.engines import TOY_GPU, kind_of, registered

#: What `bitmatrix` and `cumbe` run on.
DEVICE = EmulatedDevice(5)
BLOCKS = EmulatedDevice(7, n_multiprocessors=4)

_USUAL = GpuSizes(
    row_cap=1024, list_cap=2048, given=4096, left_over=1 << 14, pool=1 << 18, values=1 << 16, records=1 << 12, warps=8
)
_TIGHTEST = _USUAL._replace(row_cap=512, list_cap=256, values=1 << 14, records=256 * 3, poll=1, give_min=0)
#: Room for few rows and bicliques; every warp gives work away whenever another one waits, and sifts its rows.
BITMATRIX = {
    "usual": _USUAL,
    "tightest": _TIGHTEST._replace(least_sifted=0, roots_per_wedge=0, many_roots=0, least_joined=0),
    "tight": _USUAL._replace(row_cap=256, list_cap=512, narrow=0, warps=4, poll=2, give_min=0, hub_bytes=0),
    "oversize": _USUAL._replace(row_cap=64, list_cap=128, poll=1, give_min=0, least_joined=0),
}

_CUMBE = CumbeSizes(left_over=1 << 14, pool=1 << 18, values=1 << 16, records=1 << 12, threads=64, min_blocks=1, lanes=8)
CUMBE = {
    "usual": _CUMBE,
    "tightest": _CUMBE._replace(values=1 << 14, records=128, threads=32, shared_ints=0, poll=1, steal_levels=9),
    "tight": _CUMBE._replace(values=1 << 15, records=256, lanes=4, shared_ints=256, poll=2, steal_levels=2),
}


def everything(graph: MiningGraph) -> Subtrees:
    """All of its roots."""
    return Subtrees.of_roots(np.arange(graph.n_roots))


def bitmatrix(sizes: str) -> Callable[[], Engine]:
    """Makes the engine with the sizes of that name."""
    return lambda: BitMatrixEngine(DEVICE, BITMATRIX[sizes])


def cumbe(sizes: str) -> Callable[[], Engine]:
    """Makes the engine with the sizes of that name."""
    return lambda: CumbeEngine(BLOCKS, CUMBE[sizes])


@contextmanager
def runnable(name: str) -> Iterator[None]:
    """An engine of that name can run. One of a GPU has an emulated device; without a compiler the test is skipped."""
    make = {"bitmatrix": bitmatrix("usual"), "cumbe": cumbe("usual")}.get(name)
    if make is None:
        yield
        return
    if (reason := why_not()) is not None:
        pytest.skip(reason)
    with registered(kind_of(name, lambda halvings: make(), TOY_GPU, why_not=lambda: None)):
        yield
