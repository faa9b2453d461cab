"""Communities of bicliques: those that hang together because they share enough members of both sides.

Two bicliques with at least `a` left and `b` right members are adjacent if they share at least `a` left and `b` right
members. A community is a connected component.

If two of them share `b` right members, they are in one community, whatever they share on the left. For let R be the
right members that both have. All that is joined to all of R is the left side of a biclique with exactly R on the
right: R is the set of the common neighbours of all their left members. This biclique has the left members of both, so
it is large enough, and it shares R and all left members with each of the two. The same holds with the sides exchanged.

So it is enough to join each row with its neighbours in the lattice. A row with the left members L, and a right vertex
j with at least `a` neighbours in L: these neighbours are the left side of a row. The sum of their hashes finds it, and
if there is no such row, the run lacks one. No two rows are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.kernels.compiled.jit import Entry
from bicliques.kernels.compiled.lists import sum_lists
from bicliques.kernels.graph.csr import compact_columns, from_sorted_pairs, transpose
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.results.edges import Parts
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import OFFSET, VERTEX
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.hashes import VertexHashes, mixed, splitmix64

#: By how much the settings of the table are above the one that is asked for, on both sides.
STEPS = (0, 1, 2, 3, 5, 8, 13, 21)
#: Members of the rows that stay in memory; the others are read again for each pass.
_KEPT_MEMBERS = 1 << 26
#: Neighbours are known as bits, too, where these take at most so many times the room of a list.
_ROOM_FOR_BITS = 4

_JOIN_ROWS, _MEMBERS_OF_SETS, _NUMBER_ROWS = (
    Entry("bicliques.kernels.compiled.joining", name) for name in ("join_rows", "members_of_sets", "number_rows")
)


def find_communities(
    parts: Parts, hashes: VertexHashes, edges: Iterable[tuple[np.ndarray, np.ndarray]], least: tuple[int, int]
) -> tuple[list[dict[str, int]], int, Bicliques, pa.Table]:
    """Find the communities of the rows of a run that has all bicliques of at least these sizes.

    Returns
    -------
    (list of dict, int, Bicliques, Table)
        Settings and fingerprint as of `pipeline.results.by_community.Communities`. The members of each community, those
        of most bicliques first: its id is the least of these, and its `root` their number. And the ``id`` of each
        biclique that is large enough, in the order of the files, with that of its ``community``.

    Notes
    -----
    Work: at most all paths of two edges from the members of each row, on the side where these are fewer. Memory: 50
    bytes per row and 4 more per setting, the edges between members of rows, which are known as bits in up to twice
    their room, 24 bytes per vertex and thread, the members of all communities, rows of 2**26 members, and a row group
    per thread.
    """
    rows = _Rows(parts, hashes, least)
    steps = [step for step in STEPS if step == 0 or (rows.excess >= step).any()]
    forests = _forests(edges, rows, steps)
    tops = [_tops(forest, rows.excess >= step) for step, forest in zip(steps, forests, strict=True)]
    settings = []
    for step, top in zip(steps, tops, strict=True):
        each = np.bincount(top)
        n = least[0] + step, least[1] + step, each.sum(), np.count_nonzero(each), each.max(initial=0)
        settings.append(dict(zip(("left", "right", "bicliques", "communities", "largest"), map(int, n), strict=True)))
    is_top = tops[0] == np.arange(len(tops[0]))
    own = (np.cumsum(is_top) - 1)[tops[0]]
    sizes, ids, sums = np.bincount(own), rows.ids[is_top], np.zeros(np.count_nonzero(is_top), np.uint64)
    np.minimum.at(ids, own, rows.ids)
    np.add.at(sums, own, rows.ids.view(np.uint64))
    order = np.lexsort((ids, -sizes))
    own, ids = np.argsort(order)[own], ids[order]
    found = *rows.members(0, own, len(ids)), *rows.members(1, own, len(ids)), sizes[order].astype(VERTEX), ids
    fingerprint = int(np.add.reduce(splitmix64(sums), dtype=np.uint64))
    return settings, fingerprint, Bicliques(*found), pa.table({"id": rows.ids, "community": ids[own]})


def _tops(forest: np.ndarray, which: np.ndarray) -> np.ndarray:
    """The first row of the community of each of these rows."""
    top = forest[which]
    while not np.array_equal(above := forest[top], top):
        top = above
    return top


def _once(parts: list[np.ndarray]) -> np.ndarray:
    """All numbers, each once, ascending. `np.unique` takes five times as long."""
    found = np.sort(np.concatenate(parts))
    return found[np.diff(found, prepend=-1) != 0]


class _Rows:
    """The rows that are large enough.

    For each side, `sums` has the sums of the hashes of the members of each row, and `counts` in how many rows each
    vertex is. `excess` is how much larger a row is than it must be. `starts` has the first row of each row group.
    """

    def __init__(self, parts: Parts, hashes: VertexHashes, least: tuple[int, int]):
        self._parts, self.hashes, self.least = parts, hashes, least
        self._places = [place for *place, most in parts.groups() if most is None or (np.array(most) >= least).all()]
        self._kept: dict[int, Bicliques] = {}
        self.counts = [np.zeros(len(known), np.int64) for known in hashes]
        none, n_members = np.empty((2, 0), np.uint64), 0
        told: list[tuple[Any, ...]] = [(none[0].view(np.int64), *none, none[0].view(np.int64))]
        for k, rows in enumerate(in_order(self._read, self._places, count_cores())):
            sums = np.empty((2, len(rows)), np.uint64)
            for side, (members, indptr) in enumerate(rows.sides):
                sum_lists(members, indptr, hashes[side], self.counts[side], sums[side])
            if (wrong := mixed(*sums) != rows.ids.view(np.uint64)).any():
                raise IncompleteError(f"{rows.ids[wrong][0]} is not the id of the members of its row; verify the run")
            told.append((rows.ids, *sums, self._excess(rows)))
            n_members += len(rows.left) + len(rows.right)
            if n_members <= _KEPT_MEMBERS:
                self._kept[k] = rows
        self.starts = np.cumsum([len(ids) for ids, *_ in told])
        if self.starts[-1] >= 2**31:
            raise InputError("communities are found among fewer than 2**31 bicliques; ask for larger ones")
        self.ids, *self.sums, self.excess = map(np.concatenate, zip(*told, strict=True))

    def _read(self, place: Sequence[int]) -> Bicliques:
        rows = self._parts.rows(*place)
        enough = self._excess(rows) >= 0
        return rows if enough.all() else rows.pick(np.flatnonzero(enough))

    def _excess(self, rows: Bicliques) -> np.ndarray:
        return np.minimum(np.diff(rows.left_indptr) - self.least[0], np.diff(rows.right_indptr) - self.least[1])

    def group(self, group: int) -> Bicliques:
        return self._kept[group] if group in self._kept else self._read(self._places[group])

    def members(self, side: int, communities: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and members of `n` communities on a side, each member once, if the row k is in ``communities[k]``."""
        width = len(self.hashes[side])

        def of_group(k: int) -> np.ndarray:
            members, indptr = self.group(k).sides[side]
            own = communities[self.starts[k] : self.starts[k + 1]]
            each, seen = np.empty(len(members) + 1, np.int64), np.full(width, -1)
            return each[: _MEMBERS_OF_SETS(indptr, members, own, width, seen, each)]

        found = [np.empty(0, np.int64)]
        for some in in_order(of_group, range(len(self._places)), count_cores()):
            found.append(some)
            if sum(map(len, found[1:])) > max(len(found[0]), _KEPT_MEMBERS):
                found = [_once(found)]
        each = _once(found)
        return np.searchsorted(each, np.arange(n + 1) * width).astype(OFFSET), (each % width).astype(VERTEX)


def _forests(edges: Iterable[tuple[np.ndarray, np.ndarray]], rows: _Rows, steps: list[int]) -> np.ndarray:
    """For every step the number of another row of the community of each row, int32, shape (steps, rows)."""
    inside = [np.stack(ends)[:, (rows.counts[0][ends[0]] > 0) & (rows.counts[1][ends[1]] > 0)] for ends in edges]
    left, right = np.concatenate([np.empty((2, 0), VERTEX), *inside], axis=1)
    graph = from_sorted_pairs(left, right, len(rows.hashes[0]))
    graphs = graph, transpose(*graph, len(rows.hashes[1]))
    side = int(np.argmin([np.diff(indptr) @ counts for (indptr, _), counts in zip(graphs, rows.counts, strict=True)]))
    n, least, sums = len(rows.ids), (rows.least[side], rows.least[1 - side]), rows.sums[side]
    table = np.full(2 << n.bit_length(), -1, np.int32)
    if (twice := _NUMBER_ROWS(sums, table)) >= 0:
        raise IncompleteError(f"another row has the members of {rows.ids[twice]}; verify the run")
    levels = np.searchsorted(steps, np.arange(steps[-1] + 1), side="right").astype(np.int8) - np.int8(1)
    up = np.tile(np.arange(n, dtype=np.int32), len(steps))
    indptr, (indices, others) = graphs[side][0], compact_columns(graphs[side][1], len(rows.hashes[1 - side]))
    n_words = -(-len(others) // 64)
    is_asked = 2 * n_words <= _ROOM_FOR_BITS * np.diff(indptr)
    at_bits = np.where(is_asked, (np.cumsum(is_asked) - 1) * n_words, -1)
    begin, bits = np.repeat(at_bits, np.diff(indptr)), np.zeros(np.count_nonzero(is_asked) * n_words, np.uint64)
    begin, known = begin[begin >= 0], indices[begin >= 0]
    np.bitwise_or.at(bits, begin + (known >> 6), np.uint64(1) << (known & 63).astype(np.uint64))
    fixed = least, levels, (indptr, indices, at_bits, bits), rows.hashes[side], sums, table, up

    def walk(group: int) -> None:
        sides, first = rows.group(group).sides, int(rows.starts[group])
        (members, offsets), (_, others_at) = sides[side], sides[1 - side]
        own = offsets, members, np.diff(others_at)
        scratch = (np.zeros(len(others) + 1, dtype) for dtype in (np.int32, np.uint64, np.int32, np.uint64))
        if (lacks := _JOIN_ROWS(own, first, *fixed, (*scratch, np.empty(least[0], np.int64)))) >= 0:
            raise IncompleteError(f"a biclique that overlaps {rows.ids[lacks]} is missing; verify the run")

    list(in_order(walk, range(len(rows.starts) - 1), count_cores()))
    return up.reshape(len(steps), n)
