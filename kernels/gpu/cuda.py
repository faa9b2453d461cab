"""CUDA GPUs, as far as whoever runs engines on them has to know."""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from bicliques.kernels.gpu.nvml import VARIABLE, named_devices, numbered_devices
from bicliques.schemas.platform import Platform


@functools.cache
def wake(only_first: bool = False) -> threading.Thread:
    """Start the CUDA driver on a thread. Where it can be started, later calls find it ready; no error is raised.

    The thread also makes the context of the first device, the one that CuPy and cuDF use.

    Parameters
    ----------
    only_first : bool
        Whether this process will use no other device, so that the driver need not start the others, which takes a
        quarter of a second for each.
    """
    thread = threading.Thread(target=_start_driver, args=(only_first,), name="wake", daemon=True)
    thread.start()
    return thread


def _start_driver(only_first: bool) -> None:
    with suppress(OSError, AttributeError):  # whoever needs the device says what is wrong with it
        driver = ctypes.CDLL("libcuda.so.1")
        devices = ctypes.c_int()
        with _seeing_the_first() if only_first else nullcontext():
            is_started = driver.cuInit(0) == 0
        if is_started and driver.cuDeviceGetCount(ctypes.byref(devices)) == 0 and devices.value > 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0)


@contextmanager
def _seeing_the_first() -> Iterator[None]:
    """Let the driver find only the first device in its variable, which it reads once, when it starts.

    `os.environ` stays as it is, because it tells the rest of this process, and the processes of workers, which devices
    there are. If that is not known without the driver, nothing is changed.
    """
    named = named_devices()
    there = named if named is not None else numbered_devices() or []
    if len(there) < 2:
        yield
        return
    os.putenv(VARIABLE, there[0])
    try:
        yield
    finally:
        if VARIABLE in os.environ:
            os.putenv(VARIABLE, os.environ[VARIABLE])
        else:
            os.unsetenv(VARIABLE)


#: Share of the free device memory that the scratch memory of a search may take.
SCRATCH_SHARE = 0.6


def _why_absent() -> str | None:
    from bicliques.kernels.gpu.device import why_no_gpu

    return why_no_gpu()


def _release() -> None:
    from bicliques.kernels.gpu.device import release_memory

    release_memory()


def _free_bytes() -> int | None:
    from bicliques.kernels.gpu.device import CudaDevice

    return CudaDevice().free_bytes() if _why_absent() is None else None


def _wake(only_first: bool) -> None:

    wake(only_first)


#: CUDA GPUs, one worker each.
CUDA = Platform(
    name="cuda",
    devices="gpus",
    why_absent=_why_absent,
    release=_release,
    free_bytes=_free_bytes,
    wake=_wake,
    shares_engine=True,
    slices_in_hand=2,
    most_halvings=4,  # to a sixteenth
    timed_roots=0,
    leaves_cores=True,
    is_used_by_driver=False,
    works_with_cudf=True,
    energy_counter="NVML",
    fatal_errors=frozenset({"CUDARuntimeError", "CUDADriverError"}),
)
