"""A slice on a GPU, for every engine: launches one after the other, with their limits, counters and output.

A buffer that is too short never ends a slice. A launch in which a buffer overflowed is *void*, and nothing of it
counts. The buffer becomes longer, and the same items are launched again. If the device has no room for a longer
buffer, fewer warps are launched, which have less to write down. Work that does not fit even then is mined by the CPU
engine (`SliceRun.on_cpu`). What a kernel has recorded becomes `Bicliques` by compiled code.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.compiled.lists import sort_list
from bicliques.kernels.gpu.buffers import Buffers, S
from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.pack import DeviceGraph, pack, search_params
from bicliques.kernels.gpu.records import RECORD, SIZE
from bicliques.schemas.bicliques import ID, Bicliques, Emit, emit_to
from bicliques.schemas.dtypes import COUNT, OFFSET, VERTEX, offsets_of
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import mixed
from bicliques.schemas.jobs import job_of
from bicliques.schemas.leaves import Leaves
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.totals import Best, Found, Total
from bicliques.schemas.work import Engine, Slice, Subtrees


def unpack(graph: MiningGraph, records: np.ndarray, values: np.ndarray, near: bool = False) -> Bicliques:
    """Bicliques in dense ids of the user's sides.

    Parameters
    ----------
    records : ndarray of `layout.RECORD`
        ``n_root == 0`` marks a hole, which is no biclique.
    values : ndarray, int32
        For each record, its base vertices, then its root ranks. If `near`, then how many pairs are missing.
    """
    records = records[records["n_root"] > 0]
    n_base, n_root, at = (np.ascontiguousarray(records[name]) for name in ("n_base", "n_root", "at"))
    base = _expand(values, at, n_base, np.asarray(graph.base_members_indptr), np.asarray(graph.base_members))
    root = _expand(values, at + n_base, n_root, np.asarray(graph.root_members_indptr), np.asarray(graph.root_members))
    smallest = np.empty(len(at), OFFSET)
    _smallest(values, at + n_base, n_root, smallest)
    first = np.asarray(graph.root_members)[np.asarray(graph.root_members_indptr)[smallest]]
    sums = _sums(values, at + n_base, n_root, graph.root_hash), _sums(values, at, n_base, graph.base_hash)
    is_left = graph.root_side == "left"
    sides, ids = ((*root, *base), mixed(*sums)) if is_left else ((*base, *root), mixed(*sums[::-1]))
    return Bicliques(*sides, first.astype(VERTEX), ids.view(ID), values[at + n_base + n_root] if near else None)


def _sums(values: np.ndarray, at: np.ndarray, n: np.ndarray, hashes: np.ndarray) -> np.ndarray:
    sums = np.empty(len(at), np.uint64)
    _hash_sums(values, at, n, np.asarray(hashes), sums)
    return sums


def _expand(
    values: np.ndarray, at: np.ndarray, n: np.ndarray, indptr: np.ndarray, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.empty(len(at), OFFSET)
    _member_counts(values, at, n, indptr, sizes)
    out_indptr = offsets_of(sizes)
    out = np.empty(out_indptr[-1], VERTEX)
    _fill(values, at, n, indptr, members, out_indptr, out)
    return out_indptr, out


@entry
def _member_counts(values, at, n, indptr, sizes):
    for i in range(at.size):
        total = 0
        for k in range(at[i], at[i] + n[i]):
            total += indptr[values[k] + 1] - indptr[values[k]]
        sizes[i] = total


@entry
def _fill(values, at, n, indptr, members, out_indptr, out):
    for i in range(at.size):
        free = out_indptr[i]
        for k in range(at[i], at[i] + n[i]):
            for e in range(indptr[values[k]], indptr[values[k] + 1]):
                out[free] = members[e]
                free += 1
        sort_list(out, out_indptr[i], free)


@entry
def _hash_sums(values, at, n, hashes, out):
    for i in range(at.size):
        total = np.uint64(0)
        for k in range(at[i], at[i] + n[i]):
            total += hashes[values[k]]
        out[i] = total


@entry
def _smallest(values, at, n, out):
    for i in range(at.size):
        least = values[at[i]]
        for k in range(at[i] + 1, at[i] + n[i]):
            least = min(least, values[k])
        out[i] = least


#: Value of ``overflow`` in the queues of both engines: the table of sizes is full.
SIZES_OVERFLOW = 2
#: Seconds that the CPU engine gets in a slice that is late already, so that it makes progress.
_LEAST_CPU_S = 0.5


def cpu_engine() -> Engine:
    """The engine that mines what a device has no room for."""
    from bicliques.kernels.cpu.engine import CpuEngine  # it loads machine code, and is rarely needed

    return CpuEngine()


def nothing(search: Search) -> Slice:
    """The result of a slice without work. It needs no graph on the device."""
    return Slice(job_of(search).zero, Subtrees.empty())


def _concat(parts: Sequence[Subtrees | Callable[[], Subtrees]]) -> Subtrees:
    return Subtrees.concat([part() if callable(part) else part for part in parts])


@dataclass
class SliceRun(Generic[S]):
    """One slice. Engines add how items are made, launched and read back.

    Parameters
    ----------
    started : float
        `time.perf_counter` when the slice began.
    last_resort : callable
        It returns the engine that mines what does not fit on the device.
    count, fingerprint, launches, kernel_s
        Totals so far.
    voided : int
        Void launches so far. They are among `launches`, and their time is in `kernel_s`.
    n_listed : int
        Vertices of the pool on the device.
    open_ticks : float
        Sum over all launches, void ones included: clock ticks of the longest-living warp or block, times the number
        of warps or blocks.
    cpu_nodes : int
        Nodes that the CPU engine was given.
    leaves : list of Leaves
        What launches and the CPU engine counted, if p x q are counted.
    rest : list of Subtrees or callable
        Work that is still to be done, or () -> such work, which is called when the device is not needed any more.
    """

    device: Device
    graph: DeviceGraph
    memory: Buffers[S]
    search: Search
    limits: Limits
    emit: Emit
    started: float
    last_resort: Callable[[], Engine]
    count: int = 0
    fingerprint: int = 0
    launches: int = 0
    voided: int = 0
    kernel_s: float = 0.0
    n_listed: int = 0
    open_ticks: float = 0.0
    cpu_nodes: int = 0
    sizes: SizeCounts = field(default_factory=SizeCounts.empty)
    leaves: list[Leaves] = field(default_factory=list)
    rest: list[Subtrees | Callable[[], Subtrees]] = field(default_factory=list)

    @property
    def is_late(self) -> bool:
        """Whether the slice has used up its time."""
        return self.limits.seconds is not None and time.perf_counter() - self.started >= self.limits.seconds

    @property
    def rows_left(self) -> int:
        """Bicliques that may still be emitted. -1 without a limit."""
        return -1 if self.limits.rows is None else self.limits.rows - self.count

    @property
    def is_plain(self) -> bool:
        """Whether only the count is wanted, and every biclique counts."""
        return self.search.mode == "count" and not self.is_measured and self.limits.rows is None

    @property
    def is_measured(self) -> bool:
        """Whether members of bicliques are counted, because sizes are limited or asked for."""
        return self.search.sizes or not self.search.is_plain

    @property
    def bound(self) -> int | None:
        """The bound of the slice, or that of what it has found so far if that is higher."""
        bounds = (self.limits.bound, job_of(self.search).bound_of(self.emit))
        return max((bound for bound in bounds if bound is not None), default=None)

    def list_vertices(self, pool: np.ndarray) -> bool:
        """Put the lists that items refer to on the device. False when it has no room for them."""
        if len(pool) > self.memory.entries("pool") and not self.memory.grow("pool", 2 * len(pool)):
            return False
        self.device.write(self.memory["pool"], pool)
        self.n_listed = len(pool)
        return True

    def listed(self) -> np.ndarray:
        """The pool as it is on the device."""
        return self.device.read(self.memory["pool"], VERTEX, 0, self.n_listed)

    def begin(self, items: np.ndarray) -> Any:
        """Put a queue of items on the device, which has their lists already. Returns the handle of the items."""
        start = np.zeros(1, self.memory.queue_dtype)
        start["open"], start["pool"] = len(items), self.n_listed
        start["rows_left"] = max(self.rows_left, 0)
        if "bound" in (self.memory.queue_dtype.names or ()):
            start["bound"] = self.bound or 0
        self.device.write(self.memory.queue, start)
        if self.search.sizes:
            self.device.clear(self.memory["sizes"])
        return self.device.upload(items)

    def params(self, items_at: int, n_items: int) -> dict[str, int]:
        """The parameters of a launch that both engines have."""
        values = self.graph.params | self.memory.params | search_params(self.graph.graph, self.search)
        values |= {"items": items_at, "n_items": n_items, "limited": self.limits.rows is not None}
        if self.limits.seconds is not None:
            remaining = self.limits.seconds - (time.perf_counter() - self.started)
            values["deadline_ns"] = max(1_000_000, int(remaining * 1e9))
        return values

    def end(self, seconds: float, n_workers: int) -> np.void:
        """Add a launch of so many warps or blocks to the totals, and hand its bicliques out. Returns its queue.

        Only the time of a void launch is added.
        """
        queue: np.void = self.device.read(self.memory.queue, self.memory.queue_dtype, 0, 1)[0]
        self.launches += 1
        self.kernel_s += seconds
        self.open_ticks += float(queue["longest"]) * n_workers
        if queue["overflow"]:
            self.voided += 1
            return queue
        self.n_listed = min(int(queue["pool"]), self.memory.entries("pool"))
        self.count += int(queue["count"])
        self.fingerprint = (self.fingerprint + int(queue["fingerprint"])) % 2**64
        if self.search.sizes:
            self.sizes = SizeCounts.merge([self.sizes, self._sizes_of_launch()])
        if self.search.mode == "list":
            self._hand_out(queue)
        return queue

    def make_room(self, queue: np.void, work_on_less: Callable[[], bool]) -> bool:
        """After a void launch, make buffers that overflowed longer. If there is no room, use fewer warps or blocks.

        `work_on_less` halves their number, and returns whether it could. That would not help a table of sizes. Returns
        whether another launch makes sense.
        """
        if queue["overflow"] == SIZES_OVERFLOW:
            return self.memory.grow("size_slots")
        noted = max(int(queue[name]) for name in ("left_over", "oversize") if name in (queue.dtype.names or ()))
        if noted > self.memory.entries("left_over"):
            grown = self.memory.grow("left_over", 2 * noted)
        else:  # the pool; it is not known how much longer it would have to be
            grown = self.memory.grow("pool")
        return grown or work_on_less()

    def is_stuck(self, queue: np.void) -> bool:
        """Whether no biclique of a launch fitted into the output, and the output cannot become longer."""
        if self.search.mode != "list" or queue["count"]:
            return False
        full = [
            knob
            for knob, used in (("values", queue["values"]), ("records", queue["rows"]))
            if int(used) > self.memory.entries(knob)
        ]
        return bool(full) and not any([self.memory.grow(knob) for knob in full])

    def on_cpu(self, work: Subtrees) -> None:
        """Mine nodes that do not fit on the device with the CPU engine, for the time that is left."""
        if self.rows_left == 0:
            self.rest.append(work)
            return
        seconds = None
        if self.limits.seconds is not None:
            seconds = max(self.limits.seconds - (time.perf_counter() - self.started), _LEAST_CPU_S)
        rows = None if self.limits.rows is None else self.rows_left
        emit = emit_to(self._emit_copy) if self.emit.on_device else self.emit
        found = self.last_resort().mine(self.graph.graph, work, self.search, Limits(seconds, rows, self.bound), emit)
        self.cpu_nodes += len(work)
        self.count += found.count
        self.fingerprint = (self.fingerprint + (found.fingerprint or 0)) % 2**64
        if self.search.sizes and found.total.sizes is not None:
            self.sizes = SizeCounts.merge([self.sizes, found.total.sizes])
        if isinstance(found.total, Best):
            self.emit(found.total.rows)
        if isinstance(found.total, Leaves):
            self.leaves.append(found.total)
        self.rest.append(found.left_over)

    def _emit_copy(self, batch: Bicliques) -> None:
        """Hand out a copy of a batch. An `Emit` of a device may keep arrays, but the CPU engine uses its own again."""
        self.emit(Bicliques(**{name: array.copy() for name, array in batch.arrays.items()}))

    def slice(self, busy_ratio: float, counters: dict[str, int], phases: dict[str, float] | None = None) -> Slice:
        """The result that the engine returns. `phases` are shares of the kernels' time."""
        stats = EngineStats(
            seconds=time.perf_counter() - self.started,
            kernel_s=self.kernel_s,
            busy_kernel_s=self.kernel_s * busy_ratio,
            launches=self.launches,
            voided=self.voided,
            cpu_nodes=self.cpu_nodes,
            counters=counters,
            phases={name: self.kernel_s * share for name, share in (phases or {}).items()},
            device_bytes=self.device.used_bytes(),
        )
        found: Total = job_of(self.search).total(Found(self.count, self.fingerprint, self.sizes), self.emit)
        if self.search.pq is not None:
            found = sum(self.leaves, Leaves.none())
        return Slice(found, functools.partial(_concat, self.rest), stats)

    def _hand_out(self, queue: np.void) -> None:
        device, memory = self.device, self.memory
        n_records, near = min(int(queue["rows"]), memory.entries("records")), self.search.near is not None
        if n_records == 0:
            return
        try:
            members, in_blocks = self.graph.members(device), self.emit.on_device
            batch = pack(device, members, memory["records"], n_records, memory["values"], in_blocks, near)
            if not self.emit.on_device:
                batch = Bicliques(**{name: device.download(array) for name, array in batch.arrays.items()})
        except (MemoryError, DeviceMemoryError):  # a small device; the host has room for it
            n_values = min(int(queue["values"]), memory.entries("values"))
            records = device.read(memory["records"], RECORD, 0, n_records)
            batch = unpack(self.graph.graph, records, device.read(memory["values"], VERTEX, 0, n_values), near)
        if len(batch):
            self.emit(batch)

    def _sizes_of_launch(self) -> SizeCounts:
        slots = self.device.read(self.memory["sizes"], SIZE, 0, self.memory.entries("sizes"))
        slots = slots[slots["key"] > 0]
        n_base, n_root = slots["key"] >> np.uint64(32), slots["key"] & np.uint64(0xFFFFFFFF)
        left, right = (n_root, n_base) if self.graph.graph.root_side == "left" else (n_base, n_root)
        return SizeCounts.of(left, right, slots["count"].astype(COUNT))
