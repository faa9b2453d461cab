"""Makes the `MiningGraph` that `kernels.graph.prepare` makes, array for array, by sorting and sums.

The code works on arrays of CuPy and of NumPy. On a GPU it builds large graphs. With NumPy it builds small ones, because
no machine code has to be loaded for it. Hashes bring twins together, and rows are compared in full. If two different
rows ever have the same hash, `kernels.graph.prepare` makes the whole graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernels.graph.facts import PrepareFacts
from kernels.graph.wedges import root_side_of
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph
from schemas.hashes import LEFT_SALT, VertexHashes, hashes_of_ids, splitmix64
from schemas.jobs import EVERY_REDUCTION, Reduction
from schemas.options import BuildOptions
from schemas.search import Side

__all__ = [
    "EDGE_BYTES",
    "ROUNDS",
    "Csr",
    "Twins",
    "degrees_of",
    "first_of_keys",
    "from_sorted",
    "groups_of",
    "on_host",
    "prepare_on",
    "row_keys",
    "twins_of",
]

#: Device memory per edge, in bytes, at the peak.
EDGE_BYTES = 120
#: Rounds in which the core is looked for. A long chain would need as many as it has vertices, so the rest is left to
#: `kernels.graph.core`, which takes a time that is linear in the edges.
ROUNDS = 64


class Csr(NamedTuple):
    """Compressed sparse rows, none of which is empty: offsets int64, columns int32."""

    indptr: Any
    indices: Any


class Twins(NamedTuple):
    """Groups of equal rows, as `kernels.graph.twins.group_twins` returns them."""

    representatives: Any
    members_indptr: Any
    members: Any


def prepare_on(
    xp: Any,
    left: Any,
    right: Any,
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
    left, right
        Arrays of `xp`, or of NumPy.
    known : VertexHashes or None
        In main memory.
    to_host : callable or None
        Copies an array of `xp` to main memory. None is `on_host`.

    Notes
    -----
    It synchronises. It takes O(m log m) time, and `EDGE_BYTES` per edge on the device.
    """
    if "core" not in reductions:
        min_left = min_right = 1
    grouped = twins_of if "twins" in reductions else _each_alone
    in_core = _core(xp, xp.asarray(left), xp.asarray(right), n_left, n_right, min_left, min_right)
    if len(in_core[0]) == 0 and xp is not np:  # not all of CuPy takes empty arrays
        nothing = np.zeros(0, VERTEX)
        return prepare_on(np, nothing, nothing, n_left, n_right, options, 1, 1, reductions, known=known)
    left_index, left_core = _compact(xp, in_core[0], n_left)
    right_index, right_core = _compact(xp, in_core[1], n_right)
    n_core_edges = len(left_index)
    by_left = from_sorted(xp, left_index, right_index, len(left_core))
    left_twins = grouped(xp, by_left)
    if left_twins is None:
        return _compiled(left, right, n_left, n_right, options, min_left, min_right, reductions, known=known)
    by_right = _transpose(xp, _select(xp, by_left, left_twins.representatives), len(right_core))
    right_twins = grouped(xp, by_right)
    if right_twins is None:
        return _compiled(left, right, n_left, n_right, options, min_left, min_right, reductions, known=known)
    by_right = _select(xp, by_right, right_twins.representatives)
    by_left = _transpose(xp, by_right, len(left_twins.representatives))

    root_side, cost = root_side_of(options, by_left.indptr, by_right.indptr)
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


def _compiled(left: Any, right: Any, *rest: Any, known: VertexHashes | None) -> tuple[MiningGraph, PrepareFacts]:
    from kernels.graph.prepare import prepare  # not before it is needed: it imports a compiler

    return prepare(on_host(left), on_host(right), *rest, known=known)


def _core(xp: Any, left: Any, right: Any, n_left: int, n_right: int, min_left: int, min_right: int) -> tuple[Any, Any]:
    """The edges of the (min_left, min_right) core. Each round removes all vertices that are too small."""
    if min_left <= 1 and min_right <= 1:
        return left, right
    for _ in range(ROUNDS):
        enough_left = degrees_of(xp, left, n_left) >= min_right
        enough_right = degrees_of(xp, right, n_right) >= min_left
        keep = enough_left[left] & enough_right[right]
        if bool(keep.all()):
            return left, right
        left, right = left[keep], right[keep]
    from kernels.graph.core import core_edges  # not before it is needed: it imports a compiler

    csr = from_sorted(xp, left, right, n_left)
    keep = xp.asarray(core_edges(on_host(csr.indptr), on_host(csr.indices), n_right, min_left, min_right))
    return left[keep], right[keep]


def _compact(xp: Any, ids: Any, n: int) -> tuple[Any, Any]:
    """Ids renumbered without gaps, and the old id of each new one."""
    used = xp.zeros(n, dtype=bool)
    used[ids] = True
    return (xp.cumsum(used, dtype=VERTEX) - 1)[ids].astype(VERTEX), xp.flatnonzero(used).astype(VERTEX)


def from_sorted(xp: Any, rows: Any, columns: Any, n_rows: int) -> Csr:
    """The rows of a graph whose edges are sorted."""
    counts = degrees_of(xp, rows, n_rows)
    return Csr(xp.concatenate([xp.zeros(1, OFFSET), xp.cumsum(counts, dtype=OFFSET)]), columns.astype(VERTEX))


def degrees_of(xp: Any, ids: Any, n: int) -> Any:
    """How often each of `n` ids occurs. CuPy's bincount takes no empty array."""
    return xp.bincount(ids, minlength=n) if len(ids) else xp.zeros(n, OFFSET)


def _owners(xp: Any, indptr: Any) -> Any:
    """Row of every entry, for rows of which none is empty."""
    starts = xp.zeros(int(indptr[-1]), dtype=VERTEX)
    starts[indptr[1:-1]] = 1
    return xp.cumsum(starts, dtype=VERTEX)


def _transpose(xp: Any, csr: Csr, n_columns: int) -> Csr:
    words = (csr.indices.astype(np.int64) << 32) | _owners(xp, csr.indptr)
    words.sort()
    return from_sorted(xp, words >> 32, words & 0xFFFFFFFF, n_columns)


def _select(xp: Any, csr: Csr, rows: Any) -> Csr:
    """The given rows, in the given order."""
    lengths = csr.indptr[1:][rows] - csr.indptr[:-1][rows]
    indptr = xp.concatenate([xp.zeros(1, OFFSET), xp.cumsum(lengths, dtype=OFFSET)])
    if len(rows) == 0:
        return Csr(indptr, csr.indices[:0])
    owner = _owners(xp, indptr)
    shift = (csr.indptr[:-1][rows] - indptr[:-1])[owner]
    return Csr(indptr, csr.indices[xp.arange(len(owner)) + shift])


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
    degree = xp.diff(csr.indptr)
    first = first_of_keys(xp, row_keys(xp, csr), degree)
    owner = _owners(xp, csr.indptr)
    place = xp.arange(len(owner)) - csr.indptr[:-1][owner]
    if not bool((csr.indices == csr.indices[csr.indptr[:-1][first[owner]] + place]).all()):
        return None
    return groups_of(xp, first)


def row_keys(xp: Any, csr: Csr) -> Any:
    """The sum of the hashes of every row, uint64. It does not depend on the order of a row."""
    hashes = splitmix64(csr.indices.astype(np.uint64) ^ LEFT_SALT)
    total = xp.concatenate([xp.zeros(1, np.uint64), xp.cumsum(hashes, dtype=np.uint64)])
    return total[csr.indptr[1:]] - total[csr.indptr[:-1]]


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
        from kernels.graph.order import rank_order  # not before it is needed: it imports a compiler

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
