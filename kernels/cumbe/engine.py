"""`CumbeEngine`: the published GPU algorithm (``cuda/cumbe/cumbe.cu``) behind the slice contract.

It is the baseline of the papers. `CumbeSizes` can switch each optimisation off, as in their ablation. See
docs/kernels.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from bicliques.kernels.cumbe.memory import (
    CUMBE_BUFFERS,
    CUMBE_ITEM,
    CUMBE_PARAMS,
    CUMBE_QUEUE,
    PHASES,
    SEARCH,
    Arenas,
    Bounds,
    CumbeSizes,
)
from bicliques.kernels.gpu.buffers import Buffers
from bicliques.kernels.gpu.device import CudaDevice, Device
from bicliques.kernels.gpu.pack import DeviceGraph
from bicliques.kernels.gpu.records import NOBODY, parameters
from bicliques.kernels.gpu.slice_run import SliceRun, cpu_engine, nothing
from bicliques.kernels.graph.ranges import in_lists
from bicliques.kernels.graph.wedges import gather, wedges_of
from bicliques.schemas.bicliques import Emit
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import EVERYTHING, Engine, Slice, Subtrees


def cumbe_items_of(graph: MiningGraph, subtrees: Subtrees) -> tuple[np.ndarray, np.ndarray]:
    """Items, heaviest first, and the pool of vertex lists that they point into."""
    items = np.zeros(len(subtrees), CUMBE_ITEM)
    whole = subtrees.todo == EVERYTHING
    first = subtrees.path[subtrees.path_indptr[:-1]]
    items["root"] = np.where(whole, first, NOBODY)
    items["fresh"] = subtrees.fresh
    items["path_at"] = subtrees.path_indptr[:-1]
    items["cand_at"] = len(subtrees.path) + subtrees.candidate_indptr[:-1]
    items["n_path"] = np.where(whole, 0, np.diff(subtrees.path_indptr))
    items["n_cand"] = np.diff(subtrees.candidate_indptr)
    items["n_todo"] = np.where(whole, 0, subtrees.todo)
    order = np.argsort(-wedges_of(graph, first), kind="stable")
    return items[order], np.concatenate([subtrees.path, subtrees.candidates]).astype(VERTEX)


def cumbe_subtrees_of(items: np.ndarray, pool: np.ndarray) -> Subtrees:
    """The nodes that the items still have to explore."""
    whole = items["root"] != NOBODY
    roots, items = items["root"][whole], items[~whole]
    path_indptr, path = gather(pool, items["path_at"], items["n_path"])
    candidate_indptr, candidates = gather(pool, items["cand_at"], items["n_cand"])
    listed = Subtrees.of_lists(
        path_indptr,
        path,
        candidate_indptr,
        candidates,
        items["n_todo"].astype(VERTEX),
        items["fresh"].astype(np.bool_),
    )
    return Subtrees.concat([listed, Subtrees.of_roots(roots)])


class CumbeEngine:
    """Maximal bicliques on one GPU, by cuMBE. Every thread needs an engine of its own.

    Raises `ResourceError`: there is no usable device, or the graph and one block's arena do not fit on it.

    Parameters
    ----------
    device : Device
        None takes the current CUDA device.
    sizes : CumbeSizes
        Memory and optimisations.
    """

    name = "cumbe"

    def __init__(self, device: Device | None = None, sizes: CumbeSizes | None = None) -> None:
        self._device = device or CudaDevice()
        self._sizes = sizes or CumbeSizes()
        self._graph: DeviceGraph | None = None
        self._arenas: Arenas | None = None
        self._search: Search | None = None
        self._memory: Buffers[CumbeSizes] | None = None
        self._last_resort: Engine | None = None
        self._is_asked_to_stop = False

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        started = time.perf_counter()
        if len(subtrees) == 0:
            return nothing(search)
        with self._device.active():
            before = self._search or search
            if self._memory is None or (search.mode, search.sizes) != (before.mode, before.sizes):
                self._memory = Buffers(self._device, search, self._sizes, CUMBE_QUEUE, CUMBE_BUFFERS)
            self._search = search
            if self._graph is None or self._arenas is None or self._graph.graph is not graph:
                self._arenas = None  # frees the old ones before the new ones are made
                self._graph = DeviceGraph(self._device, graph)
                self._arenas = Arenas.plan(self._device, SEARCH, Bounds.of(graph), self._sizes)
            run = _Run(
                self._device,
                self._graph,
                self._memory,
                search,
                limits,
                emit,
                started,
                self.last_resort,
                arenas=self._arenas,
                is_asked_to_stop=lambda: self._is_asked_to_stop,
            )
            run.work(subtrees)
            self._is_asked_to_stop = False
            self._arenas = run.arenas
            return run.result()

    def stop(self) -> None:
        """See `schemas.work.Engine`. A launch that runs is not ended."""
        self._is_asked_to_stop = True
        if self._last_resort is not None:
            self._last_resort.stop()

    def last_resort(self) -> Engine:
        """The engine that mines what does not fit on the device. It is made when it is first needed."""
        if self._last_resort is None:
            self._last_resort = cpu_engine()
        return self._last_resort


@dataclass
class _Run(SliceRun[CumbeSizes]):
    """One slice."""

    arenas: Arenas = field(kw_only=True)
    is_asked_to_stop: Callable[[], bool] = field(kw_only=True)
    ticks: np.ndarray = field(default_factory=lambda: np.zeros(len(PHASES)))
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("tests", "published", "stolen"), 0))

    def work(self, subtrees: Subtrees) -> None:
        """Launch until the subtrees are done or a limit is reached. What is left goes to `rest`."""
        graph = self.graph.graph
        while len(subtrees) and not self._is_over():
            listed, later = in_lists(graph, subtrees)
            items, pool = cumbe_items_of(graph, listed)
            if not self.list_vertices(pool):
                self._in_parts(listed, later)
                return
            queue = self._launch(items)
            if queue["overflow"]:
                if not self.make_room(queue, self._take_fewer_blocks):
                    self.on_cpu(subtrees)
                    return
                continue
            begun = min(int(queue["head"]), len(items))
            noted = self.device.read(self.memory["left_over"], CUMBE_ITEM, 0, int(queue["left_over"]))
            subtrees = Subtrees.concat(
                [cumbe_subtrees_of(np.concatenate([noted, items[begun:]]), self.listed()), later]
            )
            if len(subtrees) and self.is_stuck(queue):
                self.on_cpu(subtrees)
                return
        self.rest.append(subtrees)

    def _is_over(self) -> bool:
        return self.launches > self.voided and (self.is_late or self.is_asked_to_stop() or self.rows_left == 0)

    def _in_parts(self, listed: Subtrees, later: Subtrees) -> None:
        """Work in two halves, because the lists of both together are too long for the device."""
        if len(listed) == 1:
            self.on_cpu(listed)
        else:
            half = len(listed) // 2
            self.work(listed.take(0, half))
            self.work(listed.take(half, len(listed)))
        self.work(later)

    def _take_fewer_blocks(self) -> bool:
        """Use half the blocks: they write half as much down when a launch ends. False if there is one block."""
        if self.arenas.n_blocks == 1:
            return False
        self.arenas = replace(self.arenas, n_blocks=self.arenas.n_blocks // 2)
        return True

    def _launch(self, items: np.ndarray) -> np.void:
        device, arenas = self.device, self.arenas
        device_items = self.begin(items)
        device.clear(arenas.available)
        device.clear(arenas.readers)
        values = self.params(device.address(device_items), len(items)) | arenas.params | {"plain": self.is_plain}
        sizes = self.memory.sizes
        seconds = device.launch(SEARCH, sizes.defines, arenas.n_blocks, sizes.threads, parameters(CUMBE_PARAMS, values))
        queue = self.end(seconds, arenas.n_blocks)
        self.ticks += queue["ticks"]
        if not queue["overflow"]:
            for name in self.counters:
                self.counters[name] += int(queue[name])
        return queue

    def result(self) -> Slice:
        """The slice, with the paper's breakdown of the kernels' time and its busy ratio in the stats."""
        open_ticks = self.open_ticks or 1.0
        busy = float(self.ticks[: PHASES.index("idling")].sum() / open_ticks) if self.launches else 1.0
        shares = dict(zip(PHASES, (self.ticks / open_ticks).tolist(), strict=True))
        del shares["idling"]
        shares["others"] = 1.0 - sum(shares.values())
        return self.slice(busy, dict(self.counters), shares)
