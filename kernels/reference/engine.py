"""The definition in plain Python sets. It is slow and obvious, and every other engine is compared with it.

There are two enumerations, which share no code. `closed_pairs` closes every subset of one side.
`ReferenceEngine` walks the search tree of docs/design.md, section 3.
"""

from __future__ import annotations

import time
from itertools import combinations

import numpy as np

from schemas.bicliques import Bicliques, fingerprint
from schemas.dtypes import VERTEX
from schemas.emit import Emit
from schemas.graph import MiningGraph
from schemas.jobs import job_of
from schemas.search import Limits, Search
from schemas.sizes import SizeCounts
from schemas.stats import EngineStats
from schemas.totals import Found
from schemas.work import EVERYTHING, Slice, Subtrees

__all__ = ["ReferenceEngine", "closed_pairs"]


def closed_pairs(edges: set[tuple[int, int]]) -> set[tuple[frozenset[int], frozenset[int]]]:
    """Every maximal biclique of a graph with at most some 15 right vertices, by closing all right subsets."""
    rights = sorted({v for _, v in edges})
    neighbours = {v: frozenset(u for u, w in edges if w == v) for v in rights}
    found = set()
    for size in range(1, len(rights) + 1):
        for subset in combinations(rights, size):
            left = frozenset.intersection(*(neighbours[v] for v in subset))
            if left:
                found.add((left, frozenset(v for v in rights if left <= neighbours[v])))
    return found


class ReferenceEngine:
    """The search tree by definition. It needs O(n) sets per node, so it is for graphs of a few hundred edges."""

    name = "reference"

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        started = time.perf_counter()
        tree, job = _Tree(graph), job_of(search)
        take = job.taker(emit, limits)
        stack = [tree.node(subtrees, i) for i in reversed(range(len(subtrees)))]
        count = total = 0
        sizes: list[tuple[int, int]] = []
        while stack:
            if limits.seconds is not None and time.perf_counter() - started > limits.seconds:
                break
            node = stack.pop()
            if node.fresh:
                if limits.rows is not None and count >= limits.rows:
                    stack.append(node)
                    break
                node.fresh = False
                found = tree.biclique(node, search)
                if found is not None:
                    count += 1
                    sizes += [(len(found.left), len(found.right))] if search.sizes else []
                    total += fingerprint(found) if job.has_fingerprint else 0
                    if search.mode == "list":
                        take(found)
            child = tree.next_child(node)
            if child is not None:
                stack += [node, child]
        left_over = Subtrees.concat([node.as_subtree() for node in reversed(stack)])
        by_size = SizeCounts.of(*np.array(sizes, VERTEX).reshape(-1, 2).T) if search.sizes else None
        return Slice(
            job.total(Found(count, total % 2**64, by_size), take),
            left_over,
            EngineStats(seconds=time.perf_counter() - started),
        )


class _Node:
    def __init__(self, path: list[int], candidates: list[int], todo: int, fresh: bool) -> None:
        self.path, self.candidates, self.todo, self.fresh = path, candidates, todo, fresh

    def as_subtree(self) -> Subtrees:
        path, candidates = (np.array(ids, dtype=VERTEX) for ids in (self.path, self.candidates))
        return Subtrees.of_pieces([(path, candidates, self.todo, self.fresh)])


class _Tree:
    def __init__(self, graph: MiningGraph) -> None:
        self.graph = graph
        ptr, idx = graph.root_indptr, graph.root_indices
        self.neighbours = [frozenset(idx[ptr[v] : ptr[v + 1]].tolist()) for v in range(graph.n_roots)]

    def common(self, path: list[int]) -> frozenset[int]:
        return frozenset.intersection(*(self.neighbours[v] for v in path))

    def closure(self, base: frozenset[int]) -> frozenset[int]:
        return frozenset(w for w, n in enumerate(self.neighbours) if base <= n)

    def node(self, subtrees: Subtrees, i: int) -> _Node:
        path, todo = subtrees.path_of(i).tolist(), int(subtrees.todo[i])
        base = self.common(path)
        if todo == EVERYTHING:
            candidates = sorted(range(path[0] + 1, self.graph.n_roots), key=lambda w: len(self.neighbours[w] & base))
            todo = len(candidates)
        elif subtrees.ranged[i]:
            candidates = list(range(int(subtrees.candidates_of(i)[0]), self.graph.n_roots))
        else:
            candidates = subtrees.candidates_of(i).tolist()
        closure = self.closure(base)
        if not closure <= {*path, *candidates}:
            return _Node(path, [], 0, False)  # this L belongs to an earlier piece: the node is dead
        return _Node(sorted(closure), candidates, todo, bool(subtrees.fresh[i]))

    def next_child(self, node: _Node) -> _Node | None:
        """Take the next canonical child of `node`, and its candidate from `node`. None when no child is left."""
        base = self.common(node.path)
        mine = self.closure(base)
        while node.todo:
            candidate, later = node.candidates[0], node.candidates[1:]
            smaller = base & self.neighbours[candidate]
            node.candidates, node.todo = later, node.todo - 1
            if not smaller or smaller == base:
                continue
            closure = self.closure(smaller)
            if closure <= mine | {candidate, *later}:
                rest = [w for w in later if w not in closure and self.neighbours[w] & smaller]
                return _Node(sorted(closure), rest, len(rest), True)
        return None

    def biclique(self, node: _Node, search: Search) -> Bicliques | None:
        """The node's biclique in dense ids of the user's sides. None when `search` leaves it out."""
        graph = self.graph
        base = self.common(node.path)
        roots = self.closure(base)
        roots_out = _members(graph.root_members_indptr, graph.root_members, roots)
        base_out = _members(graph.base_members_indptr, graph.base_members, base)
        left, right = (roots_out, base_out) if graph.root_side == "left" else (base_out, roots_out)
        if not (search.min_left <= len(left) <= (search.max_left or len(left))):
            return None
        if not (search.min_right <= len(right) <= (search.max_right or len(right))):
            return None
        first = min(roots)
        return Bicliques.from_pairs([(left, right)], [int(graph.root_members[graph.root_members_indptr[first]])])


def _members(indptr: np.ndarray, members: np.ndarray, vertices: frozenset[int]) -> list[int]:
    return [int(x) for v in sorted(vertices) for x in members[indptr[v] : indptr[v + 1]]]
