"""The GPUs of this machine that a call uses, and the most memory that it takes on them."""

from __future__ import annotations

import operator
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from typing import Any

from bicliques.kernels.gpu.nvml import named_devices, numbered_devices
from bicliques.schemas.errors import InputError, ResourceError, as_option

#: How a user names GPUs: a number, several numbers, or text as on the command line, ``"0,1"``.
Devices = int | str | Sequence[int]


def device_numbers(devices: Devices) -> tuple[int, ...]:
    """The numbers of the GPUs that are named. They count the visible GPUs from 0."""
    named = devices.split(",") if isinstance(devices, str) else [devices] if isinstance(devices, int) else devices
    try:
        numbers = tuple(int(number) if isinstance(number, str) else operator.index(number) for number in named)
    except (TypeError, ValueError):
        numbers = ()
    if not numbers or min(numbers) < 0:
        raise InputError(f"GPUs are numbers from 0, as 0,1 or [0, 1], not {devices!r}; correct {as_option('devices')}")
    return numbers


def visible_devices() -> list[str]:
    """The GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them. Empty if there is none.

    If that variable is not set, NVML is asked for the number of GPUs, and where it does not know, the CUDA driver.
    """
    named = named_devices()
    if named is not None:
        return named
    if find_spec("cupy") is None:
        return []
    numbered = numbered_devices()
    if numbered is not None:
        return list(numbered)
    import cupy

    try:
        return [str(k) for k in range(cupy.cuda.runtime.getDeviceCount())]
    except cupy.cuda.runtime.CUDARuntimeError:
        return []


def choose_devices(devices: Devices | None, workers: int | None) -> list[str]:
    """The GPUs to start a worker on, as ``CUDA_VISIBLE_DEVICES`` names them.

    Parameters
    ----------
    devices : int, str, sequence of int or None
        See `device_numbers`. None: all visible GPUs.
    workers : int or None
        Use only the first `workers` of them. None: all.
    """
    visible = visible_devices()
    if not visible:
        raise ResourceError(f"a GPU engine was asked for, but no GPU is visible; choose {as_option('engine', 'cpu')}")
    chosen = list(range(len(visible))) if devices is None else list(device_numbers(devices))
    for device in chosen:
        if device not in range(len(visible)):
            there = "GPU 0 only" if len(visible) == 1 else f"GPUs 0 to {len(visible) - 1}"
            raise InputError(f"there is no GPU {device} here, {there}; correct {as_option('devices')}")
    if len(set(chosen)) < len(chosen):
        raise InputError(f"a GPU is named twice in {chosen}; one worker per GPU is all it can serve")
    if workers is not None and workers > len(chosen):
        raise InputError(
            f"{workers} workers need a GPU each, and there are {len(chosen)}; lower {as_option('workers')}"
        )
    return [visible[device] for device in chosen[:workers]]


#: Where CuPy reads the limit of the pools that it makes. Worker processes inherit it.
_VARIABLE = "CUPY_GPU_MEMORY_LIMIT"
#: Bytes of a device that a process takes besides CuPy's pool: the context, machine code, stacks of kernels, and what
#: libcudf keeps. An H200 had 2.8 GB of them at most (docs/lab/large.md); a smaller device has fewer threads, and so
#: smaller stacks.
_BESIDES = 3 * 1000**3
_LEAST = _BESIDES + 1000**3
_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_UNITS |= {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?|)B?\s*")


def pool_bytes(device_memory: str) -> int:
    """Bytes that are left for CuPy's pool of a size such as 16GB, 12.5GiB or 4000000000."""
    found = _SIZE.fullmatch(device_memory) if isinstance(device_memory, str) else None
    if found is None:
        raise InputError(
            f"the device memory is a size as 16GB or 12GiB, not {device_memory!r}; correct {as_option('device_memory')}"
        )
    n_bytes = int(float(found[1]) * _UNITS[found[2]])
    if n_bytes < _LEAST:
        raise InputError(
            f"the device memory is at least {_LEAST // 1000**3}GB, not {device_memory}, because CUDA and libcudf take "
            f"up to {_BESIDES // 1000**3}GB of it; raise {as_option('device_memory')}, or use "
            f"{as_option('engine', 'cpu')}"
        )
    return n_bytes - _BESIDES


def limited(device_memory: str | None) -> AbstractContextManager[None]:
    """Within it, this process and those that it starts take no more of a device.

    What libcudf takes for a moment is not limited. It follows from the pieces in which edges are read.

    Parameters
    ----------
    device_memory : str or None
        See `pool_bytes`. None: there is no limit but the device.
    """
    return nullcontext() if device_memory is None else pool_of(pool_bytes(device_memory))


@contextmanager
def pool_of(n_bytes: int) -> Iterator[None]:
    """Have CuPy's pool take no more, and `kernels.gpu.device.free_memory` tell no more than what is left of it."""
    before, own = os.environ.get(_VARIABLE), _limit_of_pool()
    os.environ[_VARIABLE] = str(n_bytes)
    _limit_pool(n_bytes)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VARIABLE]
        else:
            os.environ[_VARIABLE] = before
        _limit_pool(own)


def _limit_of_pool() -> int:
    """The limit of the pool of this process, in bytes. 0 if it has none, or there is no pool yet."""
    pool = _pool()
    return 0 if pool is None else int(pool.get_limit())


def _limit_pool(n_bytes: int) -> None:
    """Set the limit of the pool, if there is one. A pool that is made later finds its limit in the environment."""
    pool = _pool()
    if pool is not None:
        pool.set_limit(size=n_bytes)


def _pool() -> Any | None:
    """CuPy's pool on the current device, if CuPy is loaded and there is a device. It is not loaded for that."""
    if "cupy" not in sys.modules:
        return None
    from bicliques.kernels.gpu.device import why_no_gpu

    if why_no_gpu() is not None:
        return None
    import cupy

    return cupy.get_default_memory_pool()
