"""The four functions of NVML, NVIDIA's library of device counters, that the energy of a GPU needs.

They are called through ctypes. The Python package for NVML declares all of its functions, and the import of that takes
longer than many a search. Reference: https://docs.nvidia.com/deploy/nvml-api
"""

from __future__ import annotations

import ctypes
from typing import Any

__all__ = ["Nvml"]

#: Bytes of the longest UUID, NVML_DEVICE_UUID_V2_BUFFER_SIZE.
_UUID_BYTES = 96


class Nvml:
    """NVML, ready to be used.

    Parameters
    ----------
    library : object or None
        What has NVML's functions, by their names in C. None: the library that comes with NVIDIA's driver.

    Raises
    ------
    OSError
        Here and in all methods, if there is no such library, or NVML refuses the call. The error says why.
    """

    def __init__(self, library: Any = None):
        self._library = ctypes.CDLL("libnvidia-ml.so.1") if library is None else library
        self._call("nvmlInit_v2")

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

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            text = self._library.nvmlErrorString
            text.restype = ctypes.c_char_p
            raise OSError(f"{name}: {text(code).decode()}")
