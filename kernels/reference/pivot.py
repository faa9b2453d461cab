"""Counts all bicliques of a graph, maximal or not, by a pivot tree, in Python sets.

A piece of work (`schemas.work.Subtrees`) with the path P, the candidates K and `todo` stands for these bicliques: their
root side is P and some of K, the first of which is among the first `todo`. If the piece is fresh, also those with
P alone. Their base side is any part of the common neighbours of the root side. So the children of a piece, P and one
of the first `todo`, with the later candidates, are pieces, too. No biclique is in two of them, and none in no one.
What is left of a node below is a piece as well: if base vertices, ``n_roots + u``, are among P or K, those in P are
held, and those in K are the only candidates of the base side.

Below a piece a *pivot tree* counts. A node has held and free vertices and candidates, on both sides. Every candidate is
joined to all held and free vertices of the other side. It stands for the bicliques that have all held vertices, any of
the free ones, and any candidates that are joined. Pivot p is one of the candidates:

1. The bicliques that have no candidate of the other side to which p is not joined may have p or not: p becomes free.
   It is joined to all that they have.
2. The others are divided by the first such candidate w that they have. It becomes held, those before it are no
   candidates any more, and on the side of p only those stay that are joined to w. So p is in none of them.
3. A node without candidates on one side is a leaf: all candidates of the other side are free.

The division is disjoint and complete. A vertex is held or free only once, and is joined to all that is held or free on
the other side, so the leaf has the bicliques that `schemas.leaves` says. Any p will do. The one that is joined to all
but the fewest candidates of the other side gives few nodes.

With a bound on p and q, a node that holds more than that on a side ends. The bounds are at least 2, so that edges and
butterflies are counted, and the degrees and wedges of the input can check them.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves, mixes
from bicliques.schemas.work import EVERYTHING, Subtrees

#: Bounds on the held vertices of (roots, base).
Bounds = tuple[int, int]
_NO_BOUND = 1 << 40
_LEAST_BOUND = 2


def held_bounds(graph: MiningGraph, up_to: tuple[int, int] | None) -> Bounds:
    """The most held vertices of a node, by (roots, base), for the largest p and q that are wanted."""
    left, right = (max(n, _LEAST_BOUND) for n in up_to) if up_to is not None else (_NO_BOUND, _NO_BOUND)
    return (left, right) if graph.root_side == "left" else (right, left)


def by_side(graph: MiningGraph, keys: np.ndarray, number: np.ndarray, mix: int) -> Leaves:
    """Leaves of the user's sides, from keys (held roots, free roots, held base, free base)."""
    keys = keys.reshape(-1, 4)
    return Leaves.of(keys if graph.root_side == "left" else keys[:, [2, 3, 0, 1]], number, mix)


def keys_of(roots: np.ndarray, base: np.ndarray) -> np.ndarray:
    """The keys of `by_side`, from held and free vertices of a side in 32 bits each."""
    low = np.uint64(2**32 - 1)
    return np.column_stack([roots >> np.uint64(32), roots & low, base >> np.uint64(32), base & low]).astype(np.int64)


def leaves_below(graph: MiningGraph, piece: Subtrees, most: Bounds) -> Leaves:
    """The leaves of one piece."""
    ptr, idx = graph.root_indptr, graph.root_indices
    joined = [frozenset(idx[ptr[v] : ptr[v + 1]].tolist()) for v in range(graph.n_roots)]
    path, candidates, todo = opened(graph, piece)
    held = sum(v >= graph.n_roots for v in path)
    base = frozenset(v - graph.n_roots for v in candidates if v >= graph.n_roots)
    if not held and not base:
        base = frozenset.intersection(*(joined[v] for v in path))
    found: Counter[tuple[int, int, int, int]] = Counter()
    if piece.fresh[0]:
        _node(joined, found, most, [len(path) - held, held], [0, 0], (frozenset(), base))
    for k in range(todo):
        if (root := candidates[k]) < graph.n_roots:
            roots = frozenset(v for v in candidates[k + 1 :] if v < graph.n_roots)
            _node(joined, found, most, [len(path) - held + 1, held], [0, 0], (roots, base & joined[root]))
    return by_side(graph, *with_mix(found))


def with_mix(found: Counter[tuple[int, int, int, int]]) -> tuple[np.ndarray, np.ndarray, int]:
    """The arrays of these kinds of leaves, how often each was found, and their checksum."""
    keys, number = np.array(list(found), np.int64).reshape(-1, 4), np.array(list(found.values()), np.int64)
    return keys, number, int((mixes(keys) * number.astype(np.uint64)).sum())


def opened(graph: MiningGraph, piece: Subtrees) -> tuple[list[int], list[int], int]:
    """The path and the candidates of one piece, and how many of them are to be counted."""
    path, todo = piece.path_of(0).tolist(), int(piece.todo[0])
    if todo == EVERYTHING:
        return path, list(range(path[0] + 1, graph.n_roots)), graph.n_roots - path[0] - 1
    if piece.ranged[0]:
        return path, list(range(int(piece.candidates_of(0)[0]), graph.n_roots)), todo
    return path, piece.candidates_of(0).tolist(), todo


def _node(
    joined: list[frozenset[int]],
    found: Counter[tuple[int, int, int, int]],
    most: Bounds,
    held: list[int],
    free: list[int],
    candidates: tuple[frozenset[int], frozenset[int]],
) -> None:
    if held[0] > most[0] or held[1] > most[1]:
        return
    roots, base, free = set(candidates[0]), set(candidates[1]), list(free)
    while roots and base:
        # by the candidate, those of the other side to which it is not joined
        apart = {(0, v): base - joined[v] for v in roots}
        apart |= {(1, u): {v for v in roots if u not in joined[v]} for u in base}
        side, p = min(apart, key=lambda one: (len(apart[one]), one))
        for w in sorted(apart[side, p]):
            if side == 0:
                base.discard(w)
                below = frozenset(v for v in roots if w in joined[v]), frozenset(base)
                _node(joined, found, most, [held[0], held[1] + 1], free, below)
            else:
                roots.discard(w)
                below = frozenset(roots), frozenset(base & joined[w])
                _node(joined, found, most, [held[0] + 1, held[1]], free, below)
        (base if side else roots).discard(p)
        free[side] += 1
    free = [free[0] + len(roots), free[1] + len(base)]
    if held[1] + free[1]:
        found[held[0], free[0], held[1], free[1]] += 1
