"""The most device memory that a call takes, in this process and in the worker processes that it starts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from schemas.errors import InputError

__all__ = ["bytes_of", "limited"]

#: Where CuPy reads the limit of the pools that it makes. Worker processes inherit it.
_VARIABLE = "CUPY_GPU_MEMORY_LIMIT"
_UNITS = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}
_UNITS |= {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?|)B?\s*")


def bytes_of(text: str) -> int:
    """A size such as 16GB, 12.5GiB or 4000000000 in bytes.

    Raises
    ------
    InputError
        It is no size, or less than a byte.
    """
    found = _SIZE.fullmatch(text) if isinstance(text, str) else None
    n_bytes = int(float(found[1]) * _UNITS[found[2]]) if found else 0
    if n_bytes < 1:
        raise InputError(f"the device memory is a size as 16GB or 12GiB, not {text!r}; correct --device-memory")
    return n_bytes


@contextmanager
def limited(device_memory: str | None) -> Iterator[None]:
    """Have `kernels.gpu.device.free_memory` tell no more than what is left of a limit, and CuPy take no more.

    What libcudf needs besides is not limited. It follows from the pieces in which edges are read.

    Parameters
    ----------
    device_memory : str or None
        See `bytes_of`. None: there is no limit but the device.
    """
    if device_memory is None:
        yield
        return
    before, own, n_bytes = os.environ.get(_VARIABLE), _limit_of_pool(), bytes_of(device_memory)
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
    from kernels.gpu.device import why_no_gpu

    if why_no_gpu() is not None:
        return None
    import cupy

    return cupy.get_default_memory_pool()
