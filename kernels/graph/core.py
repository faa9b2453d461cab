"""The (min_left, min_right) core: the part of the graph that contains all large enough bicliques.

It is the (alpha, beta)-core of Liu et al. (doi:10.1145/3308558.3313522). Left vertices with fewer than
min_right neighbours and right vertices with fewer than min_left are removed until there are none. The
reduction is exact, because the core has all vertices of a biclique with at least min_left x min_right
members, and every vertex that extends it.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import entry
from kernels.graph.csr import transpose
from schemas.dtypes import OFFSET, VERTEX

__all__ = ["core_edges"]

#: Vertices are removed by their degrees as long as a pass over the edges leaves less than this share of them. It takes
#: no second direction of the graph. What is left is peeled.
_WORTH = 0.8


def core_edges(indptr: np.ndarray, indices: np.ndarray, n_right: int, min_left: int, min_right: int) -> np.ndarray:
    """Which edges are in the core, as a mask over `indices` (rows are left vertices).

    Parameters
    ----------
    indptr, indices : ndarray
        CSR of the left side, int64 and int32.
    n_right : int
        Number of right vertices.
    min_left, min_right : int
        Thresholds, at least 1.

    Returns
    -------
    ndarray, shape (n_edges,), bool
    """
    if min_left <= 1 and min_right <= 1:
        return np.ones(len(indices), dtype=np.bool_)
    left_alive, right_alive = np.diff(indptr) >= min_right, np.ones(n_right, np.bool_)
    before, alive = 0, len(indices)
    while alive != before and (before == 0 or alive < _WORTH * before):
        degrees = np.zeros(n_right, VERTEX)
        before, alive = alive, _count(indptr, indices, min_right, left_alive, right_alive, degrees)
        right_alive = degrees >= min_left
    keep, lengths = np.empty(len(indices), np.bool_), np.zeros(len(indptr), OFFSET)
    _mark(indptr, indices, left_alive, right_alive, keep, lengths)
    if alive:
        _peel_rest(np.cumsum(lengths), indices[keep], min_left, min_right, left_alive, right_alive)
        _mark(indptr, indices, left_alive, right_alive, keep, lengths)
    return keep


def _peel_rest(
    indptr: np.ndarray,
    indices: np.ndarray,
    min_left: int,
    min_right: int,
    left_alive: np.ndarray,
    right_alive: np.ndarray,
) -> None:
    """Mark what is not in the core of a graph as not alive."""
    right_indptr, right_indices = transpose(indptr, indices, len(right_alive))
    left_alive[:], right_alive[:] = True, True
    degrees = np.diff(indptr), np.diff(right_indptr)
    queue = np.empty(len(left_alive) + len(right_alive), OFFSET)
    graph = indptr, indices, right_indptr, right_indices
    _peel(graph, degrees, min_left, min_right, left_alive, right_alive, queue)


@entry
def _count(indptr, indices, min_right, left_alive, right_alive, degrees):
    """Remove rows with fewer than `min_right` columns that are alive. Add the other rows to the degrees of columns.

    Returns the number of edges that were added. Columns that are not alive get degree 0.
    """
    added = 0
    for u in range(left_alive.size):
        if not left_alive[u]:
            continue
        degree = 0
        for e in range(indptr[u], indptr[u + 1]):
            if right_alive[indices[e]]:
                degree += 1
        if degree < min_right:
            left_alive[u] = False
            continue
        added += degree
        for e in range(indptr[u], indptr[u + 1]):
            if right_alive[indices[e]]:
                degrees[indices[e]] += 1
    return added


@entry
def _mark(indptr, indices, left_alive, right_alive, keep, lengths):
    """Mark the edges whose ends are alive, and write how many row ``u`` has to ``lengths[u + 1]``."""
    for u in range(left_alive.size):
        n = 0
        for e in range(indptr[u], indptr[u + 1]):
            keep[e] = left_alive[u] and right_alive[indices[e]]
            if keep[e]:
                n += 1
        lengths[u + 1] = n


@entry
def _peel(graph, degrees, min_left, min_right, left_alive, right_alive, queue):
    """Peel with a queue in O(n + m). In the queue, left vertices are 0..n_left-1, and right vertices follow.

    `left_alive` and `right_alive` are the output, and true before. `degrees` is used up.
    """
    left_indptr, left_indices, right_indptr, right_indices = graph
    left_degree, right_degree = degrees
    n_left, n_right = left_degree.size, right_degree.size
    head = tail = 0
    for u in range(n_left):
        if left_degree[u] < min_right:
            left_alive[u] = False
            queue[tail] = u
            tail += 1
    for v in range(n_right):
        if right_degree[v] < min_left:
            right_alive[v] = False
            queue[tail] = n_left + v
            tail += 1
    while head < tail:
        x = queue[head]
        head += 1
        if x < n_left:
            for e in range(left_indptr[x], left_indptr[x + 1]):
                v = left_indices[e]
                right_degree[v] -= 1
                if right_alive[v] and right_degree[v] < min_left:
                    right_alive[v] = False
                    queue[tail] = n_left + v
                    tail += 1
        else:
            for e in range(right_indptr[x - n_left], right_indptr[x - n_left + 1]):
                u = right_indices[e]
                left_degree[u] -= 1
                if left_alive[u] and left_degree[u] < min_right:
                    left_alive[u] = False
                    queue[tail] = u
                    tail += 1
