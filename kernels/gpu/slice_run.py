"""What a slice is on a GPU, whichever the engine: launches one after the other, their limits, counters and output."""

from __future__ import annotations

import time
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

import numpy as np

from kernels.gpu.cumbe_memory import CumbeMemory, CumbeSizes
from kernels.gpu.device import Device
from kernels.gpu.layout import RECORD, SIZE
from kernels.gpu.memory import DeviceGraph, GpuSizes, QueueMemory, search_params
from kernels.gpu.pack import pack
from kernels.gpu.unpack import unpack
from schemas.bicliques import Bicliques
from schemas.dtypes import COUNT, VERTEX
from schemas.errors import DeviceMemoryError, ResourceError, SliceTooLargeError
from schemas.sizes import SizeCounts
from schemas.work import Emit, Limits, Search, Slice, Subtrees

__all__ = ["SliceRun"]

#: ``overflow`` of both queues: the table of sizes is full.
_SIZES_OVERFLOW = 2


#: Memory and sizes of the engine.
M = TypeVar("M", QueueMemory, CumbeMemory)
S = TypeVar("S", GpuSizes, CumbeSizes)


@dataclass
class SliceRun(Generic[M, S]):
    """One slice; engines add how items are made, launched and read back.

    Parameters
    ----------
    started : float
        `time.perf_counter` when the slice began: its seconds count from there.
    count, fingerprint, launches, kernel_s
        So far.
    n_listed : int
        Vertices of the pool on the device.
    open_ticks : float
        Clock ticks of the longest-living warp or block of each launch, by how many there were.
    """

    device: Device
    graph: DeviceGraph
    memory: M
    sizes: S
    search: Search
    limits: Limits
    emit: Emit
    started: float
    count: int = 0
    fingerprint: int = 0
    launches: int = 0
    kernel_s: float = 0.0
    n_listed: int = 0
    open_ticks: float = 0.0

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        return self.limits.seconds is not None and time.perf_counter() - self.started >= self.limits.seconds

    @property
    def rows_left(self) -> int:
        """Bicliques that may still be reported; -1 without a limit."""
        return -1 if self.limits.rows is None else self.limits.rows - self.count

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the count is wanted, and every biclique counts."""
        return self.search.mode == "count" and not self.is_measured and self.limits.rows is None

    @property
    def is_measured(self) -> bool:
        """Whether the members of bicliques are counted, because their sizes are limited or asked for."""
        return self.search.sizes or not self.search.is_plain

    def list_vertices(self, pool: np.ndarray) -> None:
        """Put the lists that items refer to on the device."""
        if len(pool) > self.sizes.pool:
            raise SliceTooLargeError(
                f"{len(pool)} listed vertices do not fit into a pool of {self.sizes.pool}; "
                f"use {type(self.sizes).__name__}(pool=...)"
            )
        self.device.write(self.memory.pool, pool)
        self.n_listed = len(pool)

    def listed(self) -> np.ndarray:
        """The pool as it is on the device."""
        return self.device.read(self.memory.pool, VERTEX, 0, self.n_listed)

    def begin(self, items: np.ndarray) -> Any:
        """Put a queue of items on the device, whose lists are there; the handle of the items."""
        start = np.zeros(1, self.memory.QUEUE)
        start["open"], start["pool"] = len(items), self.n_listed
        start["rows_left"] = max(self.rows_left, 0)
        self.device.write(self.memory.queue, start)
        return self.device.upload(items)

    def params(self, items_at: int, n_items: int) -> dict[str, int]:
        """Of a launch, but for what only one engine has."""
        values = self.graph.params | self.memory.params | search_params(self.graph.graph, self.search)
        values |= {"items": items_at, "n_items": n_items, "limited": self.limits.rows is not None}
        if self.limits.seconds is not None:
            left = self.limits.seconds - (time.perf_counter() - self.started)
            values["deadline_ns"] = max(1_000_000, int(left * 1e9))
        return values

    def end(self, seconds: float, n_workers: int) -> np.void:
        """Add up a launch of so many warps or blocks, and hand its bicliques out; its queue."""
        queue: np.void = self.device.read(self.memory.queue, self.memory.QUEUE, 0, 1)[0]
        sizes, name = self.sizes, type(self.sizes).__name__
        if queue["overflow"] == _SIZES_OVERFLOW:
            raise ResourceError(f"there are more than {sizes.size_slots} sizes; use {name}(size_slots=...)")
        if queue["overflow"]:
            raise SliceTooLargeError(
                f"{int(queue['left_over'])} unfinished nodes or {int(queue['pool'])} listed vertices did not fit into "
                f"{sizes.left_over} and {sizes.pool}; use larger {name}"
            )
        self.n_listed = min(int(queue["pool"]), sizes.pool)
        self.count += int(queue["count"])
        self.fingerprint = (self.fingerprint + int(queue["fingerprint"])) % 2**64
        self.launches += 1
        self.kernel_s += seconds
        self.open_ticks += float(queue["longest"]) * n_workers
        if self.search.mode == "list":
            self._hand_out(queue)
        return queue

    def slice(self, rest: Subtrees, stats: dict[str, float]) -> Slice:
        """What the engine returns."""
        stats |= {
            "seconds": time.perf_counter() - self.started,
            "kernel_s": self.kernel_s,
            "launches": float(self.launches),
        }
        fingerprint = self.fingerprint if self.search.mode != "count" else None
        sizes = self._size_counts() if self.search.sizes else None
        return Slice(self.count, fingerprint, rest, stats, sizes)

    def _hand_out(self, queue: np.void) -> None:
        device, memory = self.device, self.memory
        n_records = min(int(queue["rows"]), self.sizes.records)
        if n_records == 0:
            return
        try:
            batch = pack(device, self.graph.members(device), memory.records, n_records, memory.values)
            if not getattr(self.emit, "on_device", False):
                batch = Bicliques(*(device.download(getattr(batch, field.name)) for field in fields(batch)))
        except (MemoryError, DeviceMemoryError):  # a small device: the host has room for it
            n_values = min(int(queue["values"]), self.sizes.values)
            records = device.read(memory.records, RECORD, 0, n_records)
            batch = unpack(self.graph.graph, records, device.read(memory.values, VERTEX, 0, n_values))
        if len(batch):
            self.emit(batch)

    def _size_counts(self) -> SizeCounts:
        slots = self.device.read(self.memory.size_table, SIZE, 0, self.sizes.size_slots)
        slots = slots[slots["key"] > 0]
        n_base, n_root = slots["key"] >> np.uint64(32), slots["key"] & np.uint64(0xFFFFFFFF)
        left, right = (n_root, n_base) if self.graph.graph.root_side == "left" else (n_base, n_root)
        return SizeCounts.of(left, right, slots["count"].astype(COUNT))
