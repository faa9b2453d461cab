"""Draws p x q bicliques of the input, and lists all maximal bicliques that contain one of them: all have to be rows.

Each p x q biclique, maximal or not, is as likely as the others. They are numbered: first come those with the first
root vertex, among these those with the first second one, and so on. A pivot tree counts how many there are below each
path of root vertices (`kernels.cpu.leaves`), so a number leads down to its biclique. If P and Q are drawn, a maximal
biclique that contains both lies within the common neighbours of Q and those of P. All maximal bicliques of the edges
between these contain P and Q, so they are searched as a graph of its own.

A row of a x b members contains C(a, p) C(b, q) of the N bicliques. If it is missing, n draws find it with the
probability 1 - (1 - C(a, p) C(b, q) / N)^n.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate, groupby
from math import comb, expm1, log1p
from pathlib import Path
from random import Random

import numpy as np

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.leaves import LeafCounter
from bicliques.kernels.graph.prepare import prepare
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress, number
from bicliques.schemas.bicliques import Bicliques, emit_to
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import Reduction
from bicliques.schemas.leaves import Leaves
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

#: Ids that are gathered before equal ones are left out.
_GATHERED = 1 << 22


@dataclass(frozen=True)
class Drawn:
    """Maximal bicliques that contain one of those that were drawn.

    Parameters
    ----------
    sizes : (int, int)
        The numbers p and q of members of those that were drawn.
    draws, among : int
        How many were drawn, and among how many.
    found : ndarray, shape (3, n), uint64
        The hash of each maximal biclique, ascending, and how many left and right members it has.
    """

    sizes: tuple[int, int]
    draws: int
    among: int
    found: np.ndarray

    def chance(self, left: int, right: int) -> float:
        """The probability with which a missing row of so many members would have been found."""
        share = comb(left, self.sizes[0]) * comb(right, self.sizes[1]) / self.among
        return 1.0 if share >= 1 else -expm1(self.draws * log1p(-share))

    def refuse_missing(self, path: Path, seen: np.ndarray) -> None:
        """Raise an `IncompleteError` if not all of them were seen among the rows."""
        if missing := self.found[1:, ~seen].T.tolist():
            p, q = self.sizes
            raise IncompleteError(
                f"{path} lacks {number(len(missing), 'maximal biclique')} around {self.draws:,} drawn bicliques of "
                f"{p} x {q}, the first with {missing[0][0]} left and {missing[0][1]} right members: mine it again with "
                "another engine, and keep this run for a report"
            )

    def words(self, search: Search, seed: int) -> str:
        """What is known if all of them are rows."""
        p, q = self.sizes
        left, right = max(search.min_left, p), max(search.min_right, q)
        chances = [(left << k, right << k, min(self.chance(left << k, right << k), 0.999)) for k in range(6)]
        told = ", ".join(f"{share:.3g} for {a} x {b}" for a, b, share in chances)
        return (
            f"{number(len(self.found[0]), 'maximal biclique')} around {self.draws:,} that were drawn uniformly (seed "
            f"{seed}) from the {self.among:,} bicliques of {p} x {q}, maximal or not, are rows; the probability that a "
            f"missing row would have been noticed follows from its size: {told}"
        )


def draw(
    run: Run, edges: tuple[np.ndarray, np.ndarray], sizes: tuple[int, int], n: int, seed: int, on: OnProgress
) -> Drawn:
    """Draw `n` bicliques of these sizes, and find what the rows of a run have to be."""
    search = run.options.search
    if search.has_filters or search.is_containing or run.job.name not in ("all", "vertices"):
        raise InputError(
            f"{run.path} was not asked for all maximal bicliques above its thresholds; what is missing is looked for "
            "in runs without most members, given members and largest ones"
        )
    known, nothing = run.hashes, frozenset[Reduction]()
    graph, _ = prepare(*edges, len(known[0]), len(known[1]), BuildOptions(), reductions=nothing, known=known)
    numbered = _Numbered(graph, sizes if graph.root_side == "left" else sizes[::-1])
    among = sum(numbered.below(np.empty(0, VERTEX))[1])
    if not among:
        raise InputError(f"the input has no biclique of {sizes[0]} x {sizes[1]}; draw smaller ones")
    random = Random(seed)
    found, n_gathered = np.empty((3, 0), np.uint64), 0
    gathered: list[np.ndarray] = []
    wanted = sorted(random.randrange(among) for _ in range(n))
    for k, drawn in enumerate(numbered.at(np.empty(0, VERTEX), wanted, random), 1):
        gathered.append(_around(graph, *drawn, search))
        n_gathered += gathered[-1].shape[1]
        if n_gathered > _GATHERED or k == n:
            found = np.unique(np.concatenate([found, *gathered], axis=1), axis=1)
            gathered, n_gathered = [], 0
        on(Progress("prove", k / n, k, 0.0))
    return Drawn(sizes, n, among, found)


class _Numbered:
    """All bicliques of r root vertices and b base vertices, by their number."""

    def __init__(self, graph: MiningGraph, sizes: tuple[int, int]) -> None:
        self.graph, (self.r, self.b) = graph, sizes
        self._counter = LeafCounter(graph, sizes)

    def below(self, path: np.ndarray) -> tuple[np.ndarray, list[int]]:
        """The next root vertices after a path, and how many of the bicliques begin with each of these paths."""
        graph = self.graph
        later, shared = np.arange(graph.n_roots, dtype=VERTEX), np.diff(graph.root_indptr)
        if len(path):
            base = common(graph.root_indptr, graph.root_indices, path)
            reached = np.concatenate([_row(graph.base_indptr, graph.base_indices, u) for u in base])
            later, shared = np.unique(reached[reached > path[-1]], return_counts=True)
        if len(path) + 1 == self.r:
            return later, [comb(k, self.b) for k in shared.tolist()]
        if not len(path):
            return later, [self._number(Subtrees.of_roots(later[v : v + 1])) for v in later]
        ahead = [(np.append(path, v), later[k + 1 :], len(later) - k - 1, True) for k, v in enumerate(later)]
        return later, [self._number(Subtrees.of_pieces([piece])) for piece in ahead]

    def _number(self, piece: Subtrees) -> int:
        leaves = self._counter.slice(piece, Limits(), lambda: False).total
        assert isinstance(leaves, Leaves)
        ranges = (self.r, self.r), (self.b, self.b)
        return leaves.bicliques(*ranges if self.graph.root_side == "left" else ranges[::-1])

    def at(self, path: np.ndarray, wanted: list[int], random: Random) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The root and base vertices of those with these numbers, which ascend, among all that begin with a path."""
        if len(path) == self.r:
            base = common(self.graph.root_indptr, self.graph.root_indices, path)
            yield from ((path, base[sorted(random.sample(range(len(base)), self.b))]) for _ in wanted)
            return
        later, numbers = self.below(path)
        ends = list(accumulate(numbers))
        for k, some in groupby(wanted, lambda x: bisect(ends, x)):
            yield from self.at(np.append(path, later[k]), [x - ends[k] + numbers[k] for x in some], random)


def _around(graph: MiningGraph, path: np.ndarray, base: np.ndarray, search: Search) -> np.ndarray:
    """Hash, left and right members of each maximal biclique that contains these vertices, above the thresholds."""
    roots = common(graph.base_indptr, graph.base_indices, base)
    others = common(graph.root_indptr, graph.root_indices, path)
    rows = [_row(graph.root_indptr, graph.root_indices, v) for v in roots]
    reached, start = np.concatenate(rows), np.repeat(np.arange(len(roots)), list(map(len, rows)))
    place = np.searchsorted(others, reached)
    there = others[np.minimum(place, len(others) - 1)] == reached
    ends, known = (start[there], place[there]), (graph.root_hash[roots], graph.base_hash[others])
    if graph.root_side == "right":
        order = np.lexsort(ends)
        ends, known = (ends[1][order], ends[0][order]), known[::-1]
    left, right = (each.astype(VERTEX) for each in ends)
    n, least = (len(known[0]), len(known[1])), (search.min_left, search.min_right)
    small, _ = prepare(left, right, *n, BuildOptions(), *least, known=known)
    found = [np.empty((3, 0), np.uint64)]

    def take(batch: Bicliques) -> None:
        members = np.diff(batch.left_indptr), np.diff(batch.right_indptr)
        found.append(np.array([batch.ids.view(np.uint64), *members], np.uint64))

    every = Search("list", min_left=least[0], min_right=least[1])
    CpuEngine().mine(small, Subtrees.of_roots(np.arange(small.n_roots)), every, Limits(), emit_to(take))
    return np.concatenate(found, axis=1)


def common(indptr: np.ndarray, indices: np.ndarray, members: np.ndarray) -> np.ndarray:
    """The neighbours that all of these vertices have, ascending."""
    return reduce(lambda a, b: np.intersect1d(a, b, assume_unique=True), (_row(indptr, indices, v) for v in members))


def _row(indptr: np.ndarray, indices: np.ndarray, v: int) -> np.ndarray:
    return indices[indptr[v] : indptr[v + 1]]
