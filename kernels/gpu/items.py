"""Between `Subtrees` and the items of the kernel's queue."""

from __future__ import annotations

import numpy as np

from kernels.gpu.closures import closures_of
from kernels.gpu.layout import HUB, ITEM, NOBODY, PATH, ROOT, WORD, WORD_BITS
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph
from schemas.work import EVERYTHING, Piece, Subtrees

__all__ = ["compacted", "gather", "items_of", "subtrees_of", "wedges_of"]

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


def _degrees(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    return graph.root_indptr[roots + 1] - graph.root_indptr[roots]


def _left_of(graph: MiningGraph, root: int) -> np.ndarray:
    return graph.root_indices[graph.root_indptr[root] : graph.root_indptr[root + 1]]


def wedges_of(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    """Wedges of each root: what it costs to open, and the best cheap guess of what lies below."""
    indptr, base = gather(graph.root_indices, graph.root_indptr[roots], _degrees(graph, roots))
    total = np.concatenate([np.zeros(1, OFFSET), np.cumsum(graph.base_indptr[base + 1] - graph.base_indptr[base])])
    return total[indptr[1:]] - total[indptr[:-1]]


def gather(values: np.ndarray, at: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets, and the lists ``values[at[i]:at[i] + n[i]]`` one behind the other."""
    indptr = np.concatenate([np.zeros(1, OFFSET), np.cumsum(n, dtype=OFFSET)])
    inside = np.arange(indptr[-1], dtype=OFFSET) - np.repeat(indptr[:-1], n)
    return indptr, values[np.repeat(at, n) + inside]


def _root_items(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    degree = _degrees(graph, roots)
    small = roots[degree <= WORD_BITS]
    small = small[np.argsort(-wedges_of(graph, small) * degree[degree <= WORD_BITS], kind="stable")]
    items = _blank(len(small))
    items["kind"], items["bound"], items["fresh"] = ROOT, small, 1
    return items


def _hub_items(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    degree = _degrees(graph, roots)
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
    kind, listed = items["kind"], items["cand_at"] != NOBODY
    first_level = (kind == HUB) & (items["bound"] != NOBODY)
    pieces, hubs = _range_pieces(graph, items[first_level])
    pieces += [_below_hub(graph, item, pool) for item in items[(kind == HUB) & ~first_level & ~listed]]
    nodes = [_listed(graph, items[(kind == k) & ~first_level & listed], k, pool) for k in (PATH, WORD, HUB)]
    whole = Subtrees.of_roots(np.concatenate([hubs, items["bound"][kind == ROOT]]))
    return Subtrees.concat([*nodes, Subtrees.of_pieces(pieces), whole])


def _listed(graph: MiningGraph, items: np.ndarray, kind: int, pool: np.ndarray) -> Subtrees:
    """Items of one kind whose candidates are in the pool, which are nearly all that a launch leaves over."""
    begin, end, fresh = (items[name] for name in ("begin", "end", "fresh"))
    at, n = ("closure_at", "n_closure") if kind == HUB else ("left_at", "n_left")
    paths = gather(pool, items[at], items[n])
    if kind == WORD:
        paths = closures_of(graph, *paths)
    candidates = gather(pool, items["cand_at"] + begin, items["n_cand"] - begin)
    return Subtrees(*paths, *candidates, end - begin, fresh.astype(np.bool_))


def compacted(items: np.ndarray, pool: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The items with a pool that holds nothing but what they refer to."""
    used = np.zeros(len(pool) + 1, np.int32)
    lists = (("left_at", "n_left"), ("closure_at", "n_closure"), ("cand_at", "n_cand"))
    for at, n in lists:
        some = items[items[at] != NOBODY]
        np.add.at(used, some[at], 1)
        np.add.at(used, some[at] + some[n], -1)
    kept = np.cumsum(used) > 0
    new_at: np.ndarray = np.cumsum(kept) - kept
    items = items.copy()
    for at, _ in lists:
        items[at] = np.where(items[at] == NOBODY, NOBODY, new_at[items[at]])
    return items, pool[kept[:-1]]


def _range_pieces(graph: MiningGraph, items: np.ndarray) -> tuple[list[Piece], np.ndarray]:
    """First-level subtrees of hubs: whole ones as roots, others by ranges of candidates, joined where they can be.

    Others have all of their closure in the path, and nothing is left of a root that an earlier one contains.
    """
    items = items[np.lexsort((items["begin"], items["bound"]))]
    if not len(items):
        return [], items["bound"]
    joined = (items["bound"][1:] == items["bound"][:-1]) & (items["begin"][1:] == items["end"][:-1])
    starts = np.flatnonzero(np.concatenate([[True], ~joined]))
    bound, begin, fresh = (items[name][starts] for name in ("bound", "begin", "fresh"))
    end = items["end"][np.concatenate([starts[1:], [len(items)]]) - 1]
    whole = (fresh == 1) & (begin == bound + 1) & (end == graph.n_roots)
    pieces: list[Piece] = []
    closure, owner = bound[:0], -1
    for k in np.flatnonzero(~whole).tolist():
        root = int(bound[k])
        left = _left_of(graph, root)
        if owner != root:
            closure, owner = closures_of(graph, np.array([0, len(left)]), left)[1], root
        if closure[0] < root:
            continue
        candidates, n = _candidates(graph, left, int(begin[k]), int(end[k]))
        if n or fresh[k]:
            pieces.append((closure, candidates, n, bool(fresh[k])))
    return pieces, bound[whole]


def _below_hub(graph: MiningGraph, item: np.void, pool: np.ndarray) -> Piece:
    """A large node below the first level, whose candidates are a range of ranks."""
    left, closure = (
        pool[item[at] : item[at] + item[n]] for at, n in (("left_at", "n_left"), ("closure_at", "n_closure"))
    )
    candidates, n = _candidates(graph, left, int(item["begin"]), int(item["end"]))
    return closure.copy(), candidates, n, bool(item["fresh"])


def _candidates(graph: MiningGraph, left: np.ndarray, begin: int, end: int) -> tuple[np.ndarray, int]:
    """Ranks from `begin` on, and how many of them lie before `end`; those that touch `left`, where these are few."""
    starts = graph.base_indptr[left]
    degrees = graph.base_indptr[left + 1] - starts
    if int(degrees.sum()) >= graph.n_roots - begin:
        return np.arange(begin, graph.n_roots, dtype=VERTEX), end - begin
    near = np.unique(gather(graph.base_indices, starts, degrees)[1])
    near = near[np.searchsorted(near, begin) :].astype(VERTEX)
    return near, int(np.searchsorted(near, end))
