"""Marks edges of a graph, for the search for bicliques that have a marked edge.

A vertex that is in such a biclique is joined to an end of a marked edge: if (u, v) is the marked edge of (L, R), all of
L is joined to v, and all of R to u. Keep the left vertices that are joined to the right end of a marked edge, the right
vertices that are joined to a left end, and the edges between them. Who could extend (L, R) is joined to u or to v, too,
and is kept. So the maximal bicliques with a marked edge are the same in what is left and in the whole graph.

Every such biclique has a root vertex with a marked edge. These vertices get the lowest ranks. So the first root vertex
of each is one of them, and only their first-level subtrees are searched.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bicliques.kernels.graph.csr import renumbered, select_rows
from bicliques.kernels.graph.members import Restricted
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph

#: Marked edges: their left and their right ends, by dense id.
Marks = tuple[np.ndarray, np.ndarray]


def around_marks(kept: Restricted, n_left: int, n_right: int, marks: Marks) -> Restricted:
    """The edges that bicliques with a marked edge can have."""
    left, right = kept.left, kept.right
    near_left, near_right = np.zeros(n_left, np.bool_), np.zeros(n_right, np.bool_)
    is_end_left, is_end_right = near_left.copy(), near_right.copy()
    is_end_left[marks[0]], is_end_right[marks[1]] = True, True
    near_left[left[is_end_right[right]]] = True
    near_right[right[is_end_left[left]]] = True
    keep = near_left[left] & near_right[right]
    return Restricted(left[keep], right[keep], kept.missing, kept.first_missing)


def with_marks(graph: MiningGraph, marks: Marks) -> MiningGraph:
    """The graph with these edges marked, and the root vertices that have one in front. Edges that it lacks are left."""
    own, other = marks if graph.root_side == "left" else marks[::-1]
    sizes = (graph.n_left, graph.n_right) if graph.root_side == "left" else (graph.n_right, graph.n_left)
    root = _group_of(graph.root_members_indptr, graph.root_members, sizes[0])[own]
    base = _group_of(graph.base_members_indptr, graph.base_members, sizes[1])[other]
    is_there = (root >= 0) & (base >= 0)
    root, base = root[is_there], base[is_there]
    is_marked = np.zeros(graph.n_roots, np.bool_)
    is_marked[root] = True
    order = np.argsort(~is_marked, kind="stable")
    rank = np.empty(graph.n_roots, VERTEX)
    rank[order] = np.arange(graph.n_roots, dtype=VERTEX)
    root_indptr, root_indices = select_rows(graph.root_indptr, graph.root_indices, order)
    members_indptr, members = select_rows(graph.root_members_indptr, graph.root_members, order)
    return replace(
        graph,
        root_indptr=root_indptr,
        root_indices=root_indices,
        base_indices=renumbered(graph.base_indptr, graph.base_indices, rank),
        root_members_indptr=members_indptr,
        root_members=members,
        root_hash=graph.root_hash[order],
        marks=np.unique(base.astype(np.int64) << 32 | rank[root]),
    )


def _group_of(indptr: np.ndarray, members: np.ndarray, n: int) -> np.ndarray:
    """The vertex that stands for each dense id. -1 for those that are not in the graph."""
    found = np.full(n, -1, np.int64)
    found[members] = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return found
