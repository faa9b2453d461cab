"""Writes ranges of candidates (`schemas.work.Subtrees.ranged`) as lists, for engines that only take lists."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.searching import first_at_least, sort
from bicliques.kernels.graph.wedges import degrees_of
from bicliques.schemas.dtypes import OFFSET, VERTEX, offsets_of
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.work import Subtrees

#: `MiningGraph.base_indptr` and `base_indices`.
Edges = tuple[np.ndarray, np.ndarray]


def in_lists(graph: MiningGraph, subtrees: Subtrees, most: int = 1 << 24) -> tuple[Subtrees, Subtrees]:
    """The nodes with their candidates listed, and the ranged nodes that are left for later.

    Lists are many times as long as ranges, and a slice returns its left-over as lists. So ranges wait while there
    is enough other work. Otherwise each slice would write more of them out, until all are lists.

    Parameters
    ----------
    most : int
        About how many entries of lists to go on with, base vertices of ranged nodes included. At least one node is
        returned.
    """
    which = np.flatnonzero(subtrees.ranged)
    if len(which) == 0:
        return subtrees, subtrees.pick(which)
    begin = subtrees.candidates[subtrees.candidate_indptr[which]].astype(OFFSET)
    least = np.minimum.reduceat(np.diff(graph.root_indptr)[subtrees.path], subtrees.path_indptr[:-1])[which]
    n_listed = len(subtrees.candidates) - len(which)
    n = int(np.searchsorted(np.cumsum(graph.n_roots - begin + least), most - n_listed, side="right"))
    if len(which) == len(subtrees):
        n = max(n, 1)
    plain, later = subtrees.pick(np.flatnonzero(~subtrees.ranged)), subtrees.pick(which[n:])
    if n == 0:
        return plain, later
    return Subtrees.concat([plain, _listed(graph, subtrees.pick(which[:n]), begin[:n])]), later


def _listed(graph: MiningGraph, nodes: Subtrees, begin: np.ndarray) -> Subtrees:
    """Ranged nodes with their candidates."""
    room = np.minimum.reduceat(degrees_of(graph, nodes.path), nodes.path_indptr[:-1]).sum()
    indptr, base = np.zeros(len(nodes) + 1, OFFSET), np.empty(room, VERTEX)
    _common(graph.root_indptr, graph.root_indices, nodes.path_indptr, nodes.path, indptr, base)
    sizes = np.diff(indptr)
    found = candidates_of(graph, base, indptr[:-1], sizes, begin, begin + nodes.todo)
    return Subtrees.of_lists(nodes.path_indptr, nodes.path, *found[:2], found[2], nodes.fresh)


@entry
def _common(
    root_indptr: np.ndarray,
    root_indices: np.ndarray,
    path_indptr: np.ndarray,
    path: np.ndarray,
    indptr: np.ndarray,
    base: np.ndarray,
) -> None:
    """Write the common neighbours of each path: offsets to `indptr`, and base vertices, ascending, to `base`."""
    end = 0
    for i in range(len(path_indptr) - 1):
        shortest = path[path_indptr[i]]
        for v in path[path_indptr[i] : path_indptr[i + 1]]:
            if root_indptr[v + 1] - root_indptr[v] < root_indptr[shortest + 1] - root_indptr[shortest]:
                shortest = v
        for u in root_indices[root_indptr[shortest] : root_indptr[shortest + 1]]:
            common = True
            for v in path[path_indptr[i] : path_indptr[i + 1]]:
                at = first_at_least(root_indices, root_indptr[v], root_indptr[v + 1], u)
                if at == root_indptr[v + 1] or root_indices[at] != u:
                    common = False
                    break
            if common:
                base[end] = u
                end += 1
        indptr[i + 1] = end


def candidates_of(
    graph: MiningGraph, base: np.ndarray, at: np.ndarray, n: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List candidates of nodes whose candidates are all ranks from a first one on.

    Only ranks that are adjacent to the node's L are listed, if L has fewer wedges than there are ranks.

    Parameters
    ----------
    base : ndarray of int32
        Base vertices; L of node ``i`` is ``base[at[i]:at[i] + n[i]]``.
    at, n : ndarray of int, shape (nodes,)
    begin, end : ndarray of int, shape (nodes,)
        Candidates are the ranks from ``begin`` on. Those before ``end`` are to be explored.

    Returns
    -------
    indptr, candidates : ndarray of int64, ndarray of int32
        List ``i`` is ``candidates[indptr[i]:indptr[i + 1]]``, in ascending order.
    todo : ndarray of int32, shape (nodes,)
        How many of each list are to be explored.
    """
    nodes = at, n, begin, end = tuple(column.astype(OFFSET) for column in (at, n, begin, end))
    edges = graph.base_indptr, graph.base_indices
    counts, met_by = graph.n_roots - begin, np.full(graph.n_roots, -1, OFFSET)
    _count(edges, base, nodes, met_by, np.empty(graph.n_roots, VERTEX), counts)
    indptr = offsets_of(counts)
    candidates, todo = np.empty(int(indptr[-1]), VERTEX), np.empty(len(at), VERTEX)
    met_by.fill(-1)
    _fill(edges, base, nodes, met_by, indptr, candidates, todo)
    return indptr, candidates, todo


@entry
def _count(
    edges: Edges,
    base: np.ndarray,
    nodes: tuple[np.ndarray, ...],
    met_by: np.ndarray,
    met: np.ndarray,
    counts: np.ndarray,
) -> None:
    """Change `counts` of all ranks from `begin` on to those adjacent to L, if it has fewer wedges than that.

    `met_by` is -1 before, and `met` has room for all roots.
    """
    at, n, begin, _ = nodes
    for i in range(len(at)):
        own, wedges = base[at[i] : at[i] + n[i]], 0
        for u in own:
            wedges += edges[0][u + 1] - edges[0][u]
        if wedges < counts[i]:
            counts[i] = _meet(edges, own, begin[i], i, met_by, met)


@entry
def _fill(
    edges: Edges,
    base: np.ndarray,
    nodes: tuple[np.ndarray, ...],
    met_by: np.ndarray,
    indptr: np.ndarray,
    candidates: np.ndarray,
    todo: np.ndarray,
) -> None:
    """Write the lists whose lengths `_count` has found. `met_by` is -1 before, and has an entry per root."""
    at, n, begin, end = nodes
    for i in range(len(at)):
        own = candidates[indptr[i] : indptr[i + 1]]
        if len(own) == len(met_by) - begin[i]:
            for k in range(len(own)):
                own[k] = begin[i] + k
        else:
            _meet(edges, base[at[i] : at[i] + n[i]], begin[i], i, met_by, own)
            sort(own, 0, len(own))
        todo[i] = first_at_least(own, 0, len(own), end[i])


@compiled
def _meet(edges: Edges, own: np.ndarray, least: int, node: int, met_by: np.ndarray, met: np.ndarray) -> int:
    """Write the roots from `least` on that are adjacent to some of L to `met`. Returns their number.

    `met_by` has the node that met a root last.
    """
    k = 0
    for u in own:
        for v in edges[1][edges[0][u] : edges[0][u + 1]]:
            if v >= least and met_by[v] != node:
                met_by[v] = node
                met[k] = v
                k += 1
    return k
