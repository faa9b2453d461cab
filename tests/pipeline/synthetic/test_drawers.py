"""A device draws the very edges that the cores draw. It is emulated; tests/gpu has a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pipeline
from kernels.compiled.random_rows import Rows
from kernels.gpu import device as gpu
from kernels.gpu.random_edges import EdgeDrawer
from pipeline.synthetic.drawers import DeviceDrawer, HostDrawer
from pipeline.synthetic.models import random_graph
from pipeline.synthetic.wanted import Wanted
from schemas.errors import InputError
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.examples import examples
from tests.support.random_graphs import CASES, graph_of, key, mix, word

emulated = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

DEVICE = EmulatedDevice(3)
SMALL: dict[str, Any] = {"n_left": 300, "n_right": 200, "edges": 3000, "plant": [(9, 12), (20, 5)], "seed": 1}
HUBS = {"n_left": 3000, "n_right": 2500, "edges": 30_000, "left_exponent": "2.1", "max_left_degree": 2000}
BROAD = {"n_left": 70_000, "n_right": 70_000, "edges": 90_000}
LAST = ("0.1", "0.1", "0.1", "0.7")


def assert_same(graph: Wanted, part_edges: int) -> int:
    """Draws every part on both. Returns how many rows the device left to the host."""
    drawn = random_graph(graph)
    host, device, redrawn = HostDrawer(drawn), DeviceDrawer(drawn, DEVICE), 0
    redraw = device._redrawn

    def noted(rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        nonlocal redrawn
        redrawn += len(rows.vertices)
        return redraw(rows)

    device._redrawn = noted  # type: ignore[method-assign]
    for part in drawn.parts(part_edges):
        expected, found = host.edges(part), device.edges(part)
        host.count(expected.neighbours)
        device.count(found.neighbours)
        assert np.array_equal(found.left, expected.left)
        assert np.array_equal(found.right, expected.right)
        assert np.array_equal(found.left_degrees, expected.left_degrees)
        assert found.fingerprint == expected.fingerprint
        assert (found.left.dtype, found.right.dtype) == (np.int32, np.int32)
    assert np.array_equal(device.right_degrees(), host.right_degrees())
    return redrawn


@emulated
@pytest.mark.parametrize("model", ["chung-lu", "rmat"])
@pytest.mark.parametrize("case", CASES)
def test_a_device_draws_the_edges_of_the_host_in_parts_of_any_size(case: str, model: str) -> None:
    graph = graph_of(model=model, **CASES[case])
    assert assert_same(graph, 1 << 22) == assert_same(graph, 97)


def test_where_the_neighbours_of_a_part_begin_is_added_up_once() -> None:
    drawn = random_graph(graph_of(**SMALL))
    rows = drawn.rows(drawn.parts(1 << 22)[0])
    assert rows.indptr is rows.indptr
    assert rows.spaces is rows.spaces


@emulated
@pytest.mark.parametrize(
    "options",
    [HUBS, BROAD, BROAD | {"model": "rmat"}, {"model": "rmat", "n_left": 900, "n_right": 4000, "edges": 60_000}],
)
def test_hubs_and_vertices_with_one_edge_are_drawn_as_on_the_host(options: dict[str, Any]) -> None:
    assert_same(graph_of(**options), 20_000)


@emulated
@pytest.mark.parametrize(
    ("edges", "quadrants"),
    [(100, LAST), (140, LAST), (130, ("0", "0", "0", "1")), (60, ("0.7", "0", "0.3", "0"))],
)
def test_rows_that_the_order_decides_are_left_to_the_host(edges: int, quadrants: tuple[str, ...]) -> None:
    """In the last case all draws lead to one vertex, and rows have different sizes."""
    graph = graph_of(model="rmat", n_left=13, n_right=11, edges=edges, quadrants=quadrants)
    assert assert_same(graph, 30) > 0


def repeats_of(graph: Wanted, right_stubs: list[int]) -> int:
    """Repeats before the last draw of left vertex 0, which has two neighbours."""
    own = mix(key(graph.seed, "rows") ^ 0)
    return next(k for k in range(10_000) if right_stubs[word(own, k) % len(right_stubs)] == 1)


@emulated
@pytest.mark.parametrize("repeats", [62, 63, 64, 65])
def test_the_number_of_tries_is_that_of_the_host(repeats: int) -> None:
    """One left vertex has two neighbours, and one of the two right vertices has one end of 201."""
    stubs = [0] * 200 + [1]
    seed = next(s for s in range(10**5) if repeats_of(graph_of(**TWO, seed=s), stubs) == repeats and meets_only_0(s))
    assert assert_same(graph_of(**TWO, seed=seed), 1 << 22) == (repeats >= 64)


TWO = {"n_left": 200, "n_right": 2, "edges": 201, "max_right_degree": 200, "max_left_degree": 2}


def meets_only_0(seed: int) -> bool:
    """Whether both stubs of left vertex 0 lead to right vertex 0, so that it draws."""
    graph = graph_of(**TWO, seed=seed)
    own = random_graph(graph)
    first = own.rows(own.parts(1)[0])
    return first.degrees[0] == 2 and 200 not in [leads_to(graph, stub) for stub in (0, 1)]


def leads_to(graph: Wanted, x: int) -> int:
    keys, (height, width, n), *_ = random_graph(graph).model
    i, j = divmod(x, width)
    for k in (0, 2):
        i = (i + ((mix(int(keys[k]) ^ j) >> 32) * height >> 32)) % height
        j = (j + ((mix(int(keys[k + 1]) ^ i) >> 32) * width >> 32)) % width
    return leads_to(graph, i * width + j) if i * width + j >= n else i * width + j


ROW: dict[str, Any] = {"model": "rmat", "n_left": 1, "n_right": 1 << 20, "edges": 180}
ROW["quadrants"] = ("0.46875", "0.015625", "0.5", "0.015625")


def draws_of(graph: Wanted) -> Iterator[int]:
    """Right vertices that the only left vertex draws, one after the other; a first half has 62 of 64 chances."""
    own, k = mix(key(graph.seed, "rows")), 0
    while True:
        v, size, level = 0, graph.n_right, 0
        while size > 1:
            bits = word(own, 16 * k + level // 2) >> (40 if level % 2 == 0 else 16) & (1 << 24) - 1
            half = (size + 1) // 2
            v, size = (v, half) if bits < 62 << 18 else (v + half, size - half)
            level += 1
        yield v
        k += 1


@emulated
def test_rows_are_left_to_the_host_if_and_only_if_64_draws_are_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    """And every set keeps the first draw of each vertex. So neither depends on which thread comes to a vertex first."""
    sets: list[np.ndarray] = []
    enqueue = EdgeDrawer._enqueue

    def noted(drawer: EdgeDrawer, phase: int, n: int, fields: dict[str, Any], *rest: int, **numbers: int) -> None:
        if "sets" in fields and "done" in fields:
            sets[:] = [DEVICE.read(fields["sets"], np.uint64, 0, 2 * ROW["edges"])]
        enqueue(drawer, phase, n, fields, *rest, **numbers)

    monkeypatch.setattr(EdgeDrawer, "_enqueue", noted)
    outcomes = []
    for seed in range(20):
        graph = graph_of(**ROW, seed=seed)
        first, in_vain, most = dict[int, int](), 0, 0
        for k, v in enumerate(draws_of(graph)):
            in_vain = in_vain + 1 if v in first else 0
            most = max(most, in_vain)
            first.setdefault(v, k)
            if len(first) == graph.edges or most == 64:
                break
        outcomes.append(most == 64)
        assert assert_same(graph, 1 << 22) == outcomes[-1]
        found = {int(entry) >> 32: (int(entry) & 0xFFFFFFFF) - 2 for entry in sets[0] if int(entry) != 2**64 - 1}
        assert {v: found[v] for v in first} == first
    assert 3 < sum(outcomes) < 17


@emulated
@settings(max_examples=examples(60), deadline=None)
@given(
    sizes=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    share=st.floats(0.01, 1),
    model=st.sampled_from(["chung-lu", "rmat"]),
    plant=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=3),
    noise=st.sampled_from(["0", "0.2", "1"]),
    exponent=st.sampled_from([None, "1.3", "2.1", "4"]),
    quadrants=st.sampled_from([None, LAST, ("0.9", "0.05", "0.05", "0"), ("0.25", "0.25", "0.25", "0.25")]),
    part_edges=st.sampled_from([1, 50, 1 << 22]),
    seed=st.integers(0, 2**64 - 1),
)
def test_any_graph_is_that_of_the_host(
    sizes: tuple[int, int],
    share: float,
    model: str,
    plant: list[tuple[int, int]],
    noise: str,
    exponent: str | None,
    quadrants: tuple[str, ...] | None,
    part_edges: int,
    seed: int,
) -> None:
    n_left, n_right = sizes
    own = {"right_exponent": exponent} if model == "chung-lu" else {"quadrants": quadrants}
    edges = max(round(share * n_left * n_right), 1)
    try:
        graph = graph_of(
            model=model,
            n_left=n_left,
            n_right=n_right,
            edges=edges,
            plant=plant,
            noise=noise if plant else 0,
            seed=seed,
            **own,
        )
        random_graph(graph)
    except InputError:
        assume(False)
    assert_same(graph, part_edges)


@pytest.fixture
def one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has a GPU, which is emulated."""
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: None)
    monkeypatch.setattr(gpu, "CudaDevice", lambda: DEVICE)


def content(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


@emulated
@pytest.mark.usefixtures("one_device")
@pytest.mark.parametrize("labels", ["integers", "text"])
@pytest.mark.parametrize("model", ["chung-lu", "rmat"])
def test_all_files_are_those_of_the_cpu(model: Any, labels: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = SMALL | {"model": model, "labels": labels, "part_edges": 400, "progress": False}
    for on, threads in (("cpu", 1), ("gpu", 3)):
        pipeline.generate(tmp_path / on, **options, threads=threads, generate_on=on)  # type: ignore[arg-type]
    assert len(content(tmp_path / "gpu")) > 8
    assert content(tmp_path / "gpu") == content(tmp_path / "cpu")
