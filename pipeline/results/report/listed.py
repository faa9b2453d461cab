"""The bicliques that the page lists: which they are, their members as numbers, and which repeat a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.proof.selection import Place, places_of
from pipeline.results.overlap import common_members, repeated, shares_of

__all__ = ["DISTINCT", "MOST_MEMBERS", "SIDES", "Listed", "listed", "places_in_order"]

SIDES = ("left", "right")

#: A biclique is left out at first if a better one has more than this share of its edges.
DISTINCT = 0.8
#: Largest number of members of all rows together. Beyond it the lists are cut, all to the same length.
MOST_MEMBERS = 2_000_000


@dataclass(frozen=True, eq=False)
class Listed:
    """The bicliques on the page, each once. Those of the first ranking come first, and then the others by edges.

    Parameters
    ----------
    rows : Table
        With labels.
    ids : tuple of int
        The id of each row.
    lists : dict of str to ndarray, int64
        For each ranking, the rows in it, the largest first.
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
    ids: tuple[int, ...]
    lists: dict[str, np.ndarray]
    repeats: dict[str, np.ndarray]
    labels: dict[str, list[str]]
    members: dict[str, list[np.ndarray]]
    common: dict[str, np.ndarray]
    numeric: dict[str, bool]
    most: int | None

    @property
    def shares(self) -> np.ndarray:
        """`pipeline.results.overlap.shares_of` all pairs."""
        return shares_of(self.common["left"], self.common["right"])

    def sizes(self, row: int) -> tuple[int, int]:
        """The number of left and of right members of a row."""
        n_left, n_right = (self.rows[f"n_{side}"][row].as_py() for side in SIDES)
        return n_left, n_right

    def first(self, row: int, side: str, n: int) -> list[str]:
        """The first `n` members of a side of a row."""
        return [self.labels[side][k] for k in self.members[side][row][:n]]


def places_in_order(best: dict[str, np.ndarray]) -> tuple[list[Place], tuple[int, ...], dict[str, np.ndarray]]:
    """Places of all rows of some rankings, each once, in the order of `Listed`.

    Parameters
    ----------
    best : dict of str to ndarray
        Rows of `pipeline.proof.selection.Largest.best` by ranking.

    Returns
    -------
    places : list of Place
    ids : tuple of int
    lists : dict of str to ndarray, int64
        As in `Listed`.
    """
    together = np.concatenate(list(best.values()))
    _, first = np.unique(together[:, 4:], axis=0, return_index=True)
    each, n = together[np.sort(first)], len(next(iter(best.values())))
    rest = each[n:]
    each = np.concatenate([each[:n], rest[np.lexsort((rest[:, 3], rest[:, 2], rest[:, 1]))[::-1]]])
    places = places_of(each)
    position = {place: k for k, place in enumerate(places)}
    lists = {by: np.array([position[place] for place in places_of(own)], np.int64) for by, own in best.items()}
    return places, tuple(each[:, 3].tolist()), lists


def listed(rows: pa.Table, ids: tuple[int, ...], lists: dict[str, np.ndarray]) -> Listed:
    """Number the members of rows, and find out which rows repeat a better one."""
    columns = {side: rows[side].combine_chunks() for side in SIDES}
    lengths = np.concatenate([column.value_lengths().to_numpy() for column in columns.values()])
    most, longest = _fair(lengths), int(lengths.max(initial=0))
    numbered = {side: _numbered(column, most) for side, column in columns.items()}
    common = {side: common_members(members) for side, (_, members) in numbered.items()}
    shares = shares_of(common["left"], common["right"])
    orders = lists | {"all": np.arange(len(rows))}
    return Listed(
        rows,
        ids,
        lists,
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
