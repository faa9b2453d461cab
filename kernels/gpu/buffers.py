"""Device memory of a search besides the graph: queue, lists and output, which grow when they turn out too small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from kernels.gpu.device import Device
from kernels.gpu.sizes import Sizes
from schemas.errors import DeviceMemoryError
from schemas.search import Search

__all__ = ["Buffer", "Buffers"]

#: How many times as long a buffer becomes that was too short, and the share of the free memory that it may take.
_FACTOR, _SHARE = 4, 0.25

#: The knobs of an engine.
S = TypeVar("S", bound=Sizes)


class Buffer(NamedTuple):
    """One array on the device.

    Parameters
    ----------
    knob : str
        The field of the sizes that says how many entries it has; several buffers may share one.
    dtype : dtype
    length : str
        The launch parameter that says how many entries it has.
    when : "always", "listing" or "sizing"
        In which searches it is used; it has one entry in the others.
    """

    knob: str
    dtype: np.dtype | type
    length: str
    when: Literal["always", "listing", "sizing"] = "always"


class Buffers(Generic[S]):
    """The arrays of a search, by name.

    Parameters
    ----------
    device : Device
    search : Search
    sizes : S
        First lengths of the buffers; what they have grown to later.
    queue : dtype
        Of the record that all warps of a launch share.
    table : mapping of str to Buffer
        A name is also the launch parameter that says where the buffer is.

    Raises
    ------
    DeviceMemoryError
        If they do not fit on the device.
    """

    def __init__(self, device: Device, search: Search, sizes: S, queue: np.dtype, table: Mapping[str, Buffer]) -> None:
        self.sizes = sizes
        self.queue_dtype = queue
        self.queue = device.zeros(1, queue)
        self._device, self._table = device, table
        self._used = {"always": True, "listing": search.mode == "list", "sizing": search.sizes}
        self._handles: dict[str, Any] = {name: self._new(name) for name in table}

    def __getitem__(self, name: str) -> Any:
        return self._handles[name]

    def entries(self, name: str) -> int:
        """How many entries a buffer has; 0 when this search does not use it."""
        buffer = self._table[name]
        return int(getattr(self.sizes, buffer.knob)) if self._used[buffer.when] else 0

    @property
    def params(self) -> dict[str, int]:
        """Where the buffers are and how long they are, for a launch."""
        values = {"queue": self._device.address(self.queue)}
        for name, buffer in self._table.items():
            is_used = self._used[buffer.when]
            values[name] = self._device.address(self._handles[name]) if is_used else 0
            values[buffer.length] = self.entries(name)
        return values

    def grow(self, knob: str, least: int = 0) -> bool:
        """Make the buffers of a knob four times as long, and at least `least` entries; their content is lost.

        Returns
        -------
        bool
            False when the device has no room for that; they are as long as before then.
        """
        names = [name for name, buffer in self._table.items() if buffer.knob == knob and self._used[buffer.when]]
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
            self._handles[name] = None  # first, or both would need memory
        for name in names:
            self._handles[name] = self._new(name)

    def _new(self, name: str) -> Any:
        return self._device.empty(max(self.entries(name), 1), self._table[name].dtype)
