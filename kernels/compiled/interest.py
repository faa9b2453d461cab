"""Passes over bicliques that tell the interesting ones: which repeat another, how many edges are new, how likely it is.

Bicliques (`rows`) are the arrays of `schemas.bicliques.Bicliques.sides`. All members are vertices.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry


@compiled
def _repeats(rows, i, index, common, touched, most):
    """Whether biclique `i` shares more than ``most[0]`` of its edges with one of the index; see `mark_repeats`."""
    (left, left_indptr), (right, right_indptr) = rows
    left_start, left_stop, right_start, right_stop = (
        left_indptr[i],
        left_indptr[i + 1],
        right_indptr[i],
        right_indptr[i + 1],
    )
    n = best = 0
    of_left, of_right = common
    heads, links, owners = index[0]
    for e in range(left_start, left_stop):
        k = heads[left[e]]
        while k >= 0:
            o = owners[k]
            if of_left[o] == 0:
                touched[n] = o
                n += 1
            of_left[o] += 1
            best = max(best, of_left[o])
            k = links[k]
    found = False
    n_left, n_right = left_stop - left_start, right_stop - right_start
    if best / n_left > most[0]:  # otherwise no share can be larger, whatever the right sides have in common
        heads, links, owners = index[1]
        for e in range(right_start, right_stop):
            k = heads[right[e]]
            while k >= 0:
                of_right[owners[k]] += of_left[owners[k]] > 0
                k = links[k]
        for t in range(n):
            o = touched[t]
            if of_left[o] * of_right[o] / (n_left * n_right) > most[0]:
                found = True
            of_right[o] = 0
    for t in range(n):
        of_left[touched[t]] = 0
    return found


@entry
def mark_repeats(rows, numbers, index, common, touched, most, is_repeat):
    """Mark the bicliques that share more than a part of their edges with a biclique of an index.

    Parameters
    ----------
    rows : ((ndarray, ndarray), (ndarray, ndarray))
        Bicliques.
    numbers : ndarray, shape (n,), int64
        Those to look at.
    index : ((ndarray, ndarray, ndarray), (ndarray, ndarray, ndarray)), int64
        For the left and for the right side: first link of every vertex, next link, and owner of each link, which is the
        number of a biclique of the index that has the vertex. -1 ends the links of a vertex.
    common : (ndarray, ndarray), int64
        Zeros, one per biclique of the index, for the left and for the right side. They are zeros again afterwards.
    touched : ndarray, int64
        Room for one number per biclique of the index.
    most : ndarray, shape (1,), float64
        Share of a biclique's own edges, from 0 to 1.
    is_repeat : ndarray, shape (n,), uint8
        Output: 1 for each biclique that shares more than that, and 0 for the others.
    """
    for k in range(len(numbers)):
        is_repeat[k] = _repeats(rows, numbers[k], index, common, touched, most)


@entry
def keep_distinct(rows, index, used, common, touched, most, kept):
    """Go through bicliques in their order, and add those to the index that share too little with all in it.

    Parameters
    ----------
    rows, index, common, touched, most
        As of `mark_repeats`. The index and the arrays of one number per biclique have room for all that may be added.
    used : ndarray, shape (3,), int64
        Numbers of bicliques, of left links and of right links in the index. They go up.
    kept : ndarray, int64
        Output: the numbers of the bicliques that are added, which are at most as many as there is room here.

    Returns
    -------
    int
        How many are added.
    """
    n = 0
    (left, left_indptr), (right, right_indptr) = rows
    for i in range(len(left_indptr) - 1):
        if n == len(kept):
            break
        if _repeats(rows, i, index, common, touched, most):
            continue
        _link(left, left_indptr[i], left_indptr[i + 1], index[0], used[1], used[0])
        _link(right, right_indptr[i], right_indptr[i + 1], index[1], used[2], used[0])
        used[0] += 1
        used[1] += left_indptr[i + 1] - left_indptr[i]
        used[2] += right_indptr[i + 1] - right_indptr[i]
        kept[n] = i
        n += 1
    return n


@compiled
def _link(members, start, stop, side, free, owner):
    heads, links, owners = side
    for e in range(start, stop):
        v = members[e]
        links[free], owners[free] = heads[v], owner
        heads[v] = free
        free += 1


@entry
def count_new(rows, numbers, masks, n_words, stride, found):
    """Count the edges of each biclique that no chosen biclique has.

    Parameters
    ----------
    rows : ((ndarray, ndarray), (ndarray, ndarray))
        Bicliques.
    numbers : ndarray, shape (n,), int64
        Those to look at.
    masks : (ndarray, ndarray), uint64
        For each vertex of the left and of the right side `stride` words. A bit stands for a chosen biclique, and is set
        if the vertex is a member of it.
    n_words : int
        How many words of each vertex are in use.
    stride : int
    found : ndarray, shape (n,), int64
        Output.

    Notes
    -----
    A pair is in a chosen biclique if both ends have a bit in common. So no edge is looked up.
    """
    (left, left_indptr), (right, right_indptr) = rows
    of_left, of_right = masks
    for k in range(len(numbers)):
        i = numbers[k]
        new, start, stop = 0, right_indptr[i], right_indptr[i + 1]
        for e in range(left_indptr[i], left_indptr[i + 1]):
            own, bits = left[e] * stride, np.uint64(0)
            for w in range(n_words):
                bits |= of_left[own + w]
            if bits == 0:
                new += stop - start
                continue
            for f in range(start, stop):
                other, bits = right[f] * stride, np.uint64(0)
                for w in range(n_words):
                    bits |= of_left[own + w] & of_right[other + w]
                new += bits == 0
        found[k] = new


@compiled
def _ones(word):
    """The number of bits of a word that are set. LLVM makes one instruction of it."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@entry
def count_new_bits(rows, numbers, has, n_words, free, found):
    """As `count_new`, of graphs with few vertices on one side, in a fraction of the time.

    Parameters
    ----------
    rows : ((ndarray, ndarray), (ndarray, ndarray))
        Bicliques, or the same with the right side first. The second side is the one with few vertices.
    numbers : ndarray, shape (n,), int64
        Those to look at.
    has : ndarray, uint64
        For each vertex of the side `one`, `n_words` words. A bit stands for a vertex of the other side, and is set if a
        chosen biclique has the edge between both.
    n_words : int
        Words with a bit for every vertex of the other side.
    free : ndarray, shape (n_words,), uint64
        Room for the members of one biclique.
    found : ndarray, shape (n,), int64
        Output.
    """
    (one, one_indptr), (other, other_indptr) = rows
    for k in range(len(numbers)):
        i, new = numbers[k], 0
        for w in range(n_words):
            free[w] = 0
        for e in range(other_indptr[i], other_indptr[i + 1]):
            free[other[e] >> 6] |= np.uint64(1) << np.uint64(other[e] & 63)
        for e in range(one_indptr[i], one_indptr[i + 1]):
            own = one[e] * n_words
            for w in range(n_words):
                new += _ones(free[w] & ~has[own + w])
        found[k] = new


@entry
def add_weights(rows, numbers, kinds, weights, n_kinds, found):
    """Add up the weights of all pairs of each biclique. The weight of a pair depends on the kinds of both ends.

    Parameters
    ----------
    rows : ((ndarray, ndarray), (ndarray, ndarray))
        Bicliques.
    numbers : ndarray, shape (n,), int64
        Those to look at.
    kinds : (ndarray, ndarray), int32
        The kind of every vertex of the left and of the right side.
    weights : ndarray of int32
        Weight of left kind ``a`` with right kind ``b`` at ``a * n_kinds + b``.
    n_kinds : int
        Number of right kinds.
    found : ndarray, shape (n,), int64
        Output.
    """
    (left, left_indptr), (right, right_indptr) = rows
    of_left, of_right = kinds
    for k in range(len(numbers)):
        i = numbers[k]
        total, start, stop = 0, right_indptr[i], right_indptr[i + 1]
        for e in range(left_indptr[i], left_indptr[i + 1]):
            own = of_left[left[e]] * n_kinds
            for f in range(start, stop):
                total += weights[own + of_right[right[f]]]
        found[k] = total
