"""`CumbeEngine`: the published GPU algorithm (``cuda/cumbe.cu``) behind the slice contract.

The baseline of the papers, and the subject of their ablation: `CumbeSizes` switches each optimisation off. See
docs/kernels.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from kernels.gpu.cumbe_items import cumbe_items_of, cumbe_subtrees_of
from kernels.gpu.cumbe_layout import CUMBE_ITEM, CUMBE_PARAMS, CUMBE_QUEUE, PHASES
from kernels.gpu.cumbe_memory import Arenas, Bounds, CumbeMemory, CumbeSizes
from kernels.gpu.device import CudaDevice, Device
from kernels.gpu.layout import RECORD, SIZE
from kernels.gpu.memory import DeviceGraph, search_params
from kernels.gpu.unpack import unpack
from schemas.dtypes import COUNT, VERTEX
from schemas.errors import ResourceError, SliceTooLargeError
from schemas.graph import MiningGraph
from schemas.sizes import SizeCounts
from schemas.work import Emit, Limits, Search, Slice, Subtrees

__all__ = ["CumbeEngine"]

_KERNEL = "cumbe"
#: `CumbeQueue.overflow`: the table of sizes is full.
_SIZES_OVERFLOW = 2


class CumbeEngine:
    """Maximal bicliques on one GPU, by cuMBE. Not to be shared between threads.

    Parameters
    ----------
    device : Device
        None takes the current CUDA device.
    sizes : CumbeSizes
        Memory and optimisations; see there.

    Raises
    ------
    ResourceError
        Without a usable device, or when the graph and one block's arena do not fit on it.
    """

    name = "cumbe"

    def __init__(self, device: Device | None = None, sizes: CumbeSizes | None = None) -> None:
        self._device = device or CudaDevice()
        self._sizes = sizes or CumbeSizes()
        self._graph: DeviceGraph | None = None
        self._arenas: Arenas | None = None
        self._search: Search | None = None
        self._memory: CumbeMemory | None = None

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        started = time.perf_counter()
        before = self._search or search
        if self._memory is None or (search.mode, search.sizes) != (before.mode, before.sizes):
            self._memory = CumbeMemory(self._device, search, self._sizes)
        self._search = search
        if self._graph is None or self._arenas is None or self._graph.graph is not graph:
            self._arenas = None  # frees the old ones before the new ones are made
            self._graph = DeviceGraph(self._device, graph, 0)
            self._arenas = Arenas.plan(self._device, _KERNEL, Bounds.of(graph), self._sizes)
        self._device.clear(self._memory.size_table)
        run = _Run(self._device, self._graph, self._arenas, self._memory, self._sizes, search, limits, emit, started)
        run.work(subtrees)
        return run.result()


@dataclass
class _Run:
    """One slice."""

    device: Device
    graph: DeviceGraph
    arenas: Arenas
    memory: CumbeMemory
    sizes: CumbeSizes
    search: Search
    limits: Limits
    emit: Emit
    started: float
    count: int = 0
    fingerprint: int = 0
    launches: int = 0
    kernel_s: float = 0.0
    open_ticks: float = 0.0
    ticks: np.ndarray = field(default_factory=lambda: np.zeros(len(PHASES)))
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("tests", "published", "stolen"), 0))
    rest: Subtrees = field(default_factory=Subtrees.empty)

    def work(self, subtrees: Subtrees) -> None:
        """Launch until the subtrees are done or a limit is reached; what is left goes to `rest`."""
        while len(subtrees) and not self._is_over():
            items, pool = cumbe_items_of(self.graph.graph, subtrees)
            queue = self._launch(items, pool)
            begun = min(int(queue["head"]), len(items))
            pool = self.device.read(self.memory.pool, VERTEX, 0, int(queue["pool"]))
            left = self.device.read(self.memory.left_over, CUMBE_ITEM, 0, int(queue["left_over"]))
            subtrees = cumbe_subtrees_of(np.concatenate([left, items[begun:]]), pool)
            if queue["full"] and not queue["count"]:
                raise ResourceError(
                    f"one biclique does not fit into {self.sizes.values} values and {self.sizes.records} records; "
                    "use larger CumbeSizes"
                )
        self.rest = subtrees

    def _is_over(self) -> bool:
        late = self.limits.seconds is not None and time.perf_counter() - self.started >= self.limits.seconds
        return self.launches > 0 and (late or self._rows_left() == 0)

    def _rows_left(self) -> int:
        return -1 if self.limits.rows is None else self.limits.rows - self.count

    def _launch(self, items: np.ndarray, pool: np.ndarray) -> np.void:
        memory, device = self.memory, self.device
        if len(pool) > self.sizes.pool:
            raise SliceTooLargeError(
                f"{len(pool)} listed vertices do not fit into a pool of {self.sizes.pool}; use CumbeSizes(pool=...)"
            )
        device_items = device.upload(items)
        start = np.zeros(1, CUMBE_QUEUE)
        start["open"], start["pool"] = len(items), len(pool)
        start["rows_left"] = max(self._rows_left(), 0)
        device.write(memory.queue, start)
        device.write(memory.pool, pool)
        device.clear(self.arenas.available)
        device.clear(self.arenas.readers)
        device.write(memory.params_block, self._params(device.address(device_items), len(items)))
        seconds = device.launch(
            _KERNEL, self.sizes.defines, self.arenas.n_blocks, self.sizes.threads, memory.params_block
        )
        queue = device.read(memory.queue, CUMBE_QUEUE, 0, 1)[0]
        self._account(queue, seconds)
        if self.search.mode == "list":
            self._hand_out(queue)
        return queue

    def _params(self, items_at: int, n_items: int) -> np.ndarray:
        search = self.search
        values = self.graph.params | self.memory.params | self.arenas.params
        values |= search_params(self.graph.graph, search)
        values |= {"items": items_at, "n_items": n_items, "limited": self.limits.rows is not None}
        values["plain"] = search.mode == "count" and search.is_plain and not search.sizes and self.limits.rows is None
        if self.limits.seconds is not None:
            left = self.limits.seconds - (time.perf_counter() - self.started)
            values["deadline_ns"] = max(1_000_000, int(left * 1e9))
        params = np.zeros(1, CUMBE_PARAMS)
        for name in CUMBE_PARAMS.fields or ():
            params[name] = values.get(name, 0)
        return params

    def _account(self, queue: np.void, seconds: float) -> None:
        if queue["overflow"] == _SIZES_OVERFLOW:
            raise ResourceError(f"there are more than {self.sizes.size_slots} sizes; use CumbeSizes(size_slots=...)")
        if queue["overflow"]:
            raise SliceTooLargeError(
                f"{int(queue['left_over'])} unfinished nodes or {int(queue['pool'])} listed vertices did not fit into "
                f"{self.sizes.left_over} and {self.sizes.pool}; use larger CumbeSizes"
            )
        self.count += int(queue["count"])
        self.fingerprint = (self.fingerprint + int(queue["fingerprint"])) % 2**64
        self.launches += 1
        self.kernel_s += seconds
        for name in self.counters:
            self.counters[name] += int(queue[name])
        self.ticks += queue["ticks"]
        self.open_ticks += float(queue["longest"]) * self.arenas.n_blocks

    def _hand_out(self, queue: np.void) -> None:
        n_records = min(int(queue["rows"]), self.sizes.records)
        records = self.device.read(self.memory.records, RECORD, 0, n_records)
        values = self.device.read(self.memory.values, VERTEX, 0, min(int(queue["values"]), self.sizes.values))
        batch = unpack(self.graph.graph, records, values)
        if len(batch):
            self.emit(batch)

    def result(self) -> Slice:
        """The slice, with the paper's breakdown of the kernels' time and its busy ratio in the stats."""
        open_ticks = self.open_ticks or 1.0
        stats: dict[str, float] = {"seconds": time.perf_counter() - self.started, "kernel_s": self.kernel_s}
        stats |= {"launches": float(self.launches), **{name: float(n) for name, n in self.counters.items()}}
        stats["busy_ratio"] = float(self.ticks[: PHASES.index("idling")].sum() / open_ticks) if self.launches else 1.0
        shares = dict(zip(PHASES, (self.ticks / open_ticks).tolist(), strict=True))
        del shares["idling"]
        shares["others"] = 1.0 - sum(shares.values())
        stats |= {f"{name}_s": self.kernel_s * share for name, share in shares.items()}
        fingerprint = self.fingerprint if self.search.mode != "count" else None
        sizes = self._size_counts() if self.search.sizes else None
        return Slice(self.count, fingerprint, self.rest, stats, sizes)

    def _size_counts(self) -> SizeCounts:
        slots = self.device.read(self.memory.size_table, SIZE, 0, self.sizes.size_slots)
        slots = slots[slots["key"] > 0]
        n_base, n_root = slots["key"] >> np.uint64(32), slots["key"] & np.uint64(0xFFFFFFFF)
        left, right = (n_root, n_base) if self.graph.graph.root_side == "left" else (n_base, n_root)
        return SizeCounts.of(left, right, slots["count"].astype(COUNT))
