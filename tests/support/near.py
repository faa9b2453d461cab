"""Near-bicliques by definition: every group of a small graph is looked at."""

import numpy as np

from bicliques.kernels.graph.members import Restricted, restrict, with_given
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.jobs import job_of
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Search
from tests.support.oracles import Pairs


def near_pairs(edges: np.ndarray, search: Search) -> Pairs:
    """The maximal near-bicliques of the sizes that are asked for: groups to which no single vertex can be added."""
    n_left, n_right = (edges.max(axis=0) + 1).tolist()
    lefts, rights = _subsets(n_left), _subsets(n_right)
    absent = np.ones((n_left, n_right), np.int64)
    absent[tuple(edges.T)] = 0
    of_left, of_right = absent @ rights.T, absent.T @ lefts.T  # how many of each subset a vertex misses
    near = search.near
    if near is None or near.pairs is not None:
        allowed = lefts @ of_left <= (0 if near is None else near.pairs)
    else:
        allowed = (lefts @ (of_left > near.left) == 0) & (rights @ (of_right > near.right) == 0).T
    grows = np.zeros_like(allowed)
    for k in range(n_left):
        without = np.flatnonzero(lefts[:, k] == 0)
        grows[without] |= allowed[without | 1 << k]
    for k in range(n_right):
        without = np.flatnonzero(rights[:, k] == 0)
        grows[:, without] |= allowed[:, without | 1 << k]
    sizes = lefts.sum(axis=1)[:, None], rights.sum(axis=1)[None, :]
    wanted = allowed & ~grows
    for size, least, most in zip(
        sizes, (search.min_left, search.min_right), (search.max_left, search.max_right), strict=True
    ):
        wanted &= (size >= max(least, 1)) & (size <= (most or size.max()))
    return {(_members(left), _members(right)) for left, right in np.argwhere(wanted).tolist()}


def missing_of(edges: np.ndarray, pair: tuple[tuple[int, ...], tuple[int, ...]]) -> int:
    """How many pairs of a group are no edges."""
    there = {*map(tuple, edges.tolist())}
    return sum((u, v) not in there for u in pair[0] for v in pair[1])


def near_graph(
    edges: np.ndarray,
    search: Search,
    options: BuildOptions | None = None,
    given: tuple[np.ndarray, np.ndarray] | None = None,
) -> MiningGraph:
    """The graph that an engine gets."""
    sides = np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])
    sizes = (edges.max(axis=0) + 1).tolist()
    kept = Restricted(*sides) if given is None else restrict(*sides, *sizes, *given, search.near)
    how = options or BuildOptions(), *search.fewest_neighbours, job_of(search).reductions
    graph = prepare(kept.left, kept.right, *sizes, *how)[0]
    return with_given(graph, given)


def _subsets(n: int) -> np.ndarray:
    """All subsets of n vertices, a row of 0 and 1 for each. Vertex k is in the subsets whose number has bit k."""
    return np.arange(1 << n)[:, None] >> np.arange(n) & 1


def _members(subset: int) -> tuple[int, ...]:
    return tuple(k for k in range(subset.bit_length()) if subset >> k & 1)
