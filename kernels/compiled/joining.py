"""Joins rows that are neighbours in the lattice of bicliques (`pipeline.results.communities`).

`join_rows` looks for the vertices of the other side that are joined to at least `least` members of a row. Each of them
is joined to one of all members but ``least - 1``, so only the neighbours of these are walked. The other members, those
with most neighbours, are asked whether they are joined to what was found.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from bicliques.kernels.compiled.jit import compiled, entry


@intrinsic
def _replaced(typing, rows, k, old, new):
    """Whether ``rows[k]``, int32, was `old` and is `new` now. No other thread comes between."""

    def codegen(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        done = builder.cmpxchg(place, args[2], args[3], "seq_cst", "seq_cst")
        return builder.extract_value(done, 1)

    return types.boolean(types.Array(types.int32, 1, "C"), types.intp, types.int32, types.int32), codegen


@compiled
def _top(up, base, x):
    """The row that stands for the set of a row in the forest from `base` on, while other threads join sets."""
    parent = np.int64(up[base + x])
    while parent != x:
        up[base + x] = up[base + parent]  # never a row at the top, which is all that joining changes
        x = np.int64(up[base + x])
        parent = np.int64(up[base + x])
    return x


@compiled
def _place_of(sums, table, wanted):
    """The place of the row with this sum, or that where it would be."""
    last = np.uint64(len(table) - 1)
    at = (wanted ^ wanted >> np.uint64(32)) & last
    while table[at] >= 0 and sums[np.uint64(table[at])] != wanted:
        at = (at + np.uint64(1)) & last
    return at


@entry
def number_rows(sums: np.ndarray, table: np.ndarray) -> int:
    """Give each row a place in a table of int32, which is -1 everywhere. Returns -1, or a row that is there twice."""
    for row in range(len(sums)):
        at = _place_of(sums, table, sums[row])
        if table[at] >= 0:
            return row
        table[at] = row
    return -1


@compiled
def _join(up, base, x, y):
    """Join the sets of two rows. Returns whether they were two."""
    while up[base + x] != up[base + y]:
        x, y = _top(up, base, x), _top(up, base, y)
        x, y = min(x, y), max(x, y)
        if x != y and _replaced(up, base + y, np.int32(y), np.int32(x)):
            return True
    return False


@entry
def join_rows(rows, first, least, levels, graph, hashes, sums, table, up, scratch):
    """Join some rows with their neighbours.

    Parameters
    ----------
    rows, first : (ndarray of int64, of int32, of int64), int
        Offsets and members of the side that is walked, and the number of members on the other; the number among all
        rows of the first of these.
    least, levels : (int, int), ndarray of int8
        The fewest members of both; by excess over that the level that it reaches, the last entry for all larger ones.
    graph, hashes : (ndarray of int64, of int32, of int64, of uint64), ndarray of uint64
        Neighbours of each vertex that is walked; where it has them as bits, or -1, and these bits; its hash.
    sums, table, up : ndarray of uint64, of int32, of int32
        Sums of hashes of all rows, what `number_rows` made of them, and a forest over all rows for each level. Other
        threads may join rows at the same time.
    scratch : tuple of ndarray
        By vertex of the other side and one more zeros of int32 and uint64, which they are again after the call, and
        room for int32 and uint64. And room for `least` int64.

    Returns
    -------
    int
        -1, or the number among all of a row that lacks a neighbour.
    """
    offsets, members, others = rows
    indptr, indices, at_bits, bits = graph
    shared, hashed, met, wanted, asked = scratch
    for row in range(len(others)):
        size, number, n_met, n_asked = offsets[row + 1] - offsets[row], first + row, 0, 0
        for e in range(offsets[row], offsets[row + 1] if size > least[0] else offsets[row]):
            v = np.int64(members[e])
            if at_bits[v] >= 0:
                k, degree = n_asked, indptr[v + 1] - indptr[v]
                while k > 0 and indptr[asked[k - 1] + 1] - indptr[asked[k - 1]] < degree:
                    asked[k] = asked[k - 1]
                    k -= 1
                asked[k] = v
                n_asked += 1
                if n_asked < least[0]:
                    continue
                n_asked -= 1
                v = asked[n_asked]  # has the fewest neighbours
            own = hashes[v]
            for f in range(indptr[v], indptr[v + 1]):
                j = np.uint64(indices[f])  # unsigned, or Numba asks each time whether it counts from the end
                met[n_met] = j  # without a branch, which the processor would often take for another one
                n_met += int(shared[j] == 0)
                shared[j] += 1
                hashed[j] += own
        for left in range(n_asked - 1, -1, -1):
            own, begin, n_met, n_before = hashes[asked[left]], at_bits[asked[left]], 0, n_met
            for k in range(n_before):
                j = np.uint64(met[k])
                bit = np.int64(bits[np.uint64(begin) + (j >> np.uint64(6))] >> (j & np.uint64(63)) & np.uint64(1))
                n_shared = shared[j] + bit
                stays = int(n_shared + left >= least[0])
                shared[j] = n_shared * stays
                hashed[j] = (hashed[j] + (own & np.uint64(-bit))) & np.uint64(-stays)
                met[n_met] = j
                n_met += stays
        # A loop of its own, so that the next one waits for many places of the table at a time.
        n_wanted = 0
        for k in range(n_met):
            j = np.uint64(met[k])
            n_shared, part = shared[j], hashed[j]
            shared[j], hashed[j] = 0, np.uint64(0)
            met[n_wanted], wanted[n_wanted] = n_shared, part
            n_wanted += int(n_shared >= least[0]) & int(n_shared < size)
        for k in range(n_wanted):
            found = np.int64(table[_place_of(sums, table, wanted[k])])
            if found < 0:
                return number
            level = int(levels[min(met[k] - least[0], others[row] - least[1], len(levels) - 1)])
            while level >= 0 and _join(up, level * len(sums), number, found):
                level -= 1  # if they are joined, they are at all lower levels
    return -1


@entry
def members_of_sets(indptr, members, own, width, seen, found):
    """Write the members of sets of rows to `found`, mostly once: the number of the set times `width`, plus the vertex.

    `own` has the set of each row, and `seen` is -1 by vertex. There is room for the members of all rows, and one more.
    Returns how many numbers were written.
    """
    n = 0
    for row in range(len(own)):
        for e in range(indptr[row], indptr[row + 1]):
            v = members[e]
            found[n] = own[row] * width + v
            n += int(seen[v] != own[row])
            seen[v] = own[row]
    return n
