"""How much bicliques overlap, and which of them are distinct from all better ones."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np


def common_members(rows: Sequence[np.ndarray]) -> np.ndarray:
    """The number of members that each pair of rows has in common.

    Parameters
    ----------
    rows : sequence of ndarray, int
        The members of each row, as numbers from 0. No row has a member twice.

    Returns
    -------
    ndarray, shape (rows, rows), float64
        Whole numbers. The diagonal has the length of each row.

    Notes
    -----
    Members that are in the same rows count together, because there are mostly few such groups. A group is known by the
    sum of a 64-bit hash per row; two groups have the same sum with a probability of 2**-64. Each group adds its size to
    all pairs of its rows.
    """
    n, top = len(rows), max((int(own.max(initial=-1)) for own in rows), default=-1)
    of_row = np.frombuffer(b"".join(blake2b(b"%d" % k, digest_size=8).digest() for k in range(n)), np.uint64)
    signature = np.zeros(top + 1, np.uint64)
    for own, hashed in zip(rows, of_row, strict=True):
        signature[own] += hashed
    groups, first, group, size = np.unique(signature, return_index=True, return_inverse=True, return_counts=True)
    is_first = np.zeros(len(signature), bool)
    is_first[first] = True
    chosen = [own[is_first[own]] for own in rows]  # one member of each group says which rows the group is in
    row = np.repeat(np.arange(n), list(map(len, chosen)))
    group = group[np.concatenate([np.zeros(0, np.int64), *chosen])]
    order = np.argsort(group, kind="stable")
    rows_of, at = row[order], np.searchsorted(group[order], np.arange(len(groups)))
    upto = np.empty(len(group), np.int64)  # by row and group, how many rows of the group there are up to this one
    upto[order] = np.arange(1, len(order) + 1) - at[group[order]]
    begins, common = np.searchsorted(row, np.arange(n + 1)), np.zeros((n, n))
    for k in range(n):
        own, lengths = group[begins[k] : begins[k + 1]], upto[begins[k] : begins[k + 1]]
        places = np.arange(lengths.sum()) + np.repeat(at[own] - (np.cumsum(lengths) - lengths), lengths)
        common[k, : k + 1] = common[: k + 1, k] = np.bincount(rows_of[places], np.repeat(size[own], lengths), k + 1)
    return common


def shares_of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The share of the edges of each biclique that each other one has, too.

    Parameters
    ----------
    left, right : ndarray, shape (rows, rows)
        `common_members` of both sides.

    Returns
    -------
    ndarray, shape (rows, rows), float64
        ``[i, j]`` is the number of edges that `i` and `j` have in common, divided by the number of edges of `i`.
    """
    both = left * right
    shares: np.ndarray = both / np.maximum(np.diag(both), 1.0)[:, None]
    return shares


def repeated(shares: np.ndarray, order: np.ndarray, most: float) -> np.ndarray:
    """Which bicliques mostly repeat a better one.

    Parameters
    ----------
    shares : ndarray, shape (rows, rows)
        `shares_of`.
    order : ndarray, int
        The bicliques to look at, the best first.
    most : float
        A biclique repeats a better one if it shares more than this with it. It is compared with those better ones that
        repeat no other.

    Returns
    -------
    ndarray, shape of `order`, int64
        For each biclique in `order`, the one with which it shares most, if it repeats that one. Otherwise -1.
    """
    found, kept = np.full(len(order), -1, np.int64), np.zeros(len(order), np.int64)
    n = 0
    for k, i in enumerate(order):
        own = shares[i, kept[:n]]
        if n and own.max() > most:
            found[k] = kept[own.argmax()]
        else:
            kept[n] = i
            n += 1
    return found
