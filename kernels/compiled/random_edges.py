"""Random edges in integer arithmetic alone, so that a seed gives the same graph on any machine.

Random numbers are not a sequence. Every one is the mix of a key and of a counter (the generator of Steele, Lea and
Flood, OOPSLA 2014, doi:10.1145/2714064.2660195, entered at any place). A left vertex has a key of its own, so its
neighbours do not depend on who draws them, or on what was drawn before.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.lists import sort_list
from bicliques.kernels.compiled.searching import mixed, splitmix64

#: Draws for an edge before a free vertex is looked for, beginning at a random one.
_TRIES = 64
_STEP = np.uint64(0x9E3779B97F4A7C15)


@compiled
def _below(word, n):
    """A number below `n`, which is less than 2**32, from the upper half of a random word."""
    return np.int64(((word >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@compiled
def _permuted(x, keys, height, width, n):
    """Where a permutation of ``0..n-1`` leads: a Feistel network on a grid of at least `n` cells.

    Outside of the range the walk goes on (Black and Rogaway, CT-RSA 2002, doi:10.1007/3-540-45760-7_9).
    """
    while True:
        row, column = x // width, x % width
        for k in range(0, len(keys), 2):
            row += _below(splitmix64(keys[k] ^ np.uint64(column)), height)
            row -= height if row >= height else 0
            column += _below(splitmix64(keys[k + 1] ^ np.uint64(row)), width)
            column -= width if column >= width else 0
        x = row * width + column
        if x < n:
            return x


@compiled
def _owner(stub, classes):
    """The vertex that has this stub; see `draw`."""
    (starts, vertices, degrees, guide), shift = classes
    k = guide[stub >> shift]
    while starts[k + 1] <= stub:
        k += 1
    return vertices[k] + (stub - starts[k]) // degrees[k]


@compiled
def _add(table, mask, v):
    """Add a vertex to a set. Returns whether it is new."""
    at = np.int64((np.uint64(v) * _STEP) >> np.uint64(32)) & mask
    while table[at] != v:
        if table[at] < 0:
            table[at] = v
            return True
        at = (at + 1) & mask
    return False


@compiled
def _begin(row, degree, planted, table, out, at):
    """Empty the set, and put the planted neighbours of a row there. Returns the mask of the set, and how many stay."""
    indptr, values = planted
    size = 4
    while size < 2 * (degree + indptr[row + 1] - indptr[row]):
        size *= 2
    for k in range(size):
        table[k] = -1
    n = 0
    for k in range(indptr[row], indptr[row + 1]):
        v = values[k]
        _add(table, size - 1, max(v, ~v))
        if v >= 0:
            out[at + n] = v
            n += 1
    return size - 1, n


@entry
def draw(draws, grid, rows, planted, classes, n_right, table, found):
    """Draw the right neighbours of left vertices. Both sides have a *stub* per edge, and a permutation pairs them.

    Parameters
    ----------
    draws : (int, ndarray of uint64 with an even shape)
        Keys of the draws that replace repeated pairs, and of the permutation.
    grid : (int, int, int)
        Height and width of the grid of the permutation, each below 2**32, and the number of stubs.
    rows : (ndarray, ndarray, ndarray) of int64
        For every left vertex its number, its first stub, and its number of stubs.
    planted : (ndarray, ndarray) of int64
        Start of the planted neighbours of every row, and these; ``~v`` is one whose edge was removed. No other edge of
        the row leads to one of these.
    classes : ((ndarray, ndarray, ndarray, ndarray) of int64, shift)
        Runs of right vertices with equal degrees: first stub (and behind the last one the number of stubs), first
        vertex, degree, and for every ``stub >> shift`` the class of the first such stub.
    n_right : int
    table : ndarray of int32
        Room for a power of two that is at least 4, and twice the neighbours of any row.
    found : (ndarray of int64, ndarray of int32)
        Where the neighbours of each row begin, and output: the neighbours, ascending.

    Notes
    -----
    Where a pair is there already, another stub is drawn from all of them, so a right vertex is as likely as it has
    degree. After `_TRIES` draws the next vertex that is free takes its place.
    """
    (key, keys), (numbers, firsts, degrees), (indptr, out) = draws, rows, found
    height, width, n_stubs = grid
    for r in range(len(numbers)):
        own, drawn = splitmix64(np.uint64(key) ^ np.uint64(numbers[r])), np.uint64(0)
        mask, n = _begin(r, degrees[r], planted, table, out, indptr[r])
        at = indptr[r] + n
        for e in range(degrees[r]):
            v = _owner(_permuted(firsts[r] + e, keys, height, width, n_stubs), classes)
            tries = 0
            while not _add(table, mask, v):
                word = splitmix64(own + drawn * _STEP)
                drawn += np.uint64(1)
                tries += 1
                if tries > _TRIES:
                    v = _below(word, n_right)
                    while not _add(table, mask, v):
                        v = v + 1 if v + 1 < n_right else 0
                    break
                v = _owner(np.int64(word % np.uint64(n_stubs)), classes)
            out[at + e] = v
        sort_list(out, indptr[r], indptr[r + 1])


@entry
def label_edges(vertices, indptr, right, left_map, right_map, out_left, out_right):
    """Write the numbers in the labels of edges (`out_left`, `out_right`, int32), and return their fingerprint, signed.

    Left vertices (int64) have the neighbours ``right[indptr[k]:indptr[k + 1]]`` (int32). A map is factor, shift and n:
    vertex ``v`` has the number ``(v * factor + shift) % n``. The fingerprint is the sum of `schemas.hashes.mixed`.
    """
    total = np.uint64(0)
    for r in range(len(vertices)):
        own = (vertices[r] * left_map[0] + left_map[1]) % left_map[2]
        for e in range(indptr[r], indptr[r + 1]):
            other = (right[e] * right_map[0] + right_map[1]) % right_map[2]
            out_left[e], out_right[e] = own, other
            total += mixed(np.uint64(own), np.uint64(other))
    return np.int64(total)
