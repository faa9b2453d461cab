"""Device memory of a search besides the graph: queue, lists and output. Buffers that are too small grow."""

from __future__ import annotations

from collections.abc import Mapping
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

    Parameters
    ----------
    sizes : S
        Lengths of the buffers at the beginning. The attribute has the lengths that they have grown to.
    queue : dtype
        Type of the record that all warps of a launch share.
    table : mapping of str to Buffer
        A name is also the launch parameter that tells the kernel where the buffer is.

    Raises
    ------
    DeviceMemoryError
        The buffers do not fit on the device.
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
