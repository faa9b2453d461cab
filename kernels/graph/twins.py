"""Twins are vertices with the same neighbourhood. They are merged before the search and expanded in the output.

Twins are in the same maximal bicliques, so the search needs only one of them. Merging does not change the
number of maximal bicliques. It also keeps every first-level subtree alive: under ascending degree, no root's
closure can begin with an earlier root. After a pass over one side and one over the other, no side has twins.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.graph.csr import transpose
from bicliques.kernels.graph.threads import borders, even, on_slices
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.hashes import LEFT_SALT, splitmix64


def group_twins(indptr: np.ndarray, indices: np.ndarray, threads: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group equal rows of a CSR.

    Returns
    -------
    representatives : ndarray, shape (n_groups,), int32
        First row of each group, ascending.
    members_indptr : ndarray, shape (n_groups + 1,), int64
    members : ndarray, shape (n_rows,), int32
        Rows of each group, ascending.

    Notes
    -----
    Hashes only bring rows together that may be equal. Then rows are compared in full. O(n + m), if few different rows
    share a hash. Every thread has the rows of some hashes.
    """
    n = len(indptr) - 1
    cuts = even(len(indices), threads)
    most = np.full(len(cuts) - 1, -1)

    def find_most(k: int, start: int, stop: int) -> None:
        most[k] = indices[start:stop].max(initial=-1)

    on_slices(find_most, cuts)
    hashes = np.empty(most.max() + 1, np.uint64)

    def hash_some(_: int, start: int, stop: int) -> None:
        hashes[start:stop] = splitmix64(np.arange(start, stop, dtype=np.uint64) ^ LEFT_SALT)

    on_slices(hash_some, even(len(hashes), threads))
    key = np.empty(n, np.uint64)
    on_slices(lambda _, start, stop: _hash_rows(indptr, indices, hashes, start, stop, key), borders(indptr, threads))
    first = np.empty(n, OFFSET)
    parts = len(borders(indptr, threads)) - 1

    n_groups = np.zeros(parts, OFFSET)

    def find(part: int, *_: int) -> None:
        room = 1 << (2 * _count(key, part, parts) - 1).bit_length()
        n_groups[part] = _first_equal(indptr, indices, key, part, parts, np.full(room, -1, OFFSET), first)

    on_slices(find, np.arange(parts + 1))
    if n_groups.sum() == n:
        each = np.arange(n, dtype=VERTEX)
        return each, np.arange(n + 1, dtype=OFFSET), each
    is_first = first == np.arange(n)
    representatives = np.flatnonzero(is_first).astype(VERTEX)
    group = (np.cumsum(is_first, dtype=VERTEX) - 1)[first].astype(VERTEX)
    return representatives, *transpose(np.arange(n + 1, dtype=OFFSET), group, len(representatives))


@entry
def _hash_rows(indptr, indices, hashes, start, stop, key):
    """The sum of the hashes of every row from `start` to `stop`."""
    for row in range(start, stop):
        total = np.uint64(0)
        for e in range(indptr[row], indptr[row + 1]):
            total += hashes[indices[e]]
        key[row] = total


@compiled
def _part_of(hash_, parts):
    """The upper bits of the hash of a row tell its part."""
    return np.int64((hash_ >> np.uint64(48)) * np.uint64(parts) >> np.uint64(16))


@entry
def _count(key, part, parts):
    """The number of rows of a part."""
    n = 0
    for row in range(key.size):
        if _part_of(key[row], parts) == part:
            n += 1
    return n


@entry
def _first_equal(indptr, indices, key, part, parts, table, first):
    """For every row of a part, the smallest row that is equal to it. Returns the number of different rows.

    `table` is a hash table with open addressing. It has a row of every group found so far, and -1 in free places. Its
    length is a power of 2, and at least twice the number of rows.
    """
    mask, n = np.uint64(table.size - 1), 0
    for row in range(key.size):
        if _part_of(key[row], parts) != part:
            continue
        place = key[row] & mask
        other = table[place]
        while other >= 0 and (key[row] != key[other] or not _rows_equal(indptr, indices, row, other)):
            place = (place + np.uint64(1)) & mask
            other = table[place]
        if other < 0:
            table[place] = other = row
            n += 1
        first[row] = other
    return n


@compiled
def _rows_equal(indptr, indices, a, b):
    n = indptr[a + 1] - indptr[a]
    if n != indptr[b + 1] - indptr[b]:
        return False
    for k in range(n):
        if indices[indptr[a] + k] != indices[indptr[b] + k]:
            return False
    return True
