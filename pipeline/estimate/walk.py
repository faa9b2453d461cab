"""A walk into the search tree that looks at few of its nodes, and from which all bicliques can be estimated.

A walk begins with all that is not counted. In every round it draws some of the nodes that it has, each with a
probability that is proportional to the work below it as far as that is known, and searches each of them for a few
milliseconds. What such a search leaves over are the nodes of the next round. What it finds counts as often as the
reciprocal of the probability says (Horvitz and Thompson, doi:10.1080/01621459.1952.10483446). So the expected sums are
those of the whole tree, whatever the engine finds in its few milliseconds. With one node per round this is Knuth's
estimate of the size of a search tree (doi:10.1090/S0025-5718-1975-0373371-6). With several nodes the walk follows Chen
(doi:10.1137/0221022), and its sums vary less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bicliques.pipeline.prepare.weights import RootWeights
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.work import Engine, Subtrees

#: Seconds for which a node is searched. The CPU engine looks at its clock about as often.
_NODE_S = 0.005
#: Fewest nodes of a round that is in time, and most nodes of any round.
_LEAST, _WIDEST = 8, 1024


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
    """What a walk says of a whole tree, or of what is not counted of it. Or what was counted.

    Parameters
    ----------
    counts : ndarray, shape (len(grid.left), len(grid.right)), float64
        Number of bicliques by thresholds.
    members : float
        Number of their members.
    seconds : float
        Seconds of the search.
    """

    counts: np.ndarray
    members: float
    seconds: float


class Walker:
    """Counts one tree exactly as far as there is time, and walks through the rest, with an engine on cores.

    Attributes
    ----------
    known : Walk
        What is counted.
    rest : Subtrees
        What is not counted. Empty if all of the tree is.
    """

    def __init__(self, engine: Engine, graph: MiningGraph, search: Search, grid: Grid):
        self._engine, self._graph, self._search, self._grid = engine, graph, search, grid
        self.known = Walk(np.zeros((len(grid.left), len(grid.right))), 0.0, 0.0)
        self.rest = Subtrees.of_roots(np.arange(graph.roots_to_search))
        self._begin: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None  # what `of_children` says of the rest
        self._spent, self._nodes = 2 * _NODE_S, 1  # of all walks; at first it is a guess
        if len(self.rest):
            engine.mine(graph, Subtrees.empty(), search, Limits(), nowhere)  # makes its workspace

    @cached_property
    def _weights(self) -> RootWeights:
        return RootWeights(self._graph)

    def count(self, seconds: float) -> None:
        """Go on counting for so many seconds. What is counted is never searched again."""
        used = time.thread_time()
        found = self._engine.mine(self._graph, self.rest, self._search, Limits(seconds), nowhere)
        taken, sizes, known = time.thread_time() - used, found.total.sizes, self.known
        assert sizes is not None
        counts, members = known.counts + self._grid.counts(sizes), known.members + _members(sizes)
        self.known, self.rest, self._begin = Walk(counts, members, known.seconds + taken), found.left_over, None

    def walk(self, seconds: float, generator: np.random.Generator, is_over: Callable[[], bool]) -> Walk | None:
        """What a walk through the rest says of it. None if `is_over` says on the way that there is no more time.

        In each round it draws as many nodes as take half of the seconds that are left, by what nodes have taken so
        far. When the seconds are over, its rounds have one node each. So a walk that is not stopped reaches the bottom
        of the tree, and nothing is left out.
        """
        began = time.perf_counter()
        counts, members = np.zeros_like(self.known.counts), 0.0
        times: list[tuple[float, float]] = []
        nodes, multiple = self.rest, np.ones(len(self.rest))
        node, child, work = self._begin = self._begin or self._weights.of_children(nodes)
        while len(node):
            left = seconds - (time.perf_counter() - began)
            width = int(np.clip(left / 2 * self._nodes / self._spent, _LEAST if left > 0 else 1, _WIDEST))
            drawn, probability = drawn_of(work * multiple[node], width, generator)
            rests: list[Subtrees] = []
            multiples: list[np.ndarray] = []
            for k, chance in zip(drawn.tolist(), probability.tolist(), strict=True):
                if is_over():
                    return None
                now, used = time.perf_counter(), time.thread_time()
                times_over = float(multiple[node[k]]) / chance
                one = only(nodes, int(node[k]), int(child[k]))
                found = self._engine.mine(self._graph, one, self._search, Limits(_NODE_S), nowhere)
                times.append((times_over, time.thread_time() - used))
                sizes = found.total.sizes
                assert sizes is not None
                counts += times_over * self._grid.counts(sizes)
                members += times_over * _members(sizes)
                rests.append(found.left_over)
                multiples.append(np.full(len(found.left_over), times_over))
                self._spent, self._nodes = self._spent + time.perf_counter() - now, self._nodes + 1
            nodes, multiple = Subtrees.concat(rests), np.concatenate([np.empty(0), *multiples])
            node, child, work = self._weights.of_children(nodes)
        overhead = min(taken for _, taken in times)  # of a call, which a whole search pays once
        return Walk(counts, members, float(sum(times_over * (taken - overhead) for times_over, taken in times)))


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
