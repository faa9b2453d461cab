"""Restricts a graph to the bicliques that contain given vertices.

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
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bicliques.schemas.dtypes import VERTEX, gathered


class Restricted(NamedTuple):
    """The edges that are left.

    Parameters
    ----------
    left, right : ndarray, int32
        In the order of the edge table. Dense ids stay as they are.
    missing : int
        How many pairs of a given left and a given right vertex are no edge. If there are some, no edge is left.
    first_missing : (int, int) or None
        The first such pair.
    """

    left: np.ndarray
    right: np.ndarray
    missing: int = 0
    first_missing: tuple[int, int] | None = None


def restrict(
    left: np.ndarray, right: np.ndarray, n_left: int, n_right: int, given_left: np.ndarray, given_right: np.ndarray
) -> Restricted:
    """Keep the edges between the right vertices joined to all of A and the left vertices joined to all of B.

    Parameters
    ----------
    left, right : ndarray, shape (n_edges,), int32
        The edge table: dense ids, sorted by (left, right), no duplicates.
    n_left, n_right : int
        Number of dense ids per side.
    given_left, given_right : ndarray
        Dense ids of A and of B, each once. Either may be empty.

    Notes
    -----
    It reads every edge a few times. It takes some bytes per edge and per vertex beside the edges that are kept.
    """
    is_given = np.zeros(n_right, np.bool_)
    is_given[given_right] = True
    # int32, because other numbers would make a copy of `left`
    first, last = (np.searchsorted(left, given_left.astype(VERTEX), side) for side in ("left", "right"))
    owner = np.repeat(np.arange(len(given_left)), last - first)
    neighbours = gathered(right, first, last - first)[1]
    met = np.bincount(owner[is_given[neighbours]], minlength=len(given_left))
    missing = len(given_left) * len(given_right) - int(met.sum())
    if missing:
        row = int(np.argmax(met < len(given_right)))
        other = int(given_right[~np.isin(given_right, neighbours[owner == row])][0])
        return Restricted(np.empty(0, VERTEX), np.empty(0, VERTEX), missing, (int(given_left[row]), other))
    keep = np.ones(len(left), np.bool_)
    if len(given_left):
        keep &= (np.bincount(neighbours, minlength=n_right) == len(given_left))[right]
    if len(given_right):
        keep &= (np.bincount(left[is_given[right]], minlength=n_left) == len(given_right))[left]
    return Restricted(left[keep], right[keep])
