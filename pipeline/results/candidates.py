"""Goes through the rows of a run in descending order of a score, without ever having all of them in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import MOST_THREADS, in_order
from bicliques.pipeline.proof.selection import Place, places_of
from bicliques.pipeline.results.edges import Parts
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.search import By
from bicliques.schemas.totals import measured

#: The order of the rows: score, edges, left size, id, and the place: file, row group, row. The highest comes first.
#: It is the order of `pipeline.proof.selection.Largest`.
Rank = tuple[int, ...]

#: (rows, numbers of some of them) -> mask of those that are left out.
Dropped = Callable[[Bicliques, np.ndarray], np.ndarray]

#: By (part, row group), a score that no row there exceeds.
Bounds = dict[tuple[int, int], int]

#: A rank below those of all rows with a score of at least 1.
ABOVE_NOTHING: Rank = (0, *(np.iinfo(np.int64).max,) * 6)
_COLUMNS = len(ABOVE_NOTHING)

#: The most members that are held for candidates.
MOST_MEMBERS = 1 << 24
#: The fewest candidates of the first round, and the most of any, unless more rows are wanted.
_FIRST, _LAST = 1 << 10, 1 << 18
#: By what factor the candidates of a round are more than those of the round before.
_GROWTH = 8


class Score(Protocol):
    """By what rows are ranked: integers, and the highest first."""

    def most(self, n_left: int, n_right: int) -> int:
        """No row whose sides have at most these sizes has a higher score."""
        ...

    def bounds(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        """By pair of sizes (int64), a score that no row of these sizes exceeds, int64."""
        ...

    def of(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """The score of each of the rows with these numbers (int64), int64."""
        ...


class SizeScore:
    """A measure of the sizes; see `schemas.totals.measured`."""

    def __init__(self, by: By):
        self._by: By = by

    def most(self, n_left: int, n_right: int) -> int:
        """The measure of these sizes."""
        return int(self.bounds(np.array([n_left]), np.array([n_right]))[0])

    def bounds(self, n_left: np.ndarray, n_right: np.ndarray) -> np.ndarray:
        """The measure of each pair of sizes."""
        return measured(n_left, n_right, self._by)

    def of(self, rows: Bicliques, numbers: np.ndarray) -> np.ndarray:
        """The measure of each of these rows."""
        return self.bounds(np.diff(rows.left_indptr)[numbers], np.diff(rows.right_indptr)[numbers])


class Best(NamedTuple):
    """The best rows that were wanted.

    Parameters
    ----------
    ranks : ndarray, shape (n, 7), int64
        `Rank` of each row, the best first.
    rows : Bicliques or None
        The rows in the same order, if they were to be held.
    are_all : bool
        Whether there are no others. Otherwise every other row ranks lower than the last one here.
    """

    ranks: np.ndarray
    rows: Bicliques | None
    are_all: bool

    @property
    def places(self) -> list[Place]:
        """Where the rows are."""
        return places_of(self.ranks)


def rounds(n: int) -> Iterator[int]:
    """How many candidates to look for in each round, if `n` rows are wanted in the end."""
    size, last = max(4 * n, _FIRST), max(4 * n, _LAST)
    while True:
        yield size
        size = min(size * _GROWTH, last)


def best_rows(
    parts: Parts,
    score: Score,
    n: int,
    hold: bool = True,
    between: tuple[Rank | None, Rank | None] = (None, None),
    drops: Sequence[Dropped] = (),
    known: Bounds | None = None,
    threads: int = MOST_THREADS,
) -> Best:
    """Find the `n` best of those rows that rank between two others and are not dropped.

    Raises `IncompleteError` if a part is missing or damaged.

    Parameters
    ----------
    score : Score
        Threads call it at the same time.
    n : int
        The most rows to find. If they are held and have more than 2**24 members, fewer are found, but at least one.
    hold : bool
        Whether to hold the rows, and not only their ranks.
    between : (Rank or None, Rank or None)
        The rows rank higher than the first and lower than the second.
    drops : sequence of Dropped
        Which rows to leave out. Threads call it at the same time.
    known : dict or None
        For a score that only goes down from one call to the next, and only with a first of `between`: by (part, row
        group) what no row there exceeds, as calls before have found. It is changed, and saves later calls most row
        groups.
    threads : int
        The most threads that read row groups. Each takes some 60 MB for one of the largest that are written.

    Notes
    -----
    Row groups are read in descending order of the best that their statistics allow, and none that cannot have a better
    row than the worst that is held. Of each the two size columns are read first. One whose sizes cannot be among the
    best is read no further. Memory: `n` rows, and one row group per thread. The result does not depend on the number of
    threads, or on which row groups are read.
    """
    search = _Search(parts, score, n, hold, between, drops, known)
    for found in in_order(search.look, search.places(), min(count_cores(), threads)):
        if found is not None:
            search.add(*found)
    search.rank()
    return Best(search.ranks, search.rows if hold else None, search.are_all)


class _Search:
    """What `best_rows` has found so far."""

    def __init__(
        self,
        parts: Parts,
        score: Score,
        n: int,
        hold: bool,
        between: tuple[Rank | None, Rank | None],
        drops: Sequence[Dropped],
        known: Bounds | None,
    ):
        self._parts, self._score, self._n, self._hold = parts, score, n, hold
        (self._least, self._below), self._drops = between, drops  # no row up to `least` is wanted any more
        self._known = known
        self.ranks, self.rows, self.are_all = np.empty((0, _COLUMNS), np.int64), Bicliques.from_pairs([]), True
        self._new: list[tuple[np.ndarray, Bicliques]] = []

    def places(self) -> Iterator[tuple[int, int]]:
        """The row groups that are worth a look, as (part, row group), the most promising first."""
        known = self._known or {}
        found = [
            (min(np.inf if sizes is None else self._score.most(*sizes), known.get((part, group), np.inf)), part, group)
            for part, group, sizes in self._parts.groups()
        ]
        for most, part, group in sorted(found, key=lambda one: (-one[0], one[1:])):
            if self._least is not None and most < self._least[0]:
                return
            yield part, group

    def look(self, place: tuple[int, int]) -> tuple[np.ndarray, Bicliques] | None:
        """Ranks of those rows of a row group that may be among the best, and these rows."""
        part, group = place
        least = self._least
        left, right = self._parts.sizes(part, group)
        edges, numbers = left * right, np.arange(len(left))
        if least is not None:
            bounds = np.column_stack([self._score.bounds(left, right), edges, left])
            numbers = np.flatnonzero(_compare(bounds, least) >= 0)
        if self._known is not None and least is not None:
            self._known[place] = least[0]  # no row that is left out here has more
        if len(numbers) == 0:
            return None
        rows = self._parts.rows(part, group)
        ranks = np.column_stack([self._score.of(rows, numbers), edges[numbers], left[numbers]])
        if self._known is not None and least is not None:
            self._known[place] = max(int(ranks[:, 0].max()), least[0] if len(numbers) < len(left) else 0)
        wanted = self._between(ranks, least)
        for dropped in self._drops:
            wanted = wanted[~dropped(rows, numbers[wanted])]
        ranks, numbers = ranks[wanted], numbers[wanted]
        places = np.full(len(numbers), part), np.full(len(numbers), group), numbers
        ranks = np.column_stack([ranks, rows.ids[numbers], *places])
        wanted = self._between(ranks, least)
        wanted = wanted[_order(ranks[wanted])[: self._n + 1]]  # one more shows that there are others
        return ranks[wanted], rows.pick(numbers[wanted]) if self._hold else Bicliques.from_pairs([])

    def _between(self, ranks: np.ndarray, least: Rank | None) -> np.ndarray:
        """The positions of the ranks that may be wanted. They may have fewer columns than a whole rank."""
        wanted, is_whole = np.ones(len(ranks), bool), ranks.shape[1] == _COLUMNS
        if least is not None:
            wanted &= _compare(ranks, least) >= is_whole  # a whole rank is higher or lower, and never equal
        if self._below is not None:
            wanted &= _compare(ranks, self._below) <= -is_whole
        return np.flatnonzero(wanted)

    def add(self, ranks: np.ndarray, rows: Bicliques) -> None:
        """Add what `look` has found. It is ranked once it is a good part of what is held, because that takes long."""
        self._new.append((ranks, rows))
        if sum(len(one) for one, _ in self._new) > self._n // 4:
            self.rank()

    def rank(self) -> None:
        """Keep the best of all that was added."""
        ranks = np.concatenate([self.ranks, *(one for one, _ in self._new)])
        order = _order(ranks)
        n = min(self._n, len(order))
        if self._hold:
            rows = Bicliques.concat([self.rows, *(one for _, one in self._new)])
            members = np.cumsum((np.diff(rows.left_indptr) + np.diff(rows.right_indptr))[order])
            n = min(n, max(int(np.searchsorted(members, MOST_MEMBERS, side="right")), 1))
            self.rows = rows.pick(order[:n])
        self.ranks = ranks[order[:n]]
        self._new.clear()
        if n < len(order):
            self.are_all = False
            self._least = tuple(self.ranks[-1].tolist())


def _order(ranks: np.ndarray) -> np.ndarray:
    """The positions of ranks, the highest first."""
    return np.lexsort(ranks.T[::-1])[::-1]


def _compare(ranks: np.ndarray, other: Rank) -> np.ndarray:
    """By rank -1, 0 or 1: lower than another one, equal, higher. Only the columns that are there are compared."""
    found = np.zeros(len(ranks), np.int8)
    for column, value in zip(ranks.T, other, strict=False):
        found = np.where(found == 0, (column > value).astype(np.int8) - (column < value), found)
    return found
