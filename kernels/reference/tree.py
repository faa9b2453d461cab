"""The nodes of the search tree by definition, in Python sets, and what thresholds take out of a node.

A node has base vertices L, the closure C so far, and candidates P in order. It stands for a set of bicliques: those
with all of C, with further members from P only, and with their first member from P among the first `todo` of P. The
node's own biclique belongs to it, too, if it is fresh. Every other root vertex is excluded.

`a` and `b` are the fewest members on the base side and on the root side. A vertex stands for twins, so w(S) counts
the members of a set of vertices. A biclique *qualifies* if it has at least `a` and `b` members. Of seven
reductions, the first six are repeated until nothing changes:

- R1 drop a candidate p with w(N(p) & L) < a. A biclique below with p has its base side in N(p) & L.
- R2 drop a base vertex u with w(C) + w(candidates joined to u) < b. A biclique below with u has its root side in
  these.
- R3 forget an excluded vertex x with w(N(x) & L) < a. It contains no base side that is large enough.
- R4 the node ends when w(L) < a or w(C) + w(P) < b.
- R5 a candidate that contains all of L moves to C.
- R6 the node is dead when an excluded vertex contains all of L: all bicliques below have that vertex.
- R7 base vertices of L that the same candidates have are *twins inside the node*. They become one, with the sum of
  their weights and hashes. An excluded vertex has it only if it has all of them. `kernels.cpu.twins` merges
  them, and `twins.cuh` of the CUDA kernels, without thresholds.

Five arguments say why the result is exact:

1. *Maximality.* Suppose that (L', C') qualifies after the reductions, and a dropped u is joined to all of C'. No
   member of C' is ever dropped, because it contains L', and w(L') >= a. So w(C') >= b was counted for u, and u was
   not dropped.
2. *Nothing lost, nothing twice.* A qualifying biclique below the node has its base side in the reduced L, and its
   root side in C and the reduced P. So the tree below is the old tree without nodes that lead nowhere.
3. *Pieces.* A piece can be rebuilt from its path and its candidates alone. A candidate that R1 dropped looks excluded
   then. R3 forgets it again, because it contains less than `a` of any reduced L. If L shrinks and R5 moves candidates
   of a piece, all its bicliques have these as members. If the first of them is explored here, all of them belong to
   the piece, and so does (L', C'). Otherwise (L', C') belongs to another piece, and `todo` stays. If R5 moves none,
   then w(C) < b, and (L', C) does not qualify.
4. *Order.* A smaller L or P only lets more be dropped. So the last state does not depend on the order of the steps.
5. *Twins inside a node.* The base side of a node below is L, intersected with some candidates. Each of these has all
   of a class of twins, or none. R2 drops or keeps a class as a whole, because it only asks for candidates. So
   every base side below is a union of classes, and its weight, hash and members are those of its classes, added up. An
   excluded vertex contains such a side if and only if it contains each of its classes, so nothing else of it matters.
   Candidates of a child are fewer, so classes may be merged again there. Pieces name root vertices only, and are
   the same as without R7.

A node with w(C) >= b loses no base vertex by R2. Below it, every node with w(L) >= a is a result.

If the largest by a measure f are wanted (`schemas.jobs.LargestFew`), there is a *bound*: K different bicliques are
known whose measure is at least that. So the measure of the K-th largest is at least that, too. It is called T. A
biclique is now *wanted* if it qualifies, is not larger than the filters allow, and has a measure of the bound or
more. The measure grows with both sides, and sides that are larger than the filters count as those that the filters
allow. This gives thresholds in a node:

- A wanted biclique below has at most w(C) + w(P) root members. So it has at least the fewest base members that reach
  the bound beside these. They take the place of `a` in the node.
- With w(L), the same gives `b`. R1 to R4 are made with these two, which rise as L and P shrink.

This is as strong as the usual bound of a node, the largest f(s, w(C) + w(candidates with w(N(p) & L) >= s)) over all s:
if that is less than the bound, R1 drops the candidates with the smallest overlap, then those with the next one, until
none is left. What is equal to the bound stays, because the order of the rows goes on to other keys.

A node is also over when w(C) is more than the filters allow, for C is in every root side below. Such a node's
candidate still excludes others, because it may extend a biclique that the filters allow.

6. *Exactness.* No bound that is ever used is more than T, because it comes from K bicliques of this graph. What is
   lost by a bound is less than it, and less than T, whatever bounds other nodes, pieces and workers use. So all
   bicliques with T or more are found, and the K largest are among them. Arguments 1 to 5 hold with "is wanted" for
   "qualifies". A bound only rises in the course of a slice, so whatever is emitted was wanted by all nodes above it,
   and is maximal. A piece may be opened again with a lower bound than it was cut with, as when a ledger entry is
   lost. Then a candidate p that R1 had dropped looks excluded, and nothing forgets it. But what p could exclude has a
   base side in N(p) & L, which was too small for that higher bound.

If only bicliques with a marked edge are wanted (`schemas.jobs.Marked`), a node also ends when no edge between L and the
vertices of C and P is marked: a biclique below has its edges among these. What is left out has no marked edge, and a
piece that is rebuilt has the same L, C and P, so arguments 1 to 4 hold as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from bicliques.schemas.bicliques import ID, Bicliques
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.hashes import mixed
from bicliques.schemas.search import TOO_MANY, By, Search, fewest_left, fewest_right, measure
from bicliques.schemas.work import EVERYTHING, Subtrees


@dataclass
class Node:
    """A node that is alive and reduced. `path` is its closure, and `base` its reduced L."""

    base: frozenset[int]
    path: list[int]
    candidates: list[int]
    todo: int
    fresh: bool

    def as_subtree(self) -> Subtrees:
        """The node as a piece of work."""
        path, candidates = (np.array(ids, dtype=VERTEX) for ids in (self.path, self.candidates))
        return Subtrees.of_pieces([(path, candidates, self.todo, self.fresh)])


class Tree:
    """The search tree of a graph, as far as its bicliques can have the sizes that `search` wants.

    Attributes
    ----------
    bound : int
        The least measure that a biclique needs, if the largest few are wanted. It may be raised at any time.
    """

    def __init__(self, graph: MiningGraph, search: Search) -> None:
        self.graph, self.search = graph, search
        ptr, idx = graph.root_indptr, graph.root_indices
        self.neighbours = [frozenset(idx[ptr[v] : ptr[v + 1]].tolist()) for v in range(graph.n_roots)]
        self.root_weight = np.diff(graph.root_members_indptr).tolist()
        self.base_weight = np.diff(graph.base_members_indptr).tolist()
        least = max(search.min_left, 1), max(search.min_right, 1)
        most = search.max_left or TOO_MANY, search.max_right or TOO_MANY
        self.b, self.a = least if graph.root_side == "left" else least[::-1]
        self.most_roots, self.most_base = most if graph.root_side == "left" else most[::-1]
        self.bound = 0
        marks: list[set[int]] = [set() for _ in range(graph.n_base)]
        for word in () if graph.marks is None else graph.marks.tolist():
            marks[word >> 32].add(word & 0xFFFFFFFF)
        self.marks = marks if search.marked else None

    def piece(self, subtrees: Subtrees, i: int) -> Node | None:
        """Node `i` of `subtrees`. None when it is dead or leads nowhere."""
        path, todo = subtrees.path_of(i).tolist(), int(subtrees.todo[i])
        base = frozenset.intersection(*(self.neighbours[v] for v in path))
        if todo == EVERYTHING:
            candidates = sorted(range(path[0] + 1, self.graph.n_roots), key=lambda w: len(self.neighbours[w] & base))
            todo = len(candidates)
        elif subtrees.ranged[i]:
            candidates = list(range(int(subtrees.candidates_of(i)[0]), self.graph.n_roots))
        else:
            candidates = subtrees.candidates_of(i).tolist()
        return self._node(base, path, candidates, todo, bool(subtrees.fresh[i]))

    def next_child(self, node: Node) -> Node | None:
        """Take the next child of `node` that leads somewhere, and its candidate from `node`. None when none is left."""
        while node.todo:
            candidate, later = node.candidates[0], node.candidates[1:]
            node.candidates, node.todo = later, node.todo - 1
            child = self._node(
                node.base & self.neighbours[candidate], [*node.path, candidate], later, len(later), fresh=True
            )
            if child is not None:
                return child
        return None

    def _node(
        self, base: frozenset[int], path: list[int], candidates: list[int], todo: int, fresh: bool
    ) -> Node | None:
        """The node after the reductions. None when nothing below it qualifies or belongs to it."""
        closed = {*path, *(p for p in candidates if base <= self.neighbours[p])}
        reduced, alive = self._reduced(base, closed, [p for p in candidates if p not in closed])
        if self._weight(reduced) < self._least_base(closed, alive) or self._least_roots(reduced) > self._members(
            {*closed, *alive}
        ):
            return None  # R4
        moved = [p for p in alive if reduced <= self.neighbours[p]]  # R5
        if self.search.largest is not None and self._members({*closed, *moved}) > self.most_roots:
            return None
        closure = self._closure(reduced)
        if not closure <= {*closed, *moved}:
            return None  # R6; what contains `reduced` holds at least `a`, so R3 would not have forgotten it
        if not self._has_mark(reduced, {*closed, *alive}):
            return None
        explored = set(candidates[:todo])
        if len(reduced) < len(base):
            fresh = False
        if moved and moved[0] in explored:
            fresh, explored = True, set(candidates)
        left = [p for p in alive if p not in moved]
        return Node(reduced, sorted(closure), left, sum(p in explored for p in left), fresh)

    def _has_mark(self, base: Iterable[int], roots: Iterable[int]) -> bool:
        """Whether an edge between these vertices is marked, if only bicliques with a marked edge are wanted."""
        return self.marks is None or any(not self.marks[u].isdisjoint(roots) for u in base)

    def _reduced(self, base: frozenset[int], closed: set[int], alive: list[int]) -> tuple[frozenset[int], list[int]]:
        """L and the candidates after R1 and R2."""
        while True:
            a, b = self._least_base(closed, alive), self._least_roots(base)
            left = [p for p in alive if self._weight(self.neighbours[p] & base) >= a]
            kept = base
            if self._members(closed) < b:
                kept = frozenset(
                    u for u in base if self._members(p for p in (*closed, *left) if u in self.neighbours[p]) >= b
                )
            if (kept, left) == (base, alive):
                return base, alive
            base, alive = kept, left

    def _least_base(self, closed: set[int], alive: list[int]) -> int:
        """The fewest base members of a wanted biclique with these root vertices at most."""
        members = min(self._members({*closed, *alive}), self.most_roots)
        return self._fewest(fewest_right if self._roots_are_left else fewest_left, members, self.a)

    def _least_roots(self, base: frozenset[int]) -> int:
        """The fewest root members of a wanted biclique with these base vertices at most."""
        weight = min(self._weight(base), self.most_base)
        return self._fewest(fewest_left if self._roots_are_left else fewest_right, weight, self.b)

    def _fewest(self, fewest: Callable[[By, int, int], int], other: int, least: int) -> int:
        return least if self.search.largest is None else max(least, fewest(self.search.by, self.bound, other))

    @property
    def _roots_are_left(self) -> bool:
        return self.graph.root_side == "left"

    def _closure(self, base: frozenset[int]) -> frozenset[int]:
        return frozenset(w for w, n in enumerate(self.neighbours) if base <= n)

    def _weight(self, base: Iterable[int]) -> int:
        return sum(self.base_weight[u] for u in base)

    def _members(self, roots: Iterable[int]) -> int:
        return sum(self.root_weight[v] for v in roots)

    def biclique(self, node: Node) -> Bicliques | None:
        """The node's biclique in dense ids of the user's sides. None when the search leaves it out."""
        graph, search = self.graph, self.search
        roots_out = _members(graph.root_members_indptr, graph.root_members, node.path)
        base_out = _members(graph.base_members_indptr, graph.base_members, node.base)
        left, right = (roots_out, base_out) if graph.root_side == "left" else (base_out, roots_out)
        if not (search.min_left <= len(left) <= (search.max_left or len(left))):
            return None
        if not (search.min_right <= len(right) <= (search.max_right or len(right))):
            return None
        if search.largest is not None and measure(search.by, len(left), len(right)) < self.bound:
            return None
        if not self._has_mark(node.base, node.path):
            return None
        first = min(node.path)
        sums = [_sum(graph.root_hash, node.path), _sum(graph.base_hash, node.base)]
        ids = mixed(*(sums if graph.root_side == "left" else sums[::-1])).view(ID)
        return Bicliques.from_pairs([(left, right)], [int(graph.root_members[graph.root_members_indptr[first]])], ids)


def _sum(hashes: np.ndarray, vertices: Iterable[int]) -> np.ndarray:
    return np.add.reduce(hashes[list(vertices)], dtype=np.uint64, keepdims=True)


def _members(indptr: np.ndarray, members: np.ndarray, vertices: Iterable[int]) -> list[int]:
    return [int(x) for v in sorted(vertices) for x in members[indptr[v] : indptr[v + 1]]]
