"""Marks edges of a graph, and finds what a biclique of it leaves in another graph, as a maximal biclique of that.

A vertex that is in a biclique with a marked edge is joined to an end of a marked edge: if (u, v) is the marked edge of
(L, R), all of L is joined to v, and all of R to u. Keep the left vertices that are joined to the right end of a marked
edge, the right vertices that are joined to a left end, and the edges between them. Who could extend (L, R) is joined to
u or to v, too, and is kept. So the maximal bicliques with a marked edge are the same in what is left and in the whole
graph. Every such biclique has a root vertex with a marked edge. These vertices get the lowest ranks. So the first root
vertex of each is one of them, and only their first-level subtrees are searched.

Let (L, R) be maximal in the graph `before`, with edges that the graph `after` lacks. A maximal biclique of `after` that
has no edge of its own, and was not maximal before, lies in such an (L, R): every maximal biclique of `before` that
contains it has a lost edge, or it would be one of `after`, and ours would not be maximal. Inside (L, R) it is what a
minimal cover of the lost edges leaves, or it could be extended there. Several (L, R) may contain it. It is taken from
the one whose left side is all common neighbours of its right side, before.

Of a cover that leaves (L', R') these are looked at:

1. No other left vertex than those of L was joined to all of R'. Otherwise (L, R) is not the one.
2. No left vertex outside L' is joined to all of R' now. One of L outside L' has lost an edge to R', because the cover
   is minimal. By 1, any other has an edge to R' that is of `after` only.
3. No right vertex outside R' is joined to all of L' now. One of R outside R' has lost an edge to L'. Any other, if L'
   is all of L, has an edge to L' that is of `after` only, because (L, R) was maximal. If L' is a part of L, the common
   neighbours of L' are looked at one by one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.searching import first_at_least
from bicliques.kernels.graph.csr import renumbered, select_rows, taken
from bicliques.kernels.graph.members import Restricted
from bicliques.kernels.graph.threads import even, on_slices
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.graph import MiningGraph

#: Marked edges: their left and their right ends, by dense id.
Marks = tuple[np.ndarray, np.ndarray]


def around_marks(kept: Restricted, n_left: int, n_right: int, marks: Marks) -> Restricted:
    """The edges that bicliques with a marked edge can have."""
    left, right = kept.left, kept.right
    near_left, near_right = np.zeros(n_left, np.bool_), np.zeros(n_right, np.bool_)
    is_end_left, is_end_right = near_left.copy(), near_right.copy()
    is_end_left[marks[0]], is_end_right[marks[1]] = True, True
    near_left[left[is_end_right[right]]] = True
    near_right[right[is_end_left[left]]] = True
    keep = near_left[left] & near_right[right]
    return Restricted(left[keep], right[keep], kept.missing, kept.first_missing)


def with_marks(graph: MiningGraph, marks: Marks) -> MiningGraph:
    """The graph with these edges marked, and the root vertices that have one in front. Edges that it lacks are left."""
    own, other = marks if graph.root_side == "left" else marks[::-1]
    sizes = (graph.n_left, graph.n_right) if graph.root_side == "left" else (graph.n_right, graph.n_left)
    root = _group_of(graph.root_members_indptr, graph.root_members, sizes[0])[own]
    base = _group_of(graph.base_members_indptr, graph.base_members, sizes[1])[other]
    is_there = (root >= 0) & (base >= 0)
    root, base = root[is_there], base[is_there]
    is_marked = np.zeros(graph.n_roots, np.bool_)
    is_marked[root] = True
    order = np.argsort(~is_marked, kind="stable")
    rank = np.empty(graph.n_roots, VERTEX)
    rank[order] = np.arange(graph.n_roots, dtype=VERTEX)
    root_indptr, root_indices = select_rows(graph.root_indptr, graph.root_indices, order)
    members_indptr, members = select_rows(graph.root_members_indptr, graph.root_members, order)
    return replace(
        graph,
        root_indptr=root_indptr,
        root_indices=root_indices,
        base_indices=renumbered(graph.base_indptr, graph.base_indices, rank),
        root_members_indptr=members_indptr,
        root_members=members,
        root_hash=graph.root_hash[order],
        marks=np.unique(base.astype(np.int64) << 32 | rank[root]),
    )


def _group_of(indptr: np.ndarray, members: np.ndarray, n: int) -> np.ndarray:
    """The vertex that stands for each dense id. -1 for those that are not in the graph."""
    found = np.full(n, -1, np.int64)
    found[members] = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return found


#: Adjacency lists of one side: offsets and neighbours, which ascend.
Lists = tuple[np.ndarray, np.ndarray]
#: The left and the right ends of edges by dense id, int32, and the number of every dense id of both sides, int64. Two
#: graphs have these numbers in common.
EdgeTable = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
#: Two lists are merged, unless one is so many times as long as the other. Then it is searched.
_LONGER = 8
#: What the call is told, and what it says: see `remains`.
_FIRST, _MIN_LEFT, _MIN_RIGHT, _N_ROWS, _N_LEFT, _N_RIGHT = range(6)


def edges_apart(old: EdgeTable, new: EdgeTable, threads: int) -> list[np.ndarray]:
    """Where in each of two tables the edges are that the other one lacks. int64, ascending.

    Parameters
    ----------
    old, new : EdgeTable
        Both ascend by the numbers of their ends.

    Notes
    -----
    It takes 9 bytes per edge of both.
    """
    words = [_words(table, threads) for table in (old, new)]
    return [np.flatnonzero(_is_missing(words[k], words[1 - k], threads)) for k in (0, 1)]


def _words(table: EdgeTable, threads: int) -> np.ndarray:
    """The numbers of both ends of each edge."""
    left, right, left_number, right_number = table
    found = taken(left_number, left, threads)
    found <<= 32
    found |= taken(right_number, right, threads)
    return found


def _is_missing(words: np.ndarray, among: np.ndarray, threads: int) -> np.ndarray:
    """Which words of an ascending array are not in another one."""
    found = np.ones(len(words), np.bool_)

    def look(_: int, start: int, stop: int) -> None:
        at = np.minimum(np.searchsorted(among, words[start:stop]), len(among) - 1)
        found[start:stop] = among[at] != words[start:stop]

    if len(among):
        on_slices(look, even(len(words), threads))
    return found


class Changed(NamedTuple):
    """Two graphs with the same numbers of vertices, as far as the search needs them.

    Parameters
    ----------
    before_right : Lists
        The left neighbours of every right vertex before.
    after_left, after_right : Lists
        The neighbours of every left and right vertex after.
    lost_left, lost_right : Lists
        The same of the edges that are gone.
    found_left, found_right : Lists
        The same of the edges that are new.
    """

    before_right: Lists
    after_left: Lists
    after_right: Lists
    lost_left: Lists
    lost_right: Lists
    found_left: Lists
    found_right: Lists


def remains_of(rows: tuple[Lists, Lists], changed: Changed, min_left: int, min_right: int) -> tuple[Lists, Lists]:
    """What maximal bicliques of `before` leave as maximal bicliques of `after`.

    Parameters
    ----------
    rows : (Lists, Lists)
        Their left and their right members, int32, ascending. Each of them has a lost edge.
    min_left, min_right : int
        Fewest members of what is left.

    Returns
    -------
    (Lists, Lists)
        As `rows`. What is left of all rows that have a lost edge has every biclique once.

    Notes
    -----
    A row is searched in time that grows with the number of minimal covers of its lost edges.
    """
    n = len(rows[0][0]) - 1
    widest = int(max(np.diff(ptr).max(initial=0) for ptr, _ in rows))
    n_lost = len(changed.lost_left[1])
    scratch = np.empty(6 * widest + 2 * min(n_lost, widest * widest) + 8, OFFSET)
    state = np.array([0, min_left, min_right, 0, 0, 0], OFFSET)
    found = _room(2 * n + 16, rows[0][0][-1] + widest + 16, rows[1][0][-1] + widest + 16)
    while remains(rows, changed, scratch, state, found) < n:
        larger = _room(2 * len(found[0][0]), 2 * len(found[0][1]), 2 * len(found[1][1]))
        for new, own in zip((*larger[0], *larger[1]), (*found[0], *found[1]), strict=True):
            new[: len(own)] = own
        found = larger
    n_rows, n_left, n_right = state[[_N_ROWS, _N_LEFT, _N_RIGHT]].tolist()
    (left_ptr, left), (right_ptr, right) = found
    return (left_ptr[: n_rows + 1], left[:n_left]), (right_ptr[: n_rows + 1], right[:n_right])


def _room(rows: int, left: int, right: int) -> tuple[Lists, Lists]:
    return (
        (np.zeros(rows + 1, OFFSET), np.empty(left, VERTEX)),
        (np.zeros(rows + 1, OFFSET), np.empty(right, VERTEX)),
    )


@entry
def remains(
    rows: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
    changed: tuple[tuple[np.ndarray, np.ndarray], ...],
    scratch: np.ndarray,
    state: np.ndarray,
    found: tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> int:
    """As `remains_of`, until the room of `found` is used up. Returns the number of the row to go on with."""
    before_right, after_left, after_right, lost_left, lost_right, found_left, found_right = changed
    (left_ptr, left), (right_ptr, right) = rows
    graphs = before_right, after_left, after_right, found_left, found_right
    i = state[_FIRST]
    while i < len(left_ptr) - 1:
        known = state[_N_ROWS], state[_N_LEFT], state[_N_RIGHT]
        sides = (left, left_ptr[i], left_ptr[i + 1]), (right, right_ptr[i], right_ptr[i + 1])
        n_left, n_right = _touched(sides[0], sides[1], lost_left), _touched(sides[1], sides[0], lost_right)
        is_left = n_left <= n_right
        if not _covers(sides, is_left, lost_left if is_left else lost_right, graphs, scratch, state, found):
            state[_N_ROWS], state[_N_LEFT], state[_N_RIGHT] = known
            break
        i += 1
    state[_FIRST] = i
    return i


@compiled
def _place(values, lo, hi, x):
    """The position of `x` in ``values[lo:hi]``, which ascends. -1 if it is not there."""
    at = first_at_least(values, lo, hi, x)
    return at if at < hi and values[at] == x else -1


@compiled
def _touched(own, other, lost):
    """How many vertices of the side `own` of a row have lost an edge to its other side."""
    n = 0
    for k in range(own[1], own[2]):
        x = own[0][k]
        for e in range(lost[0][x], lost[0][x + 1]):
            if _place(other[0], other[1], other[2], lost[1][e]) >= 0:
                n += 1
                break
    return n


@compiled
def _covers(sides, own_is_left, lost, graphs, scratch, state, found):
    """Every minimal cover of the lost edges of a row, by deciding which vertices of one side (`own`) it has.

    Those that are not in it put the other ends of their lost edges into it. Returns False if there is no more room.
    """
    own, other = _own_first(sides, own_is_left)
    n_own, n_other = own[2] - own[1], other[2] - other[1]
    at = scratch[0:n_own]  # vertices of `own` with a lost edge, by their place
    first = scratch[n_own : 2 * n_own + 1]  # where the other ends of each begin in `ends`
    chosen = scratch[2 * n_own + 1 : 3 * n_own + 2]  # 0: nothing was tried; 1: it stays; 2: it is in the cover
    is_out = scratch[3 * n_own + 2 : 4 * n_own + 2]
    forced = scratch[4 * n_own + 2 : 4 * n_own + 2 + n_other]  # how many that stay force each of `other` out
    ends = scratch[4 * n_own + 2 + n_other :]
    n = n_ends = 0
    for k in range(n_own):
        is_out[k] = 0
        x, before = own[0][own[1] + k], n_ends
        for e in range(lost[0][x], lost[0][x + 1]):
            place = _place(other[0], other[1], other[2], lost[1][e])
            if place >= 0:
                ends[n_ends] = place - other[1]
                n_ends += 1
        if n_ends > before:
            at[n], first[n] = k, before
            n += 1
    first[n] = n_ends
    for k in range(n_other):
        forced[k] = 0
    least_own, least_other = state[_MIN_LEFT], state[_MIN_RIGHT]
    if not own_is_left:
        least_own, least_other = least_other, least_own
    left_own, left_other, depth = n_own, n_other, 0
    chosen[0] = 0
    while depth >= 0:
        if depth == n:
            if _is_minimal(first, chosen, forced, ends, n):
                sizes = left_own, left_other
                if not _keep(sides, own_is_left, is_out, forced, sizes, graphs, state, found):
                    return False
            depth -= 1
            continue
        now = chosen[depth]
        if now == 0:  # it stays
            chosen[depth] = 1
            for e in range(first[depth], first[depth + 1]):
                left_other -= forced[ends[e]] == 0
                forced[ends[e]] += 1
            if left_other >= least_other:
                depth += 1
                chosen[depth] = 0
            continue
        if now == 1:  # it is in the cover, unless the cover has all its other ends
            more = False
            for e in range(first[depth], first[depth + 1]):
                forced[ends[e]] -= 1
                more |= forced[ends[e]] == 0
                left_other += forced[ends[e]] == 0
            if more and left_own > least_own:
                chosen[depth] = 2
                is_out[at[depth]] = 1
                left_own -= 1
                depth += 1
                chosen[depth] = 0
                continue
        else:
            is_out[at[depth]] = 0
            left_own += 1
        depth -= 1
    return True


@compiled
def _is_minimal(first, chosen, forced, ends, n):
    """Whether each vertex in the cover has lost an edge to one that stays."""
    for i in range(n):
        if chosen[i] == 2:
            needed = False
            for e in range(first[i], first[i + 1]):
                needed |= forced[ends[e]] == 0
            if not needed:
                return False
    return True


@compiled
def _own_first(sides, own_is_left):
    return (sides[0], sides[1]) if own_is_left else (sides[1], sides[0])


@compiled
def _keep(sides, own_is_left, is_out, forced, sizes, graphs, state, found):
    """Add what is left to `found` if it is maximal and belongs to this row. Returns False if there is no room."""
    own, other = _own_first(sides, own_is_left)
    (left_ptr, left), (right_ptr, right) = found
    n_left, n_right = sizes
    if not own_is_left:
        n_right, n_left = sizes
    rows, left0, right0 = state[_N_ROWS], state[_N_LEFT], state[_N_RIGHT]
    if rows + 1 >= len(left_ptr) or left0 + n_left > len(left) or right0 + n_right > len(right):
        return False
    if own_is_left:
        _write(own, is_out, left, left0)
        _write(other, forced, right, right0)
    else:
        _write(other, forced, left, left0)
        _write(own, is_out, right, right0)
    kept_left, kept_right = (left, left0, left0 + n_left), (right, right0, right0 + n_right)
    if _is_result(sides, kept_left, kept_right, graphs):
        state[_N_ROWS], state[_N_LEFT], state[_N_RIGHT] = rows + 1, left0 + n_left, right0 + n_right
        left_ptr[rows + 1], right_ptr[rows + 1] = left0 + n_left, right0 + n_right
    return True


@compiled
def _write(side, out, target, at):
    for k in range(side[2] - side[1]):
        if out[k] == 0:
            target[at] = side[0][side[1] + k]
            at += 1


@compiled
def _is_result(sides, left, right, graphs):
    """Steps 1 to 3 of the comment above."""
    before_right, after_left, after_right, found_left, found_right = graphs
    all_left, all_right = sides
    is_all_left, is_all_right = _same_size(left, all_left), _same_size(right, all_right)
    if not is_all_right and _has_more(right, before_right, all_left):
        return False
    if _gained(right, found_right, after_left, all_left):
        return False
    if is_all_left:
        return not _gained(left, found_left, after_right, all_right)
    return not _has_more(left, after_left, all_right)


@compiled
def _same_size(one, other):
    return one[2] - one[1] == other[2] - other[1]


@compiled
def _gained(members, gains, back, known):
    """Whether a vertex outside `known` with a new edge to a member is joined to all members. `back` has its lists."""
    for k in range(members[1], members[2]):
        y = members[0][k]
        for e in range(gains[0][y], gains[0][y + 1]):
            x = gains[1][e]
            if _place(known[0], known[1], known[2], x) < 0 and _is_joined(back, x, members):
                return True
    return False


@compiled
def _is_joined(lists, x, members):
    """Whether all members are in the list of `x`."""
    for k in range(members[1], members[2]):
        if _place(lists[1], lists[0][x], lists[0][x + 1], members[0][k]) < 0:
            return False
    return True


@compiled
def _has_more(members, lists, known):
    """Whether a vertex outside `known` is in the lists of all members."""
    ends, ids = lists
    first = second = members[0][members[1]]
    for k in range(members[1] + 1, members[2]):
        y = members[0][k]
        if ends[y + 1] - ends[y] < ends[first + 1] - ends[first]:
            first, second = y, first
        elif second == first or ends[y + 1] - ends[y] < ends[second + 1] - ends[second]:
            second = y
    i, j, last, stop = ends[first], ends[second], ends[first + 1], ends[second + 1]
    is_merged = stop - j < _LONGER * (last - i)
    while i < last:
        x = ids[i]
        if is_merged:  # most vertices are in one of the two shortest lists only, which this finds without a jump
            if j == stop:
                return False
            other = ids[j]
            i += x <= other
            j += other <= x
            if x != other:
                continue
        else:
            i += 1
        if _place(known[0], known[1], known[2], x) < 0 and _is_in_all(lists, members, first, x):
            return True
    return False


@compiled
def _is_in_all(lists, members, first, x):
    """Whether `x`, which is in the list of `first`, is in those of all members."""
    for k in range(members[1], members[2]):
        y = members[0][k]
        if y != first and _place(lists[1], lists[0][y], lists[0][y + 1], x) < 0:
            return False
    return True
