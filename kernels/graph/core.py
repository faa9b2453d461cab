"""The (min_left, min_right) core: the part of the graph that contains all large enough bicliques.

It is the (alpha, beta)-core of Liu et al. (doi:10.1145/3308558.3313522). Left vertices with fewer than
min_right neighbours and right vertices with fewer than min_left are removed until there are none. The
reduction is exact, because the core has all vertices of a biclique with at least min_left x min_right
members, and every vertex that extends it.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.graph.csr import added_up, transpose
from bicliques.kernels.graph.threads import borders, on_slices
from bicliques.schemas.dtypes import OFFSET, VERTEX

#: Vertices are removed by their degrees as long as a pass over the edges leaves less than this share of them. It takes
#: no second direction of the graph. What is left is peeled.
_WORTH = 0.8

_Csr = tuple[np.ndarray, np.ndarray]


def core_edges(
    indptr: np.ndarray, indices: np.ndarray, n_right: int, min_left: int, min_right: int, threads: int = 1
) -> np.ndarray:
    """Which edges are in the core, as a mask over `indices` (rows are left vertices).

    Parameters
    ----------
    indptr, indices : ndarray
        CSR of the left side, int64 and int32.
    n_right : int
        Number of right vertices.
    min_left, min_right : int
        Thresholds, at least 1.
    threads : int
        Threads that share the rows. Each counts for itself, as in `kernels.graph.csr.transpose`.

    Returns
    -------
    ndarray, shape (n_edges,), bool
    """
    left_alive, right_alive, _ = _core(indptr, indices, n_right, min_left, min_right, threads)
    keep = np.empty(len(indices), np.bool_)

    def mark(_: int, start: int, stop: int) -> None:
        _mark(indptr, indices, start, stop, left_alive, right_alive, keep)

    on_slices(mark, borders(indptr, threads))
    return keep


def core_rows(
    indptr: np.ndarray, indices: np.ndarray, n_right: int, min_left: int, min_right: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The edges of the core, as a CSR with the same rows. Parameters are those of `core_edges`.

    At the peak it takes 8 bytes per edge that is left when vertices with too few edges are removed for the first times.
    """
    left_alive, right_alive, rest = _core(indptr, indices, n_right, min_left, min_right, threads)
    return _kept(*rest, left_alive, right_alive, threads)


def _core(
    indptr: np.ndarray, indices: np.ndarray, n_right: int, min_left: int, min_right: int, threads: int
) -> tuple[np.ndarray, np.ndarray, _Csr]:
    """Which left and right vertices are in the core, and a part of the graph that has all of its edges."""
    left_alive, right_alive = np.diff(indptr) >= min_right, np.ones(n_right, np.bool_)
    before, alive = 0, len(indices)
    while alive != before and (before == 0 or alive < _WORTH * before):
        before, (alive, degrees) = alive, _round(indptr, indices, min_right, left_alive, right_alive, threads)
        right_alive = degrees >= min_left
    rest = _kept(indptr, indices, left_alive, right_alive, threads)
    if alive:
        _peel_rest(*rest, min_left, min_right, left_alive, right_alive, threads)
    return left_alive, right_alive, rest


def _round(
    indptr: np.ndarray,
    indices: np.ndarray,
    min_right: int,
    left_alive: np.ndarray,
    right_alive: np.ndarray,
    threads: int,
) -> tuple[int, np.ndarray]:
    """Remove rows that are too small. Returns how many edges the others have, and the degrees of their columns."""
    n_columns = len(right_alive)
    cuts = borders(indptr, min(threads, len(indices) // max(n_columns, 1)))
    degrees, added = np.zeros((len(cuts) - 1, n_columns), VERTEX), np.zeros(len(cuts) - 1, OFFSET)

    def count(k: int, start: int, stop: int) -> None:
        added[k] = _count(indptr, indices, start, stop, min_right, left_alive, right_alive, degrees[k])

    on_slices(count, cuts)
    return int(added.sum()), added_up(degrees, threads)


def _kept(
    indptr: np.ndarray, indices: np.ndarray, left_alive: np.ndarray, right_alive: np.ndarray, threads: int
) -> _Csr:
    """The edges whose ends are alive, as a CSR with the same rows. It is the same one if that is all of them."""
    out_indptr, cuts = np.zeros(len(indptr), OFFSET), borders(indptr, threads)

    def measure(_: int, start: int, stop: int) -> None:
        _measure(indptr, indices, start, stop, left_alive, right_alive, out_indptr)

    on_slices(measure, cuts)
    np.cumsum(out_indptr, out=out_indptr)
    if out_indptr[-1] == len(indices):
        return indptr, indices
    out = np.empty(out_indptr[-1], VERTEX)

    def copy(_: int, start: int, stop: int) -> None:
        _copy(indptr, indices, start, stop, left_alive, right_alive, out_indptr, out)

    on_slices(copy, cuts)
    return out_indptr, out


def _peel_rest(
    indptr: np.ndarray,
    indices: np.ndarray,
    min_left: int,
    min_right: int,
    left_alive: np.ndarray,
    right_alive: np.ndarray,
    threads: int,
) -> None:
    """Mark what is not in the core of a graph as not alive."""
    right_indptr, right_indices = transpose(indptr, indices, len(right_alive), threads)
    left_alive[:], right_alive[:] = True, True
    degrees = np.diff(indptr), np.diff(right_indptr)
    queue = np.empty(len(left_alive) + len(right_alive), OFFSET)
    graph = indptr, indices, right_indptr, right_indices
    _peel(graph, degrees, min_left, min_right, left_alive, right_alive, queue)


@entry
def _count(indptr, indices, start, stop, min_right, left_alive, right_alive, degrees):
    """Remove rows with fewer than `min_right` columns that are alive. Add the other rows to the degrees of columns.

    Rows are those from `start` to `stop`. Returns the number of edges that were added. Columns that are not alive get
    degree 0.
    """
    added = 0
    for u in range(start, stop):
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
def _mark(indptr, indices, start, stop, left_alive, right_alive, keep):
    """Mark the edges of the rows from `start` to `stop` whose ends are alive."""
    for u in range(start, stop):
        for e in range(indptr[u], indptr[u + 1]):
            keep[e] = left_alive[u] and right_alive[indices[e]]


@entry
def _measure(indptr, indices, start, stop, left_alive, right_alive, lengths):
    """Write how many edges of row ``u`` have ends that are alive to ``lengths[u + 1]``, for `start` to `stop`."""
    for u in range(start, stop):
        n = 0
        if left_alive[u]:
            for e in range(indptr[u], indptr[u + 1]):
                if right_alive[indices[e]]:
                    n += 1
        lengths[u + 1] = n


@entry
def _copy(indptr, indices, start, stop, left_alive, right_alive, out_indptr, out):
    """Write the columns of the rows from `start` to `stop` whose ends are alive to `out`."""
    for u in range(start, stop):
        if left_alive[u]:
            at = out_indptr[u]
            for e in range(indptr[u], indptr[u + 1]):
                if right_alive[indices[e]]:
                    out[at] = indices[e]
                    at += 1


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
