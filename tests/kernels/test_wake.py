"""The CUDA driver starts on a thread, and a process makes a context only where it will use it."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest

from kernels.gpu.wake import wake
from pipeline.cli.main import main
from schemas.errors import ResourceError
from schemas.platform import Platform


class Driver:
    """A driver with some devices, and what it was asked."""

    def __init__(self, devices: int, error: int = 0):
        self.devices, self.error, self.asked, self.threads = devices, error, [], set()

    def cuInit(self, flags: int) -> int:
        self.threads.add(threading.current_thread())
        self.asked.append("start")
        return self.error

    def cuDeviceGetCount(self, found: Any) -> int:
        found._obj.value = self.devices
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> int:
        assert isinstance(context._obj, ctypes.c_void_p)
        self.asked.append(f"context {device}")
        return 0


def woken(monkeypatch: pytest.MonkeyPatch, driver: Driver) -> list[str]:
    monkeypatch.setattr("ctypes.CDLL", {"libcuda.so.1": driver}.__getitem__)
    wake.cache_clear()
    wake().join(60)
    assert wake() is wake(), "once is enough"
    assert threading.current_thread() not in driver.threads
    wake.cache_clear()
    return driver.asked


@pytest.mark.parametrize("devices", [1, 2])
def test_the_context_of_the_first_device_is_made(monkeypatch: pytest.MonkeyPatch, devices: int) -> None:
    assert woken(monkeypatch, Driver(devices)) == ["start", "context 0"]


def test_without_a_device_no_context_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    assert woken(monkeypatch, Driver(0)) == ["start"]
    assert woken(monkeypatch, Driver(1, error=100)) == ["start"]


def test_without_a_driver_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    wake.cache_clear()
    wake().join(60)
    wake.cache_clear()


def refuse(scheduler: str, platform: Platform) -> None:
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
def test_a_command_wakes_the_device_that_it_may_use(
    monkeypatch: pytest.MonkeyPatch, words: list[str], wakes: bool
) -> None:
    called: list[bool] = []
    monkeypatch.setattr("kernels.gpu.wake.wake", lambda: called.append(True))
    monkeypatch.setattr("pipeline.workers.opening._connect", refuse)  # a scheduler has a minute to answer
    assert main(["count", "no-such-file", *words]) != 0
    assert bool(called) is wakes
