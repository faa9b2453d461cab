"""The memory of one search. Its size depends on the graph, not on the results.

The compiled search is a state machine. Everything that it knows between two calls is here. So it can stop
anywhere (clock, full output buffer, row limit) and go on later, or be written down as `Subtrees`.

L is the base side of a node, and R is its closure on the root side. Q rows are excluded, C rows are
candidates. A *row* is a root vertex restricted to the L of its problem. The same tuples hold arrays in
Python and pointers (`kernels.cpu.memory`) in compiled code. `kernels.cpu.pointers` makes them of addresses.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np

from bicliques.kernels.compiled.searching import MEASURES
from bicliques.kernels.cpu.constants import COUNTERS, MAX_ROWS, PADDING, RANKED
from bicliques.schemas.bicliques import ID
from bicliques.schemas.dtypes import OFFSET, VERTEX, WORD
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Search
from bicliques.schemas.work import Subtrees

#: What a field is: an array of these numbers, one record, or records, of which compiled code has the address.
I32: TypeAlias = Any
I64: TypeAlias = Any
U64: TypeAlias = Any
State: TypeAlias = Any
Address: TypeAlias = Any
#: Most base vertices of a word problem, with one bit per vertex. It has at most as many frames, because L shrinks.
WORD_BITS = 64
#: Most frames of a hub problem, and of a sieve problem. Nodes that lie deeper are put aside.
HUB_FRAMES = SIEVE_FRAMES = 256
#: Bicliques with fewer members on both sides are counted in a table. The others are noted one by one.
USUAL = 256
#: Bits of the weight of a base vertex, which has a bit vector for each.
_MAX_PLANES = 63
#: Base vertices of classes of twins for which there is room, as a multiple of those of the graph.
_LISTED = 4
#: Bicliques that beat the bound are handed out when there are so many, as a fraction of those wanted, rounded up.
_HANDED_OUT = 8
#: `Hub.key` of a root vertex outside the problem, and of a member of its closure.
OUTSIDE, CLOSED = -1, 2**31 - 1


def record(names: str) -> np.dtype:
    """The type of a record of numbers with these names."""
    return np.dtype([(name, np.uint64 if name == "fingerprint" else OFFSET) for name in names.split()])


WORD_STATE = record("n_full n_rows n_marked depth n_found delivered found_depth n_planes max_stack max_near max_found")
WORD_FRAME = record("q0 n_q n_c next end near0 n_near")
HUB_STATE = record(
    "n_base words n_rows first n_full n_marked depth wide fresh least max_bits max_list max_frame_bits n_sorter"
)
HUB_FRAME = record("list0 n_list next end")
SIEVE_STATE = record("depth fresh least max_bits max_list")
SIEVE_FRAME = record(
    "words planes at rows stride top "  # where its bits are: L, then the rows, and the end of both
    "list0 n_rows next end "  # its rows: the first of those in use, how many, and those to be explored
    "base0 n_base n_classes size "  # base vertices, the classes of all frames so far, the weight of L
    "n_closed members members_left"  # closure, its members, and those of the candidates
)
OUTPUT_STATE = record(
    "plain prove listing sizing sieving marking unit unit_roots root_is_left "  # options
    "min_base max_base min_root max_root "
    "measure most_weight bound n_better hand_out "  # the bound of `kernels.cpu.bound`
    "item keyed steps rows_left "  # where the search is, and how far it may go
    "count fingerprint n_rows n_left n_right n_aside n_odd need_left need_right "  # what it has found
    "max_rows max_left max_right max_aside max_piece max_odd first_class max_classes max_members"  # capacities
)


class Graph(NamedTuple):
    """A `MiningGraph` for the search: adjacency, members, and the hash sum of each vertex's members."""

    root_indptr: I64  # (n_roots + 1,)
    root_indices: I32
    base_indptr: I64
    base_indices: I32
    root_members_indptr: I64
    root_members: I32
    base_members_indptr: I64
    base_members: I32
    root_hash: U64  # (n_roots,)
    base_hash: U64
    marks_indptr: I64  # (n_base + 1,), empty without marks
    marks: I32  # root vertices that each base vertex has a marked edge to


class Pieces(NamedTuple):
    """`schemas.work.Subtrees`."""

    path_indptr: I64
    path: I32
    candidate_indptr: I64
    candidates: I32
    todo: I32
    fresh: I32


class Word(NamedTuple):
    """A problem with at most 64 base vertices. Each row is a single word."""

    state: State  # WORD_STATE
    base: I32  # (64,): base vertex of each bit, or its class of twins (`kernels.cpu.twins`)
    full: I32  # the problem's closure R
    row: I32  # root vertex of each candidate row, twins included, in candidate order
    mask: U64  # its base vertices
    stack: U64  # frame after frame, Q rows then C rows
    near: I32  # per frame, the candidate rows that touch its L (positions in `row`)
    near_mask: U64  # their masks
    frame: Address  # (65,) WORD_FRAME
    frame_mask: U64  # (65,): L of each frame
    found: U64  # masks found and not yet delivered
    touched: I32  # rows of the problem being opened
    touched_mask: U64
    slot: I32  # (n_roots,): position in `touched`, OUTSIDE for the others
    leaf: U64  # scratch of `leaf.intersections`
    listed: I32  # (64,): base vertices of the biclique being delivered
    planes: U64  # (63,): the bits whose number of members is odd, those with 2 in it, with 4, ...
    subset_sums: I64  # (64,): members of each set of at most six bits
    marked: U64  # base vertices of a row, and the one of them with a marked edge to it: two for each such edge


class Hub(NamedTuple):
    """A problem with more than 64 base vertices. Rows that can matter have a bit vector each."""

    state: State  # HUB_STATE
    base: I32  # (n_base,): the L of the problem
    local: I32  # (n_base,): position in `base`, OUTSIDE for the others
    full: I32  # (n_roots,): the problem's closure R
    row: I32  # (n_roots,): root vertices with a bit row: excluded ones, then candidates in order
    key: I32  # (n_roots,): position in `row`, CLOSED for members of R, OUTSIDE for all others
    closed_at: I32  # (n_roots,): depth at which a row joined the closure, 0 for not yet
    count: I32  # (n_roots,): base vertices of each root vertex
    sorter: I64  # (n_roots,): scratch
    bits: U64  # row after row, `words` each
    list: I32  # candidates of each frame (positions in `row`)
    frame: Address  # (HUB_FRAMES,) HUB_FRAME
    frame_bits: U64  # L of each frame, and of the child at hand behind them
    child: I32  # (n_base,): base vertices of the node being delivered
    marked: I32  # key of a row, and place in `base`: two for each marked edge between them


class Sieve(NamedTuple):
    """A problem that thresholds may reduce, or with twins. The rows of a frame have a bit vector each, word by word."""

    state: State  # SIEVE_STATE
    frame: Address  # (SIEVE_FRAMES,) SIEVE_FRAME
    bits: U64  # frame after frame: L as `planes` bit vectors, then word 0 of each row, word 1 of each row, ...
    row: I32  # frame after frame, root vertex of each row: excluded ones, then candidates in order
    weight: I32  # its members
    base: I32  # base vertex or class of each bit, once for all frames with the same bits
    closed: I32  # (n_roots,): closure of the last frame; those of earlier frames are its beginnings
    count: I64  # weight of the overlap of each row with the child at hand
    mask: U64  # L of the node at hand
    twin: I32  # (n_base,): class of each vertex of L
    slot: I32  # hash table of the classes
    key: U64  # rows that have each class
    part: I32  # what each class was part of
    square: U64  # (64,): the square of bits that is transposed


class Output(NamedTuple):
    """The output of the search: counters, delivered bicliques, and pieces that were put aside."""

    state: State  # OUTPUT_STATE
    left_indptr: I64  # (max_rows + 1,)
    left: I32
    right_indptr: I64
    right: I32
    root: I32  # (max_rows,)
    ids: U64  # (max_rows,), int64 in Python
    aside: I32  # pieces put aside: [len(path), *path, len(candidates), *candidates, fresh] each
    closure: I32  # (n_roots,): R of the biclique at hand
    usual: I64  # (USUAL * USUAL,): bicliques by (base size, root size), both below USUAL
    odd: I32  # (base size, root size) of each of the others
    missing: I32  # (max_rows,): pairs that are no edges, where these are looked for
    base_size: I64  # members of each base vertex, and of each class of twins behind them
    base_hash: U64  # the sum of their hashes
    class_ptr: I64  # where the base vertices of each class are
    class_member: I32  # base vertices, if they are to be listed
    present: U64  # a bit for each id of a side, clean: to sort what is listed


class Sizes(NamedTuple):
    """Sizes of the workspace, in entries. The defaults suit every graph; tests make them tiny."""

    hub_bits: int = 1 << 22
    hub_list: int = 1 << 20
    hub_frame_bits: int = 1 << 20
    word_stack: int = 1 << 18
    rows: int = 1 << 16
    members: int = 1 << 22
    odd: int = 1 << 16
    near: int = 1 << 12  # what grows when it has to
    steps: int = 10_000  # before the first look at the clock


def addresses(arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Where the data of each array begins, int64. The arrays must be C-contiguous and outlive their use."""
    if not all(array.flags.c_contiguous for array in arrays):
        raise ValueError("only contiguous arrays have an address")
    return np.array([array.ctypes.data for array in arrays], dtype=np.int64)


def graph_arrays(graph: MiningGraph) -> Graph:
    """The arrays of `graph`, which are shared, not copied."""
    return Graph(
        np.asarray(graph.root_indptr),
        np.asarray(graph.root_indices),
        np.asarray(graph.base_indptr),
        np.asarray(graph.base_indices),
        np.asarray(graph.root_members_indptr),
        np.asarray(graph.root_members),
        np.asarray(graph.base_members_indptr),
        np.asarray(graph.base_members),
        np.asarray(graph.root_hash),
        np.asarray(graph.base_hash),
        *graph.marks_by_base(),
    )


def pieces_of(subtrees: Subtrees) -> Pieces:
    """The same pieces as contiguous arrays of the types that the compiled code expects."""
    offsets, ids = OFFSET, VERTEX
    types = Pieces(offsets, ids, offsets, ids, ids, ids)
    return Pieces(*(np.ascontiguousarray(getattr(subtrees, k), t) for k, t in types._asdict().items()))


def allocate(graph: MiningGraph, search: Search, sizes: Sizes) -> tuple[Word, Hub, Sieve, Output]:
    """The arrays of one search.

    Notes
    -----
    They take about ``60 n_roots + 28 n_base`` bytes, 60 bytes per row that 64 base vertices can touch, and what
    `sizes` says, which is some 70 MB by default. In a sieve, classes of twins take 56 bytes more per base vertex, and
    16 more if rows are listed. A graph that cannot fill stacks and bit rows gets shorter ones, because the system
    clears all of them, which takes longer than to search it. Nothing depends on the number of bicliques.
    """
    n_roots, n_base = graph.n_roots, graph.n_base
    n_words = -(-n_base // WORD_BITS)
    degrees = np.sort(np.diff(graph.base_indptr))[::-1]
    touch = int(min(n_roots, degrees[:WORD_BITS].sum())) + PADDING
    # a frame of a word problem has its rows, and those of its child, behind those of the frames before it
    word_stack = min(sizes.word_stack, 3 * (WORD_BITS + 2) * touch)
    n_marks = 0 if graph.marks is None else len(graph.marks)
    i32, u64 = VERTEX, WORD
    word = Word(
        state=np.zeros(1, WORD_STATE),
        base=np.empty(WORD_BITS, i32),
        full=np.empty(touch, i32),
        row=np.empty(touch, i32),
        mask=np.zeros(touch, u64),
        stack=np.zeros(3 * touch + word_stack + COUNTERS, u64),
        near=np.empty(touch + word_stack, i32),
        near_mask=np.zeros(touch + word_stack, u64),
        frame=np.zeros(WORD_BITS + 1, WORD_FRAME),
        frame_mask=np.zeros(WORD_BITS + 1, u64),
        found=np.empty(touch + 4096, u64),
        touched=np.empty(touch, i32),
        touched_mask=np.empty(touch, u64),
        slot=np.empty(n_roots, i32),
        leaf=np.zeros(2**MAX_ROWS + PADDING, u64),
        listed=np.empty(WORD_BITS, i32),
        planes=np.zeros(_MAX_PLANES, u64),
        subset_sums=np.zeros(2**6, OFFSET),
        marked=np.empty(2 * n_marks, u64),
    )
    hub = Hub(
        state=np.zeros(1, HUB_STATE),
        base=np.empty(n_base, i32),
        local=np.empty(n_base, i32),
        full=np.empty(n_roots, i32),
        row=np.empty(n_roots, i32),
        key=np.empty(n_roots, i32),
        closed_at=np.empty(n_roots, i32),
        count=np.empty(n_roots, i32),
        sorter=np.empty(n_roots + 2 * RANKED, OFFSET),
        bits=np.zeros(0 if _sieves(graph, search) else min(sizes.hub_bits, n_roots * n_words), u64),
        list=np.empty(n_roots + min(sizes.hub_list, HUB_FRAMES * n_roots), i32),
        frame=np.zeros(HUB_FRAMES, HUB_FRAME),
        frame_bits=np.zeros(2 * n_words + min(sizes.hub_frame_bits, HUB_FRAMES * n_words), u64),
        child=np.empty(n_base, i32),
        marked=np.empty(2 * n_marks, i32),
    )
    sieve, out = _sieve(graph, search, sizes), allocate_output(graph, search, sizes)
    word.state[0]["max_stack"], word.state[0]["max_near"] = len(word.stack) - COUNTERS, len(word.near)
    word.state[0]["max_found"] = len(word.found)
    hub.state[0]["max_bits"], hub.state[0]["max_list"] = len(hub.bits), len(hub.list)
    hub.state[0]["max_frame_bits"], hub.state[0]["n_sorter"] = len(hub.frame_bits), n_roots
    return word, hub, sieve, out


def allocate_output(graph: MiningGraph, search: Search, sizes: Sizes) -> Output:
    """The arrays of the output of one search."""
    n_base, n_roots, i32, u64 = graph.n_base, graph.n_roots, VERTEX, WORD
    rows, members = (sizes.rows, sizes.members) if search.mode == "list" else (0, 0)
    classes = n_base if _sieves(graph, search) and not search.marked and search.near is None else 0
    out = Output(
        state=np.zeros(1, OUTPUT_STATE),
        left_indptr=np.zeros(rows + 1, OFFSET),
        left=np.empty(members, i32),
        right_indptr=np.zeros(rows + 1, OFFSET),
        right=np.empty(members, i32),
        root=np.empty(rows, i32),
        ids=np.empty(rows, ID),
        aside=np.empty(4 * n_roots + 1024, i32),
        closure=np.empty(n_roots, i32),
        usual=np.zeros(USUAL * USUAL if search.sizes else 0, OFFSET),
        odd=np.empty(2 * sizes.odd if search.sizes else 0, i32),
        missing=np.empty(rows if search.near is not None else 0, i32),
        base_size=np.concatenate([np.diff(graph.base_members_indptr), np.empty(classes, OFFSET)], dtype=OFFSET),
        base_hash=np.concatenate([graph.base_hash, np.empty(classes, u64)]),
        class_ptr=np.zeros(classes + 1, OFFSET),
        class_member=np.empty(_LISTED * classes if rows else 0, i32),
        present=np.zeros(max(graph.n_left, graph.n_right) // 64 + 1 if rows else 0, u64),
    )
    _set_options(out.state[0], graph, search)
    out.state[0]["max_piece"] = 2 * n_roots + 3
    out.state[0]["max_odd"] = len(out.odd) // 2
    out.state[0]["first_class"], out.state[0]["max_classes"], out.state[0]["max_members"] = (
        n_base,
        classes,
        len(out.class_member),
    )
    set_capacities(out)
    return out


def _sieves(graph: MiningGraph, search: Search) -> bool:
    """Whether hubs are problems of the sieve: with thresholds, or for its twins.

    Marks keep it from merging those, and to list the members of classes takes longer than to search without them.
    """
    return search.prunes or (graph.is_dense and search.mode != "list" and not search.marked)


def _sieve(graph: MiningGraph, search: Search, sizes: Sizes) -> Sieve:
    """The sieve's arrays. They are empty if it is not used."""
    n_roots, n_base = (graph.n_roots, graph.n_base) if _sieves(graph, search) else (0, 0)
    n_words = -(-n_base // WORD_BITS)
    bits = min(sizes.hub_bits, SIEVE_FRAMES * n_words * (_MAX_PLANES + n_roots))
    rows = n_roots + min(sizes.hub_list, SIEVE_FRAMES * n_roots)
    sieve = Sieve(
        state=np.zeros(1, SIEVE_STATE),
        frame=np.zeros(SIEVE_FRAMES, SIEVE_FRAME),
        bits=np.zeros(bits + PADDING, WORD),
        row=np.empty(rows, VERTEX),
        weight=np.empty(rows + PADDING, VERTEX),
        base=np.empty(2 * n_base + 2 * WORD_BITS, VERTEX),
        closed=np.empty(n_roots, VERTEX),
        count=np.empty(2 * n_roots + 3 * PADDING, OFFSET),
        mask=np.empty(n_words + 1, WORD),
        twin=np.empty(n_base, VERTEX),
        slot=np.empty(4 * n_base + 128, VERTEX),
        key=np.empty(n_base + WORD_BITS, WORD),
        part=np.empty(n_base + WORD_BITS, VERTEX),
        square=np.empty(WORD_BITS, WORD),
    )
    sieve.state[0]["max_bits"], sieve.state[0]["max_list"] = bits, rows
    return sieve


def workspace_bytes(graph: MiningGraph, search: Search) -> int:
    """Bytes of the memory of one search, besides the graph, which is shared."""
    return sum(array.nbytes for group in allocate(graph, search, Sizes()) for array in group)


def reset(word: Word, hub: Hub, sieve: Sieve, out: Output) -> None:
    """Forget the last slice. Nothing is open or found then, and arrays that are indexed by vertex are reset."""
    reset_output(out)
    for name in ("n_full", "n_rows", "depth", "n_found", "delivered"):
        word.state[0][name] = 0
    for name in ("n_base", "n_full", "n_rows", "depth", "fresh"):
        hub.state[0][name] = 0
    sieve.state[0]["depth"] = sieve.state[0]["fresh"] = 0
    word.slot.fill(OUTSIDE)
    hub.local.fill(OUTSIDE)
    hub.key.fill(OUTSIDE)
    hub.closed_at.fill(0)
    hub.count.fill(0)


def reset_output(out: Output) -> None:
    """Forget what was found in the last slice."""
    for name in (
        "item",
        "count",
        "fingerprint",
        "n_rows",
        "n_left",
        "n_right",
        "n_aside",
        "n_odd",
        "n_better",
        "need_left",
        "need_right",
    ):
        out.state[0][name] = 0
    out.state[0]["keyed"] = -1
    out.usual.fill(0)


def set_capacities(out: Output) -> None:
    """Tell the compiled code how long the output buffers are."""
    state = out.state[0]
    state["max_rows"], state["max_aside"] = len(out.root), len(out.aside)
    state["max_left"], state["max_right"] = len(out.left), len(out.right)


def _set_options(state: np.void, graph: MiningGraph, search: Search) -> None:
    left, right = (search.min_left, search.max_left), (search.min_right, search.max_right)
    (min_root, max_root), (min_base, max_base) = (left, right) if graph.root_side == "left" else (right, left)
    unlimited = np.iinfo(OFFSET).max
    state["prove"] = search.mode != "count"
    state["listing"] = search.mode == "list"
    state["sizing"] = search.sizes
    state["sieving"] = _sieves(graph, search)
    state["marking"] = search.marked
    state["unit"] = len(graph.base_members) == graph.n_base
    state["unit_roots"] = len(graph.root_members) == graph.n_roots
    state["root_is_left"] = graph.root_side == "left"
    state["min_base"], state["max_base"] = min_base, unlimited if max_base is None else max_base
    state["min_root"], state["max_root"] = min_root, unlimited if max_root is None else max_root
    state["most_weight"] = min_base
    if search.largest is not None:
        state["measure"] = MEASURES[search.by, graph.root_side == "left"]
        state["most_weight"] = unlimited
        state["hand_out"] = 1 + search.largest // _HANDED_OUT
