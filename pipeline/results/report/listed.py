"""The bicliques that the page lists: which they are, their members as numbers, and which repeat a better one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.proof.selection import Place, places_of
from bicliques.pipeline.results.overlap import common_members, repeated, shares_of
from bicliques.schemas.search import By

SIDES = ("left", "right")

#: So many of the largest are listed. If fewer than `WANTED` of them are distinct, so are distinct ones behind them.
TOP, WANTED = 100, 50
#: A biclique is left out at first if a better one has more than this share of its edges.
DISTINCT = 0.8
#: Largest number of members of all rows together. Beyond it the lists are cut, all to the same length. Shares are those
#: of whole lists.
MOST_MEMBERS = 2_000_000


@dataclass(frozen=True, eq=False)
class Listed:
    """The bicliques on the page, each once: those of the rankings, and then the others, both in descending order.

    They are ordered by edges, then by left size, then by id.

    Parameters
    ----------
    rows : Table
        With labels.
    lists : dict of str to ndarray, int64
        For each ranking, the rows in it: the `TOP` largest, and distinct ones behind them.
    numbers : dict of str to ndarray, int64
        For each ranking, which of all bicliques of the run each row in it is, from 1.
    looked_at : dict of str to int
        For each ranking, how many bicliques were looked at for distinct ones, from the largest on.
    repeats : dict of str to ndarray, int64
        For each ranking, and for ``all``, which has all rows in their order: `pipeline.results.overlap.repeated`.
    labels : dict of str to list of str
        For each side, the labels of its members, ascending: numbers by value, text by letters. Each is there once.
    members : dict of str to list of ndarray, int64
        For each side, the positions of the members of each row in `labels`, ascending. They are cut to `most`.
    common : dict of str to ndarray, shape (rows, rows)
        For each side, `pipeline.results.overlap.common_members` of whole lists.
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

    def sizes(self, row: int) -> tuple[int, int]:
        """The number of left and of right members of a row."""
        n_left, n_right = (self.rows[f"n_{side}"][row].as_py() for side in SIDES)
        return n_left, n_right

    def first(self, row: int, side: str, n: int) -> list[str]:
        """The first `n` members of a side of a row."""
        return [self.labels[side][k] for k in self.members[side][row][:n]]


def listed(rows: pa.Table, places: Sequence[Place], ranks: dict[By, np.ndarray], examples: Sequence[Place]) -> Listed:
    """Choose from rows, put them in their order, number their members, and find out which repeat a better one.

    Parameters
    ----------
    rows : Table
        Each biclique once.
    places : sequence of Place
        Of each row.
    ranks : dict of str to ndarray
        `pipeline.proof.selection.Largest.best` by measure. The places are among `places`.
    examples : sequence of Place
        Among `places`. These rows are listed whether or not they are in a ranking.
    """
    columns = {side: rows[side].combine_chunks() for side in SIDES}
    numbered = {side: _numbered(column) for side, column in columns.items()}
    row_of = {place: row for row, place in enumerate(places)}
    ranked = {by: np.array([row_of[place] for place in places_of(own)], np.int64) for by, own in ranks.items()}
    members = [members for _, members in numbered.values()]
    shown = {by: _shown([[own[row] for row in order] for own in members]) for by, order in ranked.items()}
    is_ranked, is_listed = np.zeros((2, len(rows)), bool)
    for by, (numbers, _) in shown.items():
        is_ranked[ranked[by][numbers - 1]] = True
    is_listed[[row_of[place] for place in examples]] = True
    n_left, n_right, ids = (rows[name].to_numpy().astype(np.int64) for name in ("n_left", "n_right", "id"))
    order = np.lexsort((ids, n_left, n_left * n_right, is_ranked))[::-1]
    order = order[(is_ranked | is_listed)[order]]
    position = np.zeros(len(rows), np.int64)
    position[order] = np.arange(len(order))
    lists: dict[str, np.ndarray] = {by: position[ranked[by][numbers - 1]] for by, (numbers, _) in shown.items()}
    whole = {side: [own[row] for row in order] for side, (_, own) in numbered.items()}
    common = {side: common_members(own) for side, own in whole.items()}
    shares = shares_of(common["left"], common["right"])
    lengths = np.array([len(own) for side in SIDES for own in whole[side]], np.int64)
    most, longest = _fair(lengths), int(lengths.max(initial=0))
    used = {side: _used(len(labels), [own[:most] for own in whole[side]]) for side, (labels, _) in numbered.items()}
    return Listed(
        rows.take(order),
        lists,
        {by: numbers for by, (numbers, _) in shown.items()},
        {by: looked_at for by, (_, looked_at) in shown.items()},
        {by: repeated(shares, own, DISTINCT) for by, own in (*lists.items(), ("all", np.arange(len(order))))},
        {
            side: labels.take(pa.array(used[side][0])).cast(pa.string()).to_pylist()
            for side, (labels, _) in numbered.items()
        },
        {side: own for side, (_, own) in used.items()},
        common,
        {side: pa.types.is_integer(column.type.value_type) for side, column in columns.items()},
        most if most < longest else None,
    )


def _shown(members: Sequence[Sequence[np.ndarray]]) -> tuple[np.ndarray, int]:
    """Which of a ranking are listed, as numbers from 1, and how many were looked at for distinct ones.

    `members` has the members of all rows of the ranking, for each side.
    """
    n = len(members[0])
    first = np.arange(1, min(n, TOP) + 1)
    for looked_at in (len(first), n):  # most rankings have enough in the first, and to compare all would take long
        left, right = (common_members(own[:looked_at]) for own in members)
        distinct = np.flatnonzero(repeated(shares_of(left, right), np.arange(looked_at), DISTINCT) < 0) + 1
        if len(distinct) >= WANTED:
            break
    wanted = distinct[:WANTED]
    if looked_at > len(first) and len(wanted) == WANTED:
        looked_at = int(wanted[-1])
    return np.concatenate([first, wanted[wanted > TOP]]), looked_at


def only_used(labels: list[str], rows: Sequence[np.ndarray]) -> tuple[list[str], list[np.ndarray]]:
    """The labels that are in a row, in their order, and each row's positions in them."""
    used, rows = _used(len(labels), rows)
    return [labels[k] for k in used.tolist()], rows


def _used(n: int, rows: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Those of the numbers below `n` that are in a row, ascending, and each row as positions among them."""
    is_used = np.zeros(n, bool)
    for row in rows:
        is_used[row] = True
    position = np.cumsum(is_used) - 1
    return np.flatnonzero(is_used), [position[row] for row in rows]


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


def _numbered(column: pa.ListArray) -> tuple[pa.Array, list[np.ndarray]]:
    """The labels of the members of all rows, ascending, and each row's positions in them, ascending.

    Memory: 8 bytes per member.
    """
    encoded = pc.dictionary_encode(column.flatten())
    order = pc.array_sort_indices(encoded.dictionary)
    rank = np.argsort(order.to_numpy()).astype(np.int32)
    rows = np.split(rank[encoded.indices.to_numpy()], np.cumsum(column.value_lengths().to_numpy())[:-1])
    for own in rows:
        own.sort()
    return encoded.dictionary.take(order), rows[: len(column)]
