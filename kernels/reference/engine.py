"""The definition in plain Python sets. It is slow and obvious, and every other engine is compared with it.

It walks the search tree of docs/design.md, section 3. `kernels.reference.tree` has its nodes, and
`kernels.reference.near` those of the tree for near-bicliques. Tests compare it with an enumeration without a tree.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from bicliques.kernels.reference.cliques import cliques_below
from bicliques.kernels.reference.near import NearTree
from bicliques.kernels.reference.pivot import held_bounds, leaves_below
from bicliques.kernels.reference.tree import Tree
from bicliques.schemas.bicliques import Emit, fingerprint
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import job_of
from bicliques.schemas.leaves import CLIQUES, Leaves, bounds_of
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.stats import EngineStats
from bicliques.schemas.totals import Found
from bicliques.schemas.work import Slice, Subtrees, first_nodes


class ReferenceEngine:
    """The search tree by definition. It needs O(n) sets per node, so it is for graphs of a few hundred edges."""

    name = "reference"

    def __init__(self) -> None:
        self._is_asked_to_stop = False

    def mine(self, graph: MiningGraph, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        """See `schemas.work.Engine`."""
        if search.pq is not None:
            return self._count_leaves(graph, subtrees, search.pq, limits)
        started = time.perf_counter()
        tree: Any = Tree(graph, search) if search.near is None else NearTree(graph, search)
        job = job_of(search)
        take = job.taker(emit, limits)
        tree.bound = limits.bound or 0
        subtrees = first_nodes(graph, subtrees)
        stack = [node for i in reversed(range(len(subtrees))) if (node := tree.piece(subtrees, i)) is not None]
        count = total = visits = 0
        sizes: list[tuple[int, int]] = []
        while stack:
            late = limits.seconds is not None and time.perf_counter() - started > limits.seconds
            if visits and (late or self._is_asked_to_stop):
                break
            visits += 1
            node = stack.pop()
            if node.fresh:
                if limits.rows is not None and count >= limits.rows:
                    stack.append(node)
                    break
                node.fresh = False
                found = tree.biclique(node)
                if found is not None:
                    count += 1
                    sizes += [(len(found.left), len(found.right))] if search.sizes else []
                    total += fingerprint(found) if job.has_fingerprint else 0
                    if search.mode == "list":
                        take(found)
                        tree.bound = max(tree.bound, job.bound_of(take) or 0)
            child = tree.next_child(node)
            if child is not None:
                stack += [node, child]
        self._is_asked_to_stop = False
        left_over = Subtrees.concat([node.as_subtree() for node in reversed(stack)])
        by_size = SizeCounts.of(*np.array(sizes, VERTEX).reshape(-1, 2).T) if search.sizes else None
        return Slice(
            job.total(Found(count, total % 2**64, by_size), take),
            left_over,
            EngineStats(seconds=time.perf_counter() - started),
        )

    def _count_leaves(self, graph: MiningGraph, subtrees: Subtrees, pq: str, limits: Limits) -> Slice:
        """All bicliques, or cliques, below one node after the other. A node is counted as a whole, or not at all."""
        started, leaves, at = time.perf_counter(), Leaves.none(), 0
        below = cliques_below
        if pq != CLIQUES:
            below = partial(leaves_below, most=held_bounds(graph, bounds_of(pq)))
        while at < len(subtrees):
            late = limits.seconds is not None and time.perf_counter() - started > limits.seconds
            if at and (late or self._is_asked_to_stop):
                break
            leaves += below(graph, subtrees.take(at, at + 1))
            at += 1
        self._is_asked_to_stop = False
        rest = subtrees.take(at, len(subtrees))
        return Slice(leaves, rest, EngineStats(seconds=time.perf_counter() - started))

    def stop(self) -> None:
        """See `schemas.work.Engine`."""
        self._is_asked_to_stop = True
