"""Butterflies, and how many neighbours two vertices share, by the pairs of edges that meet in a vertex (wedges)."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry


@entry
def count_common(
    rows: tuple[np.ndarray, np.ndarray],
    others: tuple[np.ndarray, np.ndarray],
    shared: np.ndarray,
    met: np.ndarray,
    pairs: np.ndarray,
    edges: np.ndarray,
    triangles: np.ndarray,
) -> int:
    """Count the pairs of vertices of a side by how many neighbours they share. Those that share none are left out.

    Parameters
    ----------
    rows : (ndarray of int64, ndarray of int32)
        Offsets, and the neighbours of each vertex of the side.
    others : (ndarray of int64, ndarray of int32)
        The same of the other side, ascending.
    shared, met : ndarray of int32, shape (number of vertices of the side,)
        Zeros, which stay zeros, and room.
    pairs : ndarray of int64, shape (largest degree + 1,)
        By number of neighbours: the pairs are added.
    edges, triangles : ndarray of int64
        If both sides are the same vertices, the same of the joined pairs, and by vertex twice the triangles with it.
        Empty otherwise.

    Returns
    -------
    int
        The number of all these pairs.
    """
    (indptr, indices), (other_indptr, other_indices) = rows, others
    total = np.int64(0)
    for v in range(len(indptr) - 1):
        n = 0
        for e in range(indptr[v], indptr[v + 1]):
            u = indices[e]
            for f in range(other_indptr[u], other_indptr[u + 1]):
                w = other_indices[f]
                if w >= v:
                    break
                if shared[w] == 0:
                    met[n] = w
                    n += 1
                shared[w] += 1
        for e in range(indptr[v], indptr[v + 1] if len(triangles) else indptr[v]):
            w = indices[e]
            if w >= v:
                break
            edges[shared[w]] += 1
            triangles[v] += shared[w]
            triangles[w] += shared[w]
        for k in range(n):
            pairs[shared[met[k]]] += 1
            shared[met[k]] = 0
        total += n
    return int(total)


@entry
def butterflies_of_edges(
    rows: tuple[np.ndarray, np.ndarray],
    others: tuple[np.ndarray, np.ndarray],
    shared: np.ndarray,
    found: np.ndarray,
) -> None:
    """Count the butterflies with each edge, in the order of `rows`. The others are parameters of `count_common`.

    Those with the edge (v, u) have another neighbour w of u, and one of the other neighbours that v and w share.
    """
    (indptr, indices), (other_indptr, other_indices) = rows, others
    for v in range(len(indptr) - 1):
        for e in range(indptr[v], indptr[v + 1]):
            for f in range(other_indptr[indices[e]], other_indptr[indices[e] + 1]):
                shared[other_indices[f]] += 1
        for e in range(indptr[v], indptr[v + 1]):
            for f in range(other_indptr[indices[e]], other_indptr[indices[e] + 1]):
                if other_indices[f] != v:
                    found[e] += shared[other_indices[f]] - 1
        for e in range(indptr[v], indptr[v + 1]):
            for f in range(other_indptr[indices[e]], other_indptr[indices[e] + 1]):
                shared[other_indices[f]] = 0
