"""Copies of large arrays between main memory and a device, through page-locked memory.

The driver copies pageable memory on one thread. Here several threads copy to or from two page-locked buffers, while the
device copies the other buffer.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import numpy as np

#: Bytes of each of the two buffers, and the number of threads that fill or empty them.
_BYTES, _COPIERS = 32 << 20, 8


class Staging:
    """Two buffers of page-locked memory. One thread may use them."""

    def __init__(self, cupy: ModuleType):
        self._cupy = cupy
        self._stream = cupy.cuda.get_current_stream()
        self._buffers = [
            np.frombuffer(cupy.cuda.alloc_pinned_memory(_BYTES), dtype=np.uint8, count=_BYTES) for _ in range(2)
        ]
        self._events = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]

    def upload(self, host: np.ndarray) -> Any:
        """A device copy of an array of main memory. It has one dimension."""
        raw = np.ascontiguousarray(host).view(np.uint8)
        device = self._cupy.empty(len(raw), dtype=np.uint8)
        with ThreadPoolExecutor(_COPIERS) as threads:
            for k, start in enumerate(range(0, len(raw), _BYTES)):
                part = raw[start : start + _BYTES]
                buffer = self._buffers[k % 2][: len(part)]
                self._events[k % 2].synchronize()  # wait for the copy before
                _copy(part, buffer, threads)
                device[start : start + _BYTES].set(buffer, stream=self._stream)
                self._events[k % 2].record(self._stream)
        return device.view(host.dtype)

    def download(self, array: Any) -> np.ndarray:
        """The array in main memory. It has one dimension. It synchronises."""
        host = np.empty(array.shape, array.dtype)
        raw, target = self._cupy.ascontiguousarray(array).view(np.uint8), host.view(np.uint8)
        starts = range(0, len(raw), _BYTES)
        with ThreadPoolExecutor(_COPIERS) as threads:
            for k in range(len(starts) + 1):
                if k < len(starts):
                    part = raw[starts[k] : starts[k] + _BYTES]
                    part.get(stream=self._stream, out=self._buffers[k % 2][: len(part)], blocking=False)
                    self._events[k % 2].record(self._stream)
                if k > 0:
                    into = target[starts[k - 1] : starts[k - 1] + _BYTES]
                    self._events[(k - 1) % 2].synchronize()
                    _copy(self._buffers[(k - 1) % 2][: len(into)], into, threads)
        return host


def _copy(source: np.ndarray, target: np.ndarray, threads: ThreadPoolExecutor) -> None:
    cuts = np.linspace(0, len(source), _COPIERS + 1).astype(int)
    list(threads.map(lambda a, b: np.copyto(target[a:b], source[a:b]), cuts[:-1], cuts[1:]))
