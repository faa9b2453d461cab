"""Restricts a graph to the bicliques and the near-bicliques that contain given vertices.

Let A be left vertices and B right vertices, all of A joined to all of B. Keep the right vertices that are joined to all
of A, the left vertices that are joined to all of B, and the edges between them. Then the maximal bicliques of what is
left are those of the whole graph that contain A and B:

- Each vertex of A is joined to every right vertex that is left. So it is in every maximal biclique of what is left. The
  same holds for B.
- A biclique (L, R) that contains A and B lies in what is left, because R is joined to all of A, and L to all of B. Who
  could extend it in the whole graph is joined to A or to B, too, and is left as well. So (L, R) is maximal in the one
  graph exactly if it is maximal in the other.

If a vertex of A is not joined to one of B, no biclique contains both. What is left of the graph would still have
bicliques, so this is checked.

Vertices may become twins only because others have gone, so twins are merged afterwards.

Where pairs may be missing (docs/holes.md), A and B are kept, and those that can be added to A and B alone. A part
of an allowed group is allowed. So every allowed group with A and B lies in what is left, and so does who could extend
it: the maximal ones with A and B are the same. But A and B may not be in all that is left. So the graph names them, and
the search begins with them (`schemas.work.first_nodes`). That nothing may be missing is the case above.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bicliques.schemas.dtypes import VERTEX
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Near

#: All of a side are joined to all of the other one.
_EXACT = Near(0, 0, 0)


class Restricted(NamedTuple):
    """The edges that are left.

    Parameters
    ----------
    left, right : ndarray, int32
        In the order of the edge table. Dense ids stay as they are.
    missing : int
        How many pairs of a given left and a given right vertex are no edge. If too many are, no edge is left.
    first_missing : (int, int) or None
        The first such pair, if they are too many.
    given : (ndarray, ndarray) or None
        The given vertices of both sides, if what is left may have groups without them.
    """

    left: np.ndarray
    right: np.ndarray
    missing: int = 0
    first_missing: tuple[int, int] | None = None
    given: tuple[np.ndarray, np.ndarray] | None = None


def restrict(
    left: np.ndarray,
    right: np.ndarray,
    n_left: int,
    n_right: int,
    given_left: np.ndarray,
    given_right: np.ndarray,
    near: Near | None = None,
) -> Restricted:
    """Keep the edges between the given vertices and those that can be added to them.

    Parameters
    ----------
    left, right : ndarray, shape (n_edges,), int32
        The edge table: dense ids, sorted by (left, right), no duplicates.
    n_left, n_right : int
        Number of dense ids per side.
    given_left, given_right : ndarray
        Dense ids of A and of B, each once. Either may be empty.
    near : Near or None
        Which pairs may be missing. None: no pair.

    Notes
    -----
    It reads every edge a few times. It takes some bytes per edge and per vertex beside the edges that are kept.
    """
    allowed = near or _EXACT
    is_left, is_right = np.zeros(n_left, np.bool_), np.zeros(n_right, np.bool_)
    is_left[given_left] = is_right[given_right] = True
    own = _missed(left, right, is_right, n_left), allowed.left
    other = _missed(right, left, is_left, n_right), allowed.right
    missing = int(own[0][given_left].sum())
    if allowed.pairs is not None:
        is_allowed, slack = missing <= allowed.pairs, allowed.pairs - missing
        keep = own[0] <= slack, other[0] <= slack
    else:
        full = is_left & (own[0] == own[1]), is_right & (other[0] == other[1])
        is_allowed = bool((own[0][given_left] <= own[1]).all() and (other[0][given_right] <= other[1]).all())
        keep = (
            (own[0] <= own[1]) & (_missed(left, right, full[1], n_left) == 0),
            (other[0] <= other[1]) & (_missed(right, left, full[0], n_right) == 0),
        )
    if not is_allowed:
        row = int(given_left[np.argmax(own[0][given_left] > 0)])
        column = int(given_right[~np.isin(given_right, right[left == row])][0])
        return Restricted(np.empty(0, VERTEX), np.empty(0, VERTEX), missing, (row, column))
    kept = (keep[0] | is_left)[left] & (keep[1] | is_right)[right]
    return Restricted(left[kept], right[kept], missing, None, (given_left, given_right) if near else None)


def _missed(own: np.ndarray, other: np.ndarray, among: np.ndarray, n: int) -> np.ndarray:
    """How many of some vertices of the other side each vertex misses. `own` and `other` are the ends of the edges."""
    if not among.any():  # a side is often not given, and to go through all edges for nothing takes long
        return np.zeros(n, np.int64)
    missed: np.ndarray = np.count_nonzero(among) - np.bincount(own[among[other]], minlength=n)
    return missed


def with_given(graph: MiningGraph, given: tuple[np.ndarray, np.ndarray] | None) -> MiningGraph:
    """The graph, which names the given vertices, if there are some. Each of its vertices stands for one dense id."""
    if given is None:
        return graph
    own, other = given if graph.root_side == "left" else given[::-1]
    roots = np.flatnonzero(np.isin(graph.root_members, own))
    base = np.flatnonzero(np.isin(graph.base_members, other))
    is_there = len(roots) == len(own) and len(base) == len(other)
    return replace(graph, given=(*roots.tolist(), *(graph.n_roots + base).tolist()) if is_there else ())
