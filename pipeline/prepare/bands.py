"""The bands of a run that wants the largest, and the graph of each. See `schemas.bands`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bicliques.kernels.graph.greedy import Found
from bicliques.kernels.graph.members import Restricted
from bicliques.schemas.bands import Reach, bands_of
from bicliques.schemas.facts import BandFacts
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import TOO_MANY, Search
from bicliques.schemas.totals import measured

if TYPE_CHECKING:
    from bicliques.kernels.graph.ceilings import EdgesByCeiling

#: Each guess of a bound is this share of the one before. They end when so many times all edges were looked at, or when
#: one leaves this share of them.
_LOWER, _EFFORT, _MUCH = 2 / 3, 4, 0.5


class Bounded(NamedTuple):
    """What is known before a graph is cut into bands.

    Parameters
    ----------
    found : Found
        Some large bicliques, or none yet.
    most : int or None
        No biclique that the search wants has a larger measure, if that is known.
    kept : Restricted
        The edges of all bicliques that reach the bound of `found`. Few others are among them.
    """

    found: Found
    most: int | None
    kept: Restricted


class Bands(NamedTuple):
    """The graphs of the bands in the order of `schemas.bands.bands_of`, and what the step ``build`` writes down."""

    graphs: list[MiningGraph]
    facts: dict[str, Any]


def reach_of(kept: Restricted) -> Reach:
    """The largest degrees of the edges of a run, which are in the order of the edge table."""
    if len(kept.left) == 0:
        return Reach(0, 0)
    ends = np.flatnonzero(kept.left[1:] != kept.left[:-1])  # of left vertices: much faster than to count them
    return Reach(int(np.bincount(kept.right).max()), int(np.diff(ends, prepend=-1, append=len(kept.left) - 1).max()))


def what_a_bound_leaves(
    search: Search, edges: EdgesByCeiling, kept: Restricted, prepare: Callable[[Restricted], MiningGraph]
) -> Bounded:
    """Guess a bound, from high to low, until bicliques are found that reach it.

    Parameters
    ----------
    edges : EdgesByCeiling
        The edges of the run.
    kept : Restricted
        The same.
    prepare : callable
        Edges -> their graph for the thresholds of the search.

    Notes
    -----
    A high guess leaves little of a graph, and what is left are the largest bicliques and little else. There a greedy
    search finds them, also those whose vertices have low degrees. A guess that nothing reaches costs little. All of
    them take O(edges) time together.
    """
    found, most, guess, effort = Found(search), edges.most, edges.most, _EFFORT * len(kept.left)
    while guess > max(found.bound, 1) and effort > 0:
        effort -= edges.n_reaching(guess)
        reaching = Restricted(*edges.reaching(guess))
        if len(reaching.left) > _MUCH * len(kept.left):
            break  # what is found there will be found in the graph of the run
        if len(reaching.left):
            found.look(prepare(reaching), guess)
        else:
            most = guess - 1
        guess = int(guess * _LOWER)
    return Bounded(found, most, Restricted(*edges.reaching(found.bound)) if found.bound > 0 else kept)


def make_bands(
    search: Search,
    bounded: Bounded,
    reach: Reach,
    core: MiningGraph,
    prepare: Callable[[int, int], MiningGraph],
) -> Bands:
    """Cut the sizes into bands, and make the graph of each.

    Parameters
    ----------
    reach : Reach
        That of all edges of the run.
    core : MiningGraph
        The graph of the edges of `bounded`, for the thresholds of the search alone. Larger ones are looked for in it.
    prepare : callable
        (min_left, min_right) -> the graph for these thresholds, with its root side chosen for it.
    """
    found, most, _ = bounded
    # each biclique is a part of a near-biclique that is as large, but several may be parts of the same one, or of one
    # that a filter leaves out, or that has not all given members
    is_bound = search.near is None or (search.largest == 1 and not (search.has_filters or search.is_containing))
    bound = found.look(core, found.bound) if core.n_roots and is_bound else 0
    graphs, facts = [], []
    for band in bands_of(search, bound, reach):
        graph = prepare(band.first, band.min_right)
        graphs.append(graph)
        facts.append(
            BandFacts(
                first=band.first,
                last=band.last,
                min_right=band.min_right,
                left=len(graph.root_members if graph.root_side == "left" else graph.base_members),
                right=len(graph.base_members if graph.root_side == "left" else graph.root_members),
                edges=graph.n_edges,
                root_side=graph.root_side,
                n_roots=graph.roots_to_search,
                ceiling=min(_ceiling(graph, band.of(search)), TOO_MANY if most is None else most),
            )
        )
    return Bands(graphs, {"bound": bound, "bands": facts})


def _ceiling(graph: MiningGraph, search: Search) -> int:
    """A measure that no biclique of a graph within the limits of a search exceeds, by the degrees alone.

    A biclique with s members on one side needs as many vertices of degree s on the other side as it has members there.
    Of a near-biclique they may have as many neighbours fewer as they may miss. Both sides give a bound, and the smaller
    one counts.
    """
    if graph.n_roots == 0:
        return 0
    ceilings = []
    for side in ("root", "base"):
        members = np.diff(getattr(graph, f"{side}_members_indptr"))
        others = np.diff(graph.base_members_indptr if side == "root" else graph.root_members_indptr)
        indptr, indices = getattr(graph, f"{side}_indptr"), getattr(graph, f"{side}_indices")
        degrees = np.add.reduceat(others[indices], indptr[:-1])
        is_left = (graph.root_side == "left") == (side == "root")
        if search.near is not None:
            degrees += search.near.left if is_left else search.near.right
        order = np.argsort(-degrees, kind="stable")
        sizes = np.cumsum(members[order]), degrees[order]
        left, right = sizes if is_left else sizes[::-1]
        most = search.max_left or int(left.max()), search.max_right or int(right.max())
        ceilings.append(int(measured(np.minimum(left, most[0]), np.minimum(right, most[1]), search.by).max()))
    return min(ceilings)
