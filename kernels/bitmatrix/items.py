"""Converts `Subtrees` to the items of the kernel's queue, and back, with the closures of the lists that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from bicliques.kernels.bitmatrix.layout import HUB, ITEM, PATH, ROOT, SPLIT
from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.searching import first_at_least
from bicliques.kernels.gpu.records import NOBODY, WORD_BITS
from bicliques.kernels.graph.wedges import degrees_of, gather, wedges_of
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Search
from bicliques.schemas.work import EVERYTHING, Subtrees, first_nodes


def closures_of(graph: MiningGraph, indptr: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Root vertices that are adjacent to all of a list. They are among the neighbours of its rarest vertex.

    Parameters
    ----------
    indptr : ndarray of int64, shape (n + 1,)
    base : ndarray of int32
        List ``i`` is ``base[indptr[i]:indptr[i + 1]]``; none is empty.

    Returns
    -------
    indptr, roots : ndarray of int64, ndarray of int32
        The closures in the same form, each in ascending order.
    """
    ends = np.zeros(len(indptr), OFFSET)
    if len(indptr) == 1:
        return ends, np.empty(0, VERTEX)
    degrees = graph.base_indptr[base + 1] - graph.base_indptr[base]
    roots = np.empty(int(np.minimum.reduceat(degrees, indptr[:-1]).sum()), VERTEX)
    _fill(graph.root_indptr, graph.root_indices, graph.base_indptr, graph.base_indices, indptr, base, ends, roots)
    return ends, roots[: ends[-1]]


@entry
def _fill(
    root_indptr: np.ndarray,
    root_indices: np.ndarray,
    base_indptr: np.ndarray,
    base_indices: np.ndarray,
    indptr: np.ndarray,
    base: np.ndarray,
    ends: np.ndarray,
    roots: np.ndarray,
) -> None:
    n = 0
    for i in range(len(indptr) - 1):
        own = base[indptr[i] : indptr[i + 1]]
        rarest = own[0]
        for v in own:
            if base_indptr[v + 1] - base_indptr[v] < base_indptr[rarest + 1] - base_indptr[rarest]:
                rarest = v
        for root in base_indices[base_indptr[rarest] : base_indptr[rarest + 1]]:
            row = root_indices[root_indptr[root] : root_indptr[root + 1]]
            if len(row) >= len(own) and _has_all(row, own):
                roots[n] = root
                n += 1
        ends[i + 1] = n


@compiled
def _has_all(row: np.ndarray, own: np.ndarray) -> bool:
    for v in own:
        at = first_at_least(row, 0, len(row), v)
        if at == len(row) or row[at] != v:
            return False
    return True


#: Into how many items the candidates of all hub roots are cut: enough for every warp of a large device, but ranges
#: no longer than `LONG_CHUNK`, unless that makes too many.
FEW_ITEMS, LONG_CHUNK, _MANY_ITEMS = 1 << 14, 8, 1 << 18
#: An item as bytes.
_BYTES = np.dtype((np.void, ITEM.itemsize))


@dataclass(frozen=True, eq=False)
class Queued(Subtrees):
    """Nodes with the items of them, which are made while the device does something else.

    Parameters
    ----------
    items, pool : ndarray
        See `items_of`.
    """

    items: np.ndarray
    pool: np.ndarray

    @classmethod
    def of(cls, graph: MiningGraph, nodes: Subtrees, search: Search) -> Queued:
        """These nodes, and the items that `items_of` makes of them."""
        nodes = first_nodes(graph, nodes)
        items, pool = items_of(graph, nodes, search.prunes or search.pq is not None)
        return cls(**{field.name: getattr(nodes, field.name) for field in fields(Subtrees)}, items=items, pool=pool)


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
    return joined(items), pool


def joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """The items of all parts, one behind the other.

    They are joined as bytes. NumPy copies records field by field, which takes nine times as long. `take` and `compress`
    do not, so they are used in place of an index.
    """
    return np.concatenate([part.view(_BYTES) for part in parts]).view(ITEM)


def _heaviest_first(graph: MiningGraph, roots: np.ndarray) -> np.ndarray:
    return roots[np.argsort(-wedges_of(graph, roots) * degrees_of(graph, roots), kind="stable")]


def _root_items(roots: np.ndarray) -> np.ndarray:
    items = _blank(len(roots), ROOT, fresh=1)
    items["bound"] = roots
    return items


def _hub_items(graph: MiningGraph, hubs: np.ndarray) -> np.ndarray:
    hubs = hubs[np.argsort(-degrees_of(graph, hubs), kind="stable")]
    first = hubs.astype(OFFSET) + 1
    total = int((graph.n_roots - first).sum())
    chunk = max(1, min(total // FEW_ITEMS, LONG_CHUNK), total // _MANY_ITEMS)
    n_chunks = np.maximum(1, -(-(graph.n_roots - first) // chunk))
    starts = np.cumsum(n_chunks) - n_chunks
    whole = _blank(len(hubs), HUB)
    whole["bound"] = hubs
    items = np.repeat(whole, n_chunks)
    begin = np.repeat(first - starts * chunk, n_chunks)
    begin += np.arange(0, chunk * len(items), chunk)
    items["begin"], items["end"] = begin, np.minimum(begin + chunk, graph.n_roots)
    items["fresh"][starts] = 1
    return items


def _path_items(subtrees: Subtrees, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    items, ranged = _blank(len(which), PATH), subtrees.ranged[which]
    items["fresh"], items["end"] = subtrees.fresh[which], subtrees.todo[which]
    items["base_at"] = subtrees.path_indptr[:-1][which]
    items["n_base"] = np.diff(subtrees.path_indptr)[which]
    items["cand_at"] = len(subtrees.path) + subtrees.candidate_indptr[:-1][which]
    items["n_cand"] = np.diff(subtrees.candidate_indptr)[which]
    begin = subtrees.candidates[subtrees.candidate_indptr[which[ranged]]]
    order = np.argsort(-items["end"].astype(OFFSET), kind="stable")
    for name, value in (("begin", begin), ("end", begin + items["end"][ranged]), ("cand_at", NOBODY), ("n_cand", 0)):
        items[name][ranged] = value
    return items.take(order), np.concatenate([subtrees.path, subtrees.candidates]).astype(VERTEX)


def _blank(n: int, kind: int, fresh: int = 0) -> np.ndarray:
    """Items of a kind without lists and ranges."""
    item = np.zeros(1, ITEM)
    item["kind"], item["fresh"] = kind, fresh
    for name in ("bound", "base_at", "closure_at", "cand_at"):
        item[name] = NOBODY
    return np.repeat(item, n)


def subtrees_of(graph: MiningGraph, items: np.ndarray, pool: np.ndarray) -> Subtrees:
    """The nodes that items of any kind still have to explore."""
    items = _runs(items)
    kind, listed = items["kind"].copy(), items["cand_at"] != NOBODY
    first_level = (kind == HUB) & (items["bound"] != NOBODY)
    below = ~first_level
    nodes = [_listed(items.compress((kind == k) & below & listed), k, pool) for k in (PATH, SPLIT, HUB)]
    nodes += [_ranged(items.compress((kind == k) & below & ~listed), k, pool) for k in (PATH, HUB)]
    nodes.append(_first_level(graph, items.compress(first_level)))
    nodes.append(Subtrees.of_roots(items["bound"][kind == ROOT]))
    return Subtrees.concat(nodes)


def _runs(items: np.ndarray) -> np.ndarray:
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
    runs = items.compress(first)
    runs["end"] = items["end"][np.append(first[1:], True)]
    return runs


def _paths(items: np.ndarray, kind: int, pool: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lists that the paths of items of one kind come from: of a hub its closure, of the others their first list."""
    at, n = ("closure_at", "n_closure") if kind == HUB else ("base_at", "n_base")
    return gather(pool, items[at], items[n])


def _listed(items: np.ndarray, kind: int, pool: np.ndarray) -> Subtrees:
    """Nodes of items of one kind whose candidates are in the pool. Nearly all left-over items are of these."""
    begin, end, fresh = (items[name] for name in ("begin", "end", "fresh"))
    paths = _paths(items, kind, pool)
    candidates = gather(pool, items["cand_at"] + begin, items["n_cand"] - begin)
    return Subtrees.of_lists(*paths, *candidates, end - begin, fresh.astype(np.bool_))


def _ranged(items: np.ndarray, kind: int, pool: np.ndarray) -> Subtrees:
    """Nodes of hubs below the first level, whose candidates are ranges of ranks."""
    return Subtrees.of_ranges(*_paths(items, kind, pool), items["begin"], items["end"] - items["begin"], items["fresh"])


def compacted(items: np.ndarray, pool: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The items with a pool of only those lists that they refer to."""
    lists = (("base_at", "n_base"), ("closure_at", "n_closure"), ("cand_at", "n_cand"))
    ats = np.concatenate([items[at] for at, _ in lists])
    there = np.flatnonzero(ats != NOBODY)
    if len(there) == 0:
        return items, pool[:0]
    order = there[np.argsort(ats[there], kind="stable")]  # items beside one another have lists beside one another
    begin = ats[order]
    end = begin + np.concatenate([items[n] for _, n in lists])[order]
    reach = np.maximum.accumulate(end)  # the furthest end so far, because items may share lists and parts of lists
    starts = np.append(True, begin[1:] > reach[:-1])
    first = np.flatnonzero(starts)
    blocks, stops = begin[first], reach[np.append(first[1:], len(order)) - 1]
    indptr, kept = gather(pool, blocks, stops - blocks)
    ats[order] = begin + np.repeat(indptr[:-1] - blocks, np.diff(np.append(first, len(order))))
    items = joined([items])
    for (at, _), moved in zip(lists, np.split(ats, len(lists)), strict=True):
        items[at] = moved
    return items, kept


def _first_level(graph: MiningGraph, items: np.ndarray) -> Subtrees:
    """First-level subtrees of hubs. Whole ones are roots; others are ranges of candidates, joined where possible.

    The path of these others is their whole closure. A root that an earlier root contains is left out.
    """
    order = np.argsort(items["bound"].astype(OFFSET) << 32 | items["begin"], kind="stable")
    items = items.take(order)
    bound, begin, end = (items[name].astype(OFFSET) for name in ("bound", "begin", "end"))
    starts = np.ones(len(items), np.bool_)
    starts[1:] = (bound[1:] != bound[:-1]) | (begin[1:] != end[:-1])
    bound, begin, end, fresh = bound[starts], begin[starts], end[np.roll(starts, -1)], items["fresh"][starts]
    whole = (fresh == 1) & (begin == bound + 1) & (end == graph.n_roots)
    if whole.all():
        return Subtrees.of_roots(bound)
    owners, owner = np.unique(bound[~whole], return_inverse=True)
    indptr, closures = closures_of(
        graph, *gather(graph.root_indices, graph.root_indptr[owners], degrees_of(graph, owners))
    )
    alive = (closures[indptr[:-1]] == owners)[owner]
    owner, which = owner[alive], np.flatnonzero(~whole)[alive]
    paths = gather(closures, indptr[owner], indptr[owner + 1] - indptr[owner])
    ranges = Subtrees.of_ranges(*paths, begin[which], (end - begin)[which], fresh[which])
    return Subtrees.concat([ranges, Subtrees.of_roots(bound[whole])])
