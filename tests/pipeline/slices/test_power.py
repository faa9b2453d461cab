"""NVML and RAPL give energy, also where a counter wraps. Where nothing can be read there is a reason."""

import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

from bicliques.kernels.gpu.nvml import Nvml
from bicliques.pipeline.slices.power import NvmlCounter, PowerMeter, RaplCounter, gpu_counter, processor_counter


class Driver:
    """The functions of NVML that are used, for a device that takes 100 W, and once 250 W."""

    def __init__(self) -> None:
        self.joules, self.begun = 5, False
        self.milliwatts = iter([100_000, 250_000])
        self.nvmlErrorString = lambda code: {2: b"Invalid Argument"}[code]

    def nvmlInit_v2(self) -> int:
        self.begun = True
        return 0

    def nvmlDeviceGetHandleByPciBusId_v2(self, bus: bytes, handle: Any) -> int:
        handle._obj.value = 77 if self.begun else 0
        return 0 if bus == b"0000:1B:00.0" else 2

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, n: Any) -> int:
        text.value = b"GPU-7"
        return 0 if handle.value == 77 and n.value == len(text) else 2

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, found: Any) -> int:
        self.joules += 1
        found._obj.value = 2**33 + 1500 * self.joules  # more than 32 bits
        return 0 if handle.value == 77 else 2

    def nvmlDeviceGetPowerUsage(self, handle: Any, found: Any) -> int:
        found._obj.value = next(self.milliwatts, 100_000)
        return 0 if handle.value == 77 else 2


def of_a_device() -> NvmlCounter:
    return NvmlCounter(Nvml(Driver()), "0000:1B:00.0")


def domain(folder: Path, number: int, name: str, microjoules: int) -> Path:
    path = folder / f"intel-rapl:{number}"
    path.mkdir(parents=True)
    (path / "name").write_text(f"{name}\n")
    (path / "energy_uj").write_text(f"{microjoules}\n")
    (path / "max_energy_range_uj").write_text("1000000\n")
    return path


def device(monkeypatch: pytest.MonkeyPatch, bus: str = "0000:1B:00.0") -> None:
    current = types.SimpleNamespace(Device=lambda: types.SimpleNamespace(pci_bus_id=bus))
    monkeypatch.setitem(sys.modules, "cupy", types.SimpleNamespace(cuda=current))
    monkeypatch.setattr("ctypes.CDLL", lambda name: {"libnvidia-ml.so.1": Driver()}[name])


def test_gpu_joules_are_a_counter_difference_and_the_peak_a_reading(monkeypatch):
    device(monkeypatch)
    counter = gpu_counter()
    assert isinstance(counter, NvmlCounter)
    assert counter.name == "GPU-7"
    seen = threading.Event()
    watts = counter.watts

    def read() -> float | None:
        value = watts()
        if value == 250.0:
            seen.set()
        return value

    monkeypatch.setattr(counter, "watts", read)
    with PowerMeter(counter, 0.001).stretch() as measured:
        assert seen.wait(60)
        assert not measured.done()
    usage = measured.result(60)
    assert usage.joules == pytest.approx(1.5)  # two looks at a counter that grows by 1.5 J per look
    assert usage.peak_watts >= 250.0
    assert usage.mean_watts == pytest.approx(usage.joules / usage.seconds)


def test_a_block_that_raises_an_error_is_measured() -> None:
    meter = PowerMeter(of_a_device(), 0.001)
    with pytest.raises(ValueError, match="boom"), meter.stretch() as measured:
        raise ValueError("boom")
    assert measured.result(60).joules > 0


def test_the_measured_block_does_not_wait_for_the_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, go = of_a_device(), threading.Event()
    joules = counter.joules
    monkeypatch.setattr(counter, "joules", lambda: joules() if go.wait(60) else 0.0)
    with PowerMeter(counter).stretch() as measured:
        pass
    assert not measured.done()
    go.set()
    assert measured.result(60).joules == pytest.approx(1.5)


def test_the_error_of_a_counter_comes_with_its_result_not_in_the_measured_block(monkeypatch):
    counter = of_a_device()
    monkeypatch.setattr(counter, "joules", lambda: 1 / 0)
    with PowerMeter(counter).stretch() as measured:
        pass
    with pytest.raises(ZeroDivisionError):
        measured.result(10)


def test_the_reason_for_no_gpu_counter_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    device(monkeypatch)
    monkeypatch.setattr("ctypes.CDLL", no_library)
    assert gpu_counter() == "NVML gives no energy counter (libnvidia-ml.so.1: cannot open shared object file)"
    monkeypatch.setitem(sys.modules, "cupy", None)
    assert gpu_counter() == "cupy is not installed"


def no_library(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


def test_a_device_without_a_counter_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    device(monkeypatch, "ffff:00:00.0")
    reason = "NVML gives no energy counter (nvmlDeviceGetHandleByPciBusId_v2: Invalid Argument)"
    assert gpu_counter() == reason
    device(monkeypatch)  # an older device, which has only a name
    monkeypatch.setattr(Driver, "nvmlDeviceGetTotalEnergyConsumption", lambda *_: 2)
    assert gpu_counter() == "NVML gives no energy counter (nvmlDeviceGetTotalEnergyConsumption: Invalid Argument)"


def test_joules_of_all_processor_packages_add_up_also_when_a_counter_wraps(tmp_path: Path) -> None:
    first, second = domain(tmp_path, 0, "package-0", 900_000), domain(tmp_path, 1, "package-1", 100)
    domain(tmp_path, 2, "dram", 5)
    counter = processor_counter(tmp_path)
    assert isinstance(counter, RaplCounter)
    assert counter.joules() == 0.0
    (first / "energy_uj").write_text("100000")  # past the end of its range: 200,000 microjoules more
    (second / "energy_uj").write_text("300100")
    assert counter.joules() == pytest.approx(0.5)
    (first / "energy_uj").write_text("600000")
    assert counter.joules() == pytest.approx(1.0)
    assert counter.watts() is None


def test_machines_without_rapl_have_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert processor_counter(tmp_path) == f"{tmp_path} has no RAPL domain of a processor package"
    domain(tmp_path, 0, "package-0", 0)

    read = Path.read_text

    def refused(path: Path) -> str:
        if path.name == "energy_uj":
            raise PermissionError(13, "Permission denied", "energy_uj")
        return read(path)

    monkeypatch.setattr(Path, "read_text", refused)
    assert processor_counter(tmp_path) == "RAPL may not be read (Permission denied: energy_uj)"
