"""Starts the CUDA driver while the process does something else."""

from __future__ import annotations

import ctypes
import functools
import threading
from contextlib import suppress

__all__ = ["wake"]


@functools.cache
def wake() -> threading.Thread:
    """Start the CUDA driver on a thread. Where it can be started, later calls find it ready; no error is raised.

    The thread also makes the context of the first device, the one that CuPy and cuDF use.
    """
    thread = threading.Thread(target=_start_driver, name="wake", daemon=True)
    thread.start()
    return thread


def _start_driver() -> None:
    with suppress(OSError, AttributeError):  # whoever needs the device says what is wrong with it
        driver = ctypes.CDLL("libcuda.so.1")
        devices = ctypes.c_int()
        if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(devices)) == 0 and devices.value > 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)
