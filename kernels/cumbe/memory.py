"""Device memory of the cuMBE engine. Its sizes are known before the launch.

No size is a product with the number of vertices. A block's arena holds one subtree. It takes about
``9 D + 2 W + 14 M`` ints, ``4 M`` to ``8 M`` ints for the hash table, and D levels of 14 ints:

- D is the largest degree of a root;
- W is the most edges around one root, which is the sum of its neighbours' degrees;
- M = min(roots, W) is the most root vertices two steps away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bicliques.kernels.gpu.cuda import SCRATCH_SHARE
from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.machine_code import Variant
from bicliques.kernels.gpu.records import RECORD, SIZE
from bicliques.kernels.gpu.sizes import Buffer
from bicliques.schemas.dtypes import VERTEX, offsets_of
from bicliques.schemas.errors import DeviceMemoryError, ResourceError
from bicliques.schemas.graph import MiningGraph

_I32, _I64, _U64 = np.int32, np.int64, np.uint64

#: Phases that the time is spent in. They are the paper's, except that idling is not part of its "others".
PHASES = (
    "candidate_selection",
    "l_construction",
    "maximality_checking",
    "maximal_expansion",
    "subtree_fetching",
    "work_stealing",
    "idling",
)

CUMBE_ITEM = np.dtype(
    [
        ("root", _I32),
        ("fresh", _I32),
        ("path_at", _I64),
        ("cand_at", _I64),
        ("n_path", _I32),
        ("n_cand", _I32),
        ("n_todo", _I32),
        ("unused", _I32),
    ],
    align=True,
)

CUMBE_QUEUE = np.dtype(
    [
        *((name, _U64) for name in ("head", "open", "pool", "left_over", "values", "rows")),
        *((name, _I32) for name in ("stop", "overflow", "hungry", "offered", "unused", "full")),
        *((name, _U64) for name in ("count", "fingerprint", "tests", "published", "stolen", "rows_left", "longest")),
        ("ticks", _U64, (len(PHASES),)),
    ],
    align=True,
)

SHELF = np.dtype([(name, _I32) for name in ("n_base", "n_path", "n_rest", "level")], align=True)

#: ``sizeof(Level)`` in ints.
LEVEL_INTS = 14

CUMBE_PARAMS = np.dtype(
    [
        (name, _I64)
        for name in (
            "root_indptr root_indices base_indptr base_indices root_weight base_weight root_hash base_hash "
            "items n_items pool n_pool left_over n_left_over values n_values records n_records "
            "sizes n_sizes queue "
            "arena arena_ints most_base most_roots most_wedges table shelves available readers "
            "plain prove list limited root_is_left min_base max_base min_root max_root deadline_ns"
        ).split()
    ]
)


#: The kernel of the engine.
SEARCH = "cumbe"


class CumbeSizes(NamedTuple):
    """Sizes and switches of the cuMBE engine. Buffers begin with these sizes and grow. Tests make them tiny.

    Parameters
    ----------
    left_over, pool : int
        Items, and vertices in their lists, that a slice may hand in and leave over.
    values, records : int
        Vertices and bicliques that the output buffers hold.
    size_slots : int
        Different sizes that can be counted, a power of two.
    blocks : int or None
        Thread blocks to launch. None takes as many as are resident together and have an arena.
    threads : int
        Threads per block, a multiple of 32.
    min_blocks : int
        Blocks per multiprocessor that the compiler must leave registers for.
    shared_ints : int
        Ints of shared memory for the arrays of a subtree. Arrays that do not fit lie in the arena.
    lanes : int
        Lanes that share a vertex: 32 as published, or a smaller power of two.
    poll : int
        Visits between two looks at the queue.
    steal_levels : int
        The k of k-level work stealing. With 1 nothing is stolen.
    reverse_scan, early_stop : bool
        Whether the paper's optimisations of these names are on.
    timed : bool
        Whether the time of each phase is measured.
    """

    left_over: int = 1 << 18
    pool: int = 1 << 26
    values: int = 1 << 27
    records: int = 1 << 23
    size_slots: int = 1 << 18
    blocks: int | None = None
    threads: int = 128
    min_blocks: int = 8
    shared_ints: int = 2048
    lanes: int = 32
    poll: int = 8
    steal_levels: int = 3
    reverse_scan: bool = True
    early_stop: bool = True
    timed: bool = True

    def halved(self, times: int) -> CumbeSizes:
        """The same, with memory for output and lists halved so many times. Arenas adapt by themselves."""
        shared = ("left_over", "pool", "values", "records")
        return self._replace(**{name: max(getattr(self, name) >> times, 1 << 10) for name in shared})

    @property
    def defines(self) -> dict[str, int]:
        """Macros of ``cuda/cumbe/types.cuh``."""
        return {
            "BLOCK": self.threads,
            "MIN_BLOCKS": self.min_blocks,
            "POLL": self.poll,
            "LANES": self.lanes,
            "REVERSE_SCAN": int(self.reverse_scan),
            "EARLY_STOP": int(self.early_stop),
            "STEAL_LEVELS": self.steal_levels,
            "TIMED": int(self.timed),
            "SHARED_INTS": self.shared_ints,
        }


def shipped() -> list[Variant]:
    """All that the engine with the usual sizes asks for."""
    return [Variant.of(SEARCH, CumbeSizes().defines)]


class Bounds(NamedTuple):
    """How large the neighbourhood of one root can be, in entries."""

    most_base: int
    most_roots: int
    most_wedges: int

    @classmethod
    def of(cls, graph: MiningGraph) -> Bounds:
        """Compute the bounds in one pass over the edges."""
        degree = np.diff(graph.base_indptr)
        total = offsets_of(degree[graph.root_indices])
        wedges = int((total[graph.root_indptr[1:]] - total[graph.root_indptr[:-1]]).max())
        if wedges >= 1 << 30:
            raise ResourceError(
                f"a root has {wedges} edges around it, engine cumbe takes {(1 << 30) - 1}; use engine='bitmatrix' or "
                "the other root side"
            )
        return cls(int(np.diff(graph.root_indptr).max()), min(graph.n_roots, wedges), wedges)

    @property
    def table(self) -> int:
        """Slots of the hash table."""
        return max(32, 1 << (2 * self.most_roots - 1).bit_length())

    @property
    def arena_ints(self) -> int:
        """Ints of one block's arena: see ``cuda/cumbe/block.cuh`` and ``cuda/cumbe/open.cuh``."""
        base, roots, ids = _even(self.most_base), _even(self.most_roots), _even(self.most_roots + 1)
        fixed = 2 * self.table + base + 2 * roots + _even(self.most_base + 2) + (self.most_base + 2) * LEVEL_INTS
        return fixed + 5 * base + 2 * self.most_base + 2 * _even(self.most_wedges) + 8 * ids + 4 * (self.most_roots + 1)


def _even(n: int) -> int:
    return n + n % 2


@dataclass
class Arenas:
    """The grid, and the memory that its blocks own."""

    n_blocks: int
    arena: Any
    shelves: Any
    available: Any
    readers: Any
    params: dict[str, int]

    @classmethod
    def plan(cls, device: Device, kernel: str, bounds: Bounds, sizes: CumbeSizes) -> Arenas:
        """As many blocks as are resident together and have an arena."""
        each = 4 * bounds.arena_ints
        free = device.free_bytes()
        fitting = int(SCRATCH_SHARE * free) // each
        if fitting == 0:
            raise DeviceMemoryError(
                f"{device.name} has {free >> 20} MiB free, engine cumbe needs {int(each / SCRATCH_SHARE) >> 20} MiB "
                f"for a root with {bounds.most_wedges} edges around it; use a larger device, the other root side or "
                "engine='cpu'"
            )
        n_blocks = min(device.resident_blocks(kernel, sizes.defines, sizes.threads), fitting)
        if sizes.blocks is not None:
            n_blocks = min(n_blocks, sizes.blocks)
        arena = device.empty(n_blocks * bounds.arena_ints, VERTEX)
        shelves = device.zeros(n_blocks, SHELF)
        available, readers = device.zeros(n_blocks, np.int32), device.zeros(n_blocks, np.int32)
        params = {
            "arena": device.address(arena),
            "arena_ints": bounds.arena_ints,
            "most_base": bounds.most_base,
            "most_roots": bounds.most_roots,
            "most_wedges": bounds.most_wedges,
            "table": bounds.table,
            "shelves": device.address(shelves),
            "available": device.address(available),
            "readers": device.address(readers),
        }
        return cls(n_blocks, arena, shelves, available, readers, params)


#: Lists and output of the cuMBE engine.
CUMBE_BUFFERS = {
    "pool": Buffer("pool", VERTEX, "n_pool"),
    "left_over": Buffer("left_over", CUMBE_ITEM, "n_left_over"),
    "values": Buffer("values", VERTEX, "n_values", "listing"),
    "records": Buffer("records", RECORD, "n_records", "listing"),
    "sizes": Buffer("size_slots", SIZE, "n_sizes", "sizing"),
}
