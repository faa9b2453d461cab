"""The interesting rows as tables: the best, the most surprising, and few in the place of many.

Few are the best rows that do not repeat a better one, or those that cover most edges together.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.kernels.compiled.interest import count_new, count_new_bits, keep_distinct, mark_repeats
from bicliques.pipeline.prepare.members import Members
from bicliques.pipeline.proof.selection import Place, places_of, rows_at
from bicliques.pipeline.results.candidates import (
    ABOVE_NOTHING,
    Best,
    Bounds,
    Dropped,
    Rank,
    Score,
    SizeScore,
    best_rows,
    rounds,
)
from bicliques.pipeline.results.edges import Parts, degrees_of
from bicliques.pipeline.results.surprise import UNIT, Surprise
from bicliques.pipeline.run.files import whole_file
from bicliques.pipeline.run.names import url_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.outside import refuse_inside_run
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.dtypes import OFFSET, offsets_of
from bicliques.schemas.errors import InputError
from bicliques.schemas.search import By


def distinct_rows(parts: Parts, score: Score, n: int, most: float, drops: Sequence[Dropped] = ()) -> np.ndarray:
    """Go through the rows from the best on, and keep those that share too little with all that were kept before.

    Parameters
    ----------
    n : int
        How many rows to keep.
    most : float
        A row is left out if one that was kept has more than this share of its edges. From 0 to 1.
    drops : sequence of Dropped
        Which rows to leave out in any case.

    Returns
    -------
    ndarray, shape (at most n, 7), int64
        `pipeline.results.candidates.Rank` of the rows that were kept, the best first.

    Notes
    -----
    A round finds the best rows that follow those of the round before and do not repeat a row that was kept until then.
    The kept rows are better than all that follow, so these rows would be left out whenever their turn came. Then it
    goes through them in order. A round reads what `best_rows` has to read, which is every row in the end if fewer than
    `n` rows are distinct. It keeps at least one row, so there are at most `n` rounds; each looks for more rows than the
    one before. Memory: the rows of a round, those that were kept, and 8 bytes per vertex.
    """
    kept, below = _Kept(parts.n_vertices, n, most), None
    chosen = [np.empty((0, 7), np.int64)]
    for size in rounds(n):
        found = best_rows(parts, score, size, between=(None, below), drops=[*drops, kept.are_repeats])
        assert found.rows is not None
        chosen.append(found.ranks[kept.add(found.rows)])
        if found.are_all or kept.is_full:
            break
        below = _last(found.ranks)
    return np.concatenate(chosen)


def _last(ranks: np.ndarray) -> Rank:
    return tuple(ranks[-1].tolist())


class _Kept:
    """The rows that were kept, by vertex.

    Parameters
    ----------
    n_vertices : (int, int)
        Left and right vertices of the graph.
    n : int
        How many rows may be kept.
    """

    def __init__(self, n_vertices: tuple[int, int], n: int, most: float):
        self._n, self._most = n, np.array([most])
        self._heads = [np.full(size, -1, OFFSET) for size in n_vertices]
        self._links = [(np.empty(0, OFFSET), np.empty(0, OFFSET)) for _ in n_vertices]
        self._used = np.zeros(3, np.int64)

    @property
    def is_full(self) -> bool:
        """Whether as many rows are kept as may be."""
        return int(self._used[0]) == self._n

    def are_repeats(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """Which of the rows with these numbers share too much with one that is kept, as a mask."""
        found = np.zeros(len(numbers), np.uint8)
        if self._used[0]:
            mark_repeats(rows.sides, numbers, self._index(), *self._room(int(self._used[0])), self._most, found)
        return found.astype(bool)

    def add(self, rows: Bicliques) -> np.ndarray:
        """Keep rows from the first on. Returns the numbers of those that are kept."""
        kept = np.empty(min(self._n - int(self._used[0]), len(rows)), OFFSET)
        room = self._room(int(self._used[0]) + len(kept))
        self._resize(len(rows.left), len(rows.right))
        found = kept[: keep_distinct(rows.sides, self._index(), self._used, *room, self._most, kept)]
        self._resize(0, 0)
        return found

    def _index(self) -> tuple[tuple[np.ndarray, ...], ...]:
        return tuple((heads, *links) for heads, links in zip(self._heads, self._links, strict=True))

    def _room(self, n: int) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
        return (np.zeros(n, np.int64), np.zeros(n, np.int64)), np.empty(n, np.int64)

    def _resize(self, *more: int) -> None:
        """Have room for so many more links than are in use."""
        for k, (links, owners) in enumerate(self._links):
            used = int(self._used[k + 1])
            self._links[k] = _resized(links, used, more[k]), _resized(owners, used, more[k])


def _resized(old: np.ndarray, used: int, more: int) -> np.ndarray:
    new = np.empty(used + more, OFFSET)
    new[:used] = old[:used]
    return new


#: Bits of a word.
_BITS = 64
#: If one side has at most so many vertices, each vertex of the other has a bit for each of them: is the edge covered?
_FEW_VERTICES = 4 * _BITS
#: Rows that are looked at again together. A call of compiled code takes as long as a few dozen of them.
_TOGETHER = 64


class Chosen(NamedTuple):
    """A biclique of a cover.

    Parameters
    ----------
    place : Place
        Where its row is.
    new : int
        How many of its edges no biclique before it has.
    """

    place: Place
    new: int


def cover_rows(parts: Parts, n: int) -> list[Chosen]:
    """Choose one biclique after the other, each time the one with most edges that none chosen before has.

    Ties go as those of `pipeline.results.candidates.Rank`. The choice ends early when all edges of all bicliques are in
    one that was chosen.

    Notes
    -----
    This is the greedy algorithm for the largest cover. It finds at least 1 - 1/e, 63 %, of the edges that any `n` rows
    of the run have together (Nemhauser, Wolsey and Fisher 1978, doi:10.1007/BF01588971). The evaluation is lazy
    (Leskovec and others 2007, doi:10.1145/1281192.1281239): what a biclique adds only goes down, so an old number is a
    bound. It is the same choice as if every biclique were looked at each time.

    A round reads rows and holds those that add most. They are enough as long as the best of them ranks above what the
    last of them had when it was read. There are at most `n` rounds, and each holds more rows than the one before. A row
    group is not read in full if the sizes of its rows are too small to matter, nor at all if no row there added enough
    when it was read last.
    Memory: the rows of a round, and 8 bytes per vertex for every 64 bicliques that are chosen, or at most 32 if a side
    of the graph has few vertices.
    """
    kind = _CoveredBits if min(parts.n_vertices) <= _FEW_VERTICES else _Covered
    edges, chosen, sizes, known = kind(parts.n_vertices), list[Chosen](), rounds(n), Bounds()
    while len(chosen) < n:
        found = best_rows(parts, edges, next(sizes), between=(ABOVE_NOTHING, None), known=known)
        chosen += _chosen_among(found, edges, n - len(chosen))
        if found.are_all:
            break
    return chosen


def _chosen_among(found: Best, edges: _Edges, n: int) -> list[Chosen]:
    """Choose up to `n` rows among those that are held, as long as no other row can be better."""
    assert found.rows is not None
    chosen: list[Chosen] = []
    # a heap has the smallest first, so all numbers are negative
    ranks = [[-number for number in rank] for rank in found.ranks.tolist()]
    heap = [(rank, edges.n, k) for k, rank in enumerate(ranks)]  # it ascends, and so it is a heap
    while heap and len(chosen) < n and (found.are_all or heap[0][0] <= ranks[-1]):
        rank, at, k = heap[0]
        if at == edges.n:
            heapq.heappop(heap)
            edges.add(found.rows.pick(np.array([k])))
            chosen.append(Chosen((-rank[4], -rank[5], -rank[6]), -rank[0]))
            continue
        old = [heapq.heappop(heap)]
        while heap and heap[0][1] < edges.n and len(old) < _TOGETHER:
            old.append(heapq.heappop(heap))
        new = edges.of(found.rows, np.array([k for _, _, k in old])).tolist()
        for more, (rank, _, k) in zip(new, old, strict=True):
            if more:
                heapq.heappush(heap, ([-more, *rank[1:]], edges.n, k))
    return chosen


class _Edges(ABC):
    """The edges of the chosen bicliques. As a score it says how many other edges a row has.

    Attributes
    ----------
    n : int
        How many bicliques are chosen.
    """

    n: int

    @abstractmethod
    def add(self, row: Bicliques) -> None:
        """Choose a biclique."""

    @abstractmethod
    def of(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """How many edges of each of these rows are in no chosen biclique."""

    def most(self, n_left: int, n_right: int) -> int:
        """All edges of the largest size."""
        return n_left * n_right

    def bounds(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        """All edges of each size."""
        return n_left * n_right


class _CoveredBits(_Edges):
    """A bit per pair of vertices, for a graph with few vertices on one side.

    Parameters
    ----------
    n_vertices : (int, int)
        Left and right vertices of the graph.
    """

    def __init__(self, n_vertices: tuple[int, int]):
        self.n, self._is_swapped = 0, n_vertices[0] < n_vertices[1]
        few, many = sorted(n_vertices)
        self._has = np.zeros((many, -(-few // _BITS)), np.uint64)

    def add(self, row: Bicliques) -> None:
        """Choose a biclique."""
        many, few = (row.right, row.left) if self._is_swapped else (row.left, row.right)
        members = np.zeros(self._has.shape[1], np.uint64)
        np.bitwise_or.at(members, few >> 6, np.uint64(1) << (few & 63).astype(np.uint64))
        self._has[many] |= members
        self.n += 1

    def of(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """How many edges of each of these rows are in no chosen biclique."""
        found, n_words = np.empty(len(numbers), np.int64), self._has.shape[1]
        sides = rows.sides[::-1] if self._is_swapped else rows.sides
        count_new_bits(sides, numbers, self._has.ravel(), n_words, np.zeros(n_words, np.uint64), found)
        return found


class _Covered(_Edges):
    """A bit per vertex and chosen biclique.

    Parameters
    ----------
    n_vertices : (int, int)
        Left and right vertices of the graph.
    """

    def __init__(self, n_vertices: tuple[int, int]):
        self.n, self._stride = 0, 1
        self._masks = tuple(np.zeros(size, np.uint64) for size in n_vertices)

    def add(self, row: Bicliques) -> None:
        """Choose a biclique."""
        if self.n == self._stride * _BITS:
            self._masks = tuple(_wider(mask, self._stride) for mask in self._masks)
            self._stride += 1
        word, bit = divmod(self.n, _BITS)
        for mask, members in zip(self._masks, (row.left, row.right), strict=True):
            mask[members.astype(np.int64) * self._stride + word] |= np.uint64(1 << bit)
        self.n += 1

    def of(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """How many edges of each of these rows are in no chosen biclique."""
        found, n_words = np.empty(len(numbers), np.int64), -(-self.n // _BITS)
        count_new(rows.sides, numbers, self._masks, n_words, self._stride, found)
        return found


def _wider(mask: np.ndarray, stride: int) -> np.ndarray:
    """The same with one more word for every vertex."""
    new = np.zeros((len(mask) // stride, stride + 1), np.uint64)
    new[:, :stride] = mask.reshape(-1, stride)
    return new.ravel()


def top_rows(
    run: Run,
    files: Sequence[Path],
    schema: pa.Schema,
    n: int,
    by: By | Literal["surprise"],
    distinct: float | None,
    members: Members | None = None,
    ids: np.ndarray | None = None,
) -> pa.Table:
    """The best rows of these parts, of those with some members and ids; see `pipeline.results.results.Results.top`.

    Raises `IncompleteError` if a part or the edge table is missing or damaged.
    """
    ranks = np.empty((0, 7), np.int64)
    if files:
        score: Score = Surprise(run, degrees_of(run)) if by == "surprise" else SizeScore(by)
        drops: list[Dropped] = [] if members is None else [_lacking(members)]
        if ids is not None:
            drops.append(lambda rows, some: ~np.isin(rows.ids[some], ids))
        if distinct is None:
            ranks = best_rows(Parts(run, files), score, n, hold=False, drops=drops).ranks
        else:
            ranks = distinct_rows(Parts(run, files), score, n, distinct, drops)
    rows = rows_at(files, places_of(ranks), schema)
    return rows.append_column("surprise", pa.array(ranks[:, 0] / UNIT)) if by == "surprise" else rows


def _lacking(members: Members) -> Dropped:
    """Drops the rows that lack one of these members."""

    def dropped(rows: Bicliques, some: np.ndarray) -> np.ndarray:
        lacks = np.zeros(len(some), bool)
        sides = ((rows.left_indptr, rows.left, members.left), (rows.right_indptr, rows.right, members.right))
        for indptr, flat, wanted in sides:
            before = offsets_of(np.isin(flat, wanted))
            lacks |= before[indptr[some + 1]] - before[indptr[some]] < len(wanted)
        return lacks

    return dropped


def cover_table(run: Run, files: Sequence[Path], schema: pa.Schema, n: int) -> pa.Table:
    """The rows of a cover; see `pipeline.results.results.Results.cover`.

    Raises `IncompleteError` if a part is missing or damaged.
    """
    chosen = cover_rows(Parts(run, files), n) if files else []
    rows = rows_at(files, [one.place for one in chosen], schema)
    new = np.array([one.new for one in chosen], np.int64)
    columns = {
        "rank": pa.array(np.arange(1, len(chosen) + 1)),
        "edges": pa.array(rows["n_left"].to_numpy().astype(np.int64) * rows["n_right"].to_numpy()),
        "new_edges": pa.array(new),
        "covered": pa.array(np.cumsum(new) / run.input["n_edges"]),
    }
    return pa.table(columns | {name: rows[name] for name in rows.column_names})


def refuse_target(path: Path) -> None:
    """Refuse a path where `write_table` could not write."""
    if (url := url_of(path)) is not None:
        raise InputError(f"{url} is a URL, and tables are written to this machine; name a file, and copy it afterwards")
    refuse_inside_run(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder; name a file")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written, because there is no folder {path.parent}; make it")


def write_table(rows: pa.Table, path: Path) -> None:
    """Write a table to a Parquet file, which is there as a whole or not at all. A file of this name is replaced.

    Raises `ResourceError` if the file cannot be written.
    """
    with whole_file(path) as file:
        pq.write_table(rows, file)
