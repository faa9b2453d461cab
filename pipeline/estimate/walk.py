"""A walk into the search tree that looks at few of its nodes, and from which all bicliques can be estimated.

A walk begins with all roots. In every round it draws some of the nodes that it has, each with a probability that is
proportional to the work below it as far as that is known, and searches each of them for a few milliseconds. What such
a search leaves over are the nodes of the next round. What it finds counts as often as the reciprocal of the
probability says (Horvitz and Thompson, doi:10.1080/01621459.1952.10483446). So the expected sums are those of the whole
tree, whatever the engine finds in its few milliseconds. With one node per round this is Knuth's estimate of the size of
a search tree (doi:10.1090/S0025-5718-1975-0373371-6). With several nodes the walk follows Chen
(doi:10.1137/0221022), and its sums vary less.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from bicliques.pipeline.prepare.weights import RootWeights
from bicliques.schemas.emit import Emit, nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.work import Engine, Subtrees

#: Seconds for which a node is searched. The CPU engine looks at its clock about as often.
_NODE_S = 0.005


@dataclass(frozen=True)
class Grid:
    """Thresholds for which bicliques are counted: all pairs of a left and a right one.

    Parameters
    ----------
    left, right : tuple of int
        Ascending.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]

    def counts(self, sizes: SizeCounts) -> np.ndarray:
        """How many bicliques of these sizes are large enough, shape (len(left), len(right)), float64."""
        exact = np.zeros((len(self.left) + 1, len(self.right) + 1))
        sides = (self.left, sizes.n_left), (self.right, sizes.n_right)
        at = tuple(np.searchsorted(thresholds, n, side="right") for thresholds, n in sides)
        np.add.at(exact, at, sizes.count.astype(np.float64))
        summed: np.ndarray = exact[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)[::-1, ::-1]
        return summed[1:, 1:]


@dataclass(frozen=True, eq=False)
class Walk:
    """What a walk, or a complete search, says of the whole tree.

    Parameters
    ----------
    counts : ndarray, shape (len(grid.left), len(grid.right)), float64
        Estimated number of bicliques by thresholds.
    members : float
        Estimated number of their members.
    seconds : float
        Estimated seconds of the search.
    spent : float
        Seconds that the walk took.
    """

    counts: np.ndarray
    members: float
    seconds: float
    spent: float


class Walker:
    """Walks in one graph, with an engine on cores.

    Parameters
    ----------
    engine : Engine
    graph : MiningGraph
        A graph with roots.
    weights : RootWeights
        Of the graph.
    search : Search
        It counts sizes.
    grid : Grid
    """

    def __init__(self, engine: Engine, graph: MiningGraph, weights: RootWeights, search: Search, grid: Grid):
        self._engine, self._graph, self._weights, self._search, self._grid = engine, graph, weights, search, grid
        self._roots = Subtrees.of_roots(np.arange(graph.n_roots))
        n = graph.n_roots
        self._chances = np.arange(n), np.zeros(n, np.int64), weights.by_rank  # what `of_children` says of whole roots
        engine.mine(graph, Subtrees.empty(), search, Limits(), nowhere)  # makes its workspace

    def whole(self, seconds: float) -> Walk | float:
        """The exact numbers, by a complete search. If it is not done after so many seconds, how long it has taken."""
        began, used = time.perf_counter(), time.thread_time()
        found = self._engine.mine(self._graph, self._roots, self._search, Limits(seconds), nowhere)
        taken = time.thread_time() - used
        if len(found.left_over):
            return taken
        sizes = found.total.sizes
        assert sizes is not None
        return Walk(self._grid.counts(sizes), _members(sizes), taken, time.perf_counter() - began)

    def walk(self, width: int, seconds: float, generator: np.random.Generator, emit: Emit = nowhere) -> Walk:
        """A walk with at most `width` nodes per round, and with fewer and fewer when the time is over.

        Its last rounds have one node each. So a walk always reaches the bottom of the tree, and nothing is left out.

        Parameters
        ----------
        width : int
        seconds : float
        generator : Generator
        emit : Emit
            It gets the bicliques if the search lists them.
        """
        began = time.perf_counter()
        counts, members = np.zeros((len(self._grid.left), len(self._grid.right))), 0.0
        times: list[tuple[float, float]] = []
        nodes, multiple = self._roots, np.ones(len(self._roots))
        node, child, work = self._chances
        while len(node):
            drawn, probability = drawn_of(work * multiple[node], width, generator)
            rests: list[Subtrees] = []
            multiples: list[np.ndarray] = []
            for k, chance in zip(drawn.tolist(), probability.tolist(), strict=True):
                times_over = float(multiple[node[k]]) / chance
                used = time.thread_time()
                found = self._engine.mine(
                    self._graph, only(nodes, int(node[k]), int(child[k])), self._search, Limits(_NODE_S), emit
                )
                times.append((times_over, time.thread_time() - used))
                sizes = found.total.sizes
                assert sizes is not None
                counts += times_over * self._grid.counts(sizes)
                members += times_over * _members(sizes)
                rests.append(found.left_over)
                multiples.append(np.full(len(found.left_over), times_over))
            nodes, multiple = Subtrees.concat(rests), np.concatenate([np.empty(0), *multiples])
            node, child, work = self._weights.of_children(nodes)
            if time.perf_counter() - began > seconds:
                width = max(1, width // 2)
        overhead = min(taken for _, taken in times)  # of a call, which a whole search pays once
        searched = sum(times_over * (taken - overhead) for times_over, taken in times)
        return Walk(counts, members, float(searched), time.perf_counter() - began)


def _members(sizes: SizeCounts) -> float:
    return float(((sizes.n_left.astype(np.float64) + sizes.n_right) * sizes.count).sum())


def only(nodes: Subtrees, i: int, child: int) -> Subtrees:
    """The part of a node that explores one child, as `RootWeights.of_children` numbers them."""
    if nodes.fresh[i]:
        return nodes.take(i, i + 1)
    path, candidates = nodes.path_of(i), nodes.candidates_of(i)
    if nodes.ranged[i]:
        one = np.ones(1, np.int32)
        return Subtrees.of_ranges(np.array([0, len(path)]), path, candidates[:1] + child, one, ~one.astype(np.bool_))
    return Subtrees.of_pieces([(path, candidates[child:], 1, False)])


def drawn_of(work: np.ndarray, width: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of at most `width` entries, and the probability that each of them is drawn.

    The probability is proportional to `work`, but at most 1. Entries are drawn in equal steps from a random start
    (Madow, doi:10.1214/aoms/1177729988), so neighbours are seldom drawn together.
    """
    if len(work) <= width:
        return np.arange(len(work)), np.ones(len(work))
    certain = np.zeros(len(work), np.bool_)
    while True:
        rest = float(work[~certain].sum())
        chance = np.where(certain, 1.0, work * ((width - int(certain.sum())) / max(rest, 1e-300)))
        above = (chance >= 1.0) & ~certain
        if not above.any() or int(certain.sum() + above.sum()) >= width:
            break
        certain |= above
    chance = np.minimum(chance, 1.0)
    until = np.cumsum(chance)
    drawn = np.unique(np.searchsorted(until, np.arange(generator.random(), until[-1], 1.0)))
    drawn = drawn[drawn < len(work)]
    return drawn, chance[drawn]
