"""`BitMatrixEngine`: the bit-column kernel (``cuda/bitmatrix.cu``) behind the slice contract.

A slice is a few launches: one over the pieces handed in, one more for problems that need more scratch
memory than most, and again after the output buffers were emptied. See docs/kernels.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from kernels.gpu.device import CudaDevice, Device
from kernels.gpu.items import compacted, compile_for, items_of, subtrees_of
from kernels.gpu.layout import GIVEN, ITEM, PARAMS, parameters
from kernels.gpu.memory import DeviceGraph, GpuSizes, Launch, QueueMemory
from kernels.gpu.slice_run import SliceRun
from schemas.errors import ResourceError
from schemas.graph import MiningGraph
from schemas.work import Emit, Limits, Search, Slice, Subtrees

__all__ = ["BitMatrixEngine"]

_KERNEL = "bitmatrix"
#: Problems with more rows than a launch allows get this many times more in the next.
_GROWTH = 8
#: Share of the pool that may be in use before what nobody refers to is thrown away, between two launches.
_FULL = 0.25
#: Rows of the smallest kernel, unless the sizes say less.
_LEAST_ROWS = 1024


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
        self._launches: dict[tuple[int, int, bool, bool], Launch] = {}
        self._host = self._device.shared(2)  # stop, count; see `stop` and `found`
        self._found_before = 0

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        started = time.perf_counter()
        with self._device.active():
            if self._graph is None or self._graph.graph is not graph:
                self._launches.clear()
                self._graph = DeviceGraph(self._device, graph, self._sizes.hub_bytes)
                compile_for(graph)
            before = self._search or search
            if self._memory is None or (search.mode, search.sizes) != (before.mode, before.sizes):
                self._memory = QueueMemory(self._device, search, self._sizes)
            self._search = search
            self._device.clear(self._memory.size_table)
            self._host[:] = self._found_before = 0
            run = _Run(self._device, self._graph, self._memory, self._sizes, search, limits, emit, started, engine=self)
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

    def launch_for(self, level: int, plain: bool, measured: bool) -> Launch:
        """The launch whose problems may have ``_GROWTH ** level`` times the rows of the first.

        ``plain`` picks the kernel that does nothing but count, ``measured`` one that also counts members.
        """
        assert self._graph is not None
        rows = min(self._sizes.row_cap * _GROWTH**level, max(self._graph.max_rows + 128, _LEAST_ROWS))
        lists = min(self._sizes.list_cap * _GROWTH**level, 4 * self._graph.max_root_degree + 4096)
        # few shapes: each is compiled
        key = (1 << (rows - 1).bit_length(), 1 << (lists - 1).bit_length(), plain, measured)
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
class _Run(SliceRun[QueueMemory, GpuSizes]):
    """One slice."""

    engine: BitMatrixEngine = field(kw_only=True)
    rest: list[Subtrees] = field(default_factory=list)
    busy_ticks: float = 0.0
    counters: dict[str, int] = field(default_factory=lambda: {"given": 0, "tests": 0})

    def work(self, items: np.ndarray, pool: np.ndarray, level: int = 0) -> None:
        """Launch until the items are done or a limit is reached; what is left goes to `rest`.

        Every level gets one launch, however late it is: a slice gets on, whatever it was given.
        """
        launched = False
        self.list_vertices(pool)
        while len(items):
            if self._is_over(launched):
                self.rest.append(subtrees_of(self.graph.graph, items, self.listed()))
                return
            queue = self._launch(self.engine.launch_for(level, self.is_plain, self.is_measured), items)
            launched = True
            begun = min(int(queue["head"]), len(items))
            oversize = self.device.read(self.memory.oversize, ITEM, 0, int(queue["oversize"]))
            waiting = self._unserved(queue)
            left = self.device.read(self.memory.left_over, ITEM, 0, int(queue["left_over"]))
            items = np.concatenate([waiting, left, items[begun:]])
            if len(oversize) or (len(items) and self.n_listed > _FULL * self.sizes.pool):
                listed = self.listed()
                items, pool = compacted(items, listed)
                if len(oversize):
                    self._grow(*compacted(oversize, listed), level)
                self.list_vertices(pool)

    def _grow(self, oversize: np.ndarray, pool: np.ndarray, level: int) -> None:
        if not self.engine.can_grow(level):
            raise ResourceError("a problem does not fit although the launch allowed every row: a bug, please report it")
        self.work(oversize, pool, level + 1)

    def _is_over(self, launched: bool) -> bool:
        late = self.is_late or self.engine.is_asked_to_stop
        return (launched and late) or (self.launches > 0 and self.rows_left == 0)

    def _launch(self, launch: Launch, items: np.ndarray) -> np.void:
        device = self.device
        device_items = self.begin(items)
        device.clear(self.memory.ready)
        values = self.params(device.address(device_items), len(items)) | self.engine.host_params(self.count)
        values |= {"n_warps": launch.n_warps, "scratch": device.address(launch.scratch)}
        values["record_chunk"] = launch.record_chunk
        values["pool_limit"] = (self.n_listed + self.sizes.pool) // 2
        threads = 32 * launch.n_warps // launch.n_blocks
        seconds = device.launch(_KERNEL, launch.defines, launch.n_blocks, threads, parameters(PARAMS, values))
        queue = self.end(seconds, launch.n_warps)
        self.busy_ticks += float(queue["busy"])
        for name in self.counters:
            self.counters[name] += int(queue[name])
        return queue

    def _unserved(self, queue: np.void) -> np.ndarray:
        """Items that were given away and that nobody took before the launch ended."""
        given = int(queue["tail"])
        ready = self.device.read(self.memory.ready, np.int32, 0, given)
        return self.device.read(self.memory.given, ITEM, 0, given)[ready == GIVEN]

    def result(self) -> Slice:
        stats = {name: float(n) for name, n in self.counters.items()}
        stats["busy_ratio"] = self.busy_ticks / self.open_ticks if self.open_ticks else 1.0
        return self.slice(Subtrees.concat(self.rest), stats)
