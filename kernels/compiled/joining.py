"""Joins rows that are neighbours in the lattice of bicliques (`pipeline.results.communities`)."""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry


@compiled
def _top(up, base, x):
    """The row that stands for the set of a row in the forest from `base` on. Threads may ask while one joins."""
    parent = np.int64(up[base + x])
    while parent != x:
        up[base + x] = up[base + parent]  # never a row at the top, which is all that `join` changes
        x = np.int64(up[base + x])
        parent = np.int64(up[base + x])
    return x


@entry
def find_joins(rows, first, row, least, levels, graph, hashes, table, shift, up, scratch, joins):
    """Find neighbours of some rows that are not in one set with them yet, as long as there is room for those of a row.

    Parameters
    ----------
    rows : ndarray of int64, ndarray of int32, ndarray of int64
        Offsets and members of the side that is walked, and the number of members on the other.
    first, row : int
        The number among all rows of the first of these, and the one of these to begin with.
    least : (int, int)
        The fewest members of the side that is walked and of the other.
    levels : ndarray of int8
        By excess over `least` the level that it reaches. The last entry is for all larger ones.
    graph, hashes : (ndarray of int64, ndarray of int32), ndarray of uint64
        Neighbours and hash of each vertex of the side that is walked.
    table, shift : (ndarray of uint64, ndarray of int64, ndarray of int64), int
        Sums of hashes of all rows, sorted; their rows; and where those begin that are 0, 1, ... without `shift` bits.
    up : ndarray of int32
        A forest over all rows for each level.
    scratch : ndarray of int32, of uint64 and of int32, by vertex of the other side, and one more
        Zeros, zeros, and anything; so it is after the call.
    joins : ndarray of int32
        Output: how many numbers follow. For each join two numbers among all rows, and the level.

    Returns
    -------
    int
        The row to begin with in the next call. Below 0: -1 minus the number among all of a row that lacks a neighbour.
    """
    offsets, members, others = rows
    indptr, indices = graph
    sums, numbers, starts = table
    shared, hashed, met = scratch
    n_joins = 1
    while row < len(others) and n_joins + 3 * len(met) <= len(joins):
        size, number, n_met, before = offsets[row + 1] - offsets[row], first + row, np.int64(0), np.uint64(0)
        for e in range(offsets[row], offsets[row + 1] if size > least[0] else offsets[row]):
            own = hashes[members[e]]
            for f in range(indptr[members[e]], indptr[members[e] + 1]):
                j = indices[f]
                met[n_met] = j  # without a branch, which the processor would often take for another one
                n_met += np.int64(shared[j] == 0)
                shared[j] += 1
                hashed[j] += own
        for k in range(n_met):
            j = met[k]
            n_shared, part = np.int64(shared[j]), hashed[j]
            shared[j], hashed[j] = 0, np.uint64(0)
            if n_shared < least[0] or n_shared == size or part == before:
                continue
            before, bits = part, np.int64(part >> np.uint64(shift))
            at, stop = starts[bits], starts[bits + 1]
            while at < stop and sums[at] != part:
                at += 1
            if at == stop:
                return -1 - number
            level = np.int64(levels[min(n_shared - least[0], others[row] - least[1], len(levels) - 1)])
            base, found = level * len(sums), numbers[at]
            if up[base + number] != up[base + found] and _top(up, base, number) != _top(up, base, found):
                joins[n_joins], joins[n_joins + 1], joins[n_joins + 2] = number, found, level
                n_joins += 3
        row += 1
    joins[0] = n_joins - 1
    return row


@entry
def join(joins, n, up):
    """Join pairs of `n` rows as `find_joins` gives them, at their level and all lower ones. One thread at a time."""
    for k in range(1, joins[0], 3):
        for level in range(np.int64(joins[k + 2]), -1, -1):
            x, y = _top(up, level * n, np.int64(joins[k])), _top(up, level * n, np.int64(joins[k + 1]))
            if x == y:
                break  # so they are at all lower levels
            up[level * n + max(x, y)] = min(x, y)
