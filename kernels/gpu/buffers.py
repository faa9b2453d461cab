"""Buffers on the device where the launches of a search list bicliques."""

from __future__ import annotations

import numpy as np

from kernels.gpu.device import Device
from kernels.gpu.layout import RECORD
from schemas.dtypes import VERTEX

__all__ = ["OutputBuffers"]

#: Buffers grow to at most this share of the free memory: what they hold is packed beside them, and written from there.
_SHARE = 1 / 32
#: Of the buffers; a launch that has used more was stopped by that (`output.cuh`).
_NEARLY_FULL = 7 / 8


class OutputBuffers:
    """Vertices of bicliques, and a record for each; one entry each where nothing is listed.

    Parameters
    ----------
    device : Device
    n_values, n_records : int
        How many vertices and bicliques there is room for; 0: nothing is listed.
    """

    def __init__(self, device: Device, n_values: int, n_records: int) -> None:
        self._device = device
        self._allocate(n_values, n_records)

    @property
    def params(self) -> dict[str, int]:
        """Of a launch."""
        return {
            "values": self._device.address(self.values),
            "records": self._device.address(self.records),
            "n_values": self.n_values,
            "n_records": self.n_records,
        }

    def grow(self, used: np.void) -> None:
        """Make room for twice as much if a launch, whose queue is `used`, nearly filled them; what they hold is lost.

        Every launch that ends because they are full costs a millisecond (docs/kernels.md). But whoever takes the
        bicliques waits for the first launch, so they are not large from the beginning.
        """
        is_full = used["values"] > _NEARLY_FULL * self.n_values or used["rows"] > _NEARLY_FULL * self.n_records
        n_bytes = 2 * (VERTEX.itemsize * self.n_values + RECORD.itemsize * self.n_records)
        if is_full and n_bytes <= _SHARE * self._device.free_bytes():
            self._allocate(2 * self.n_values, 2 * self.n_records)

    def _allocate(self, n_values: int, n_records: int) -> None:
        self.n_values, self.n_records = n_values, n_records
        self.values = self._device.empty(max(n_values, 1), VERTEX)
        self.records = self._device.empty(max(n_records, 1), RECORD)
