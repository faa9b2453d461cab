"""`CumbeEngine`: the published GPU algorithm (``cuda/cumbe.cu``) behind the slice contract.

The baseline of the papers, and the subject of their ablation: `CumbeSizes` switches each optimisation off. See
docs/kernels.md.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from kernels.gpu.cumbe_items import cumbe_items_of, cumbe_subtrees_of
from kernels.gpu.cumbe_layout import CUMBE_ITEM, CUMBE_PARAMS, PHASES
from kernels.gpu.cumbe_memory import Arenas, Bounds, CumbeMemory, CumbeSizes
from kernels.gpu.device import CudaDevice, Device
from kernels.gpu.layout import parameters
from kernels.gpu.memory import DeviceGraph
from kernels.gpu.slice_run import SliceRun
from schemas.errors import ResourceError
from schemas.graph import MiningGraph
from schemas.work import Emit, Limits, Search, Slice, Subtrees

__all__ = ["CumbeEngine"]

_KERNEL = "cumbe"


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
        with self._device.active():
            before = self._search or search
            if self._memory is None or (search.mode, search.sizes) != (before.mode, before.sizes):
                self._memory = CumbeMemory(self._device, search, self._sizes)
            self._search = search
            if self._graph is None or self._arenas is None or self._graph.graph is not graph:
                self._arenas = None  # frees the old ones before the new ones are made
                self._graph = DeviceGraph(self._device, graph, 0)
                self._arenas = Arenas.plan(self._device, _KERNEL, Bounds.of(graph), self._sizes)
            self._device.clear(self._memory.size_table)
            memory, sizes, arenas = self._memory, self._sizes, self._arenas
            run = _Run(self._device, self._graph, memory, sizes, search, limits, emit, started, arenas=arenas)
            run.work(subtrees)
            return run.result()


@dataclass
class _Run(SliceRun[CumbeMemory, CumbeSizes]):
    """One slice."""

    arenas: Arenas = field(kw_only=True)
    ticks: np.ndarray = field(default_factory=lambda: np.zeros(len(PHASES)))
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("tests", "published", "stolen"), 0))
    rest: Subtrees = field(default_factory=Subtrees.empty)

    def work(self, subtrees: Subtrees) -> None:
        """Launch until the subtrees are done or a limit is reached; what is left goes to `rest`."""
        while len(subtrees) and not (self.launches and (self.is_late or self.rows_left == 0)):
            items, pool = cumbe_items_of(self.graph.graph, subtrees)
            queue = self._launch(items, pool)
            begun = min(int(queue["head"]), len(items))
            left = self.device.read(self.memory.left_over, CUMBE_ITEM, 0, int(queue["left_over"]))
            subtrees = cumbe_subtrees_of(np.concatenate([left, items[begun:]]), self.listed())
            if queue["full"] and not queue["count"]:
                raise ResourceError(
                    f"one biclique does not fit into {self.sizes.values} values and {self.sizes.records} records; "
                    "use larger CumbeSizes"
                )
        self.rest = subtrees

    def _launch(self, items: np.ndarray, pool: np.ndarray) -> np.void:
        device, arenas = self.device, self.arenas
        self.list_vertices(pool)
        device_items = self.begin(items)
        device.clear(arenas.available)
        device.clear(arenas.readers)
        values = self.params(device.address(device_items), len(items)) | arenas.params | {"plain": self.is_plain}
        defines, threads = self.sizes.defines, self.sizes.threads
        seconds = device.launch(_KERNEL, defines, arenas.n_blocks, threads, parameters(CUMBE_PARAMS, values))
        queue = self.end(seconds, arenas.n_blocks)
        self.ticks += queue["ticks"]
        for name in self.counters:
            self.counters[name] += int(queue[name])
        return queue

    def result(self) -> Slice:
        """The slice, with the paper's breakdown of the kernels' time and its busy ratio in the stats."""
        open_ticks = self.open_ticks or 1.0
        stats = {name: float(n) for name, n in self.counters.items()}
        stats["busy_ratio"] = float(self.ticks[: PHASES.index("idling")].sum() / open_ticks) if self.launches else 1.0
        shares = dict(zip(PHASES, (self.ticks / open_ticks).tolist(), strict=True))
        del shares["idling"]
        shares["others"] = 1.0 - sum(shares.values())
        stats |= {f"{name}_s": self.kernel_s * share for name, share in shares.items()}
        return self.slice(self.rest, stats)
