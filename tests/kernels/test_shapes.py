"""The bit-matrix kernel has few shapes, and those of a graph have room for all of its problems."""

import numpy as np
import pytest

from bicliques.kernels.bitmatrix import engine as module
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import Form, GpuSizes, Launch, defines_of, scratch
from bicliques.kernels.bitmatrix.shapes import Needs, grows, shape, shipped, sifts_much, smallest_shape
from bicliques.kernels.gpu.machine_code import Variant
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.search import Limits, Search
from tests.emulation.device import EmulatedDevice
from tests.support.emulated import BITMATRIX, everything
from tests.support.oracles import graph_of, random_edges

USUAL = GpuSizes()
TINY = {name: sizes for name, sizes in BITMATRIX.items() if sizes.row_cap < 1024}


def test_the_first_level_has_two_shapes_and_the_others_what_a_graph_needs():
    needs = [Needs(rows, length) for rows in (129, 1024, 1025, 5000, 1 << 30) for length in (4100, 1 << 30)]
    assert {shape(0, need, USUAL) for need in needs} == {(1024, 32768), (4096, 32768)}
    assert shape(1, Needs(1 << 30, 1 << 30), USUAL) == (32768, 262144)
    assert shape(1, Needs(5000, 40_000), USUAL) == (8192, 65536)
    assert shape(2, Needs(40_000, 4100), USUAL) == (65536, 8192)
    assert shape(3, Needs(300_000, 4100), USUAL) == (524288, 8192)
    assert shape(0, Needs(1024, 1 << 30), USUAL).rows == 1024
    assert shape(0, Needs(1025, 4100), USUAL).rows == 4096


def test_rows_are_sifted_through_a_large_filter_in_large_graphs_only():
    """On an H200 its shared memory is cache that other graphs need: docs/lab/kernels.md."""
    many, large = USUAL.many_roots, Needs(5000, 4100)
    assert sifts_much(large, many, USUAL)
    assert not sifts_much(large, many - 1, USUAL)
    assert not sifts_much(Needs(1024, 4100), many, USUAL), "its problems are small"
    slots = {
        (dict(each.defines)["ROW_CAP"], dict(each.defines)["SHARED_SLOTS"])
        for each in shipped()
        if each.kernel == "bitmatrix"
    }
    assert slots == {(1024, 512), (4096, 512), (4096, 1024)}


@pytest.mark.parametrize("sizes", [USUAL, *TINY.values()], ids=["usual", *TINY])
def test_a_level_has_room_for_what_it_promises(sizes):
    """A level that does not grow has room for all problems, and another has eight times that of the level below."""
    rng = np.random.default_rng(8)
    for exponents in rng.uniform(5, 26, (300, 2)):
        needs = Needs(*(int(2**exponent) for exponent in exponents))
        for level in range(9):
            promised = sizes.row_cap * 8**level, sizes.list_cap * 8**level
            for rows, length in (shape(level, needs, sizes), smallest_shape(level, needs, sizes)):
                assert rows >= min(promised[0], needs.rows)
                assert length >= min(promised[1], needs.list)
                assert rows.bit_count() == 1
                assert rows <= promised[0]
            assert grows(level, needs, sizes) == (promised[0] < needs.rows or promised[1] < needs.list)
            if not grows(level, needs, sizes):
                break
        else:
            raise AssertionError(f"{needs} needs more than nine levels")


class SmallDevice(EmulatedDevice):
    """A device of which so many bytes are free."""

    def __init__(self, free: int):
        super().__init__(n_multiprocessors=1)
        self.free = free

    def free_bytes(self):
        return self.free


def planned_shape(free: int, n_roots: int) -> tuple[int, int]:
    """Rows and list of the first launch for a random graph on a device with so many bytes free."""
    graph = graph_of(random_edges(np.random.default_rng(3), n_roots, 300, 0.02))
    engine = BitMatrixEngine(SmallDevice(free), GpuSizes().halved(9))
    asked = {}

    def stop(self, plan):
        asked.update(plan.defines)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module._Run, "params", lambda run, *_: stop(run, run.engine.launch_for(0, Form(False, False, False)))
        )
        with pytest.raises(KeyboardInterrupt):
            engine.mine(graph, everything(graph), Search("fingerprint"), Limits(), nowhere)
    return asked["ROW_CAP"], asked["LIST_CAP"]


def test_a_device_without_room_gets_the_shape_that_the_graph_needs():
    usual, smallest = (4 * scratch(1024, length).itemsize for length in (32768, 8192))
    assert planned_shape(2 * usual, 300) == (1024, 32768)
    assert planned_shape(2 * smallest, 300) == (1024, 8192)
    with pytest.raises(DeviceMemoryError, match=r"has 0 MiB free, one block with 1024 rows a warp needs 0 MiB"):
        planned_shape(smallest, 300)


def test_no_second_plan_is_made_where_it_would_be_no_smaller(monkeypatch):
    plans = []

    def full(device, *of_shape):
        plans.append(of_shape[:2])
        raise DeviceMemoryError("the toy is full")

    monkeypatch.setattr(Launch, "plan", full)
    graph = graph_of(random_edges(np.random.default_rng(3), 90, 80, 0.5))
    engine = BitMatrixEngine(EmulatedDevice(), BITMATRIX["oversize"])
    with pytest.raises(DeviceMemoryError, match="the toy is full"):
        engine.mine(graph, everything(graph), Search("count"), Limits(), nowhere)
    assert plans == [(64, 128)]


@pytest.mark.parametrize("search", [Search("count", min_left=20), Search("list", min_left=20)], ids=["count", "list"])
def test_the_hubs_of_a_large_graph_need_no_compiler(search):
    """Of the graph with 10^9 edges of docs/lab/large.md: 5 million roots, and a hub with a million neighbours."""
    needs, shipped_now = Needs(5_305_417, 4 * 940_602 + 4096), set(shipped())
    plain = search.mode == "count"
    form = Form(plain, measured=not plain, sieving=True)
    for level in (0, 1, 2):
        assert Variant.of(form.kernel, defines_of(*shape(level, needs, USUAL), form, USUAL)) in shipped_now
