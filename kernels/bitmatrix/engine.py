"""`BitMatrixEngine`: the bit-column kernel (``cuda/bitmatrix/bitmatrix.cu``) behind the slice contract.

A slice is a few launches. The first works on the pieces that were handed in. Problems that need more scratch
memory than most get another launch, and there is one more whenever the output buffers were emptied. See
docs/kernels.md. `kernels.gpu.slice_run` says what happens when a buffer is too short.
"""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field

import numpy as np

from bicliques.kernels.bitmatrix.items import Queued, compacted, joined, subtrees_of
from bicliques.kernels.bitmatrix.layout import GIVEN, ITEM, LEAF, PARAMS, QUEUE
from bicliques.kernels.bitmatrix.memory import BUFFERS, Form, GpuSizes, HubGraph, Launch
from bicliques.kernels.bitmatrix.shapes import Needs, grows, shape, sifts_much, smallest_shape
from bicliques.kernels.compiled.searching import MEASURES
from bicliques.kernels.gpu.buffers import Buffers
from bicliques.kernels.gpu.device import CudaDevice, Device
from bicliques.kernels.gpu.records import parameters
from bicliques.kernels.gpu.slice_run import SliceRun, cpu_engine, nothing
from bicliques.kernels.reference.pivot import by_side, held_bounds, keys_of
from bicliques.schemas.bicliques import Emit
from bicliques.schemas.dtypes import COUNT
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import job_of
from bicliques.schemas.leaves import CLIQUES, Leaves, bounds_of
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Engine, Slice, Subtrees

#: Share of the pool that may be in use. Beyond it, lists that no item refers to are dropped between two launches.
_FULL = 0.25
#: If more of the largest are wanted, the bound rises between launches only. A warp that emits a biclique reads as many
#: numbers as are wanted.
_RAISING = 1 << 10


class BitMatrixEngine:
    """Maximal bicliques on one GPU. Every thread needs an engine of its own.

    Parameters
    ----------
    device : Device
        None takes the current CUDA device.
    sizes : GpuSizes
        Sizes of the device memory.

    Raises
    ------
    ResourceError
        There is no usable device, or the graph and one block's scratch memory do not fit on it.
    """

    name = "bitmatrix"

    def __init__(self, device: Device | None = None, sizes: GpuSizes | None = None) -> None:
        self._device = device or CudaDevice()
        self._sizes = sizes or GpuSizes()
        self._graph: HubGraph | None = None
        self._search: Search | None = None
        self._memory: Buffers[GpuSizes] | None = None
        self._launches: dict[tuple[int, Form], Launch] = {}  # by level
        self._last_resort: Engine | None = None
        self._host = self._device.shared(2)  # stop, count; see `stop` and `found`
        self._found_before = 0

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        started = time.perf_counter()
        if len(subtrees) == 0:
            return nothing(search)
        with self._device.active():
            one = search.pq == CLIQUES
            if self._graph is None or self._graph.graph is not graph or self._graph.one != one:
                self._launches.clear()
                self._graph = HubGraph(self._device, graph, self._sizes.hub_bytes, one)
            before = self._search or search
            if self._memory is None or (search.mode, search.sizes, search.pq) != (before.mode, before.sizes, before.pq):
                self._memory = Buffers(self._device, search, self._sizes, QUEUE, BUFFERS)
            self._search = search
            self._host[1] = self._found_before = 0
            run = _Run(
                self._device,
                self._graph,
                self._memory,
                search,
                limits,
                job_of(search).taker(emit, limits),
                started,
                self.last_resort,
                engine=self,
            )
            queued = subtrees if isinstance(subtrees, Queued) else Queued.of(graph, subtrees, search)
            run.work(queued.items, queued.pool)
            self._host[0] = 0
            return run.result()

    def last_resort(self) -> Engine:
        """The engine that mines what does not fit on the device. It is made when it is first needed."""
        if self._last_resort is None:
            self._last_resort = cpu_engine()
        return self._last_resort

    def stop(self) -> None:
        """See `schemas.work.Engine`."""
        self._host[0] = 1
        if self._last_resort is not None:
            self._last_resort.stop()

    @property
    def is_asked_to_stop(self) -> bool:
        """Whether the running `mine` is to end."""
        return bool(self._host[0])

    @property
    def found(self) -> int:
        """Bicliques that the running `mine` has emitted so far. Another thread reads this."""
        return self._found_before + int(self._host[1])

    def host_params(self, found_before: int) -> dict[str, int]:
        """Addresses where a launch talks to the host. The launches before it emitted `found_before` bicliques."""
        self._host[1], self._found_before = 0, found_before
        at = self._host.ctypes.data
        return {"host_stop": at, "host_count": at + self._host.itemsize}

    def launch_for(self, level: int, form: Form) -> Launch:
        """The launch of a level, which has room for larger problems than the level below."""
        key = level, form
        if key not in self._launches:
            if level:
                self._launches.clear()  # one shape at a time, because scratch is most of the memory
            self._launches[key] = self._plan(*key)
        return self._launches[key]

    def launch_fewer(self, level: int, form: Form) -> bool:
        """Use half the warps from now on. They write half as much down when a launch ends. False for a single block."""
        key = level, form
        launch = self._launches[key]
        if launch.n_blocks > 1:
            self._launches[key] = launch.with_blocks(launch.n_blocks // 2)
        return launch.n_blocks > 1

    def can_grow(self, level: int, form: Form) -> bool:
        """Whether a launch of the next level would allow larger problems than one of `level`."""
        return grows(level, self._needs(form), self._sizes)

    @property
    def sifts_much(self) -> bool:
        """Whether a launch without thresholds sifts rows through a large filter."""
        assert self._graph is not None
        return sifts_much(self._needs(Form(False, True, sieving=False)), self._graph.graph.n_roots, self._sizes)

    @property
    def merges(self) -> bool:
        """Whether a launch without thresholds merges twins inside nodes."""
        assert self._graph is not None
        return not self.sifts_much and self._graph.is_dense

    def _needs(self, form: Form) -> Needs:
        assert self._graph is not None
        return Needs.of(self._graph, form)

    def _plan(self, level: int, form: Form) -> Launch:
        """A new launch, in the shape of its level. If not even one block fits, in a shape that the graph needs."""
        needs = self._needs(form)
        usual, smallest = shape(level, needs, self._sizes), smallest_shape(level, needs, self._sizes)
        try:
            return Launch.plan(self._device, *usual, form, self._sizes)
        except DeviceMemoryError:
            if form.scratch(*smallest).itemsize >= form.scratch(*usual).itemsize:
                raise
            return Launch.plan(self._device, *smallest, form, self._sizes)


@dataclass
class _Run(SliceRun[GpuSizes]):
    """One slice."""

    engine: BitMatrixEngine = field(kw_only=True)
    busy_ticks: float = 0.0
    counters: dict[str, int] = field(default_factory=lambda: {"given": 0, "tests": 0})
    launched: set[int] = field(default_factory=set)
    n_listed_before: int = 0

    def work(self, items: np.ndarray, pool: np.ndarray, level: int = 0) -> None:
        """Launch until the items are done or a limit is reached. What is left goes to `rest`.

        Every level gets one launch, however late it is. So every slice makes progress.
        """
        lists: np.ndarray | None = pool  # None: the lists on the device, to which launches have added
        is_there = False
        while len(items):
            if self._is_over(level):
                listed = self.listed() if lists is None else lists
                self.rest.append(functools.partial(subtrees_of, self.graph.graph, items, listed))
                return
            if lists is not None and not is_there and not self.list_vertices(lists):
                self._in_parts(items, lists, level)
                return
            is_there = True
            queue = self._launch(items, level)
            if queue is None:
                self.on_cpu(self._subtrees(items, lists))
                return
            if queue["overflow"]:
                lists, is_there = self.listed(), False
                fewer = functools.partial(self.engine.launch_fewer, level, self._form)
                if not self.make_room(queue, fewer):
                    self.on_cpu(self._subtrees(items, lists))
                    return
                continue
            self.launched.add(level)
            items, lists = self._after(queue, items, level)
            is_there = lists is None
            if len(items) and self.is_stuck(queue):
                self.on_cpu(self._subtrees(items, lists))
                return

    def _after(self, queue: np.void, items: np.ndarray, level: int) -> tuple[np.ndarray, np.ndarray | None]:
        """The items that are left after a launch, and their lists. None stands for the lists on the device."""
        device, memory = self.device, self.memory
        begun = min(int(queue["head"]), len(items))
        oversize = device.read(memory["oversize"], ITEM, 0, int(queue["oversize"]))
        noted = device.read(memory["left_over"], ITEM, 0, int(queue["left_over"]))
        items = joined([self._unserved(queue), noted, items[begun:]])
        is_filling = self.n_listed > _FULL * memory.entries("pool")
        if not len(oversize) and not (len(items) and is_filling):
            return items, None
        listed = self.listed()
        items, lists = compacted(items, listed)
        if len(oversize):
            self.work(*compacted(oversize, listed), level + 1)
        elif self.n_listed > self._pool_limit:
            memory.grow("pool")  # so that the next launch lasts longer
        return items, lists

    def _in_parts(self, items: np.ndarray, lists: np.ndarray, level: int) -> None:
        """Work in two halves, because the lists of both together are too long for the device."""
        if len(items) == 1:
            self.on_cpu(self._subtrees(items, lists))
            return
        half = len(items) // 2
        for part in (items[:half], items[half:]):
            self.work(*compacted(part, lists), level)

    def _subtrees(self, items: np.ndarray, lists: np.ndarray | None) -> Subtrees:
        return subtrees_of(self.graph.graph, items, self.listed() if lists is None else lists)

    def _is_over(self, level: int) -> bool:
        late = self.is_late or self.engine.is_asked_to_stop
        return (level in self.launched and late) or (self.launches > 0 and self.rows_left == 0)

    def _launch_for(self, level: int) -> Launch | None:
        """The launch of a level. None when the device has no room for problems of that size."""
        if level and not self.engine.can_grow(level - 1, self._form):
            return None
        try:
            return self.engine.launch_for(level, self._form)
        except DeviceMemoryError:
            if level == 0:
                raise
            return None

    @property
    def _form(self) -> Form:
        """The form of the kernel. With thresholds, all that a sieve finds is large enough."""
        search, graph = self.search, self.graph.graph
        if search.near is not None or search.pq is not None:
            n = graph.n_roots + graph.n_base
            return Form(
                plain=False, measured=True, sieving=True, near=n, pivots=search.pq is not None, one=search.pq == CLIQUES
            )
        if search.largest is not None:
            return Form(plain=False, measured=True, sieving=True, bounded=True)
        if not search.has_thresholds:
            plain, sifts = self.is_plain and not search.marked, self.engine.sifts_much
            # marked edges are those of base vertices, not of classes of twins
            merging = not search.marked and self.engine.merges
            return Form(plain, self.is_measured, sieving=False, sifting=sifts, marked=search.marked, merging=merging)
        looks = search.sizes or search.has_filters or search.marked
        plain = search.mode == "count" and not looks and self.limits.rows is None
        return Form(plain, measured=not plain, sieving=True, marked=search.marked)

    @property
    def _pool_limit(self) -> int:
        """Number of vertices in the pool at which a launch ends. Then every warp still has room for its open work."""
        return (self.n_listed_before + self.memory.entries("pool")) // 2

    def _launch(self, items: np.ndarray, level: int) -> np.void | None:
        """The queue after the launch. None when the device has no room for problems of that size.

        Only this function and the engine hold a `Launch`. So its scratch memory can make room for the next level's.
        """
        launch = self._launch_for(level)
        if launch is None:
            return None
        device = self.device
        self.n_listed_before = self.n_listed
        device_items = self.begin(items)
        device.clear(self.memory["ready"])
        if self.search.pq is not None:
            device.clear(self.memory["leaves"])
        values = self.params(device.address(device_items), len(items)) | self.engine.host_params(self.count)
        values |= {"n_warps": launch.n_warps, "scratch": device.address(launch.scratch)}
        values |= {"record_chunk": launch.record_chunk, "scratch_bytes": launch.scratch_bytes}
        values["pool_limit"] = self._pool_limit
        if self.search.pq is not None:
            most = held_bounds(self.graph.graph, bounds_of(self.search.pq))
            values |= dict(zip(("max_root", "max_base"), most, strict=True))
        if (by := self.search.by) and (wanted := self.search.largest) is not None:
            values["measure"] = MEASURES[by, self.graph.graph.root_side == "left"]
            values["n_top"] = wanted if wanted <= _RAISING else 0
            top = device.zeros(max(values["n_top"], 1), COUNT)  # new ones, because a void launch is made again
            values["top"] = device.address(top)
        threads = 32 * launch.n_warps // launch.n_blocks
        seconds = device.launch(self._form.kernel, launch.defines, launch.n_blocks, threads, parameters(PARAMS, values))
        queue = self.end(seconds, launch.n_warps)
        self.busy_ticks += float(queue["busy"])
        if not queue["overflow"]:
            for name in self.counters:
                self.counters[name] += int(queue[name])
            if self.search.pq is not None:
                self.leaves.append(self._leaves_of_launch(int(queue["fingerprint"])))
        return queue

    def _leaves_of_launch(self, mix: int) -> Leaves:
        slots = self.device.read(self.memory["leaves"], LEAF, 0, self.memory.entries("leaves"))
        slots = slots.compress(slots["count"] > 0)
        keys, number = keys_of(slots["root"], slots["base"] - np.uint64(1)), slots["count"].astype(COUNT)
        return Leaves.of(keys, number, mix) if self._form.one else by_side(self.graph.graph, keys, number, mix)

    def _unserved(self, queue: np.void) -> np.ndarray:
        """Items that were given away and that no warp took before the launch ended."""
        given = int(queue["tail"])
        waits = self.device.read(self.memory["ready"], np.int32, 0, given) == GIVEN
        first = int(waits.argmax()) if waits.any() else given  # they are taken in order, so nearly all before are taken
        return self.device.read(self.memory["given"], ITEM, first, given - first).compress(waits[first:])

    def result(self) -> Slice:
        return self.slice(self.busy_ticks / self.open_ticks if self.open_ticks else 1.0, dict(self.counters))
