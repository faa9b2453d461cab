"""Device memory of the bit-matrix engine: the graph, and what a launch needs. `kernels.gpu.buffers` has the buffers."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bicliques.kernels.bitmatrix.layout import ITEM, LEAF, PARAMS
from bicliques.kernels.gpu.cuda import SCRATCH_SHARE
from bicliques.kernels.gpu.device import Device
from bicliques.kernels.gpu.pack import DeviceGraph
from bicliques.kernels.gpu.records import RECORD, SIZE, WORD_BITS, parameters
from bicliques.kernels.gpu.sizes import Buffer, search_bytes
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import DeviceMemoryError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Search

#: The kernels of the engine: the search without and with thresholds, that for near-bicliques, the count of p x q, and
#: the bit rows of hubs.
SEARCH, SIEVE, NEAR, PIVOT, HUB_BITS = "bitmatrix", "sieve", "near", "pivot", "hub_bits"
HUB_BITS_DEFINES: dict[str, int] = {}
THREADS = 128
#: Records that a warp takes at a time. All warps together take at most an eighth of the records. Bicliques that one
#: warp finds one after the other are alike, so chunks of 256 instead of 64 make Parquet files 5 to 8 % smaller
#: (docs/multi-gpu.md).
_LEAST_CHUNK, _MOST_CHUNK = 64, 256


class GpuSizes(NamedTuple):
    """Sizes of the device memory. Buffers begin with these sizes and grow. Tests make them tiny.

    Parameters
    ----------
    row_cap : int
        Rows that a word problem may have in the first launch, a power of two. Larger problems run in a second launch.
    list_cap : int
        Base vertices that a warp's stack of hubs may have in the first launch.
    given, left_over, pool : int
        Items that can be given away in a launch, items that it can leave over, and vertices in their lists.
    values, records : int
        Vertices and bicliques that the output buffers hold. A launch ends when seven eighths are in use.
    size_slots : int
        Different sizes, or kinds of leaves, that can be counted, a power of two.
    hub_bytes : int
        Most bytes for the bit rows of large root vertices. If these need more, binary search is used instead.
    warps : int or None
        Warps to launch. None takes as many as are resident together and have scratch memory.
    poll : int
        Visits between two looks at the queue, a power of two.
    give_min : int
        Least work of a word problem that a warp gives away, in children x candidates x base vertices beyond those of a
        lattice.
    window_words : int
        Size of the window of ranks in which candidates of hubs are looked for, in words of 32 ranks.
    least_sifted : int
        Fewest wedges of a word problem whose rows are sifted before they are entered in the hash table.
    roots_per_wedge : int
        Fewest roots of the graph for each wedge of a word problem whose rows are sifted. Problems that may have more
        rows than `row_cap` are sifted in any case.
    many_roots : int
        Roots of a graph from which on its rows are sifted through a filter of twice the size. It takes shared memory,
        which is cache otherwise (docs/lab/kernels.md).
    narrow : int
        Most words of a bit row, 32 at most, with which a word problem is searched row by row. Wider problems are
        searched by columns.
    least_joined : int
        Fewest candidates that a base vertex of a hub has in the mean, if twins inside the hub are merged.
    min_blocks : int
        Blocks of 128 threads per multiprocessor that the compiler must leave registers for.
    """

    row_cap: int = 4096
    list_cap: int = 32768
    given: int = 1 << 20
    left_over: int = 1 << 19
    pool: int = 1 << 26
    values: int = 1 << 26
    records: int = 1 << 22
    size_slots: int = 1 << 18
    hub_bytes: int = 1 << 30
    warps: int | None = None
    poll: int = 16
    give_min: int = 256
    window_words: int = 256
    least_sifted: int = 1024
    roots_per_wedge: int = 4
    many_roots: int = 1 << 15
    narrow: int = 16
    least_joined: int = 4
    min_blocks: int = 4

    def halved(self, times: int) -> GpuSizes:
        """The same, with memory for output, queues and hubs halved so many times. Scratch adapts by itself."""
        shared = ("given", "left_over", "pool", "values", "records", "hub_bytes")
        return self._replace(**{name: max(getattr(self, name) >> times, 1 << 10) for name in shared})


#: Hubs on the stack of a warp, as in ``cuda/bitmatrix/types.cuh``.
HUB_DEPTH = 32

#: ``HubFrame`` of ``cuda/bitmatrix/worker.cuh``, which no host code reads.
HUB_FRAME = np.dtype([("pointers", np.int64, (4,)), ("numbers", np.int32, (8,))], align=True)


def scratch(row_cap: int, list_cap: int) -> np.dtype:
    """``Scratch`` of ``cuda/bitmatrix/worker.cuh``, the memory of one warp. The host uses its size only."""
    words = row_cap // 32
    i32, u32, u64 = np.int32, np.uint32, np.uint64
    return np.dtype(
        [
            ("mask", u64, (row_cap,)),
            ("row", i32, (row_cap,)),
            ("raw_mask", u64, (row_cap,)),
            ("raw_row", i32, (row_cap,)),
            ("column", u32, (WORD_BITS * words,)),
            ("full", i32, (row_cap,)),
            ("base", i32, (WORD_BITS,)),
            ("cand", u32, (WORD_BITS * words,)),
            ("closed", u32, (WORD_BITS * words,)),
            ("excluded", u32, (words,)),
            ("level_base", u64, (WORD_BITS,)),
            ("level_end", i32, (WORD_BITS,)),
            ("pending_base", u64, (32,)),
            ("pending_closed", u32, (32 * words,)),
            ("pending_any", u32, (words,)),
            ("key", i32, (2 * row_cap,)),
            ("lo", u32, (2 * row_cap,)),
            ("hi", u32, (2 * row_cap,)),
            ("slot", i32, (row_cap,)),
            ("bin", i32, (2 * WORD_BITS,)),
            ("frame", HUB_FRAME, (HUB_DEPTH,)),
            ("list", i32, (list_cap,)),
        ],
        align=True,
    )


#: Frames on the stack of a sieve, and ``SieveFrame``, as in ``cuda/bitmatrix/sieve_types.cuh``.
SIEVE_DEPTH = 64
SIEVE_FRAME = np.dtype((np.int32, (16,)))


def _sieve_words(row_cap: int) -> int:
    """Words of the bit rows of a stack. A small shape has more than it has rows, because few roots may be long."""
    return 16 * (8192 if 1024 <= row_cap < 4096 else row_cap)


def sieve(row_cap: int) -> np.dtype:
    """``Sieve`` of ``cuda/bitmatrix/sieve_types.cuh``, which a warp has besides where thresholds are wanted."""
    words = _sieve_words(row_cap)
    return np.dtype(
        [
            ("bits", np.uint64, (words,)),
            ("row", np.int32, (words // 4,)),
            ("weight", np.int32, (words // 4,)),
            ("count", np.int32, (row_cap,)),
            ("frame", SIEVE_FRAME, (SIEVE_DEPTH,)),
            ("planes", np.int32),
        ],
        align=True,
    )


def sieve_scratch(row_cap: int, list_cap: int) -> np.dtype:
    """``SieveScratch``, all memory of a warp where thresholds are wanted."""
    return np.dtype([("scratch", scratch(row_cap, list_cap)), ("sieve", sieve(row_cap))], align=True)


#: Frames on the stack of a search for near-bicliques, and ``NearFrame``, as in ``cuda/bitmatrix/near_types.cuh``.
NEAR_DEPTH = 128
NEAR_FRAME = np.dtype((np.int32, (21,)))
#: Words of 32 bits that a problem of near-bicliques has in place of a row of the other searches.
NEAR_WORDS = 32


def near_scratch(row_cap: int, n_vertices: int) -> np.dtype:
    """The memory of a warp that searches for near-bicliques: frames, three numbers per vertex, and bit rows."""
    n_bytes = NEAR_DEPTH * NEAR_FRAME.itemsize + 4 * (3 * n_vertices + NEAR_WORDS * row_cap)
    return np.dtype((np.void, -(-n_bytes // 256) * 256))


class Form(NamedTuple):
    """What a search asks of the kernel. Each form is a compilation of its own.

    Parameters
    ----------
    plain : bool
        Whether only the count is wanted, and no biclique that is found is left out for its size.
    measured : bool
        Whether members of bicliques are counted.
    sieving : bool
        Whether there are thresholds or a bound.
    bounded : bool
        Whether the largest by a measure are wanted.
    sifting : bool
        Whether hash table and filter of a warp are the large ones. See `GpuSizes.many_roots`.
    near : int
        Vertices of the graph, if pairs may be missing, or p x q are counted. Otherwise 0.
    marked : bool
        Whether only bicliques with a marked edge are wanted.
    merging : bool
        Whether twins inside nodes are merged. See `HubGraph.is_dense`.
    pivots : bool
        Whether p x q, or cliques, are counted.
    one : bool
        Whether cliques are.
    """

    plain: bool
    measured: bool
    sieving: bool
    bounded: bool = False
    sifting: bool = False
    near: int = 0
    marked: bool = False
    merging: bool = False
    pivots: bool = False
    one: bool = False

    @property
    def kernel(self) -> str:
        """The kernel that searches."""
        return PIVOT if self.pivots else NEAR if self.near else SIEVE if self.sieving else SEARCH

    def scratch(self, row_cap: int, list_cap: int) -> np.dtype:
        """The memory of a warp."""
        if self.near:
            return near_scratch(row_cap, self.near)
        return (sieve_scratch if self.sieving else scratch)(row_cap, list_cap)


#: Hash slots of a warp in shared memory, unless rows are sifted through a large filter.
_SLOTS = 512


def defines_of(row_cap: int, list_cap: int, form: Form, sizes: GpuSizes) -> dict[str, int]:
    """Macros of the kernel: see ``cuda/bitmatrix/types.cuh``. That for near-bicliques takes its sizes as parameters."""
    own = {"BLOCK": THREADS, "POLL": sizes.poll, "GIVE_MIN": sizes.give_min, "MIN_BLOCKS": sizes.min_blocks}
    if form.pivots:
        return own | {"ONE_SIDE": int(form.one)}
    if form.near:
        return own | {"GIVE_MIN": 0}  # a child without rows to speak of may have a large tree
    if form.sieving:
        own |= {"SIEVE_BYTES": form.scratch(row_cap, list_cap).itemsize, "BOUNDED": int(form.bounded)}
        own["SIEVE_WORDS"] = _sieve_words(row_cap)
    return own | {
        "ROW_CAP": row_cap,
        "LIST_CAP": list_cap,
        "PLAIN": int(form.plain),
        "MEASURED": int(form.measured),
        "WINDOW_WORDS": sizes.window_words,
        "LEAST_SIFTED": sizes.least_sifted,
        "ROOTS_PER_WEDGE": sizes.roots_per_wedge,
        "SHARED_SLOTS": _SLOTS << form.sifting,
        "NARROW": sizes.narrow,
        "LEAST_JOINED": sizes.least_joined,
        "MARKED": int(form.marked),
        "MERGING": int(form.merging),
        "SCRATCH_BYTES": scratch(row_cap, list_cap).itemsize,
    }


@dataclass
class Launch:
    """One shape of the kernel: its limits at compile time, its scratch memory, and its grid."""

    defines: dict[str, int]
    n_blocks: int
    n_warps: int
    scratch: Any
    scratch_bytes: int
    record_chunk: int

    @classmethod
    def plan(cls, device: Device, row_cap: int, list_cap: int, form: Form, sizes: GpuSizes) -> Launch:
        """As many warps as are resident together and fit into 60 % of the free memory.

        Raises
        ------
        DeviceMemoryError
            Not even one block fits.
        """
        defines = defines_of(row_cap, list_cap, form, sizes)
        per_block = THREADS // 32
        each = form.scratch(row_cap, list_cap).itemsize
        n_blocks = device.resident_blocks(form.kernel, defines, THREADS)
        if sizes.warps is not None:
            n_blocks = min(n_blocks, -(-sizes.warps // per_block))
        fitting = int(SCRATCH_SHARE * device.free_bytes()) // (each * per_block)
        if fitting == 0:
            raise DeviceMemoryError(
                f"{device.name} has {device.free_bytes() >> 20} MiB free, one block with {row_cap} rows a warp "
                f"needs {each * per_block >> 20} MiB; use a larger device or engine='cpu'"
            )
        n_blocks = min(n_blocks, fitting)
        n_warps = n_blocks * per_block
        chunk = min(max(sizes.records // (8 * n_warps), _LEAST_CHUNK), _MOST_CHUNK)
        return cls(defines, n_blocks, n_warps, device.empty(n_warps * each, np.uint8), each, chunk)

    def with_blocks(self, n_blocks: int) -> Launch:
        """The same with fewer blocks, in the same scratch memory."""
        return replace(self, n_blocks=n_blocks, n_warps=n_blocks * (self.n_warps // self.n_blocks))


#: The least density of a graph whose twins are merged (docs/lab/kernels.md).
_DENSE = 0.2


class HubGraph(DeviceGraph):
    """A graph on the device with the bit rows of its hubs, if they fit into `hub_bytes`.

    `one`: a double cover, of which cliques are counted.
    """

    def __init__(self, device: Device, graph: MiningGraph, hub_bytes: int, one: bool = False) -> None:
        self.one, of = one, graph
        if one:  # roots and base vertices are the same, and have one numbering
            indptr, indices = graph.neighbours()
            own = replace(graph, root_indptr=indptr, root_indices=indices)
            graph = replace(own, base_indptr=indptr, base_indices=indices)
        super().__init__(device, graph)
        self.graph = of
        self.first_hub, self.hub_words = _hubs_of(graph)
        self.params |= {"first_hub": self.first_hub}
        if graph.marks is not None:
            for name, array in zip(("marks_indptr", "marks"), graph.marks_by_base(), strict=True):
                self.arrays[name] = device.upload(array)
                self.params[name] = device.address(self.arrays[name])
            self.params["n_marked"] = graph.roots_to_search
        if n_words := _bit_words(graph, hub_bytes):
            self._make_hub_bits(device, n_words)

    @functools.cached_property
    def is_dense(self) -> bool:
        """Whether nodes may have many twins, as far as degrees tell.

        It is the density between the ends of random edges, if edges were drawn at random with the degrees of the graph.
        """
        ends = [np.diff(indptr).astype(np.float64) for indptr in (self.graph.root_indptr, self.graph.base_indptr)]
        return bool(np.prod([each @ each for each in ends]) >= _DENSE * ends[0].sum() ** 3)

    def _make_hub_bits(self, device: Device, n_words: int) -> None:
        bits = device.zeros(n_words, np.uint32)
        self.arrays["hub_bits"] = bits
        self.params |= {"hub_bits": device.address(bits), "hub_words": self.hub_words}
        device.launch(
            HUB_BITS, HUB_BITS_DEFINES, 4 * device.n_multiprocessors, THREADS, parameters(PARAMS, self.params)
        )


def _hubs_of(graph: MiningGraph) -> tuple[int, int]:
    """The first hub, and the words of 32 bits in the bit row of each."""
    large = np.flatnonzero(np.diff(graph.root_indptr) > WORD_BITS)
    return int(large[0]) if len(large) else graph.n_roots, -(-graph.n_base // 32)


def _bit_words(graph: MiningGraph, hub_bytes: int) -> int:
    """Words of the bit rows of all roots from the first hub on. 0 if they do not fit into `hub_bytes`."""
    first_hub, hub_words = _hubs_of(graph)
    n_words = (graph.n_roots - first_hub) * hub_words
    return n_words if 4 * n_words <= hub_bytes else 0


#: The arrays of the bit-matrix search: items given away in a launch, items left over, lists of both, and the output.
BUFFERS = {
    "given": Buffer("given", ITEM, "n_given"),
    "ready": Buffer("given", np.int32, "n_given"),
    "pool": Buffer("pool", VERTEX, "n_pool"),
    "left_over": Buffer("left_over", ITEM, "n_left_over"),
    "oversize": Buffer("left_over", ITEM, "n_oversize"),
    "values": Buffer("values", VERTEX, "n_values", "listing"),
    "records": Buffer("records", RECORD, "n_records", "listing"),
    "sizes": Buffer("size_slots", SIZE, "n_sizes", "sizing"),
    "leaves": Buffer("size_slots", LEAF, "n_leaves", "pivoting"),
}


def device_bytes(graph: MiningGraph, search: Search, sizes: GpuSizes) -> int:
    """Device memory of a search as it begins, besides the scratch memory of its warps, in bytes."""
    marks = 0 if graph.marks is None else 8 * (graph.n_base + 1) + 4 * len(graph.marks)
    return search_bytes(graph, search, sizes, BUFFERS) + 4 * _bit_words(graph, sizes.hub_bytes) + marks
