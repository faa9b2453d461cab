"""Makes the `MiningGraph` that `kernels.graph.prepare` makes, array for array, by sorting and sums.

The code works on arrays of CuPy and of NumPy. On a GPU it builds large graphs. With NumPy it builds small ones, because
no machine code has to be loaded for it. Hashes bring twins together, and rows are compared in full. If two different
rows ever have the same hash, `kernels.graph.prepare` makes the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bicliques.kernels.graph.wedges import root_side_of
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.facts import PrepareFacts
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import LEFT_SALT, VertexHashes, hashes_of_ids, splitmix64
from bicliques.schemas.jobs import EVERY_REDUCTION, Reduction
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Side

#: Edges that one step takes at a time, so that what it makes on the way does not grow with the graph.
PART = 1 << 25
#: Device memory in bytes, at the peak: per edge of the graph, per edge of a part, and per vertex of the larger side.
EDGE_BYTES, PART_BYTES, VERTEX_BYTES = 40, 48, 160
#: Rounds in which the core is looked for. A long chain would need as many as it has vertices, so the rest is left to
#: `kernels.graph.core`, which takes a time that is linear in the edges.
ROUNDS = 64


class Csr(NamedTuple):
    """Compressed sparse rows, none of which is empty: offsets int64, columns int32."""

    indptr: Any
    indices: Any


class _Part(NamedTuple):
    """Entries `start` to `stop` of all rows: row `first` has the first of them, the row before `behind` the last."""

    start: int
    stop: int
    first: int
    behind: int


class Twins(NamedTuple):
    """Groups of equal rows, as `kernels.graph.twins.group_twins` returns them."""

    representatives: Any
    members_indptr: Any
    members: Any


def edges_of_a_whole(free_bytes: int, n_left: int, n_right: int) -> int:
    """The edges of the largest graph that a device with so much free memory makes. 0 or less if it has no room."""
    room = free_bytes - VERTEX_BYTES * max(n_left, n_right)
    in_one_part = room // (EDGE_BYTES + PART_BYTES)
    return in_one_part if in_one_part <= PART else (room - PART_BYTES * PART) // EDGE_BYTES


def prepare_on(
    xp: Any,
    read: Callable[[], tuple[Any, Any]],
    n_left: int,
    n_right: int,
    options: BuildOptions,
    min_left: int = 1,
    min_right: int = 1,
    reductions: frozenset[Reduction] = EVERY_REDUCTION,
    *,
    known: VertexHashes | None = None,
    to_host: Callable[[Any], np.ndarray] | None = None,
) -> tuple[MiningGraph, PrepareFacts]:
    """As `kernels.graph.prepare.prepare`, with the same result, array for array.

    Parameters
    ----------
    xp : module
        cupy or numpy.
    read : callable
        () -> the edge table, left and right, as arrays of `xp` or of NumPy. If nothing else keeps them, they are freed
        as soon as they have been used.
    known : VertexHashes or None
        In main memory.
    to_host : callable or None
        Copies an array of `xp` to main memory. None is `on_host`.

    Notes
    -----
    It synchronises. It takes O(m log m) time. `edges_of_a_whole` says what the device has room for.
    """
    if "core" not in reductions:
        min_left = min_right = 1
    grouped = twins_of if "twins" in reductions else _each_alone
    edges = [xp.asarray(ids) for ids in read()]
    _reduce_to_core(xp, edges, n_left, n_right, min_left, min_right)
    if len(edges[0]) == 0 and xp is not np:  # not all of CuPy takes empty arrays
        nothing = np.zeros(0, VERTEX), np.zeros(0, VERTEX)
        return prepare_on(np, lambda: nothing, n_left, n_right, options, 1, 1, reductions, known=known)
    left_index, left_core = _compact(xp, edges.pop(0), n_left)
    right_index, right_core = _compact(xp, edges.pop(0), n_right)
    n_core_edges = len(left_index)
    in_core = by_left = from_sorted(xp, left_index, right_index, len(left_core))
    del left_index, right_index
    rest = n_left, n_right, options, min_left, min_right, reductions
    left_twins = grouped(xp, by_left)
    if left_twins is None:
        return _compiled(xp, in_core, left_core, right_core, *rest, known=known)
    by_left = _without_twins(xp, by_left, left_twins)
    by_right = _transpose(xp, by_left, len(right_core))
    right_twins = grouped(xp, by_right)
    if right_twins is None:
        return _compiled(xp, in_core, left_core, right_core, *rest, known=known)
    del in_core  # its memory is needed
    if len(right_twins.representatives) < len(right_core):
        by_right = _without_twins(xp, by_right, right_twins)
        by_left = _transpose(xp, by_right, len(left_twins.representatives))

    root_side, cost = root_side_of(options, by_left.indptr, by_right.indptr, min_left, min_right)
    sides = {"left": (by_left, left_twins, left_core), "right": (by_right, right_twins, right_core)}
    base_side: Side = "left" if root_side == "right" else "right"
    ranked = _ranked(xp, sides[root_side], sides[base_side], options)
    arrays = {name: (to_host or on_host)(array) for name, array in ranked.items()}
    known = known or hashes_of_ids(n_left, n_right)
    graph = MiningGraph.of(known, root_side=root_side, n_left=n_left, n_right=n_right, **arrays)
    return graph, PrepareFacts(
        core_left=len(left_core),
        core_right=len(right_core),
        core_edges=n_core_edges,
        merged_left=len(left_twins.representatives),
        merged_right=len(right_twins.representatives),
        merged_edges=graph.n_edges,
        wedges_left=cost["left"],
        wedges_right=cost["right"],
        root_side=root_side,
    )


def _compiled(
    xp: Any, in_core: Csr, left_core: Any, right_core: Any, *rest: Any, known: VertexHashes | None
) -> tuple[MiningGraph, PrepareFacts]:
    from bicliques.kernels.graph.prepare import prepare  # not before it is needed: it imports a compiler

    whole = _Part(0, len(in_core.indices), 0, len(left_core))
    left, right = left_core[_owners(xp, in_core.indptr, whole)], right_core[in_core.indices]
    return prepare(on_host(left), on_host(right), *rest, known=known)


def _reduce_to_core(xp: Any, edges: list[Any], n_left: int, n_right: int, min_left: int, min_right: int) -> None:
    """Leave the edges of the (min_left, min_right) core. Each round removes all vertices that are too small."""
    if min_left <= 1 and min_right <= 1:
        return
    for _ in range(ROUNDS):
        enough = degrees_of(xp, edges[0], n_left) >= min_right, degrees_of(xp, edges[1], n_right) >= min_left
        kept: tuple[list[Any], list[Any]] = ([], [])
        for start, stop in _cuts(len(edges[0])):
            part = [ids[start:stop] for ids in edges]
            keep = enough[0][part[0]] & enough[1][part[1]]
            is_whole = bool(keep.all())
            for side, ids in enumerate(part):
                kept[side].append(ids if is_whole else ids[keep])
        if sum(map(len, kept[0])) == len(edges[0]):
            return
        for side in (0, 1):
            edges[side] = kept[side][0] if len(kept[side]) == 1 else xp.concatenate(kept[side])
            kept[side].clear()
    from bicliques.kernels.graph.core import core_edges  # not before it is needed: it imports a compiler

    csr = from_sorted(xp, edges[0], edges[1], n_left)
    keep = xp.asarray(core_edges(on_host(csr.indptr), on_host(csr.indices), n_right, min_left, min_right))
    edges[:] = [ids[keep] for ids in edges]


def _compact(xp: Any, ids: Any, n: int) -> tuple[Any, Any]:
    """Ids renumbered without gaps, and the old id of each new one."""
    used = xp.zeros(n, dtype=bool)
    for start, stop in _cuts(len(ids)):
        used[ids[start:stop]] = True
    old = xp.flatnonzero(used).astype(VERTEX)
    if len(old) == n:
        return ids.astype(VERTEX, copy=False), old
    number = xp.cumsum(used, dtype=VERTEX) - 1
    new = xp.empty(len(ids), VERTEX)
    for start, stop in _cuts(len(ids)):
        new[start:stop] = number[ids[start:stop]]
    return new, old


def _cuts(n: int) -> list[tuple[int, int]]:
    """The beginning and the end of every part of `n` entries."""
    return [(start, min(start + PART, n)) for start in range(0, n, PART)]


def _parts(xp: Any, indptr: Any) -> list[_Part]:
    """All entries of all rows, in parts."""
    n_entries = int(indptr[-1])
    cuts = _cuts(n_entries)
    if len(cuts) <= 1:
        return [_Part(0, n_entries, 0, len(indptr) - 1)] if cuts else []
    begins, ends = (xp.asarray(np.array(each, OFFSET)) for each in zip(*cuts, strict=True))
    first = on_host(xp.searchsorted(indptr, begins, side="right") - 1).tolist()
    behind = on_host(xp.searchsorted(indptr, ends, side="left")).tolist()
    return [_Part(*cut, *rows) for cut, *rows in zip(cuts, first, behind, strict=True)]


def from_sorted(xp: Any, rows: Any, columns: Any, n_rows: int) -> Csr:
    """The rows of a graph whose edges are sorted."""
    return Csr(_begins(xp, degrees_of(xp, rows, n_rows)), columns.astype(VERTEX, copy=False))


def _begins(xp: Any, lengths: Any) -> Any:
    """Where rows of these lengths begin, and where the last one ends."""
    return xp.concatenate([xp.zeros(1, OFFSET), xp.cumsum(lengths, dtype=OFFSET)])


def degrees_of(xp: Any, ids: Any, n: int) -> Any:
    """How often each of `n` ids occurs. CuPy's bincount takes no empty array."""
    return xp.bincount(ids, minlength=n) if len(ids) else xp.zeros(n, OFFSET)


def _owners(xp: Any, indptr: Any, part: _Part) -> Any:
    """Row of every entry of a part, for rows of which none is empty."""
    starts = xp.zeros(part.stop - part.start, dtype=VERTEX)
    starts[indptr[part.first + 1 : part.behind] - part.start] = 1
    owner = xp.cumsum(starts, dtype=VERTEX)
    owner += part.first
    return owner


def _transpose(xp: Any, csr: Csr, n_columns: int) -> Csr:
    words = xp.empty(len(csr.indices), np.int64)
    for part in _parts(xp, csr.indptr):
        columns = csr.indices[part.start : part.stop].astype(np.int64)
        words[part.start : part.stop] = (columns << 32) | _owners(xp, csr.indptr, part)
    words.sort()
    rows = xp.empty(len(words), VERTEX)
    for start, stop in _cuts(len(words)):
        rows[start:stop] = words[start:stop] & 0xFFFFFFFF
    del words  # its memory is needed
    return Csr(_begins(xp, degrees_of(xp, csr.indices, n_columns)), rows)


def _select(xp: Any, csr: Csr, rows: Any) -> Csr:
    """The given rows, in the given order."""
    indptr = _begins(xp, csr.indptr[1:][rows] - csr.indptr[:-1][rows])
    shift = csr.indptr[:-1][rows] - indptr[:-1]
    indices = xp.empty(int(indptr[-1]), csr.indices.dtype)
    for part in _parts(xp, indptr):
        places = xp.arange(part.start, part.stop) + shift[_owners(xp, indptr, part)]
        indices[part.start : part.stop] = csr.indices[places]
    return Csr(indptr, indices)


def _without_twins(xp: Any, csr: Csr, twins: Twins) -> Csr:
    return csr if len(twins.representatives) == len(csr.indptr) - 1 else _select(xp, csr, twins.representatives)


def _each_alone(xp: Any, csr: Csr) -> Twins | None:
    """As `twins_of`, but every row is a group of its own."""
    n = len(csr.indptr) - 1
    each = xp.arange(n, dtype=VERTEX)
    return Twins(each, xp.arange(n + 1, dtype=OFFSET), each)


def twins_of(xp: Any, csr: Csr) -> Twins | None:
    """Group equal rows, as `kernels.graph.twins.group_twins`. None when unequal rows have the same hash."""
    n = len(csr.indptr) - 1
    if n == 0:
        empty = xp.empty(0, VERTEX)
        return Twins(empty, xp.zeros(1, OFFSET), empty)
    first = first_of_keys(xp, row_keys(xp, csr), xp.diff(csr.indptr))
    others = xp.flatnonzero(first != xp.arange(n))
    if len(others) > 0:
        own, other = (_select(xp, csr, rows).indices for rows in (others, first[others]))
        if not bool((own == other).all()):
            return None
    return groups_of(xp, first)


def row_keys(xp: Any, csr: Csr) -> Any:
    """The sum of the hashes of every row, uint64. It does not depend on the order of a row."""
    until = xp.zeros(len(csr.indptr), np.uint64)  # sums of all rows before each
    total = xp.zeros(1, np.uint64)
    for start, stop, first, behind in _parts(xp, csr.indptr):
        hashes = splitmix64(csr.indices[start:stop].astype(np.uint64) ^ LEFT_SALT)
        sums = xp.cumsum(hashes, dtype=np.uint64)
        sums += total
        ends = xp.minimum(csr.indptr[first + 1 : behind + 1], stop) - (start + 1)
        until[first + 1 : behind + 1] = sums[ends]  # the next part has the last one again, if it goes on there
        total = sums[-1:].copy()
    return until[1:] - until[:-1]


def first_of_keys(xp: Any, key: Any, degree: Any) -> Any:
    """For every row the first one with its key and its degree, int64. There is a row."""
    n = len(key)
    order = xp.lexsort(xp.stack([xp.arange(n, dtype=np.uint64), degree.astype(np.uint64), key]))
    new = xp.ones(n, dtype=bool)
    new[1:] = (key[order[1:]] != key[order[:-1]]) | (degree[order[1:]] != degree[order[:-1]])
    first = xp.empty(n, dtype=OFFSET)
    first[order] = order[xp.flatnonzero(new)][xp.cumsum(new) - 1]
    return first


def groups_of(xp: Any, first: Any) -> Twins:
    """The groups of rows that have the same first row."""
    n = len(first)
    words = (first << 32) | xp.arange(n)
    words.sort()
    group = words >> 32
    begins = xp.flatnonzero(xp.concatenate([xp.ones(1, bool), group[1:] != group[:-1]]))
    ends = xp.full(1, n, dtype=OFFSET)
    return Twins(
        group[begins].astype(VERTEX),
        xp.concatenate([begins.astype(OFFSET), ends]),
        (words & 0xFFFFFFFF).astype(VERTEX),
    )


def _ranked(
    xp: Any, roots: tuple[Csr, Twins, Any], base: tuple[Csr, Twins, Any], options: BuildOptions
) -> dict[str, Any]:
    """The arrays of a `MiningGraph`, as arrays of `xp`."""
    (root_csr, root_twins, root_core), (base_csr, base_twins, base_core) = roots, base
    if options.order == "degree":
        degree = xp.diff(root_csr.indptr)
        by_rank = xp.sort((degree << 32) | xp.arange(len(degree))) & 0xFFFFFFFF
    else:
        from bicliques.kernels.graph.wedges import rank_order  # not before it is needed: it imports a compiler

        by_rank = xp.asarray(rank_order(options.order, *map(on_host, (*root_csr, *base_csr))))
    ranked = _select(xp, root_csr, by_rank)
    transposed = _transpose(xp, ranked, len(base_csr.indptr) - 1)
    members = _select(xp, Csr(root_twins.members_indptr, root_core[root_twins.members]), by_rank)
    return {
        "root_indptr": ranked.indptr,
        "root_indices": ranked.indices,
        "base_indptr": transposed.indptr,
        "base_indices": transposed.indices,
        "root_members_indptr": members.indptr,
        "root_members": members.indices,
        "base_members_indptr": base_twins.members_indptr,
        "base_members": base_core[base_twins.members],
    }


def on_host(array: Any) -> np.ndarray:
    """An array of CuPy or NumPy, in main memory."""
    return array if isinstance(array, np.ndarray) else array.get()
