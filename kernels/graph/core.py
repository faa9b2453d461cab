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

__all__ = ["core_edges"]


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
    right_indptr, right_indices = transpose(indptr, indices, n_right)
    n_left = len(indptr) - 1
    left_alive, right_alive = np.ones(n_left, np.bool_), np.ones(n_right, np.bool_)
    queue = np.empty(n_left + n_right, np.int64)
    degrees = np.diff(indptr), np.diff(right_indptr)
    graph = indptr, indices, right_indptr, right_indices
    _peel(graph, degrees, min_left, min_right, left_alive, right_alive, queue)
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return left_alive[rows] & right_alive[indices]


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
