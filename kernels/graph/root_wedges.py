"""Counts the wedges of every root with compiled code, on threads. `pipeline.prepare.weights` does it with NumPy."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import entry
from bicliques.kernels.graph.threads import borders, even, on_slices
from bicliques.schemas.dtypes import COUNT


def wedges_of_roots(
    base_indptr: np.ndarray, base_indices: np.ndarray, n_roots: int, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The wedges of each root to higher ranks, and all of them.

    Parameters
    ----------
    base_indptr, base_indices : ndarray, int64 and int32
        See `schemas.graph.MiningGraph`.
    n_roots : int
    threads : int

    Returns
    -------
    (ndarray, ndarray), shape (n_roots,), int64

    Notes
    -----
    Every thread counts for itself, which takes 16 bytes per root. There are so few threads that all of them together
    need at most 16 bytes per edge, or one needs more.
    """
    cuts = borders(base_indptr, min(threads, len(base_indices) // max(n_roots, 1)))
    counts = np.zeros((len(cuts) - 1, n_roots, 2), COUNT)
    on_slices(lambda k, start, stop: _walk(base_indptr, base_indices, start, stop, counts[k].reshape(-1)), cuts)
    later, wedges = np.empty(n_roots, COUNT), np.empty(n_roots, COUNT)

    def add(_: int, start: int, stop: int) -> None:
        total = counts[:, start:stop].sum(axis=0)
        later[start:stop], wedges[start:stop] = total[:, 0], total[:, 1]

    on_slices(add, even(n_roots, threads))
    return later, wedges


@entry
def _walk(indptr, indices, start, stop, counts):
    """Add wedges to higher ranks to entry ``2r`` of `counts`, and all wedges to ``2r + 1``, for every root ``r``."""
    for u in range(start, stop):
        begin, end = indptr[u], indptr[u + 1]
        for e in range(begin, end):
            counts[2 * indices[e]] += end - 1 - e  # neighbours are in the order of their ranks
            counts[2 * indices[e] + 1] += end - begin
