"""Converts `Subtrees` to the items of the kernel's queue, and back."""

from __future__ import annotations

import numpy as np

from kernels.bitmatrix.layout import HUB, ITEM, PATH, ROOT, SPLIT, WORD
from kernels.gpu.records import NOBODY, WORD_BITS
from kernels.graph.wedges import degrees_of, gather, wedges_of
from schemas.dtypes import OFFSET, VERTEX
from schemas.graph import MiningGraph
from schemas.work import EVERYTHING, Subtrees

__all__ = ["FEW_ITEMS", "LONG_CHUNK", "compacted", "items_of", "subtrees_of"]

#: Into how many items the candidates of all hub roots are cut: enough for every warp of a large device, but ranges
#: no longer than `LONG_CHUNK`, unless that makes too many.
FEW_ITEMS, LONG_CHUNK, _MANY_ITEMS = 1 << 14, 8, 1 << 18


def items_of(graph: MiningGraph, subtrees: Subtrees, sieving: bool) -> tuple[np.ndarray, np.ndarray]:
    """Items, heaviest first, and the pool of vertex lists that they point into.

    A sieve opens roots of any size, and roots come in the order of a plan, the heaviest first. Nearly all are over at
    once, so to weigh them again would take longer than to search them. Without it, the candidates of hubs are dealt
    out.
    """
    whole = subtrees.todo == EVERYTHING
    roots = subtrees.path[subtrees.path_indptr[:-1][whole]]
    if sieving:
        items = [_root_items(roots)]
    else:
        small = degrees_of(graph, roots) <= WORD_BITS
        items = [_root_items(_heaviest_first(graph, roots[small])), _hub_items(graph, roots[~small])]
    pool = np.empty(0, VERTEX)
    if not whole.all():
        parts, pool = _path_items(subtrees, np.flatnonzero(~whole))
        items.insert(0, parts)
    return np.concatenate(items), pool


def _heaviest_first(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    return roots[np.argsort(-wedges_of(graph, roots) * degrees_of(graph, roots), kind="stable")]


def _root_items(roots: np.ndarray) -> np.ndarray:
    items = _blank(len(roots))
    items["kind"], items["bound"], items["fresh"] = ROOT, roots, 1
    return items


def _hub_items(graph: MiningGraph, hubs: np.ndarray) -> np.ndarray:
    hubs = hubs[np.argsort(-degrees_of(graph, hubs), kind="stable")]
    first = hubs.astype(OFFSET) + 1
    total = int((graph.n_roots - first).sum())
    chunk = max(1, min(total // FEW_ITEMS, LONG_CHUNK), total // _MANY_ITEMS)
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
    items, ranged = _blank(len(which)), subtrees.ranged[which]
    items["kind"], items["fresh"], items["end"] = PATH, subtrees.fresh[which], subtrees.todo[which]
    items["base_at"] = subtrees.path_indptr[:-1][which]
    items["n_base"] = np.diff(subtrees.path_indptr)[which]
    items["cand_at"] = len(subtrees.path) + subtrees.candidate_indptr[:-1][which]
    items["n_cand"] = np.diff(subtrees.candidate_indptr)[which]
    begin = subtrees.candidates[subtrees.candidate_indptr[which[ranged]]]
    order = np.argsort(-items["end"].astype(OFFSET), kind="stable")
    for name, value in (("begin", begin), ("end", begin + items["end"][ranged]), ("cand_at", NOBODY), ("n_cand", 0)):
        items[name][ranged] = value
    return items[order], np.concatenate([subtrees.path, subtrees.candidates]).astype(VERTEX)


def _blank(n: int) -> np.ndarray:
    items = np.zeros(n, ITEM)
    for name in ("bound", "base_at", "closure_at", "cand_at"):
        items[name] = NOBODY
    return items


def subtrees_of(graph: MiningGraph, items: np.ndarray, pool: np.ndarray) -> Subtrees:
    """The nodes that items of any kind still have to explore."""
    items = _joined(items)
    kind, listed = items["kind"], items["cand_at"] != NOBODY
    first_level = (kind == HUB) & (items["bound"] != NOBODY)
    nodes = [_listed(graph, items[(kind == k) & ~first_level & listed], k, pool) for k in (PATH, SPLIT, WORD, HUB)]
    nodes += [_ranged(items[(kind == k) & ~first_level & ~listed], k, pool) for k in (PATH, HUB)]
    nodes.append(_first_level(graph, items[first_level]))
    nodes.append(Subtrees.of_roots(items["bound"][kind == ROOT]))
    return Subtrees.concat(nodes)


def _joined(items: np.ndarray) -> np.ndarray:
    """The items, where a run of them that were given away together, and that no warp took, becomes one again.

    They share their lists, and each node of `Subtrees` has lists of its own. A launch that ends early can leave 100,000
    such items with thousands of candidates each.
    """
    if len(items) < 2:
        return items
    before, after = items[:-1], items[1:]
    joins = (after["begin"] == before["end"]) & (after["fresh"] == 0) & (after["kind"] != ROOT)
    for name in ("kind", "bound", "base_at", "closure_at", "cand_at", "n_base", "n_closure", "n_cand"):
        joins &= after[name] == before[name]
    first = np.append(True, ~joins)
    joined = items[first]
    joined["end"] = items["end"][np.append(first[1:], True)]
    return joined


def _paths(items: np.ndarray, kind: int, pool: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lists that the paths of items of one kind come from: of a hub its closure, of the others their first list."""
    at, n = ("closure_at", "n_closure") if kind == HUB else ("base_at", "n_base")
    return gather(pool, items[at], items[n])


def _listed(graph: MiningGraph, items: np.ndarray, kind: int, pool: np.ndarray) -> Subtrees:
    """Nodes of items of one kind whose candidates are in the pool. Nearly all left-over items are of these."""
    begin, end, fresh = (items[name] for name in ("begin", "end", "fresh"))
    paths = _paths(items, kind, pool)
    if kind == WORD:
        from kernels.bitmatrix.closures import closures_of  # not before it is needed

        paths = closures_of(graph, *paths)
    candidates = gather(pool, items["cand_at"] + begin, items["n_cand"] - begin)
    return Subtrees.of_lists(*paths, *candidates, end - begin, fresh.astype(np.bool_))


def _ranged(items: np.ndarray, kind: int, pool: np.ndarray) -> Subtrees:
    """Nodes of hubs below the first level, whose candidates are ranges of ranks."""
    return Subtrees.of_ranges(*_paths(items, kind, pool), items["begin"], items["end"] - items["begin"], items["fresh"])


def compacted(items: np.ndarray, pool: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The items with a pool of only those lists that they refer to."""
    lists = (("base_at", "n_base"), ("closure_at", "n_closure"), ("cand_at", "n_cand"))
    spans = [
        np.column_stack([some[at], some[at] + some[n]]) for at, n in lists for some in [items[items[at] != NOBODY]]
    ]
    begin, end = np.unique(np.concatenate(spans).astype(OFFSET), axis=0).T
    if len(begin) == 0:
        return items.copy(), pool[:0]
    reach = np.maximum.accumulate(end)  # the furthest end so far, because items may share lists and parts of lists
    starts = np.ones(len(begin), np.bool_)
    starts[1:] = begin[1:] > reach[:-1]
    first = np.flatnonzero(starts)
    blocks, stops = begin[first], reach[np.roll(first, -1) - 1]
    indptr, kept = gather(pool, blocks, stops - blocks)
    items = items.copy()
    for at, _ in lists:
        block = np.searchsorted(blocks, items[at], side="right") - 1
        items[at] = np.where(items[at] == NOBODY, NOBODY, items[at] - blocks[block] + indptr[block])
    return items, kept


def _first_level(graph: MiningGraph, items: np.ndarray) -> Subtrees:
    """First-level subtrees of hubs. Whole ones are roots; others are ranges of candidates, joined where possible.

    The path of these others is their whole closure. A root that an earlier root contains is left out.
    """
    items = items[np.lexsort((items["begin"], items["bound"]))]
    bound, begin, end = (items[name].astype(OFFSET) for name in ("bound", "begin", "end"))
    starts = np.ones(len(items), np.bool_)
    starts[1:] = (bound[1:] != bound[:-1]) | (begin[1:] != end[:-1])
    bound, begin, end, fresh = bound[starts], begin[starts], end[np.roll(starts, -1)], items["fresh"][starts]
    whole = (fresh == 1) & (begin == bound + 1) & (end == graph.n_roots)
    if whole.all():
        return Subtrees.of_roots(bound)
    from kernels.bitmatrix.closures import closures_of  # not before it is needed

    owners, owner = np.unique(bound[~whole], return_inverse=True)
    indptr, closures = closures_of(
        graph, *gather(graph.root_indices, graph.root_indptr[owners], degrees_of(graph, owners))
    )
    alive = (closures[indptr[:-1]] == owners)[owner]
    owner, which = owner[alive], np.flatnonzero(~whole)[alive]
    paths = gather(closures, indptr[owner], indptr[owner + 1] - indptr[owner])
    ranges = Subtrees.of_ranges(*paths, begin[which], (end - begin)[which], fresh[which])
    return Subtrees.concat([ranges, Subtrees.of_roots(bound[whole])])
