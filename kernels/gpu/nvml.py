"""The GPUs that CUDA shows to this process, and their number and energy by NVML, NVIDIA's library of counters.

Its functions are called through ctypes. The Python package for NVML declares all of them, and the import of that takes
longer than many a search. Reference: https://docs.nvidia.com/deploy/nvml-api

CUDA is not started for it. To start it takes a quarter of a second for each GPU that the process sees
(docs/lab/scaling.md).
"""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

#: Bytes of the longest UUID, NVML_DEVICE_UUID_V2_BUFFER_SIZE.
_UUID_BYTES = 96
#: NVML_ERROR_NOT_SUPPORTED
_NOT_SUPPORTED = 3


class Nvml:
    """NVML, ready to be used.

    Raises `OSError`: here and in all methods, if there is no such library, or NVML refuses the call. The error says
    why.

    Parameters
    ----------
    library : object or None
        What has NVML's functions, by their names in C. None: the library that comes with NVIDIA's driver.
    """

    def __init__(self, library: Any = None):
        self._library = ctypes.CDLL("libnvidia-ml.so.1") if library is None else library
        self._call("nvmlInit_v2")

    def count(self) -> int:
        """How many devices the machine has, those included that this process may not use."""
        found = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(found))
        return found.value

    def device_at(self, number: int) -> ctypes.c_void_p:
        """The device with this number, which need not be its number for CUDA."""
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(number), ctypes.byref(handle))
        return handle

    def is_divided(self, device: ctypes.c_void_p) -> bool:
        """Whether a device is divided into instances (MIG)."""
        now, later = ctypes.c_uint(), ctypes.c_uint()
        words = (device, ctypes.byref(now), ctypes.byref(later))
        return self._call("nvmlDeviceGetMigMode", *words, may_fail=_NOT_SUPPORTED) == 0 and bool(now.value)

    def device(self, bus: str) -> ctypes.c_void_p:
        """The device at this PCI bus address."""
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByPciBusId_v2", bus.encode(), ctypes.byref(handle))
        return handle

    def uuid(self, device: ctypes.c_void_p) -> str:
        """The identity of a device, as `nvidia-smi -L` shows it."""
        text = ctypes.create_string_buffer(_UUID_BYTES)
        self._call("nvmlDeviceGetUUID", device, text, ctypes.c_uint(_UUID_BYTES))
        return text.value.decode()

    def millijoules(self, device: ctypes.c_void_p) -> int:
        """Energy since the driver was loaded."""
        found = ctypes.c_ulonglong()
        self._call("nvmlDeviceGetTotalEnergyConsumption", device, ctypes.byref(found))
        return found.value

    def milliwatts(self, device: ctypes.c_void_p) -> int:
        """The driver's reading of the power."""
        found = ctypes.c_uint()
        self._call("nvmlDeviceGetPowerUsage", device, ctypes.byref(found))
        return found.value

    def _call(self, name: str, *arguments: Any, may_fail: int = 0) -> int:
        """Call a function. Returns its code, which is 0 or `may_fail`."""
        code = int(getattr(self._library, name)(*arguments))
        if code not in (0, may_fail):
            text = self._library.nvmlErrorString
            text.restype = ctypes.c_char_p
            raise OSError(f"{name}: {text(code).decode()}")
        return code


#: The variable that tells CUDA which GPUs it may show, and in which order.
VARIABLE = "CUDA_VISIBLE_DEVICES"


def named_devices() -> list[str] | None:
    """The GPUs that `VARIABLE` names. None if it is not set; then CUDA shows all that there are."""
    named = os.environ.get(VARIABLE)
    return None if named is None else [name.strip() for name in named.split(",") if name.strip() not in ("", "-1")]


@functools.cache
def numbered_devices() -> tuple[str, ...] | None:
    """All GPUs of this machine as `VARIABLE` would name them: ``"0"``, ``"1"``, and so on.

    None if only CUDA knows: where there is no NVML, where this process may not use some GPU of the machine, and where a
    GPU is divided into instances (MIG), of which CUDA shows one.
    """
    try:
        nvml = Nvml()
        devices = [nvml.device_at(k) for k in range(nvml.count())]
        is_divided = any(nvml.is_divided(device) for device in devices)
    except OSError:
        return None
    return None if is_divided else tuple(map(str, range(len(devices))))
