"""The GPU engines do what every engine has to do, on a CPU that runs their kernels thread by thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from kernels.bitmatrix import BitMatrixEngine
from kernels.cpu.engine import CpuEngine
from kernels.gpu.memory import GpuSizes
from schemas.options import BuildOptions
from schemas.work import Limits, Search, Subtrees
from tests.emulation.device import EmulatedDevice, why_not
from tests.kernels.suite import SIDES, EngineSuite, Subject, edges_of
from tests.oracles import graph_of, random_edges, run

pytestmark = pytest.mark.skipif(why_not() is not None, reason=f"kernels cannot be emulated: {why_not()}")

DEVICE = EmulatedDevice(5)
_USUAL = GpuSizes(
    row_cap=1024, list_cap=2048, given=4096, left_over=1 << 14, pool=1 << 18, values=1 << 16, records=1 << 12, warps=8
)
#: Room for few rows and bicliques; every warp gives work away whenever another one waits.
BITMATRIX = {
    "usual": _USUAL,
    "tightest": _USUAL._replace(row_cap=512, list_cap=256, values=1 << 14, records=256 * 3, poll=1, give_min=0),
    "tight": _USUAL._replace(row_cap=256, list_cap=512, warps=4, poll=2, give_min=0, hub_bytes=0),
    "oversize": _USUAL._replace(row_cap=128, list_cap=128, poll=1, give_min=0),
}


def bitmatrix(sizes: str):
    return lambda: BitMatrixEngine(DEVICE, BITMATRIX[sizes])


class TestBitMatrixEngine(EngineSuite):
    subject = Subject(bitmatrix("usual"), (bitmatrix("tightest"), bitmatrix("tight")), small=True)

    @pytest.mark.parametrize("side", SIDES)
    @pytest.mark.parametrize("rows", [None, 50])
    def test_problems_larger_than_a_launch_allows_run_in_another(self, shape, truth, side, rows):
        rng = np.random.default_rng(5)
        graph = graph_of(shape, BuildOptions(side))
        outcome = run(bitmatrix("oversize")(), graph, Search("list"), Limits(rows=rows), shuffle=rng)
        assert (outcome.count, outcome.fingerprint) == (truth.count, truth.fingerprint)
        assert sorted(outcome.rows) == sorted(truth.rows)

    def test_larger_problems_get_on_in_short_slices(self):
        graph = graph_of(edges_of("wide hubs", True), BuildOptions("left"))
        engine, work, slices = bitmatrix("oversize")(), Subtrees.of_roots(np.arange(graph.n_roots)), 0
        while len(work):
            work = engine.mine(graph, work, Search("count"), Limits(seconds=0.0), lambda _: None).left_over
            slices += 1
            assert slices < 100


def test_the_host_watches_a_launch_and_stops_it():
    graph = graph_of(random_edges(np.random.default_rng(3), 60, 60, 0.5))
    whole = Subtrees.of_roots(np.arange(graph.n_roots))
    engine = bitmatrix("usual")()
    seen: list[int] = []

    def watch() -> None:
        while not seen:
            if engine.found:
                seen.append(engine.found)
                engine.stop()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    first = engine.mine(graph, whole, Search("prove"), Limits(), lambda _: None)
    watcher.join(60)
    expected = run(CpuEngine(), graph, Search("prove"))
    assert 0 < seen[0] <= first.count < expected.count
    rest = CpuEngine().mine(graph, first.left_over, Search("prove"), Limits(), lambda _: None)
    assert first.count + rest.count == expected.count
    assert (first.fingerprint + rest.fingerprint) % 2**64 == expected.fingerprint
