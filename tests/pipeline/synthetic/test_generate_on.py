"""Where a graph is drawn, and what it takes of a device, whose kernels are emulated."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeline
from kernels.gpu import device as gpu
from pipeline.synthetic import estimating, generate_on, generating
from pipeline.synthetic.drawers import DeviceDrawer
from pipeline.synthetic.generate_on import choose_drawer
from pipeline.synthetic.models import random_graph
from schemas.errors import DeviceMemoryError, InputError, ResourceError
from tests.emulation.device import EmulatedDevice, why_not
from tests.support.random_graphs import graph_of

DEVICE = EmulatedDevice(3)
SMALL: dict[str, Any] = {"n_left": 300, "n_right": 200, "edges": 3000, "plant": [(9, 12), (20, 5)], "seed": 1}


@pytest.fixture
def one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has a GPU, which is emulated."""
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: None)
    monkeypatch.setattr(gpu, "CudaDevice", lambda: DEVICE)


def choose(on: str, **options: Any) -> generate_on.Choice:
    graph = graph_of(**(SMALL | options))
    return choose_drawer(on, graph, random_graph(graph).parts(1 << 22))  # type: ignore[arg-type]


@pytest.mark.usefixtures("one_device")
def test_auto_takes_a_gpu_for_a_large_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose("auto") == (None, "cpu: a GPU pays from 50,000,000 edges on", 0)
    assert choose("cpu") == (None, "cpu: asked for", 0)
    assert choose("gpu")[:2] == (DEVICE, "gpu: asked for")
    monkeypatch.setattr(generate_on, "WORTH_EDGES", 3000)
    assert choose("auto")[:2] == (DEVICE, "gpu: it pays from 3,000 edges on")
    assert choose("auto", edges=2999).device is None
    assert choose("gpu", labels="text").device_bytes == choose("gpu").device_bytes > 3000 * 48


@pytest.mark.parametrize(
    ("why", "free", "says"),
    [
        ("there is no CUDA device", 1 << 33, "there is no CUDA device"),
        (None, 100_000, "it has 0 MiB free, and 0 MiB are needed; --part-edges makes it less"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_refused_or_not_taken(
    why: str | None, free: int, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device = EmulatedDevice()
    device.free_bytes = lambda: free  # type: ignore[method-assign]
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: why)
    monkeypatch.setattr(gpu, "CudaDevice", lambda: device)
    monkeypatch.setattr(generate_on, "WORTH_EDGES", 1)
    assert choose("auto") == (None, f"cpu: {says}", 0)
    with pytest.raises(ResourceError, match=f"^the graph cannot be drawn on a GPU: {says}; choose --generate-on cpu$"):
        choose("gpu")
    with pytest.raises(ResourceError, match=r"choose generate_on='cpu'$"):
        pipeline.generate(tmp_path / "g", **SMALL, generate_on="gpu", progress=False)
    assert not (tmp_path / "g").exists()
    with pytest.raises(InputError, match=r"^--generate-on is 'gpus'; choose one of auto, cpu, gpu$"):
        choose("gpus")


@pytest.mark.parametrize("error", [DeviceMemoryError, MemoryError])
@pytest.mark.parametrize(("when", "what"), [("empty", "a part of 3,000 edges"), ("zeros", "200 right vertices")])
def test_a_device_that_is_full_says_what_to_do(
    when: str, what: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """CuPy raises the second error, in its sort."""

    def full(*_: Any) -> Callable[..., Any]:
        raise error("toy GPU has 1 MiB free, 9 MiB more are needed; use engine='cpu'")

    device = EmulatedDevice()
    monkeypatch.setattr(device, when, full)
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: None)
    monkeypatch.setattr(gpu, "CudaDevice", lambda: device)
    says = f"^the GPU has too little memory to draw {what}; choose generate_on='cpu', or a smaller part_edges$"
    with pytest.raises(ResourceError, match=says):
        pipeline.generate(tmp_path / "g", **SMALL, generate_on="gpu", progress=False)
    assert not (tmp_path / "g").exists()


class CUDARuntimeError(RuntimeError):
    """Has the name of CuPy's errors, by which these are known."""


def busy(*_: Any) -> Any:
    raise CUDARuntimeError("cudaErrorDevicesUnavailable: CUDA-capable device(s) is/are busy or unavailable")


@pytest.mark.parametrize("asked", ["made", "free_bytes"])
def test_a_device_that_another_process_has_for_itself_is_refused_or_not_taken(
    asked: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    device = EmulatedDevice()
    device.free_bytes = busy  # type: ignore[method-assign]
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: None)
    monkeypatch.setattr(gpu, "CudaDevice", busy if asked == "made" else lambda: device)
    monkeypatch.setattr(generate_on, "WORTH_EDGES", 1)
    says = r"it cannot be started \(cudaErrorDevicesUnavailable: .* busy or unavailable\)"
    with pytest.raises(ResourceError, match=f"^the graph cannot be drawn on a GPU: {says}; choose --generate-on cpu$"):
        choose("gpu")
    notes: list[str] = []
    monkeypatch.setattr(generating, "WORTH_EDGES", 1)
    pipeline.generate(tmp_path / "g", **SMALL, progress=lambda progress: notes.append(progress.note))
    assert re.fullmatch(f"drawn on cpu: {says}", notes[0])
    assert not any(notes[1:])


@pytest.mark.parametrize("failing", ["zeros", "resident_blocks", "upload"])
def test_a_device_that_cannot_be_used_leaves_the_graph_that_is_there(
    failing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = pipeline.generate(tmp_path / "g", **SMALL, progress=False)
    device = EmulatedDevice()
    monkeypatch.setattr(device, failing, busy)
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: None)
    monkeypatch.setattr(gpu, "CudaDevice", lambda: device)
    says = r"^the GPU failed when it drew 200 right vertices \(cudaErrorDevicesUn.*\); choose generate_on='cpu'$"
    with pytest.raises(ResourceError, match=says):
        pipeline.generate(tmp_path / "g", **(SMALL | {"seed": 2}), generate_on="gpu", overwrite=True, progress=False)
    assert pipeline.generate(tmp_path / "g", **SMALL, progress=False).fingerprint == before.fingerprint


def test_a_device_that_fails_while_it_draws_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device = EmulatedDevice()
    monkeypatch.setattr(device, "enqueue", busy)
    monkeypatch.setattr(gpu, "why_no_gpu", lambda: None)
    monkeypatch.setattr(gpu, "CudaDevice", lambda: device)
    with pytest.raises(ResourceError, match=r"^the GPU failed when it drew a part of 3,000 edges \(cudaError"):
        pipeline.generate(tmp_path / "g", **SMALL, generate_on="gpu", progress=False)
    assert not (tmp_path / "g").exists()
    monkeypatch.setattr(device, "enqueue", lambda *_: np.zeros(2) + np.zeros(3))  # an error of ours is no sentence
    with pytest.raises(ValueError, match="could not be broadcast"):
        pipeline.generate(tmp_path / "g", **SMALL, generate_on="gpu", progress=False)


@pytest.mark.usefixtures("one_device")
def test_an_estimate_tells_of_the_device() -> None:
    of_model = dict.fromkeys(("left_exponent", "right_exponent", "max_left_degree", "max_right_degree", "quadrants"))
    options = SMALL | of_model | {"model": "chung-lu", "noise": 0, "labels": "integers", "threads": 2}
    on_cpu, on_gpu = (estimating.estimate(**options, generate_on=on) for on in ("cpu", "gpu"))  # type: ignore[arg-type]
    assert (on_cpu.drawn_on, on_cpu.device_bytes) == ("cpu: asked for", 0)
    assert (on_gpu.drawn_on, on_gpu.device_bytes) == ("gpu: asked for", choose("gpu").device_bytes)
    assert on_gpu.seconds < on_cpu.seconds
    assert on_gpu.memory_bytes == on_cpu.memory_bytes


class MeteredDevice(EmulatedDevice):
    """Notes the most memory that was in use, with what CuPy's sort takes: as much as it sorts."""

    most = 0

    def _buffer(self, n_bytes: int) -> np.ndarray:
        handle: np.ndarray = super()._buffer(n_bytes)
        self.most = max(self.most, self.used_bytes())
        return handle

    def view(self, handle: np.ndarray, dtype: Any, start: int, n: int) -> np.ndarray:
        seen: np.ndarray = super().view(handle, dtype, start, n)
        if dtype is np.uint64:
            self.most = max(self.most, self.used_bytes() + seen.nbytes)
        return seen


COMPLETE = {"n_left": 300, "n_right": 200, "edges": 60_000}
PLANTED = {"n_left": 300, "n_right": 1000, "edges": 140_100, "plant": [(140, 990)]}


@pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
@pytest.mark.parametrize("model", ["chung-lu", "rmat"])
@pytest.mark.parametrize(
    "options",
    [
        SMALL,
        COMPLETE,
        PLANTED,
        {"n_left": 9000, "n_right": 9, "edges": 9000},
        {"n_left": 9, "n_right": 9000, "edges": 9000},
    ],
    ids=["small", "complete", "planted", "left", "right"],
)
def test_a_device_takes_no_more_memory_than_was_told(options: dict[str, Any], model: str) -> None:
    graph, device = graph_of(**options, model=model), MeteredDevice()
    drawn = random_graph(graph)
    parts = drawn.parts(1 << 22)
    told = generate_on._needed(graph, parts)
    drawer = DeviceDrawer(drawn, device)
    classes = device.used_bytes() - 4 * graph.n_right  # of right degrees; they hardly grow with the graph
    for part in parts:
        drawer.edges(part)
    assert told / 3 < device.most <= told + classes
