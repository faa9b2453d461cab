"""Independent enumerations, random graphs, and a driver that runs an engine slice by slice."""

from collections import Counter
from itertools import combinations
from math import comb
from typing import Literal

import networkx as nx
import numpy as np

from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.bicliques import emit_to
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import job_of
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.sizes import SizeCounts
from bicliques.schemas.work import Engine, Subtrees

Pairs = set[tuple[tuple[int, ...], tuple[int, ...]]]


def random_edges(rng: np.random.Generator, n_left: int, n_right: int, density: float) -> np.ndarray:
    """Edges of a random graph, shape (n, 2), int32, sorted; every graph has at least one."""
    edges = np.argwhere(rng.random((n_left, n_right)) < density).astype(np.int32)
    return edges if len(edges) else np.array([[0, 0]], dtype=np.int32)


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


def graph_of(
    edges: np.ndarray, options: BuildOptions | None = None, min_left: int = 1, min_right: int = 1
) -> MiningGraph:
    """The graph an engine searches, from sorted dense edges."""
    left, right = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    n_left, n_right = (int(side.max()) + 1 for side in (left, right))
    return prepare(left, right, n_left, n_right, options or BuildOptions(), min_left, min_right)[0]


def whole_graph_of(edges: np.ndarray, side: Literal["auto", "left", "right"] = "auto") -> MiningGraph:
    """The graph in which p x q bicliques are counted: no twins are merged."""
    left, right = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    n_left, n_right = (int(ids.max()) + 1 for ids in (left, right))
    reductions = job_of(Search("count", pq="all")).reductions
    return prepare(left, right, n_left, n_right, BuildOptions(root_side=side), reductions=reductions)[0]


def cliques(edges: np.ndarray) -> Pairs:
    """Maximal bicliques as the cliques of the graph in which each side is made complete (NetworkX)."""
    graph = nx.Graph()
    lefts, rights = sorted({("l", int(u)) for u, _ in edges}), sorted({("r", int(v)) for _, v in edges})
    graph.add_edges_from((("l", int(u)), ("r", int(v))) for u, v in edges)
    for side in (lefts, rights):
        graph.add_edges_from((a, b) for i, a in enumerate(side) for b in side[i + 1 :])
    found = set()
    for clique in nx.find_cliques(graph):
        left = tuple(sorted(i for side, i in clique if side == "l"))
        right = tuple(sorted(i for side, i in clique if side == "r"))
        if left and right:
            found.add((left, right))
    return found


def bicliques_by_size(edges: np.ndarray) -> Counter[tuple[int, int]]:
    """How many p x q bicliques there are, maximal or not, by the definition: all sets of some 10 left vertices."""
    neighbours: dict[int, int] = {}
    for u, v in edges.tolist():
        neighbours[u] = neighbours.get(u, 0) | 1 << v
    shared: Counter[tuple[int, int]] = Counter()  # by the number of left vertices, and how many neighbours all share
    sets = [(0, -1)]
    for own in neighbours.values():
        sets += [(p + 1, common & own) for p, common in sets]
    shared.update((p, common.bit_count()) for p, common in sets[1:])
    found: Counter[tuple[int, int]] = Counter()
    for (p, common), number in shared.items():
        for q in range(1, common + 1):
            found[p, q] += number * comb(common, q)
    return found


def all_pairs(edges: np.ndarray) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Maximal bicliques as all intersections of neighbourhoods: of small graphs, far faster than the reference engine.

    A set of left vertices is an integer with a bit for each of them.
    """
    neighbours: dict[int, int] = {}
    for u, v in edges.tolist():
        neighbours[v] = neighbours.get(v, 0) | 1 << u
    found: set[int] = set()
    for own in {*neighbours.values()}:
        found |= {own, *(own & other for other in found)}
    lefts, rights = sorted({*edges[:, 0].tolist()}), sorted(neighbours)
    return [
        (tuple(u for u in lefts if left >> u & 1), tuple(v for v in rights if left & ~neighbours[v] == 0))
        for left in found - {0}
    ]


class Outcome:
    """Everything an engine reported over all slices of a run."""

    def __init__(self) -> None:
        self.count = self.fingerprint = self.slices = 0
        self.rows: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.sizes = SizeCounts.empty()


def run(
    engine: Engine,
    graph: MiningGraph,
    search: Search,
    limits: Limits | None = None,
    shuffle: np.random.Generator | None = None,
) -> Outcome:
    """Mine `graph` to the end, slice after slice; with `shuffle`, re-deal the left-overs at random in between."""
    outcome, limits = Outcome(), limits or Limits()
    work = Subtrees.of_roots(np.arange(graph.n_roots if graph.given is None else graph.roots_to_search))
    emit = emit_to(lambda batch: outcome.rows.extend(batch.to_pairs()))
    while len(work):
        result = engine.mine(graph, work, search, limits, emit)
        assert limits.rows is None or result.count <= limits.rows
        outcome.count += result.count
        outcome.fingerprint = (outcome.fingerprint + (result.fingerprint or 0)) % 2**64
        if search.sizes:
            assert result.total.sizes is not None
            assert result.total.sizes.total == result.count
            outcome.sizes = SizeCounts.merge([outcome.sizes, result.total.sizes])
        outcome.slices += 1
        assert outcome.slices < 100_000, "slices make no progress"
        work = _redeal(result.left_over, shuffle) if shuffle is not None else result.left_over
    return outcome


def deal(
    engines: list[Engine], graph: MiningGraph, search: Search, limits: Limits, rng: np.random.Generator
) -> Outcome:
    """Mine `graph` to the end by several workers. They take turns, and each takes a random stretch of the work."""
    outcome = Outcome()
    work = Subtrees.of_roots(np.arange(graph.n_roots if graph.given is None else graph.roots_to_search))
    emit = emit_to(lambda batch: outcome.rows.extend(batch.to_pairs()))
    while len(work):
        start, stop = np.sort(rng.integers(0, len(work) + 1, 2)).tolist()
        start, stop = (0, len(work)) if start == stop else (start, stop)
        result = engines[outcome.slices % len(engines)].mine(graph, work.take(start, stop), search, limits, emit)
        outcome.count += result.count
        outcome.fingerprint = (outcome.fingerprint + (result.fingerprint or 0)) % 2**64
        outcome.slices += 1
        assert outcome.slices < 100_000, "slices make no progress"
        rest = Subtrees.concat([work.take(0, start), work.take(stop, len(work))])
        work = Subtrees.concat([rest, _redeal(result.left_over, rng)])
    return outcome


def _redeal(work: Subtrees, rng: np.random.Generator) -> Subtrees:
    work = work.spread(int(rng.integers(1, 20)))
    cut = int(rng.integers(0, len(work) + 1))
    work = Subtrees.concat([work.take(cut, len(work)), work.take(0, cut)])
    # one of eight goes through bytes, because packing takes longer than most of these slices
    return Subtrees.from_bytes(work.to_bytes()) if rng.integers(8) == 0 else work
