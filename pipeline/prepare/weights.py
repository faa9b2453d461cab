"""Estimates the work of subtrees, and puts heavy ones first into dealing order. No result depends on an estimate."""

from __future__ import annotations

import time
from functools import cached_property
from itertools import pairwise

import numpy as np

from bicliques.kernels.graph.threads import sort
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.run.files import disk_errors, settle
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.plan import ROOTS_FILE, WEIGHTS_FILE
from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.facts import PlanFacts
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import Job
from bicliques.schemas.work import EVERYTHING, Subtrees

#: Work grows with this power of the wedges of a root. docs/design.md has the measurement.
_POWER = 1.5
#: Edges that are weighed together. Their arrays fit into a core's cache, which is four times as fast.
_AT_A_TIME = 1 << 16
#: Edges from which on compiled code weighs roots on threads. NumPy weighs that many in 0.2 to 0.4 s, and loading the
#: compiler takes as long.
MANY_EDGES = 1 << 25
#: Bytes of `RootWeights` per root, once weights of opened nodes were asked for.
ROOT_BYTES = 4 * 8
#: What the weight of a node depends on: its first root, its `Subtrees.todo`, and the number of its candidates. If they
#: are ``ranged``, the width is their first rank instead.
SHAPE = np.dtype([("root", VERTEX), ("todo", VERTEX), ("width", VERTEX), ("ranged", VERTEX)])
#: Most threads that weigh. Their memory bounds them.
_MOST_THREADS = 16


class RootWeights:
    """Weights of the first-level subtrees of a graph, and of pieces of them.

    Notes
    -----
    The roots are weighed when a weight is asked for. It takes O(edges) time, and `ROOT_BYTES` per root; meanwhile
    also 8 bytes per base vertex and some megabytes, or for a large graph up to 16 bytes per edge.
    """

    def __init__(self, graph: MiningGraph):
        self._graph = graph

    @cached_property
    def by_rank(self) -> np.ndarray:
        """``later ** 1.5 + wedges + 1`` of each root, shape (n_roots,), float64.

        `wedges` counts all of its wedges, of which its local matrix is built. `later` counts those to higher ranks,
        which become candidates.
        """
        later, wedges = self._wedges
        weights: np.ndarray = later**_POWER + wedges + 1.0
        return weights

    @cached_property
    def _wedges(self) -> tuple[np.ndarray, np.ndarray]:
        """The wedges of each root to higher ranks, and all of them."""
        graph = self._graph
        if graph.n_edges >= MANY_EDGES:
            from bicliques.kernels.graph.wedges import wedges_of_roots  # not before it pays

            threads = min(count_cores(), _MOST_THREADS)
            later, wedges = wedges_of_roots(graph.base_indptr, graph.base_indices, graph.n_roots, threads)
            return later.astype(np.float64), wedges.astype(np.float64)
        n, indptr, degrees = graph.n_roots, graph.base_indptr, np.diff(graph.base_indptr)
        later, wedges = np.zeros(n), np.zeros(n)
        cuts = np.append(np.searchsorted(indptr, np.arange(0, int(indptr[-1]), _AT_A_TIME)), len(degrees))
        for first, last in pairwise(np.unique(cuts).tolist()):
            begin, end = int(indptr[first]), int(indptr[last])
            roots, own = graph.base_indices[begin:end], degrees[first:last]
            # neighbours of the base vertex with a higher rank
            behind = np.repeat(indptr[first + 1 : last + 1], own) - np.arange(begin + 1, end + 1)
            np.add.at(later, roots, behind.astype(np.float64))
            np.add.at(wedges, roots, np.repeat(own, own).astype(np.float64))
        return later, wedges

    @cached_property
    def _candidates(self) -> np.ndarray:
        later, _ = self._wedges
        return np.minimum(later, np.arange(len(later) - 1, -1, -1))

    def of(self, pieces: Subtrees) -> np.ndarray:
        """Weight of each node of a list, float64.

        A whole first-level subtree has the weight of its root. An opened node has a share of it: the number of its
        pairs (child, candidate of the child), divided by that of the root.
        """
        return self.of_shapes(shapes_of(pieces))

    def of_shapes(self, shapes: np.ndarray) -> np.ndarray:
        """The same, from an array of `SHAPE`."""
        if len(shapes) == 0:
            return np.empty(0)
        root, ranged, n_roots = shapes["root"], shapes["ranged"].astype(np.bool_), len(self.by_rank)
        todo, candidates = shapes["todo"].astype(np.float64), shapes["width"].astype(np.float64)
        density = self._candidates[root[ranged]] / np.maximum(n_roots - 1 - root[ranged], 1)
        candidates[ranged] = density * (n_roots - candidates[ranged])
        todo[ranged] *= density
        pairs = todo * candidates - todo * (todo - 1) / 2
        all_pairs = self._candidates[root] * (self._candidates[root] + 1) / 2
        share = np.where(shapes["todo"] == EVERYTHING, 1.0, np.minimum(pairs / np.maximum(all_pairs, 1.0), 1.0))
        weights = self.by_rank[root] * share + 1.0
        slot = np.unique(root, return_inverse=True)[1]
        excess = np.bincount(slot, weights=weights)[slot] / self.by_rank[root]
        return weights / np.maximum(excess, 1.0)

    def of_children(self, pieces: Subtrees) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the nodes of a list still have to explore, child by child, and the weight of each.

        Returns
        -------
        (ndarray, ndarray, ndarray)
            Number of the node, int64; number of the child among the candidates of the node, int64; weight, float64. A
            node that is fresh, as a whole first-level subtree is, counts as one child with number 0. So its weight is
            that of all that it explores.
        """
        whole, ranged = pieces.todo == EVERYTHING, pieces.ranged
        n_children = np.where(pieces.fresh, 1, pieces.todo).astype(np.int64)
        node = np.repeat(np.arange(len(pieces)), n_children)
        child = np.arange(len(node)) - np.repeat(np.cumsum(n_children) - n_children, n_children)
        root = np.minimum.reduceat(pieces.path, pieces.path_indptr[:-1])
        n_roots = len(self.by_rank)
        candidates, density = np.diff(pieces.candidate_indptr).astype(np.float64), np.ones(len(pieces))
        candidates[ranged] = n_roots - pieces.candidates[pieces.candidate_indptr[:-1][ranged]]
        density[ranged] = self._candidates[root[ranged]] / np.maximum(n_roots - 1 - root[ranged], 1)
        pairs = np.maximum(candidates[node] - child, 1.0) * density[node]
        pairs *= np.where(pieces.fresh, np.maximum(pieces.todo, 1), 1)[node]
        all_pairs = np.maximum(self._candidates[root] * (self._candidates[root] + 1) / 2, 1.0)[node]
        share = np.where(whole[node], 1.0, np.minimum(pairs / all_pairs, 1.0))
        return node, child, self.by_rank[root][node] * share


def shapes_of(pieces: Subtrees) -> np.ndarray:
    """What the weight of each node of a list depends on, as an array of `SHAPE`."""
    shapes = np.empty(len(pieces), SHAPE)
    if len(pieces):
        ranged, width = pieces.ranged, np.diff(pieces.candidate_indptr)
        width[ranged] = pieces.candidates[pieces.candidate_indptr[:-1][ranged]]
        shapes["root"] = np.minimum.reduceat(pieces.path, pieces.path_indptr[:-1])
        shapes["todo"], shapes["width"], shapes["ranged"] = pieces.todo, width, ranged
    return shapes


def heaviest_first(weights: np.ndarray, threads: int = 1) -> np.ndarray:
    """The roots by descending weight. Equal ones stay in the order of their ranks.

    Parameters
    ----------
    weights : ndarray, shape (n_roots,), float64
        Positive numbers.

    Notes
    -----
    It is ``argsort(-weights, kind="stable")``, three times as fast. Positive numbers are in the order of their bits. So
    words of the first 32 bits and the rank are sorted, and then only what differs in the other bits.
    """
    bits = weights.view(np.int64) >> 32
    words = (bits.max(initial=0) - bits) << 32 | np.arange(len(weights))
    sort(words, threads)
    order, bits = words & 0xFFFFFFFF, words >> 32
    same = bits[1:] == bits[:-1]
    differs = same & (weights[order[1:]] != weights[order[:-1]])
    run = np.concatenate([[0], np.cumsum(~same)]) if len(weights) else order
    mixed = np.zeros(len(weights), np.bool_)
    mixed[run[1:][differs]] = True  # by the number of the run
    at = np.flatnonzero(mixed[run])
    some = order[at]
    order[at] = some[np.argsort(-weights[some], kind="stable")]
    return order


#: Estimates of the work below a root, by the name that a job gives.
_ESTIMATES = {"wedges": RootWeights}


def weights_of(job: Job, graph: MiningGraph) -> RootWeights:
    """The weights that fit a job."""
    return _ESTIMATES[job.weights](graph)


def plan(run: Run) -> PlanFacts:
    """Weigh every root and store the dealing order."""
    started = time.perf_counter()
    _ = run.built  # raises if the graph is not built
    folder = run.folder
    weights = [weights_of(run.job, graph).by_rank for _, graph in run.bands]
    # light bands first: what they find is a bound for the heavy ones
    bands = sorted(range(len(weights)), key=lambda band: float(weights[band].sum()))
    to_search = [graph.roots_to_search for _, graph in run.bands]
    orders = [heaviest_first(weights[band][: to_search[band]], count_cores()) for band in bands]
    order = _joined(orders)
    ordered = _joined([weights[band][own] for band, own in zip(bands, orders, strict=True)])
    target = folder.fresh(folder.plan)
    with disk_errors(target):
        np.save(target / ROOTS_FILE, order.astype(VERTEX))
        np.save(target / WEIGHTS_FILE, ordered)
        settle(target)
    total, heavy = max(float(ordered.sum()), 1.0), ordered if len(bands) == 1 else np.sort(ordered)[::-1]
    facts = PlanFacts(
        n_roots=len(order),
        heaviest_share=float(heavy[:1].sum()) / total,
        top_share=float(heavy[: -(-len(order) // 100)].sum()) / total,
        seconds=time.perf_counter() - started,
    )
    if run.job.in_bands:
        stops = np.cumsum([len(own) for own in orders]).tolist()
        facts["bands"] = list(zip(bands, stops, strict=True))
    run.finish("plan", facts, folder.own_files(target))
    return facts


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])
