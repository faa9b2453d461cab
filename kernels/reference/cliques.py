"""Counts all cliques of a graph of one kind of vertices by a pivot tree, in Python sets.

The graph is a double cover (`schemas.graph.MiningGraph.neighbours`). A piece of work with the path P, the candidates K
and `todo` stands for the cliques that are P and some of K, the first of which is among the first `todo`. If the piece
is fresh, also for P. So no clique is in two children of a piece, and none in no one. Listed candidates are joined to P.
What is left of a node below is a piece as well: its held vertices, with free ones and candidates as candidates.

Below a piece is the pivot tree of Jain and Seshadhri (Pivoter, WSDM 2020). A node has held and free vertices, and
candidates, each of which is joined to all held and free ones. Pivot p is one of the candidates:

1. The cliques that have no candidate to which p is not joined may have p or not: p becomes free.
2. The others are divided by the first such candidate w that they have. It becomes held, those before it are no
   candidates any more, and of the others only those stay that are joined to w. So p is in none of them.

A node without candidates is a leaf: with h held and f free vertices it has C(f, k - h) cliques of k vertices.
"""

from __future__ import annotations

from collections import Counter

from bicliques.kernels.reference.pivot import opened, with_mix
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.leaves import Leaves
from bicliques.schemas.work import Subtrees

_Kind = tuple[int, int, int, int]


def cliques_below(graph: MiningGraph, piece: Subtrees) -> Leaves:
    """The leaves of one piece. The left side of the keys has them, and the right side is empty."""
    ptr, idx = graph.neighbours()
    joined = [frozenset(idx[ptr[v] : ptr[v + 1]].tolist()) for v in range(graph.n_roots)]
    path, candidates, todo = opened(graph, piece)
    common = frozenset.intersection(*(joined[v] for v in path))
    found: Counter[_Kind] = Counter({(len(path), 0, 0, 0): 1} if piece.fresh[0] else {})
    for k, w in enumerate(candidates[:todo]):
        if w in common:
            _node(joined, found, len(path) + 1, 0, set(candidates[k + 1 :]) & common & joined[w])
    return Leaves.of(*with_mix(found))


def _node(joined: list[frozenset[int]], found: Counter[_Kind], held: int, free: int, left: set[int]) -> None:
    while left:
        p = min(left, key=lambda v: (len(left - joined[v]), v))
        for w in sorted(left - joined[p] - {p}):
            left.discard(w)
            _node(joined, found, held + 1, free, left & joined[w])
        left.discard(p)
        free += 1
    found[held, free, 0, 0] += 1
