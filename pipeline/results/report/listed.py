"""The bicliques that the page lists: which they are, their members as numbers, and which repeat a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.proof.selection import Place, places_of
from pipeline.results.overlap import common_members, repeated, shares_of
from schemas.search import By

__all__ = ["DISTINCT", "MOST_MEMBERS", "SIDES", "Listed", "Ranking", "listed"]

SIDES = ("left", "right")

#: A biclique is left out at first if a better one has more than this share of its edges.
DISTINCT = 0.8
#: Largest number of members of all rows together. Beyond it the lists are cut, all to the same length.
MOST_MEMBERS = 2_000_000


class Ranking(NamedTuple):
    """Bicliques in the order of a measure, the largest first: all of the largest, and some of those behind them.

    Parameters
    ----------
    ranks : ndarray, shape (n, 7), int64
        As `pipeline.proof.selection.Largest.best`.
    numbers : ndarray, shape (n,), int64
        Which of all bicliques of the run each is, from 1.
    looked_at : int
        How many were looked at for distinct ones, from the largest on.
    """

    ranks: np.ndarray
    numbers: np.ndarray
    looked_at: int

    @classmethod
    def of_largest(cls, best: np.ndarray) -> Ranking:
        """The largest, and no others."""
        return cls(best, np.arange(1, len(best) + 1), len(best))

    @property
    def places(self) -> list[Place]:
        """Where the rows are."""
        return places_of(self.ranks)


@dataclass(frozen=True, eq=False)
class Listed:
    """The bicliques on the page, each once: those of the rankings, and then the others, both in descending order.

    They are ordered by edges, then by left size, then by id.

    Parameters
    ----------
    rows : Table
        With labels.
    lists : dict of str to ndarray, int64
        For each ranking, the rows in it, the largest first.
    numbers : dict of str to ndarray, int64
    looked_at : dict of str to int
        As of `Ranking`, for each ranking.
    repeats : dict of str to ndarray, int64
        For each ranking, and for ``all``, which has all rows in their order: `pipeline.results.overlap.repeated`.
    labels : dict of str to list of str
        For each side, the labels of its members, ascending: numbers by value, text by letters. Each is there once.
    members : dict of str to list of ndarray, int64
        For each side, the positions of the members of each row in `labels`, ascending.
    common : dict of str to ndarray, shape (rows, rows)
        For each side, `pipeline.results.overlap.common_members`.
    numeric : dict of str to bool
        For each side, whether its labels are numbers.
    most : int or None
        The number of members to which each side of a row was cut, because there would be more than `MOST_MEMBERS`.
    """

    rows: pa.Table
    lists: dict[str, np.ndarray]
    numbers: dict[str, np.ndarray]
    looked_at: dict[str, int]
    repeats: dict[str, np.ndarray]
    labels: dict[str, list[str]]
    members: dict[str, list[np.ndarray]]
    common: dict[str, np.ndarray]
    numeric: dict[str, bool]
    most: int | None

    @property
    def ids(self) -> list[int]:
        """The id of each row."""
        ids: list[int] = self.rows["id"].to_pylist()
        return ids

    @property
    def shares(self) -> np.ndarray:
        """`pipeline.results.overlap.shares_of` all pairs."""
        return shares_of(self.common["left"], self.common["right"])

    @property
    def n_ranked(self) -> int:
        """How many of the rows are in a ranking."""
        return len(np.unique(np.concatenate(list(self.lists.values()))))

    def n_distinct(self, by: str) -> int:
        """How many rows of a ranking repeat no better one."""
        return int((self.repeats[by] < 0).sum())

    def sizes(self, row: int) -> tuple[int, int]:
        """The number of left and of right members of a row."""
        n_left, n_right = (self.rows[f"n_{side}"][row].as_py() for side in SIDES)
        return n_left, n_right

    def first(self, row: int, side: str, n: int) -> list[str]:
        """The first `n` members of a side of a row."""
        return [self.labels[side][k] for k in self.members[side][row][:n]]


def listed(rows: pa.Table, places: Sequence[Place], rankings: dict[By, Ranking]) -> Listed:
    """Put rows in their order, number their members, and find out which rows repeat a better one.

    Parameters
    ----------
    rows : Table
        Each biclique once.
    places : sequence of Place
        Of each row.
    rankings : dict of str to Ranking
        Their places are among `places`.
    """
    n_left, n_right, ids = (rows[name].to_numpy().astype(np.int64) for name in ("n_left", "n_right", "id"))
    ranked = {place for own in rankings.values() for place in own.places}
    is_ranked = np.array([place in ranked for place in places], bool)
    order = np.lexsort((ids, n_left, n_left * n_right, is_ranked))[::-1]
    position = {places[row]: k for k, row in enumerate(order.tolist())}
    lists: dict[str, np.ndarray] = {
        by: np.array([position[place] for place in own.places], np.int64) for by, own in rankings.items()
    }
    rows = rows.take(order)
    columns = {side: rows[side].combine_chunks() for side in SIDES}
    lengths = np.concatenate([column.value_lengths().to_numpy() for column in columns.values()])
    most, longest = _fair(lengths), int(lengths.max(initial=0))
    numbered = {side: _numbered(column, most) for side, column in columns.items()}
    common = {side: common_members(members) for side, (_, members) in numbered.items()}
    shares = shares_of(common["left"], common["right"])
    orders = lists | {"all": np.arange(len(rows))}
    return Listed(
        rows,
        lists,
        {by: own.numbers for by, own in rankings.items()},
        {by: own.looked_at for by, own in rankings.items()},
        {by: repeated(shares, order, DISTINCT) for by, order in orders.items()},
        {side: labels for side, (labels, _) in numbered.items()},
        {side: members for side, (_, members) in numbered.items()},
        common,
        {side: pa.types.is_integer(column.type.value_type) for side, column in columns.items()},
        most if most < longest else None,
    )


def _fair(lengths: np.ndarray) -> int:
    """The largest length to which all lists can be cut so that they have `MOST_MEMBERS` members or fewer."""
    low, high = 1, max(int(lengths.max(initial=1)), 1)
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.minimum(lengths, middle).sum()) <= MOST_MEMBERS:
            low = middle
        else:
            high = middle - 1
    return low


def _numbered(column: pa.ListArray, most: int) -> tuple[list[str], list[np.ndarray]]:
    """The labels of the first `most` members of all rows, ascending, and each row's positions in them."""
    rows: Sequence[pa.Array] = [column[k].values[:most] for k in range(len(column))]
    if not rows:
        return [], []
    encoded = pc.dictionary_encode(pa.concat_arrays(rows))
    order = pc.array_sort_indices(encoded.dictionary)
    places = np.argsort(order.to_numpy())[encoded.indices.to_numpy()]
    labels = encoded.dictionary.take(order).cast(pa.string()).to_pylist()
    ends = np.cumsum([len(row) for row in rows])[:-1]
    return labels, [np.sort(own) for own in np.split(places, ends)]
