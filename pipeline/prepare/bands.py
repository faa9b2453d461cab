"""The bands of a run that wants the largest, and the graph of each. See `schemas.bands`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from kernels.graph.greedy import first_bound
from kernels.graph.members import Restricted
from schemas.bands import Reach, bands_of
from schemas.graph import MiningGraph
from schemas.search import Search, Side
from schemas.totals import measured

__all__ = ["BandFacts", "Bands", "make_bands", "reach_of"]


@dataclass(frozen=True)
class BandFacts:
    """A band and its graph.

    Parameters
    ----------
    first, last, min_right : int
        See `schemas.bands.Band`.
    left, right, edges : int
        Vertices of the core of the band, and the edges that are left once twins are merged.
    root_side : Side
    n_roots : int
    ceiling : int
        No biclique of the band has a larger measure: see `_ceiling`.
    """

    first: int
    last: int
    min_right: int
    left: int
    right: int
    edges: int
    root_side: Side
    n_roots: int
    ceiling: int


class Bands(NamedTuple):
    """The graphs of the bands in the order of `schemas.bands.bands_of`, and what the step ``build`` writes down."""

    graphs: list[MiningGraph]
    facts: dict[str, Any]


def reach_of(kept: Restricted) -> Reach:
    """The largest degrees of the edges of a run."""
    most = [int(np.bincount(ids).max()) if len(ids) else 0 for ids in (kept.right, kept.left)]
    return Reach(*most)


def make_bands(
    search: Search,
    kept: Restricted,
    core: MiningGraph,
    prepare: Callable[[int, int], MiningGraph],
) -> Bands:
    """Find a first bound, cut the sizes into bands, and make the graph of each.

    Parameters
    ----------
    search : Search
    kept : Restricted
        The edges of the run.
    core : MiningGraph
        The graph for the thresholds of the search alone.
    prepare : callable
        (min_left, min_right) -> the graph for these thresholds, with its root side chosen for it.
    """
    bound = first_bound(core, search) if len(kept.left) else 0
    graphs, facts = [], []
    for band in bands_of(search, bound, reach_of(kept)):
        graph = prepare(band.first, band.min_right)
        graphs.append(graph)
        facts.append(
            BandFacts(
                band.first,
                band.last,
                band.min_right,
                left=len(graph.root_members if graph.root_side == "left" else graph.base_members),
                right=len(graph.base_members if graph.root_side == "left" else graph.root_members),
                edges=graph.n_edges,
                root_side=graph.root_side,
                n_roots=graph.n_roots,
                ceiling=_ceiling(graph, band.of(search)),
            )
        )
    return Bands(graphs, {"bound": bound, "bands": [asdict(one) for one in facts]})


def _ceiling(graph: MiningGraph, search: Search) -> int:
    """A measure that no biclique of a graph within the limits of a search exceeds, by the degrees alone.

    A biclique with s members on one side needs as many vertices of degree s on the other side as it has members there.
    Both sides give a bound, and the smaller one counts.
    """
    if graph.n_roots == 0:
        return 0
    ceilings = []
    for side in ("root", "base"):
        members = np.diff(getattr(graph, f"{side}_members_indptr"))
        others = np.diff(graph.base_members_indptr if side == "root" else graph.root_members_indptr)
        indptr, indices = getattr(graph, f"{side}_indptr"), getattr(graph, f"{side}_indices")
        degrees = np.add.reduceat(others[indices], indptr[:-1])
        order = np.argsort(-degrees, kind="stable")
        sizes = np.cumsum(members[order]), degrees[order]
        is_left = (graph.root_side == "left") == (side == "root")
        left, right = sizes if is_left else sizes[::-1]
        most = search.max_left or int(left.max()), search.max_right or int(right.max())
        ceilings.append(int(measured(np.minimum(left, most[0]), np.minimum(right, most[1]), search.by).max()))
    return min(ceilings)
