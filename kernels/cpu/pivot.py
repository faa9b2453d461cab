"""The pivot tree of `kernels.reference.pivot`, compiled, on bit matrices. It can be paused at every node.

Side 0 are the roots and side 1 is the base. A piece has a local number for each candidate root and each base vertex, a
row of bits over the other side for each, and a stack of nodes. A node has the candidates of both sides, and those of
the other side to which its pivot is not joined, which are held one after the other.

If cliques are counted (`kernels.reference.cliques`), side 1 is side 0: they have the same vertices, rows of bits, and
candidates. A row has the bit of its own vertex.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.searching import splitmix64
from bicliques.kernels.cpu.simd import popcount, trailing_zeros

FINISHED, PAUSED, WIDER, DEEPER, FULL, HEAVY = 0, 1, 2, 3, 4, 5
#: Positions in the state: next piece, depth of the stack, roots and base vertices of the open piece, steps until the
#: next pause, steps and words that a piece may take, steps it has taken, words it needs, kinds of leaves of the piece
#: and of all that were counted, how many of these have room, the checksums of both, the length of the trail, the held
#: base vertices of the pieces, and whether cliques are counted.
PIECE, DEPTH, ROOTS, BASE, STEPS, MOST_STEPS, MOST_WORDS, TAKEN, NEED, N_OWN, N_ALL, ROOM, OWN_MIX, MIX = range(14)
TRAIL, HELD, ONE = 14, 15, 16
#: Integers per node: held roots, free roots, held base, free base, side and number of the pivot, vertices of the trail.
NODE = 7


@compiled
def _add(table, kind, first, second, number):
    """Add to the number of a kind of leaves. Returns 1 if the kind is new."""
    roots, base, numbers, used = table
    last = len(numbers) - 1
    at = np.int64(splitmix64(first ^ splitmix64(second)) & np.uint64(last))
    while numbers[at] != 0 and (roots[at] != first or base[at] != second):
        at = (at + 1) & last
    is_new = np.int64(numbers[at] == 0)
    if is_new:
        roots[at], base[at], used[kind] = first, second, at
    numbers[at] += number
    return is_new


@compiled
def _keep(own, every, state):
    """Add the leaves of the piece that is done to those of all."""
    for k in range(state[N_OWN]):
        at = own[3][k]
        state[N_ALL] += _add(every, state[N_ALL], own[0][at], own[1][at], own[2][at])
        own[2][at] = 0
    state[MIX] += state[OWN_MIX]
    state[N_OWN] = state[OWN_MIX] = 0


@compiled
def _share(shares, leaf, path, begin, end, local, trail, n):
    """Add, for every member of a leaf, the bicliques of the wanted size that contain it, modulo 2**64."""
    ways, wanted, of_roots, of_base = shares
    row = np.int64(len(ways)) // (max(wanted[0], wanted[1]) + 1)
    more_roots, more_base = wanted[0] - leaf[0], wanted[1] - leaf[2]
    if more_roots < 0 or more_base < 0:
        return
    roots, base = ways[more_roots * row + leaf[1]], ways[more_base * row + leaf[3]]
    for k in range(begin, end):
        of_roots[path[k]] += roots * base
    for k in range(n):
        x, side, is_held = trail[k] >> 2, (trail[k] >> 1) & 1, trail[k] & 1
        number = roots * base
        if side == 0:
            if is_held == 0:
                number = base * ways[(more_roots - 1) * row + leaf[1] - 1] if more_roots > 0 else np.uint64(0)
            of_roots[local[2][x]] += number
        else:
            if is_held == 0:
                number = roots * ways[(more_base - 1) * row + leaf[3] - 1] if more_base > 0 else np.uint64(0)
            of_base[local[3][x]] += number


@compiled
def _mark_base(graph, path, begin, end, at_base, listed):
    """Number the common neighbours of the path from 0. Returns how many there are."""
    indptr, indices = graph[0], graph[1]
    for k in range(begin, end):
        for e in range(indptr[path[k]], indptr[path[k] + 1]):
            if at_base[indices[e]] == k - begin - 1:
                at_base[indices[e]] = k - begin
    n = 0
    last = path[end - 1]
    for e in range(indptr[last], indptr[last + 1]):
        if at_base[indices[e]] == end - begin - 1:
            listed[n] = indices[e]
            n += 1
    for k in range(begin, end):
        for e in range(indptr[path[k]], indptr[path[k] + 1]):
            at_base[indices[e]] = -1
    return n


@compiled
def _fill(words, begin, n):
    """Set the first `n` bits of the words from `begin` on."""
    for k in range(n >> 6):
        words[begin + k] = ~np.uint64(0)
    if n & 63:
        words[begin + (n >> 6)] = (np.uint64(1) << np.uint64(n & 63)) - np.uint64(1)


@compiled
def _open(graph, pieces, local, bits, frames, ints, state):
    """Open the next piece. Returns 0, `WIDER` if its rows need more room, or `HEAVY` if they may not have it."""
    path_indptr, path, after, place, named, listed = pieces
    at_root, at_base, roots, base = local
    begin, end, later = path_indptr[state[PIECE]], path_indptr[state[PIECE] + 1], after[state[PIECE]]
    n_base = _mark_base(graph, path, begin, end, at_base, base)
    n_roots = 0
    if len(named):
        n_common, n_base = n_base, 0
        for k in range(n_common):
            if named[base[k]]:
                base[n_base] = base[k]
                n_base += 1
        for k in range(later + 1, len(listed)):
            at_root[listed[k]], roots[n_roots] = n_roots, listed[k]
            n_roots += 1
    for k in range(begin, end):
        at_root[path[k]] = -2
    for k in range(n_base):
        if state[ONE]:
            w = base[k]
            if place[w] > later:
                at_root[w] = n_roots
                roots[n_roots] = base[n_roots] = w
                n_roots += 1
            continue
        for e in range(graph[2][base[k]], graph[2][base[k] + 1]):
            w = graph[3][e]
            if place[w] > later and at_root[w] == -1:
                at_root[w] = n_roots
                roots[n_roots] = w
                n_roots += 1
    if state[ONE]:
        n_base = n_roots
    over_roots, over_base = (n_roots + 63) >> 6, (n_base + 63) >> 6
    second = 0 if state[ONE] else n_roots * over_base
    state[ROOTS], state[BASE], state[NEED] = n_roots, n_base, second + n_base * over_roots
    status = 0
    if state[NEED] > state[MOST_WORDS] and n_roots > 1:
        status = HEAVY
    elif state[NEED] > len(bits) or over_roots + over_base + max(over_roots, over_base) > len(frames):
        status = WIDER
    else:
        bits[: state[NEED]] = np.uint64(0)
        for k in range(n_base):
            if state[ONE]:
                bits[k * over_base + (k >> 6)] |= np.uint64(1) << np.uint64(k & 63)
            for e in range(graph[2][base[k]], graph[2][base[k] + 1]):
                j = np.int64(at_root[graph[3][e]])
                if j >= 0:
                    bits[j * over_base + (k >> 6)] |= np.uint64(1) << np.uint64(k & 63)
                    bits[second + k * over_roots + (j >> 6)] |= np.uint64(1) << np.uint64(j & 63)
        _fill(frames, 0, n_roots)
        _fill(frames, over_roots, n_base)
        ints[0], ints[1], ints[2], ints[3], ints[4], ints[5], ints[6] = end - begin, 0, state[HELD], 0, 0, -1, 0
        state[DEPTH], state[TAKEN], state[TRAIL] = 1, 0, 0
    state[PIECE] += status != WIDER
    for k in range(n_roots):
        at_root[roots[k]] = -1
    for k in range(begin, end):
        at_root[path[k]] = -1
    return status


@compiled
def _pivot(bits, frames, node, words, second, free, trail, state):
    """Free candidates that are joined to all of the other side, and append them to the trail.

    Returns number and side of the candidate that is joined to all but the fewest others, and the free vertices of both
    sides. The number is -1 if a side has no candidates. Then the node is a leaf, because those of the other are free.
    """
    best, best_side, fewest = np.int64(-1), np.int64(0), np.int64(1) << 60
    free_roots, free_base = free
    for side in range(2 - state[ONE]):
        own = node if side == 0 else node + words[0]
        other = node + words[0] if side == 0 and not state[ONE] else node
        row_words = words[1] if side == 0 else words[0]
        start = np.int64(0) if side == 0 else second
        for i in range(words[0] if side == 0 else words[1]):
            left = frames[own + i]
            while left != np.uint64(0):
                bit = np.int64(trailing_zeros(left))
                left &= left - np.uint64(1)
                row = start + ((i << 6) + bit) * row_words
                n = np.int64(0)
                for k in range(row_words):
                    n += np.int64(popcount(frames[other + k] & ~bits[row + k]))
                    if n >= fewest:
                        break
                if n == 0:
                    frames[own + i] &= ~(np.uint64(1) << np.uint64(bit))
                    trail[state[TRAIL]] = ((i << 6) + bit) << 2 | side << 1
                    state[TRAIL] += 1
                    if side == 0:
                        free_roots += 1
                    else:
                        free_base += 1
                elif n < fewest:
                    best, best_side, fewest = (i << 6) + bit, np.int64(side), n
    return best, best_side, free_roots, free_base


@entry
def count_pieces(
    graph: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    pieces: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    n_pieces: int,
    local: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    bits: np.ndarray,
    frames: np.ndarray,
    ints: np.ndarray,
    own: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    every: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    most: tuple[int, int],
    trail: np.ndarray,
    shares: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    state: np.ndarray,
) -> int:
    """Count the leaves of pieces until all are counted, or the caller has to do something.

    Parameters
    ----------
    graph : tuple
        Offsets and neighbours of the roots, and of the base. For cliques both are the neighbours of each root.
    pieces : tuple
        Offsets and roots of the paths. By piece a place, and by root another: the candidates are those after it. If
        pieces name base vertices, by base vertex whether it is among them, and the roots in their places.
    local : tuple of ndarray of int32
        By root and by base vertex -1, and room for as many of each.
    bits, frames, ints : ndarray
        Rows of the open piece, and its stack.
    own, every : tuple
        Tables of the leaves of the open piece and of those that were counted: held and free roots (32 bits each), the
        same of the base, number, and the used places.
    most : (int, int)
        The most held roots and base vertices.
    trail : ndarray of int64
        Held and free vertices of the open piece: number, side (1 bit), and whether it is held (1 bit).
    shares : tuple
        In place of `every`: rows of C(n, k) for all n, by k; the wanted roots and base vertices; and by root and base
        vertex the bicliques of that size that contain it. Empty arrays if that is not wanted.
    state : ndarray of int64

    Returns
    -------
    int
        `FINISHED`, `PAUSED`, or what is needed: `WIDER` rows, a `DEEPER` stack, leaves that are not `FULL`, or that the
        open piece is divided because it is `HEAVY`.
    """
    while True:
        if state[DEPTH] == 0:
            if state[N_ALL] + state[N_OWN] > state[ROOM]:
                return FULL
            _keep(own, every, state)
            if state[PIECE] == n_pieces:
                return FINISHED
            if state[STEPS] <= 0:
                return PAUSED
            status = _open(graph, pieces, local, bits, frames, ints, state)
            if status != 0:
                return status
        over_roots, over_base = (state[ROOTS] + 63) >> 6, (state[BASE] + 63) >> 6
        words = (over_roots, over_base)
        second, apart = (0, 0) if state[ONE] else (state[ROOTS] * over_base, over_roots)
        width = over_roots + over_base + max(over_roots, over_base)
        deepest = min(len(frames) // max(width, 1), len(ints) // NODE)
        while state[DEPTH] > 0:
            if state[STEPS] <= 0:
                return PAUSED
            is_full = 2 * state[N_OWN] >= len(own[2])
            if state[ROOTS] > 1 and (state[TAKEN] >= state[MOST_STEPS] or is_full):
                return HEAVY
            if state[DEPTH] >= deepest:
                return DEEPER
            state[STEPS] -= 1
            state[TAKEN] += 1
            node, mine = (state[DEPTH] - 1) * width, (state[DEPTH] - 1) * NODE
            others = node + over_roots + over_base
            if ints[mine + 5] < 0:
                free = (ints[mine + 1], ints[mine + 3])
                best, best_side, free_roots, free_base = _pivot(bits, frames, node, words, second, free, trail, state)
                ints[mine + 1], ints[mine + 3] = free_roots, free_base
                if best < 0:
                    if len(shares[0]):
                        leaf = (ints[mine], ints[mine + 1], ints[mine + 2], ints[mine + 3])
                        begin, end = pieces[0][state[PIECE] - 1], pieces[0][state[PIECE]]
                        _share(shares, leaf, pieces[1], begin, end, local, trail, state[TRAIL])
                    elif state[ONE] or ints[mine + 2] + ints[mine + 3] > 0:
                        first = np.uint64(ints[mine]) << np.uint64(32) | np.uint64(ints[mine + 1])
                        then = np.uint64(ints[mine + 2]) << np.uint64(32) | np.uint64(ints[mine + 3])
                        state[N_OWN] += _add(own, state[N_OWN], first, then, np.int64(1))
                        state[OWN_MIX] += np.int64(splitmix64(splitmix64(first) + splitmix64(then)))
                    state[DEPTH], state[TRAIL] = state[DEPTH] - 1, ints[mine + 6]
                    continue
                ints[mine + 4], ints[mine + 5] = best_side, best
                other = node + apart if best_side == 0 else node
                n_words = over_base if best_side == 0 else over_roots
                row = best * over_base if best_side == 0 else second + best * over_roots
                for k in range(n_words):
                    frames[others + k] = frames[other + k] & ~bits[row + k]
            side = ints[mine + 4]
            other = node + apart if side == 0 else node
            n_words = over_base if side == 0 else over_roots
            k = 0
            while k < n_words and frames[others + k] == np.uint64(0):
                k += 1
            own_side = node if side == 0 else node + over_roots
            if k == n_words:
                p = ints[mine + 5]
                frames[own_side + (p >> 6)] &= ~(np.uint64(1) << np.uint64(p & 63))
                ints[mine + 1 + 2 * side] += 1
                ints[mine + 5] = -1
                trail[state[TRAIL]] = p << 2 | side << 1
                state[TRAIL] += 1
                continue
            bit = np.uint64(trailing_zeros(frames[others + k]))
            frames[others + k] &= frames[others + k] - np.uint64(1)
            frames[other + k] &= ~(np.uint64(1) << bit)
            w = (k << 6) + np.int64(bit)
            held_at = 2 * (1 - side - state[ONE])
            held = ints[mine + held_at] + 1
            if held > most[1 - side]:
                continue
            child, below = state[DEPTH] * width, state[DEPTH] * NODE
            for i in range(over_roots + over_base):
                frames[child + i] = frames[node + i]
            row = second + w * over_roots if side == 0 else w * over_base
            own_words = over_roots if side == 0 else over_base
            own_child = child if side == 0 else child + over_roots
            for i in range(own_words):
                frames[own_child + i] &= bits[row + i]
            for i in range(4):
                ints[below + i] = ints[mine + i]
            ints[below + held_at] = held
            ints[below + 5], ints[below + 6] = -1, state[TRAIL]
            trail[state[TRAIL]] = w << 2 | (1 - side) << 1 | 1
            state[DEPTH], state[TRAIL] = state[DEPTH] + 1, state[TRAIL] + 1
