"""Between `Subtrees` and the items of the cuMBE kernel; all by arrays, a slice may leave tens of thousands."""

from __future__ import annotations

import numpy as np

from kernels.gpu.cumbe_layout import CUMBE_ITEM
from kernels.gpu.layout import NOBODY
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph
from schemas.work import EVERYTHING, Subtrees

__all__ = ["cumbe_items_of", "cumbe_subtrees_of"]


def cumbe_items_of(graph: MiningGraph, subtrees: Subtrees) -> tuple[np.ndarray, np.ndarray]:
    """Items, heaviest first, and the pool of vertex lists they point into."""
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
    order = np.argsort(-_weights(graph, first), kind="stable")
    return items[order], np.concatenate([subtrees.path, subtrees.candidates]).astype(VERTEX)


def _weights(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    """Wedges of each root: what it costs to open, and the best cheap guess of what lies below."""
    base_degree = np.diff(graph.base_indptr)
    total = np.concatenate([np.zeros(1, OFFSET), np.cumsum(base_degree[graph.root_indices], dtype=OFFSET)])
    return total[graph.root_indptr[roots + 1]] - total[graph.root_indptr[roots]]


def cumbe_subtrees_of(items: np.ndarray, pool: np.ndarray) -> Subtrees:
    """What the items still have to explore."""
    whole = items["root"] != NOBODY
    roots, items = items["root"][whole], items[~whole]
    path_indptr, path = _gather(pool, items["path_at"], items["n_path"])
    candidate_indptr, candidates = _gather(pool, items["cand_at"], items["n_cand"])
    listed = Subtrees(
        path_indptr,
        path,
        candidate_indptr,
        candidates,
        items["n_todo"].astype(VERTEX),
        items["fresh"].astype(np.bool_),
    )
    return Subtrees.concat([listed, Subtrees.of_roots(roots)])


def _gather(values: np.ndarray, at: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, and the lists ``values[at[i]:at[i] + n[i]]`` one behind the other."""
    indptr = np.concatenate([np.zeros(1, OFFSET), np.cumsum(n, dtype=OFFSET)])
    inside = np.arange(indptr[-1], dtype=OFFSET) - np.repeat(indptr[:-1], n)
    return indptr, values[np.repeat(at, n) + inside]
