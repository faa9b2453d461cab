"""Random edges in integer arithmetic alone, so that a seed gives the same graph on any machine.

Random numbers are not a sequence. Every one is the mix of a key and of a counter (the generator of Steele, Lea and
Flood, OOPSLA 2014, doi:10.1145/2714064.2660195, entered at any place). A left vertex has a key of its own, so its
neighbours do not depend on who draws them, or on what was drawn before.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled.jit import compiled, entry
from kernels.compiled.lists import sort_list
from kernels.compiled.mixing import mixed, splitmix64

__all__ = ["CHANCE_BITS", "MOST_LEVELS", "draw_by_quadrants", "draw_by_stubs", "label_edges", "split"]

#: Bits of a probability.
CHANCE_BITS = 24
#: Halvings of a side until one vertex is left.
MOST_LEVELS = 32
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
def _owner(stub, classes, shift):
    """The vertex that has this stub; see `draw_by_stubs`."""
    starts, vertices, degrees, guide = classes
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
def _add_free(table, mask, v, n):
    """Add the first vertex from `v` on that is not in the set, of `n` vertices in a circle. Returns it."""
    while not _add(table, mask, v):
        v = v + 1 if v + 1 < n else 0
    return v


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
def draw_by_stubs(key, keys, grid, rows, planted, classes, shift, n_right, table, indptr, out):
    """Draw the right neighbours of left vertices. Both sides have a *stub* per edge, and a permutation pairs them.

    Parameters
    ----------
    key : int
        Of the draws that replace repeated pairs.
    keys : ndarray of uint64, shape (even,)
        Of the permutation.
    grid : (int, int, int)
        Height and width of the grid of the permutation, each below 2**32, and the number of stubs.
    rows : (ndarray, ndarray, ndarray) of int64
        For every left vertex its number, its first stub, and its number of stubs.
    planted : (ndarray, ndarray) of int64
        Start of the planted neighbours of every row, and these; ``~v`` is one whose edge was removed. No other edge of
        the row leads to one of these.
    classes : (ndarray, ndarray, ndarray, ndarray) of int64
        Runs of right vertices with equal degrees: first stub (and behind the last one the number of stubs), first
        vertex, degree, and for every ``stub >> shift`` the class of the first such stub.
    shift, n_right : int
    table : ndarray of int32
        Room for a power of two that is at least 4, and twice the neighbours of any row.
    indptr, out : ndarray of int64, ndarray of int32
        Where the neighbours of each row begin, and output: the neighbours, ascending.

    Notes
    -----
    Where a pair is there already, another stub is drawn from all of them, so a right vertex is as likely as it has
    degree. After `_TRIES` draws the next vertex that is free takes its place.
    """
    numbers, firsts, degrees = rows
    height, width, n_stubs = grid
    for r in range(len(numbers)):
        own, drawn = splitmix64(np.uint64(key) ^ np.uint64(numbers[r])), np.uint64(0)
        mask, n = _begin(r, degrees[r], planted, table, out, indptr[r])
        at = indptr[r] + n
        for e in range(degrees[r]):
            v = _owner(_permuted(firsts[r] + e, keys, height, width, n_stubs), classes, shift)
            tries = 0
            while not _add(table, mask, v):
                word = splitmix64(own + drawn * _STEP)
                drawn += np.uint64(1)
                tries += 1
                if tries > _TRIES:
                    v = _add_free(table, mask, _below(word, n_right), n_right)
                    break
                v = _owner(np.int64(word % np.uint64(n_stubs)), classes, shift)
            out[at + e] = v
        sort_list(out, indptr[r], indptr[r + 1])


@entry
def split(key, chance, most, until, nodes, n_nodes, keep_empty, out):
    """Divide edges among the halves of ranges of left vertices, again and again.

    Parameters
    ----------
    key : int
    chance : int
        Probability of the first half, in units of ``2**-CHANCE_BITS``.
    most : int
        Edges of a vertex at most.
    until : int
        Ranges with no more edges than this are not divided. With -1 all are, as long as they have two vertices.
    nodes : (ndarray, ndarray, ndarray, ndarray) of int64
        Ranges: first vertex, number of vertices, how often halved, and edges (below 2**40). They are a stack, the first
        range last, with room for `MOST_LEVELS` more.
    n_nodes : int
    keep_empty : int
        Whether ranges without edges are handed out.
    out : the same
        Output, in the order of the vertices.

    Returns
    -------
    int
        Number of ranges in the output.

    Notes
    -----
    A half gets its expected share of the edges, rounded up or down at random. What does not fit goes to the other half.
    """
    firsts, sizes, levels, counts = nodes
    n = n_nodes
    found = 0
    while n > 0:
        n -= 1
        first, size, level, count = firsts[n], sizes[n], levels[n], counts[n]
        if count == 0 and not keep_empty:
            continue
        if size == 1 or count <= until or count == 0:
            out[0][found], out[1][found], out[2][found], out[3][found] = first, size, level, count
            found += 1
            continue
        word = splitmix64(splitmix64(np.uint64(key) ^ np.uint64(first)) ^ np.uint64(level))
        whole = np.uint64(count) * np.uint64(chance) + (word >> np.uint64(64 - CHANCE_BITS))
        half = (size + 1) // 2
        here = min(np.int64(whole >> np.uint64(CHANCE_BITS)), half * most)
        here = max(here, count - (size - half) * most)
        firsts[n], sizes[n], levels[n], counts[n] = first + half, size - half, level + 1, count - here
        firsts[n + 1], sizes[n + 1], levels[n + 1], counts[n + 1] = first, half, level + 1, here
        n += 2
    return found


@compiled
def _column(own, number, chances, n_right):
    """The right vertex of a draw: at each level a half, by a bit less than a random number."""
    first, size, level, word = 0, n_right, 0, np.uint64(0)
    while size > 1:
        if level % 2 == 0:
            word = splitmix64(own + (number * np.uint64(MOST_LEVELS // 2) + np.uint64(level // 2)) * _STEP)
        part = np.int64(word >> np.uint64(64 - CHANCE_BITS))
        word = word << np.uint64(CHANCE_BITS)
        half = (size + 1) // 2
        if part < chances[level]:
            size = half
        else:
            first += half
            size -= half
        level += 1
    return first


@entry
def draw_by_quadrants(key, quadrants, rows, planted, n_left, n_right, chances, table, indptr, out):
    """Draw the right neighbours of left vertices by R-MAT (Chakrabarti, Zhan and Faloutsos, SDM 2004).

    Parameters
    ----------
    key : int
    quadrants : ndarray of int64, shape (3,)
        Probability of the first half of the right side, in units of ``2**-CHANCE_BITS``: where the left vertex is in
        the first half of its range, where it is in the second, and where its range has one vertex.
    rows : (ndarray, ndarray) of int64
        For every left vertex its number, and how many neighbours to draw.
    planted, table, indptr, out
        As of `draw_by_stubs`.
    n_left, n_right : int
    chances : ndarray of int64, shape (MOST_LEVELS,)
        Room for one row.
    """
    numbers, degrees = rows
    for r in range(len(numbers)):
        first, size, level = 0, n_left, 0
        while level < MOST_LEVELS:
            half = (size + 1) // 2
            if size == 1:
                chances[level] = quadrants[2]
            elif numbers[r] < first + half:
                chances[level] = quadrants[0]
                size = half
            else:
                chances[level] = quadrants[1]
                first += half
                size -= half
            level += 1
        own, drawn = splitmix64(np.uint64(key) ^ np.uint64(numbers[r])), np.uint64(0)
        mask, n = _begin(r, degrees[r], planted, table, out, indptr[r])
        at = indptr[r] + n
        for e in range(degrees[r]):
            tries = 0
            while True:
                v = _column(own, drawn, chances, n_right)
                drawn += np.uint64(1)
                tries += 1
                if tries > _TRIES:
                    v = _add_free(table, mask, v, n_right)
                    break
                if _add(table, mask, v):
                    break
            out[at + e] = v
        sort_list(out, indptr[r], indptr[r + 1])


@entry
def label_edges(vertices, indptr, right, left_map, right_map, out_left, out_right):
    """Write edges with the labels of their ends.

    Parameters
    ----------
    vertices : ndarray of int64
        Left vertices.
    indptr, right : ndarray of int64, ndarray of int32
        Their neighbours.
    left_map, right_map : (int, int, int)
        Vertex ``v`` has the label ``(v * factor + shift) % n``.
    out_left, out_right : ndarray of int32
        Output.

    Returns
    -------
    int
        The sum of `schemas.hashes.mixed` of all pairs of labels, as a signed number.
    """
    total = np.uint64(0)
    for r in range(len(vertices)):
        own = (vertices[r] * left_map[0] + left_map[1]) % left_map[2]
        for e in range(indptr[r], indptr[r + 1]):
            other = (right[e] * right_map[0] + right_map[1]) % right_map[2]
            out_left[e], out_right[e] = own, other
            total += mixed(np.uint64(own), np.uint64(other))
    return np.int64(total)
