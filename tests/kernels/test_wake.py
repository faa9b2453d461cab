"""The CUDA driver starts on a thread, and a process makes a context only where it will use it."""

import ctypes
import os
import sys
import threading
import types
from importlib.machinery import ModuleSpec

import pytest

from bicliques.kernels.gpu.cuda import wake
from bicliques.kernels.gpu.nvml import VARIABLE, numbered_devices
from bicliques.pipeline.cli.main import main
from bicliques.pipeline.workers.devices import visible_devices
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.platform import Platform


class Driver:
    """A driver with some devices, and what it was asked."""

    def __init__(self, devices: int, error: int = 0):
        self.devices, self.error, self.asked, self.threads = devices, error, [], set()
        self.saw = None

    def cuInit(self, flags: int) -> int:
        self.threads.add(threading.current_thread())
        self.saw = seen_in_c()
        self.asked.append("start")
        return self.error

    def cuDeviceGetCount(self, found) -> int:
        found._obj.value = self.devices
        return 0

    def cuDevicePrimaryCtxRetain(self, context, device: int) -> int:
        assert isinstance(context._obj, ctypes.c_void_p)
        self.asked.append(f"context {device}")
        return 0


C = ctypes.CDLL(None)
C.getenv.restype = ctypes.c_char_p


def seen_in_c() -> bytes | None:
    """The variable as a library sees it. `os.environ` is a copy."""
    seen = C.getenv(b"CUDA_VISIBLE_DEVICES")
    return seen


def woken(monkeypatch: pytest.MonkeyPatch, driver: Driver, only_first: bool = False) -> list[str]:
    monkeypatch.setattr("ctypes.CDLL", {"libcuda.so.1": driver}.__getitem__)
    wake.cache_clear()
    wake(only_first).join(60)
    assert wake(only_first) is wake(only_first), "once is enough"
    assert threading.current_thread() not in driver.threads
    wake.cache_clear()
    return driver.asked


@pytest.mark.parametrize("devices", [1, 2])
def test_the_context_of_the_first_device_is_made(monkeypatch, devices):
    assert woken(monkeypatch, Driver(devices)) == ["start", "context 0"]


def test_without_a_device_no_context_is_made(monkeypatch):
    assert woken(monkeypatch, Driver(0)) == ["start"]
    assert woken(monkeypatch, Driver(1, error=100)) == ["start"]


def test_without_a_driver_nothing_happens(monkeypatch):
    def missing(name: str):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    wake.cache_clear()
    wake().join(60)
    wake.cache_clear()


@pytest.mark.parametrize(
    ("named", "there", "seen"),
    [
        ("3,1", None, b"3"),
        ("GPU-a1,GPU-b2", None, b"GPU-a1"),
        ("2", None, b"2"),
        ("", None, b""),
        (None, ("0", "1", "2", "3"), b"0"),
        (None, ("0",), None),
        (None, None, None),
    ],
)
def test_a_command_starts_the_first_device_and_leaves_the_variable(monkeypatch, named, there, seen):
    if named is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, named)
    monkeypatch.setattr("bicliques.kernels.gpu.cuda.numbered_devices", lambda: there)
    driver, before = Driver(2), seen_in_c()
    assert woken(monkeypatch, driver, only_first=True) == ["start", "context 0"]
    assert (driver.saw, seen_in_c(), os.environ.get(VARIABLE)) == (seen, before, named)
    assert woken(monkeypatch, other := Driver(2)) == ["start", "context 0"]
    assert other.saw == before, "others use all devices"


class Nvml:
    """NVML on a machine with such devices: may be used, may not, or divided."""

    def __init__(self, devices: str):
        self.devices, self.nvmlErrorString = devices, lambda code: b"Insufficient Permissions"

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetCount_v2(self, found) -> int:
        found._obj.value = len(self.devices)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, number, handle) -> int:
        handle._obj.value = number.value + 1
        return 4 if self.devices[number.value] == "x" else 0

    def nvmlDeviceGetMigMode(self, handle, now, later) -> int:
        now._obj.value = self.devices[handle.value - 1] == "m"
        return 3 if self.devices[handle.value - 1] == "." else 0  # older ones know no instances


@pytest.mark.parametrize(
    ("devices", "known"),
    [("....", ["0", "1", "2", "3"]), ("..n", ["0", "1", "2"]), ("", []), (".x", None), (".m", None)],
)
def test_nvml_tells_the_number_of_devices_unless_cuda_may_show_others(monkeypatch, devices, known):
    asked = []
    runtime = types.SimpleNamespace(getDeviceCount=lambda: asked.append("CUDA") or 1, CUDARuntimeError=RuntimeError)
    cupy = types.ModuleType("cupy")
    cupy.__spec__ = ModuleSpec("cupy", None)
    cupy.__dict__["cuda"] = types.SimpleNamespace(runtime=runtime)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr("ctypes.CDLL", {"libnvidia-ml.so.1": Nvml(devices)}.__getitem__)
    monkeypatch.delenv(VARIABLE, raising=False)
    numbered_devices.cache_clear()
    try:
        assert visible_devices() == (["0"] if known is None else known)
        assert asked == (["CUDA"] if known is None else [])
        monkeypatch.setenv(VARIABLE, " 1, -1,MIG-c3")
        assert visible_devices() == ["1", "MIG-c3"]
    finally:
        numbered_devices.cache_clear()


def refuse(scheduler: str, platform: Platform):
    raise ResourceError(f"nobody is at {scheduler}")


@pytest.mark.parametrize(
    ("words", "wakes"),
    [
        ([], True),
        (["--engine", "bitmatrix"], True),
        (["--workers", "0"], True),
        (["--engine", "cpu"], False),
        (["--workers", "2"], True),
        (["--devices", "0,1"], True),
        (["--devices", "1,0"], False),
        (["--rmm-pool", "1GB"], False),
        (["--scheduler", "tcp://localhost:1"], False),
    ],
)
def test_a_command_wakes_the_device_that_it_may_use(monkeypatch, words, wakes):
    called = []  # with whether this process uses the first device only
    monkeypatch.setattr("bicliques.kernels.gpu.cuda.wake", called.append)
    monkeypatch.setattr("bicliques.pipeline.workers.opening._connect", refuse)  # a scheduler has a minute to answer
    assert main(["count", "no-such-file", *words]) != 0
    assert set(called) == ({False} if wakes else set()), "whoever calls `main` may use other devices"
    monkeypatch.setattr("sys.argv", ["bicliques", "count", "no-such-file", *words])
    monkeypatch.setattr("bicliques.pipeline.cli.program.leave_out", lambda: None)
    called.clear()
    assert main() != 0
    assert set(called) == ({True} if wakes else set())
