"""From the normalised edge table to a `MiningGraph`: core, twins, root side, ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bicliques.kernels.graph.core import core_rows
from bicliques.kernels.graph.csr import compact_columns, from_sorted_pairs, renumbered, select_rows, taken, transpose
from bicliques.kernels.graph.twins import group_twins
from bicliques.kernels.graph.wedges import rank_order, root_side_of
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.facts import PrepareFacts
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import VertexHashes, hashes_of_ids
from bicliques.schemas.jobs import EVERY_REDUCTION, Reduction
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Side

#: Short rows of base vertices are sorted again after the roots got their ranks. Long ones take longer to sort than all
#: edges to transpose. So do short ones on few threads; docs/lab/ingest-cpu.md says what is expected of many.
_SHORT_ROW, _MANY_THREADS = 32, 2

_Csr = tuple[np.ndarray, np.ndarray]
_SideArrays = tuple[_Csr, np.ndarray, np.ndarray]


def prepare(
    left: np.ndarray,
    right: np.ndarray,
    n_left: int,
    n_right: int,
    options: BuildOptions,
    min_left: int = 1,
    min_right: int = 1,
    reductions: frozenset[Reduction] = EVERY_REDUCTION,
    *,
    known: VertexHashes | None = None,
    threads: int = 1,
) -> tuple[MiningGraph, PrepareFacts]:
    """Reduce, merge, choose the root side and rank.

    Parameters
    ----------
    left, right : ndarray, shape (n_edges,), int32
        The edge table: dense ids, sorted by (left, right), no duplicates.
    n_left, n_right : int
        Number of dense ids per side.
    min_left, min_right : int
        Thresholds; see `kernels.graph.core`.
    reductions : frozenset of Reduction
        Reductions that are exact for the job. No others are done.
    known : VertexHashes or None
        `schemas.hashes.vertex_hashes` of both sides. None: the labels are the dense ids.
    threads : int
        Threads that share the rows. The graph does not depend on their number.

    Notes
    -----
    The default order takes O(m + n log n) time. At the peak it takes 15 bytes per edge, besides those of the table,
    if a vertex has 50 edges on average, and 60 to 70 if it has three. More threads take more. `root_side_of`
    chooses the root side.
    """
    if "core" not in reductions:
        min_left = min_right = 1
    left, right = np.ascontiguousarray(left), np.ascontiguousarray(right)
    by_left = from_sorted_pairs(left, right, n_left, threads)
    if min_left > 1 or min_right > 1:
        by_left = core_rows(*by_left, n_right, min_left, min_right, threads)
    right = by_left[1]
    n_core_edges = len(right)
    left_core = np.flatnonzero(by_left[0][1:] != by_left[0][:-1]).astype(VERTEX)
    right_index, right_core = compact_columns(right, n_right, threads)
    if len(left_core) < n_left:
        by_left = np.concatenate([by_left[0][left_core], [n_core_edges]]), right_index  # without empty rows
    else:
        by_left = by_left[0], right_index
    sizes, thresholds = (n_left, n_right), (min_left, min_right)
    core = left_core, right_core
    return graph_of_core(by_left, core, sizes, thresholds, options, reductions, known=known, threads=threads)


class Passes(NamedTuple):
    """The passes over all edges of a core, which a device may do, with the arguments and results of these functions."""

    transpose: Callable[..., _Csr] = transpose
    group_twins: Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]] = group_twins


_HERE = Passes()


def graph_of_core(
    by_left: _Csr,
    core: tuple[np.ndarray, np.ndarray],
    sizes: tuple[int, int],
    thresholds: tuple[int, int],
    options: BuildOptions,
    reductions: frozenset[Reduction],
    *,
    known: VertexHashes | None,
    threads: int,
    passes: Passes = _HERE,
) -> tuple[MiningGraph, PrepareFacts]:
    """Merge, choose the root side and rank; see `prepare`.

    Parameters
    ----------
    by_left : (ndarray, ndarray)
        The core: offsets and columns, without empty rows or columns.
    core : (ndarray, ndarray)
        Ids of its left and right vertices in the edge table.
    sizes : (int, int)
        Number of ids per side in the edge table.
    thresholds : (int, int)
        `min_left` and `min_right`, with which the root side is chosen.
    """
    (left_core, right_core), n_core_edges = core, len(by_left[1])
    groups_of = passes.group_twins if "twins" in reductions else _each_alone
    left_rows, left_members_indptr, left_members = groups_of(*by_left, threads)
    by_left = _without_twins(by_left, left_rows, threads)
    by_right = passes.transpose(*by_left, len(right_core), threads)
    right_rows, right_members_indptr, right_members = groups_of(*by_right, threads)
    if len(right_rows) < len(right_core):
        by_right = _without_twins(by_right, right_rows, threads)
        by_left = passes.transpose(*by_right, len(left_rows), threads)

    root_side, cost = root_side_of(options, by_left[0], by_right[0], *thresholds)
    sided = {
        "left": (by_left, left_members_indptr, taken(left_core, left_members, threads)),
        "right": (by_right, right_members_indptr, taken(right_core, right_members, threads)),
    }
    graph = _ranked(
        sided[root_side],
        sided["left" if root_side == "right" else "right"],
        root_side,
        sizes,
        known or hashes_of_ids(*sizes),
        options,
        threads,
        passes,
    )
    facts = PrepareFacts(
        core_left=len(left_core),
        core_right=len(right_core),
        core_edges=n_core_edges,
        merged_left=len(left_rows),
        merged_right=len(right_rows),
        merged_edges=graph.n_edges,
        wedges_left=cost["left"],
        wedges_right=cost["right"],
        root_side=root_side,
    )
    return graph, facts


def _without_twins(csr: _Csr, representatives: np.ndarray, threads: int) -> _Csr:
    return csr if len(representatives) == len(csr[0]) - 1 else select_rows(*csr, representatives, threads)


def _each_alone(indptr: np.ndarray, indices: np.ndarray, _: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `group_twins`, but every row is a group of its own."""
    n = len(indptr) - 1
    return np.arange(n, dtype=VERTEX), np.arange(n + 1, dtype=OFFSET), np.arange(n, dtype=VERTEX)


def _ranked(
    roots: _SideArrays,
    base: _SideArrays,
    root_side: Side,
    sizes: tuple[int, int],
    known: VertexHashes,
    options: BuildOptions,
    threads: int,
    passes: Passes,
) -> MiningGraph:
    (root_csr, root_members_indptr, root_members) = roots
    (base_csr, base_members_indptr, base_members) = base
    by_rank = rank_order(options.order, *root_csr, *base_csr, threads=threads)
    root_indptr, root_indices = select_rows(*root_csr, by_rank, threads)
    n_base = len(base_csr[0]) - 1
    if threads > _MANY_THREADS and len(root_indices) < _SHORT_ROW * n_base:
        rank = np.empty(len(by_rank), VERTEX)
        rank[by_rank] = np.arange(len(by_rank), dtype=VERTEX)
        base_indptr, base_indices = base_csr[0], renumbered(*base_csr, rank, threads)
    else:
        base_indptr, base_indices = passes.transpose(root_indptr, root_indices, n_base, threads)
    if len(root_members) == len(by_rank):  # no twins: each root is its own only member
        members_indptr, members = root_members_indptr, taken(root_members, by_rank, threads)
    else:
        members_indptr, members = select_rows(root_members_indptr, root_members, by_rank, threads)
    return MiningGraph.of(
        known,
        root_side=root_side,
        n_left=sizes[0],
        n_right=sizes[1],
        root_indptr=root_indptr,
        root_indices=root_indices,
        base_indptr=base_indptr,
        base_indices=base_indices,
        root_members_indptr=members_indptr,
        root_members=members,
        base_members_indptr=base_members_indptr.astype(OFFSET, copy=False),
        base_members=base_members,
    )
