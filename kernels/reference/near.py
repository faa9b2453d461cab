"""The nodes of the search tree for near-bicliques by definition, in Python sets (docs/holes.md).

A *group* is a set of left and of right members. A pair of a left and a right member that is no edge is *missing*. A
group is *allowed* if at most K pairs are missing in all (k-defective), or if each left member misses at most `k_left`
right members, and each right member at most `k_right` left ones (k-biplex). A part of an allowed group is allowed. So
an allowed group to which no single vertex can be added is a part of no other one, and that is what *maximal* means.

A node has chosen vertices S of both sides, and candidates C of both sides in order. It stands for the allowed groups
that have all of S, and further members from C only. Every other vertex is excluded. C, and the excluded vertices X, are
cut down to those that can be *added* to S alone, because no group below has another one, and no other one can be added
to a group below.

- *Pivot*: a vertex p of C or X that misses nothing of S. Every maximal group of the node has p, or a candidate of the
  other side that is not joined to p. For otherwise p is joined to all of the group's other side, and can be added.
  So the children of the node are those with p, if p is a candidate, and those with such a candidate. Each child
  excludes the vertices of the children before it. So every maximal group of the node is in exactly one child: in that
  of its first member in their order. The p with fewest children is taken.
- *No pivot*: every vertex that can be added to S misses some of it. Then every candidate makes a child.
- *Leaf*: no candidate is left. Then S is maximal if and only if X is empty.

Let b be the fewest members of a side that are asked for, and say that a vertex is *joined* to its neighbours in the
other side of S and C. In a k-defective biclique only those count that are in S or miss nothing of S. Three reductions
are repeated until nothing changes. `slack` is how many more vertices than these the other side of a group below with x
can have: `k` of x's side in a k-biplex. In a k-defective biclique it is K without what S misses among itself, but for a
member x of S what x itself misses counts for x.

- R1 drop a candidate x that is joined to fewer than b - slack. A group below with x has its other side among those that
  x is joined to, and at most slack others. In a k-defective biclique each of the others is missing a pair that S does
  not miss: with x, or with S if it is a candidate that misses some of S. These pairs differ, so they are slack at most.
- R2 the node ends when a member of S is joined to so few, or when S and C have fewer than b vertices of a side. In a
  k-defective biclique those that miss some of S count as slack vertices at most.
- R3 forget an excluded vertex that is joined to so few.

Why the result is exact:

1. *Nothing lost.* A group below that is large enough has no dropped candidate, by R1.
2. *Maximality.* Suppose that a vertex x was dropped or forgotten, and could be added to a group M below that is large
   enough. Then M with x is allowed, is large enough, and is below the node that has x among its candidates. So x is
   joined to enough there, which contradicts that it was dropped.
3. *Pieces.* A node that was cut can be opened again from S, C and the number of its children that are left: they are
   the first `todo` of C, and are not chosen anew. X is every vertex that can be added to S, and is in neither S nor C.
   A candidate that R1 has dropped looks excluded then. By 2 it cannot be added to a group that is a result, so it does
   not end a leaf. As a pivot it is as good as any vertex that can be added to S.

Where the largest are wanted, a node also ends when no group below it reaches the bound (`Limits.bound`): a group there
has no more members of a side than R2 counts, or than are asked for, and misses what S misses. It ends when S has more
members of a side than are asked for, too. An engine may take a larger b: the fewest members that a group needs beside
so many of the other side to reach the bound, with what S misses. To add a vertex makes no measure smaller, so 2 holds.

With K = 0 every vertex that can be added to S misses nothing, and the tree is that of maximal bicliques.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bicliques.schemas.bicliques import ID, Bicliques
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import mixed
from bicliques.schemas.search import Near, Search, Side, measure
from bicliques.schemas.work import EVERYTHING, Subtrees


@dataclass
class NearNode:
    """A node that leads somewhere. Base vertex ``u`` is ``n_roots + u`` in both lists.

    If it is fresh, nothing of it is explored yet. The first `todo` candidates are its children that are left.
    """

    chosen: list[int]
    candidates: list[int]
    todo: int
    fresh: bool

    def as_subtree(self) -> Subtrees:
        """The node as a piece of work."""
        path, candidates = (np.array(ids, dtype=VERTEX) for ids in (self.chosen, self.candidates))
        todo = len(candidates) if self.fresh else self.todo
        return Subtrees.of_pieces([(path, candidates, todo, self.fresh)])


class NearTree:
    """The search tree of a graph for `Search.near`. Every vertex of the graph stands for one vertex of the user."""

    bound = 0

    def __init__(self, graph: MiningGraph, search: Search) -> None:
        assert search.near is not None
        self.graph, self.search, self.near = graph, search, search.near
        n, n_roots = graph.n_roots + graph.n_base, graph.n_roots
        self.neighbours: list[set[int]] = [set() for _ in range(n)]
        for v in range(n_roots):
            for u in graph.root_indices[graph.root_indptr[v] : graph.root_indptr[v + 1]].tolist():
                self.neighbours[v].add(n_roots + u)
                self.neighbours[n_roots + u].add(v)
        sides: tuple[Side, Side] = ("left", "right") if graph.root_side == "left" else ("right", "left")
        self.side_of = [sides[x >= n_roots] for x in range(n)]
        self.least = {"left": search.min_left, "right": search.min_right}
        self.most = {"left": search.max_left, "right": search.max_right}

    def piece(self, subtrees: Subtrees, i: int) -> NearNode | None:
        """Node `i` of `subtrees`. None when nothing is found below it."""
        chosen, todo = subtrees.path_of(i).tolist(), int(subtrees.todo[i])
        if todo == EVERYTHING:
            candidates = list(range(chosen[0] + 1, len(self.neighbours)))
            return self._node(chosen, candidates, len(candidates), fresh=True)
        return self._node(chosen, subtrees.candidates_of(i).tolist(), todo, bool(subtrees.fresh[i]))

    def next_child(self, node: NearNode) -> NearNode | None:
        """Take the next child of `node` that leads somewhere, and its candidate from `node`. None when none is left."""
        while node.todo:
            candidate, later = node.candidates[0], node.candidates[1:]
            node.candidates, node.todo = later, node.todo - 1
            child = self._node([*node.chosen, candidate], later, len(later), fresh=True)
            if child is not None:
                return child
        return None

    def biclique(self, node: NearNode) -> Bicliques | None:
        """The group of a leaf, in dense ids of the user's sides. None for other nodes, and for what is left out."""
        graph = self.graph
        if node.candidates:
            return None
        roots = [x for x in node.chosen if x < graph.n_roots]
        base = [x - graph.n_roots for x in node.chosen if x >= graph.n_roots]
        members = graph.root_members[roots].tolist(), graph.base_members[base].tolist()
        sums = [
            np.add.reduce(graph.root_hash[roots], keepdims=True),
            np.add.reduce(graph.base_hash[base], keepdims=True),
        ]
        if graph.root_side == "right":
            members, sums = members[::-1], sums[::-1]
        found = Bicliques.from_pairs([members], [int(graph.root_members[min(roots)])], mixed(*sums).view(ID))
        return Bicliques(**found.arrays, missing=np.array([self._missing(node.chosen)], np.int32))

    def _node(self, chosen: list[int], candidates: list[int], todo: int, fresh: bool) -> NearNode | None:
        """The node after the reductions. None when nothing below it is a result."""
        children = set(candidates[:todo])
        total = self._missing(chosen)
        candidates = [x for x in candidates if self._can_be_added(x, chosen, total)]
        while True:
            kept = [x for x in candidates if self._is_joined(x, chosen, candidates, total)]
            if kept == candidates:
                break
            candidates = kept
        if not all(self._is_joined(x, chosen, candidates, total) for x in chosen):
            return None
        sizes = []
        for side, least in self.least.items():
            n, own, free = (
                sum(self.side_of[x] == side for x in some)
                for some in ((*chosen, *candidates), chosen, self._free(chosen, candidates))
            )
            n = n if self.near.pairs is None else min(n, own + free + self.near.pairs - total)
            most = self.most[side] or n
            if n < least or own > most:
                return None
            sizes.append(min(n, most))
        if measure(self.search.by, *sizes) - (total if self.search.by == "edges" else 0) < self.bound:
            return None
        inside = {*chosen, *candidates}
        excluded = [
            x
            for x in range(len(self.neighbours))
            if x not in inside
            and self._can_be_added(x, chosen, total)
            and self._is_joined(x, chosen, candidates, total)
        ]
        if not candidates:
            return NearNode(chosen, [], 0, fresh) if fresh and not excluded else None
        if not fresh:
            todo = sum(x in children for x in candidates)
            return NearNode(chosen, candidates, todo, fresh) if todo else None
        first = self._children(chosen, candidates, excluded)
        later = [x for x in candidates if x not in set(first)]
        return NearNode(chosen, [*first, *later], len(first), fresh) if first else None

    def _children(self, chosen: list[int], candidates: list[int], excluded: list[int]) -> list[int]:
        """The candidates that every maximal group of the node has one of. No candidates: there is no such group."""
        best = candidates
        for p in (*excluded, *candidates):
            if self._misses(p, chosen) == 0:
                first = [p] if p in candidates else []
                first += [x for x in candidates if self._are_missing(p, x)]
                best = min(best, first, key=len)
        return best

    def _are_missing(self, x: int, y: int) -> bool:
        return self.side_of[x] != self.side_of[y] and y not in self.neighbours[x]

    def _misses(self, x: int, others: list[int]) -> int:
        return sum(self._are_missing(x, y) for y in others)

    def _missing(self, chosen: list[int]) -> int:
        return sum(self._misses(x, chosen) for x in chosen) // 2

    def _can_be_added(self, x: int, chosen: list[int], total: int) -> bool:
        """Whether a group with one more member is allowed. `total` pairs of `chosen` are missing."""
        own = self._misses(x, chosen)
        if self.near.pairs is not None:
            return total + own <= self.near.pairs
        full = any(
            self._misses(y, chosen) == _most(self.near, self.side_of[y]) for y in chosen if self._are_missing(x, y)
        )
        return own <= _most(self.near, self.side_of[x]) and not full

    def _free(self, chosen: list[int], candidates: list[int]) -> list[int]:
        return [x for x in candidates if self._misses(x, chosen) == 0]

    def _is_joined(self, x: int, chosen: list[int], candidates: list[int], total: int) -> bool:
        """Whether a vertex is joined to enough of the other side, for R1, R2 and R3."""
        slack = _most(self.near, self.side_of[x])
        if self.near.pairs is not None:
            slack += (self._misses(x, chosen) if x in chosen else 0) - total
            candidates = self._free(chosen, candidates)
        others = sum(y in self.neighbours[x] for y in (*chosen, *candidates))
        return others + slack >= self.least["right" if self.side_of[x] == "left" else "left"]


def _most(near: Near, side: Side) -> int:
    return near.left if side == "left" else near.right
