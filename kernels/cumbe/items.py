"""Converts `Subtrees` to the items of the cuMBE kernel, and back. A slice may leave tens of thousands."""

from __future__ import annotations

import numpy as np

from kernels.cumbe.layout import CUMBE_ITEM
from kernels.gpu.records import NOBODY
from kernels.graph.wedges import gather, wedges_of
from schemas.dtypes import VERTEX
from schemas.graph import MiningGraph
from schemas.work import EVERYTHING, Subtrees

__all__ = ["cumbe_items_of", "cumbe_subtrees_of"]


def cumbe_items_of(graph: MiningGraph, subtrees: Subtrees) -> tuple[np.ndarray, np.ndarray]:
    """Items, heaviest first, and the pool of vertex lists that they point into."""
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
    order = np.argsort(-wedges_of(graph, first), kind="stable")
    return items[order], np.concatenate([subtrees.path, subtrees.candidates]).astype(VERTEX)


def cumbe_subtrees_of(items: np.ndarray, pool: np.ndarray) -> Subtrees:
    """The nodes that the items still have to explore."""
    whole = items["root"] != NOBODY
    roots, items = items["root"][whole], items[~whole]
    path_indptr, path = gather(pool, items["path_at"], items["n_path"])
    candidate_indptr, candidates = gather(pool, items["cand_at"], items["n_cand"])
    listed = Subtrees.of_lists(
        path_indptr,
        path,
        candidate_indptr,
        candidates,
        items["n_todo"].astype(VERTEX),
        items["fresh"].astype(np.bool_),
    )
    return Subtrees.concat([listed, Subtrees.of_roots(roots)])
