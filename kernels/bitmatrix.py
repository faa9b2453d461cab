"""`BitMatrixEngine`: the bit-column kernel (``cuda/bitmatrix.cu``) behind the slice contract.

A slice is a few launches: one over the pieces handed in, one more for problems that need more scratch
memory than most, and again after the output buffers were emptied. See docs/kernels.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, fields

import numpy as np

from kernels.gpu.device import CudaDevice, Device
from kernels.gpu.items import items_of, subtrees_of
from kernels.gpu.layout import GIVEN, ITEM, PARAMS, QUEUE, RECORD, SIZE
from kernels.gpu.memory import DeviceGraph, GpuSizes, Launch, QueueMemory, search_params
from kernels.gpu.pack import pack
from kernels.gpu.unpack import unpack
from schemas.bicliques import Bicliques
from schemas.dtypes import COUNT, VERTEX
from schemas.errors import ResourceError, SliceTooLargeError
from schemas.graph import MiningGraph
from schemas.sizes import SizeCounts
from schemas.work import Emit, Limits, Search, Slice, Subtrees

__all__ = ["BitMatrixEngine"]

_KERNEL = "bitmatrix"
#: Problems with more rows than a launch allows get this many times more in the next.
_GROWTH = 8
#: Rows of the smallest kernel, unless the sizes say less.
_LEAST_ROWS = 1024
#: `Queue.overflow`: the table of sizes is full.
_SIZES_OVERFLOW = 2


class BitMatrixEngine:
    """Maximal bicliques on one GPU. Not to be shared between threads.

    Parameters
    ----------
    device : Device
        None takes the current CUDA device.
    sizes : GpuSizes
        Of the device memory; see there.

    Raises
    ------
    ResourceError
        Without a usable device, or when the graph and one block's scratch do not fit on it.
    """

    name = "bitmatrix"

    def __init__(self, device: Device | None = None, sizes: GpuSizes | None = None) -> None:
        self._device = device or CudaDevice()
        self._sizes = sizes or GpuSizes()
        self._graph: DeviceGraph | None = None
        self._search: Search | None = None
        self._memory: QueueMemory | None = None
        self._launches: dict[tuple[int, int, bool], Launch] = {}
        self._host = self._device.shared(2)  # stop, count; see `stop` and `found`
        self._found_before = 0

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        started = time.perf_counter()
        if self._graph is None or self._graph.graph is not graph:
            self._launches.clear()
            self._graph = DeviceGraph(self._device, graph, self._sizes.hub_bytes)
        before = self._search or search
        if self._memory is None or (search.mode, search.sizes) != (before.mode, before.sizes):
            self._memory = QueueMemory(self._device, search, self._sizes)
        self._search = search
        self._device.clear(self._memory.size_table)
        self._host[:] = self._found_before = 0
        run = _Run(self, self._device, self._graph, self._memory, search, limits, emit, started)
        run.work(*items_of(graph, subtrees))
        return run.result()

    def stop(self) -> None:
        """From another thread: end the running `mine` early, as if its time were over."""
        self._host[0] = 1

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether `stop` was called since `mine` began."""
        return bool(self._host[0])

    @property
    def found(self) -> int:
        """Bicliques that the running `mine` has reported so far; to be read from another thread."""
        return self._found_before + int(self._host[1])

    def host_params(self, found_before: int) -> dict[str, int]:
        """Where a launch talks to the host; `found_before` were reported by the launches before it."""
        self._host[1], self._found_before = 0, found_before
        at = self._host.ctypes.data
        return {"host_stop": at, "host_count": at + self._host.itemsize}

    def launch_for(self, level: int, plain: bool) -> Launch:
        """The launch whose problems may have ``_GROWTH ** level`` times the rows of the first.

        ``plain`` picks the kernel that does nothing but count.
        """
        assert self._graph is not None
        rows = min(self._sizes.row_cap * _GROWTH**level, max(self._graph.max_rows + 128, _LEAST_ROWS))
        lists = min(self._sizes.list_cap * _GROWTH**level, 4 * self._graph.max_root_degree + 4096)
        key = (1 << (rows - 1).bit_length(), 1 << (lists - 1).bit_length(), plain)  # few shapes: each is compiled
        if key not in self._launches:
            if level:
                self._launches.clear()  # one shape at a time: scratch is most of the memory
            self._launches[key] = Launch.plan(self._device, _KERNEL, *key, self._sizes)
        return self._launches[key]

    def can_grow(self, level: int) -> bool:
        """Whether a launch after `level` would allow more than that one."""
        assert self._graph is not None
        factor = _GROWTH**level
        return (
            self._sizes.row_cap * factor < self._graph.max_rows + 128
            or self._sizes.list_cap * factor < 4 * self._graph.max_root_degree + 4096
        )


@dataclass
class _Run:
    """One slice."""

    engine: BitMatrixEngine
    device: Device
    graph: DeviceGraph
    memory: QueueMemory
    search: Search
    limits: Limits
    emit: Emit
    started: float
    count: int = 0
    fingerprint: int = 0
    stats: dict[str, float] = field(default_factory=lambda: {"kernel_s": 0.0, "busy_s": 0.0, "launches": 0.0})
    rest: list[Subtrees] = field(default_factory=list)
    busy_ticks: float = 0.0
    open_ticks: float = 0.0

    def work(self, items: np.ndarray, pool: np.ndarray, level: int = 0) -> None:
        """Launch until the items are done or a limit is reached; what is left goes to `rest`.

        Every level gets one launch, however late it is: a slice gets on, whatever it was given.
        """
        launched = False
        while len(items):
            if self._is_over(launched):
                self.rest.append(subtrees_of(self.graph.graph, items, pool))
                return
            launch = self.engine.launch_for(level, self._is_plain())
            queue = self._launch(launch, items, pool)
            launched = True
            begun = min(int(queue["head"]), len(items))
            n_pool = min(int(queue["pool"]), self.memory.sizes.pool)
            pool = self.device.read(self.memory.pool, VERTEX, 0, n_pool)
            oversize = self.device.read(self.memory.oversize, ITEM, 0, int(queue["oversize"]))
            waiting = self._unserved(queue)
            left = self.device.read(self.memory.left_over, ITEM, 0, int(queue["left_over"]))
            items = np.concatenate([waiting, left, items[begun:]])
            if len(oversize):
                self._grow(oversize, pool, level)

    def _grow(self, oversize: np.ndarray, pool: np.ndarray, level: int) -> None:
        if not self.engine.can_grow(level):
            raise ResourceError("a problem does not fit although the launch allowed every row: a bug, please report it")
        self.work(oversize, pool, level + 1)

    def _is_over(self, launched: bool) -> bool:
        late = self.limits.seconds is not None and time.perf_counter() - self.started >= self.limits.seconds
        late = late or self.engine.is_asked_to_stop
        return (launched and late) or (self.stats["launches"] > 0 and self._rows_left() == 0)

    def _is_plain(self) -> bool:
        search = self.search
        return search.mode == "count" and search.is_plain and not search.sizes and self.limits.rows is None

    def _rows_left(self) -> int:
        return -1 if self.limits.rows is None else self.limits.rows - self.count

    def _launch(self, launch: Launch, items: np.ndarray, pool: np.ndarray) -> np.void:
        memory, device = self.memory, self.device
        if len(pool) > memory.sizes.pool:
            raise SliceTooLargeError(
                f"{len(pool)} listed vertices do not fit into a pool of {memory.sizes.pool}; use GpuSizes(pool=...)"
            )
        device_items = device.upload(items)
        start = np.zeros(1, QUEUE)
        start["open"], start["pool"] = len(items), len(pool)
        start["rows_left"] = max(self._rows_left(), 0)
        device.write(memory.queue, start)
        device.write(memory.pool, pool)
        device.clear(memory.ready)
        params = np.zeros(1, PARAMS)
        values = self.graph.params | memory.params | search_params(self.graph.graph, self.search)
        values |= {"items": device.address(device_items), "n_items": len(items), "n_warps": launch.n_warps}
        values |= self.engine.host_params(self.count)
        values |= {"scratch": device.address(launch.scratch), "limited": self.limits.rows is not None}
        if self.limits.seconds is not None:
            left = self.limits.seconds - (time.perf_counter() - self.started)
            values["deadline_ns"] = max(1_000_000, int(left * 1e9))
        for name, value in values.items():
            params[name] = value
        device.write(memory.params_block, params)
        seconds = device.launch(
            _KERNEL, launch.defines, launch.n_blocks, 32 * launch.n_warps // launch.n_blocks, memory.params_block
        )
        queue = device.read(memory.queue, QUEUE, 0, 1)[0]
        self._account(queue, seconds, launch)
        if self.search.mode == "list":
            self._hand_out(queue)
        return queue

    def _account(self, queue: np.void, seconds: float, launch: Launch) -> None:
        sizes = self.memory.sizes
        if queue["overflow"] == _SIZES_OVERFLOW:
            raise ResourceError(f"there are more than {sizes.size_slots} sizes; use GpuSizes(size_slots=...)")
        if queue["overflow"]:
            raise SliceTooLargeError(
                f"{int(queue['left_over'])} unfinished nodes or {int(queue['pool'])} listed vertices did not fit into "
                f"{sizes.left_over} and {sizes.pool}; use larger GpuSizes"
            )
        self.count += int(queue["count"])
        self.fingerprint = (self.fingerprint + int(queue["fingerprint"])) % 2**64
        self.stats["launches"] += 1
        self.stats["kernel_s"] += seconds
        self.stats["given"] = self.stats.get("given", 0) + int(queue["given"])
        self.stats["tests"] = self.stats.get("tests", 0) + int(queue["tests"])
        self.busy_ticks += float(queue["busy"])
        self.open_ticks += float(queue["longest"]) * launch.n_warps

    def _hand_out(self, queue: np.void) -> None:
        device, memory = self.device, self.memory
        n_records = min(int(queue["rows"]), memory.sizes.records)
        n_values = min(int(queue["values"]), memory.sizes.values)
        try:
            batch = pack(
                device.xp,
                self.graph.members(device.xp),
                device.view(memory.records, np.uint8, 0, n_records * RECORD.itemsize),
                device.view(memory.values, VERTEX, 0, n_values),
            )
            if not getattr(self.emit, "on_device", False):
                batch = Bicliques(*(device.download(getattr(batch, field.name)) for field in fields(batch)))
        except MemoryError:  # a small device: the host has room for it
            records = device.read(memory.records, RECORD, 0, n_records)
            batch = unpack(self.graph.graph, records, device.read(memory.values, VERTEX, 0, n_values))
        if len(batch):
            self.emit(batch)

    def _unserved(self, queue: np.void) -> np.ndarray:
        """Items that were given away and that nobody took before the launch ended."""
        given = int(queue["tail"])
        ready = self.device.read(self.memory.ready, np.int32, 0, given)
        return self.device.read(self.memory.given, ITEM, 0, given)[ready == GIVEN]

    def result(self) -> Slice:
        self.stats["seconds"] = time.perf_counter() - self.started
        self.stats["busy_ratio"] = self.busy_ticks / self.open_ticks if self.open_ticks else 1.0
        fingerprint = self.fingerprint if self.search.mode != "count" else None
        sizes = self._size_counts() if self.search.sizes else None
        return Slice(self.count, fingerprint, Subtrees.concat(self.rest), self.stats, sizes)

    def _size_counts(self) -> SizeCounts:
        slots = self.device.read(self.memory.size_table, SIZE, 0, self.memory.sizes.size_slots)
        slots = slots[slots["key"] > 0]
        n_base, n_root = slots["key"] >> np.uint64(32), slots["key"] & np.uint64(0xFFFFFFFF)
        left, right = (n_root, n_base) if self.graph.graph.root_side == "left" else (n_base, n_root)
        return SizeCounts.of(left, right, slots["count"].astype(COUNT))
