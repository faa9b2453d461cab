"""Between `Subtrees` and the items of the kernel's queue."""

from __future__ import annotations

import numpy as np

from kernels.gpu.layout import HUB, ITEM, NOBODY, PATH, ROOT, WORD, WORD_BITS
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph
from schemas.work import EVERYTHING, Piece, Subtrees

__all__ = ["items_of", "subtrees_of"]

#: Into how many items the candidates of all hub roots are cut: enough for every warp of a large device, but ranges
#: no longer than `_LONG_CHUNK`, unless that makes too many.
_FEW_ITEMS, _LONG_CHUNK, _MANY_ITEMS = 1 << 14, 32, 1 << 18


def items_of(graph: MiningGraph, subtrees: Subtrees) -> tuple[np.ndarray, np.ndarray]:
    """Items, heaviest first, and the pool of vertex lists they point into."""
    whole = subtrees.todo == EVERYTHING
    roots = subtrees.path[subtrees.path_indptr[:-1][whole]]
    items = [_root_items(graph, roots), _hub_items(graph, roots)]
    pool = np.empty(0, VERTEX)
    if not whole.all():
        parts, pool = _path_items(subtrees, np.flatnonzero(~whole))
        items.insert(0, parts)
    return np.concatenate(items), pool


def _weights(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    """Wedges of each root: what it costs to open."""
    base_degree = np.diff(graph.base_indptr)
    total = np.concatenate([np.zeros(1, OFFSET), np.cumsum(base_degree[graph.root_indices], dtype=OFFSET)])
    return total[graph.root_indptr[roots + 1]] - total[graph.root_indptr[roots]]


def _root_items(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    degree = np.diff(graph.root_indptr)[roots]
    small = roots[degree <= WORD_BITS]
    small = small[np.argsort(-_weights(graph, small) * degree[degree <= WORD_BITS], kind="stable")]
    items = _blank(len(small))
    items["kind"], items["bound"], items["fresh"] = ROOT, small, 1
    return items


def _hub_items(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    degree = np.diff(graph.root_indptr)[roots]
    hubs = roots[degree > WORD_BITS]
    hubs = hubs[np.argsort(-degree[degree > WORD_BITS], kind="stable")]
    first = hubs.astype(OFFSET) + 1
    total = int((graph.n_roots - first).sum())
    chunk = max(1, min(total // _FEW_ITEMS, _LONG_CHUNK), total // _MANY_ITEMS)
    n_chunks = np.maximum(1, -(-(graph.n_roots - first) // chunk))
    owner = np.repeat(np.arange(len(hubs)), n_chunks)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(n_chunks) - n_chunks, n_chunks)
    items = _blank(len(owner))
    items["kind"], items["bound"] = HUB, hubs[owner]
    items["begin"] = first[owner] + number * chunk
    items["end"] = np.minimum(items["begin"] + chunk, graph.n_roots)
    items["fresh"] = number == 0
    return items


def _path_items(subtrees: Subtrees, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    items = _blank(len(which))
    items["kind"], items["fresh"], items["end"] = PATH, subtrees.fresh[which], subtrees.todo[which]
    items["left_at"] = subtrees.path_indptr[:-1][which]
    items["n_left"] = np.diff(subtrees.path_indptr)[which]
    items["cand_at"] = len(subtrees.path) + subtrees.candidate_indptr[:-1][which]
    items["n_cand"] = np.diff(subtrees.candidate_indptr)[which]
    order = np.argsort(-items["end"].astype(OFFSET), kind="stable")
    return items[order], np.concatenate([subtrees.path, subtrees.candidates]).astype(VERTEX)


def _blank(n: int) -> np.ndarray:
    items = np.zeros(n, ITEM)
    for name in ("bound", "left_at", "closure_at", "cand_at"):
        items[name] = NOBODY
    return items


def subtrees_of(graph: MiningGraph, items: np.ndarray, pool: np.ndarray) -> Subtrees:
    """What items of any kind still have to explore."""
    roots = items["bound"][items["kind"] == ROOT]
    ranges = (items["kind"] == HUB) & (items["bound"] != NOBODY)
    pieces, hubs = _range_pieces(graph, items[ranges])
    for item in items[(items["kind"] != ROOT) & ~ranges]:
        pieces.append(_piece(graph, item, pool))
    return Subtrees.concat([Subtrees.of_pieces(pieces), Subtrees.of_roots(np.concatenate([hubs, roots]))])


def _range_pieces(graph: MiningGraph, items: np.ndarray) -> tuple[list[Piece], np.ndarray]:
    """First-level subtrees of hubs: whole ones as roots, others by ranges of candidates, joined where they can be."""
    items = items[np.lexsort((items["begin"], items["bound"]))]
    if not len(items):
        return [], items["bound"]
    joined = (items["bound"][1:] == items["bound"][:-1]) & (items["begin"][1:] == items["end"][:-1])
    starts = np.flatnonzero(np.concatenate([[True], ~joined]))
    bound, begin, fresh = (items[name][starts] for name in ("bound", "begin", "fresh"))
    end = items["end"][np.concatenate([starts[1:], [len(items)]]) - 1]
    whole = (fresh == 1) & (begin == bound + 1) & (end == graph.n_roots)
    pieces: list[Piece] = []
    for k in np.flatnonzero(~whole).tolist():
        root, path = int(bound[k]), bound[k : k + 1].astype(VERTEX)
        left = graph.root_indices[graph.root_indptr[root] : graph.root_indptr[root + 1]]
        if begin[k] > root + 1:  # closure among the earlier candidates has to be in the path
            path = _closure(graph, left)
        candidates = _near(graph, left, int(begin[k]))
        n = int(np.searchsorted(candidates, end[k]))
        if n or fresh[k]:
            pieces.append((path, candidates, n, bool(fresh[k])))
    return pieces, bound[whole]


def _piece(graph: MiningGraph, item: np.void, pool: np.ndarray) -> Piece:
    def part(at: str, n: str) -> np.ndarray:
        return pool[item[at] : item[at] + item[n]]

    if item["kind"] == PATH:
        path = part("left_at", "n_left")
    elif item["kind"] == WORD:
        path = _closure(graph, part("left_at", "n_left"))
    else:
        path = part("closure_at", "n_closure")
    if item["kind"] == HUB and item["cand_at"] == NOBODY:
        candidates = _near(graph, part("left_at", "n_left"), int(item["begin"]))
        n = int(np.searchsorted(candidates, item["end"]))
    else:
        candidates = part("cand_at", "n_cand")[item["begin"] :]
        n = int(item["end"] - item["begin"])
    return path.copy(), candidates.copy(), n, bool(item["fresh"])


def _near(graph: MiningGraph, left: np.ndarray, begin: int) -> np.ndarray:
    """Root vertices of rank `begin` or more that are adjacent to one of `left`: no other has a child below it."""
    rows = [graph.base_indices[graph.base_indptr[u] : graph.base_indptr[u + 1]] for u in left]
    near: np.ndarray = np.unique(np.concatenate([row[np.searchsorted(row, begin) :] for row in rows]))
    return near.astype(VERTEX)


def _closure(graph: MiningGraph, left: np.ndarray) -> np.ndarray:
    """Root vertices adjacent to all of `left`."""
    rows = [graph.base_indices[graph.base_indptr[u] : graph.base_indptr[u + 1]] for u in left]
    rows.sort(key=len)
    closure = np.asarray(rows[0])
    for row in rows[1:]:
        closure = closure[np.isin(closure, row, assume_unique=True)]
    return closure
