"""Device memory of a search besides the graph: queue, lists and output. Buffers that are too small grow.

Large arrays are copied through page-locked memory. The driver copies pageable memory on one thread. Here several
threads copy to or from two page-locked buffers, while the device copies the other buffer.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, Generic, TypeVar

import numpy as np

from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.sizes import Buffer, Sizes, entries_of
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.search import Search

#: A buffer that is too short becomes so many times as long, if that takes at most this share of the free memory.
_FACTOR, _SHARE = 4, 0.25

#: The knobs of an engine.
S = TypeVar("S", bound=Sizes)


class Buffers(Generic[S]):
    """The arrays of a search, by name.

    Raises `DeviceMemoryError`: the buffers do not fit on the device.

    Parameters
    ----------
    sizes : S
        Lengths of the buffers at the beginning. The attribute has the lengths that they have grown to.
    queue : dtype
        Type of the record that all warps of a launch share.
    table : mapping of str to Buffer
        A name is also the launch parameter that tells the kernel where the buffer is.
    """

    def __init__(self, device: Device, search: Search, sizes: S, queue: np.dtype, table: Mapping[str, Buffer]) -> None:
        self.sizes = sizes
        self.queue_dtype = queue
        self.queue = device.zeros(1, queue)
        self._device, self._table = device, table
        self._search = search
        self._handles: dict[str, Any] = {name: self._new(name) for name in table}

    def __getitem__(self, name: str) -> Any:
        return self._handles[name]

    def entries(self, name: str) -> int:
        """How many entries a buffer has. 0 when this search does not use it."""
        return entries_of(self._table[name], self.sizes, self._search)

    @property
    def params(self) -> dict[str, int]:
        """Launch parameters: where the buffers are, and how long they are."""
        values = {"queue": self._device.address(self.queue)}
        for name, buffer in self._table.items():
            values[buffer.length] = self.entries(name)
            values[name] = self._device.address(self._handles[name]) if values[buffer.length] else 0
        return values

    def grow(self, knob: str, least: int = 0) -> bool:
        """Make the buffers of a knob four times as long, and at least `least` entries. Their content is lost.

        Returns
        -------
        bool
            False when the device has no room for that. Then the buffers are as long as before.
        """
        names = [name for name, buffer in self._table.items() if buffer.knob == knob and self.entries(name)]
        before: int = getattr(self.sizes, knob)
        width = sum(np.dtype(self._table[name].dtype).itemsize for name in names)
        room = int(_SHARE * (self._device.free_bytes() + before * width))
        after = max(_FACTOR * before, 1 << (max(least, 1) - 1).bit_length())
        if not names or after * width > room:
            return False
        try:
            self._resize(knob, after, names)
        except DeviceMemoryError:  # free memory may be in pieces
            self._resize(knob, before, names)
            return False
        return True

    def _resize(self, knob: str, n: int, names: list[str]) -> None:
        self.sizes = self.sizes._replace(**{knob: n})
        for name in names:
            self._handles[name] = None  # first, because otherwise old and new would both need memory
        for name in names:
            self._handles[name] = self._new(name)

    def _new(self, name: str) -> Any:
        return self._device.empty(max(self.entries(name), 1), self._table[name].dtype)


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
