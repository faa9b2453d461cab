"""The members of the listed bicliques: those that the page shows, and all of them, packed, for its search.

A biclique may have ten thousand members, so the page shows a few of them. Its script takes the others from the packed
data.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

__all__ = ["MOST_BYTES", "MOST_MEMBERS", "SHOWN", "UNFOLDED", "Members", "members_of", "packed"]

#: Largest number of members of all lists together on the page, and of bytes of their labels.
MOST_MEMBERS, MOST_BYTES = 1_000_000, 4 << 20
#: Number of members of a side that are shown at once, and that are shown when the list is unfolded.
SHOWN, UNFOLDED = 12, 200
#: Of zlib. Level 9 takes five times as long and saves one percent.
_LEVEL = 6


@dataclass(frozen=True, eq=False)
class Members:
    """The members of the bicliques that are listed.

    Parameters
    ----------
    labels : dict of str to list of str
        For each side, the labels in its lists, ascending: numbers by value, text by letters. Each is there once.
    lists : dict of str to list of dict of str to ndarray
        For each ranking and row, and each side, the positions of the members in `labels`, ascending.
    most : int or None
        The number of members to which each side of a row was cut, because the page has no room for more.
    """

    labels: dict[str, list[str]]
    lists: dict[str, list[dict[str, np.ndarray]]]
    most: int | None

    def shown(self, by: str, row: int, side: str) -> list[str]:
        """The first members of a side of a row."""
        return [self.labels[side][k] for k in self.lists[by][row][side][:SHOWN]]


def members_of(top: dict[str, pa.Table]) -> Members:
    """Number the labels of the bicliques in `top`, which has a table for each ranking."""
    sides = {side: [table[side].combine_chunks() for table in top.values()] for side in ("left", "right")}
    lengths = [own.value_lengths().to_numpy() for columns in sides.values() for own in columns]
    together = np.concatenate(lengths) if lengths else np.zeros(0, np.int64)
    most, longest = _fair(together), int(together.max(initial=0))
    numbered = {side: _numbered(columns, most) for side, columns in sides.items()}
    while sum(len(label) for labels, _ in numbered.values() for label in labels) > MOST_BYTES and most > 1:
        most //= 2
        numbered = {side: _numbered(columns, most) for side, columns in sides.items()}
    lists: dict[str, list[dict[str, np.ndarray]]] = {}
    start = 0
    for by, table in top.items():
        rows = range(start, start + len(table))
        lists[by] = [{side: found[k] for side, (_, found) in numbered.items()} for k in rows]
        start += len(table)
    labels = {side: own for side, (own, _) in numbered.items()}
    return Members(labels, lists, most if most < longest else None)


def packed(members: Members) -> Markup:
    """The members for the script of the page: JSON, compressed by zlib, in base64. No label can end a script element.

    Returns
    -------
    Markup
        An object with the entries ``labels``, ``lists`` and ``most`` of `Members`, where each position is given as the
        difference to the one before, and with `SHOWN` and `UNFOLDED`.
    """
    lists = {
        by: [{side: np.diff(own, prepend=0).tolist() for side, own in row.items()} for row in rows]
        for by, rows in members.lists.items()
    }
    data: dict[str, Any] = {"labels": members.labels, "lists": lists, "most": members.most}
    data |= {"shown": SHOWN, "unfolded": UNFOLDED}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(base64.b64encode(zlib.compress(text.encode("utf-8", "replace"), _LEVEL)).decode())


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


def _numbered(columns: Sequence[pa.ListArray], most: int) -> tuple[list[str], list[np.ndarray]]:
    """The labels of the first `most` members of all rows, ascending, and each row's positions in them."""
    rows = [column[k].values[:most] for column in columns for k in range(len(column))]
    if not rows:
        return [], []
    encoded = pc.dictionary_encode(pa.chunked_array(rows, rows[0].type).combine_chunks())
    order = pc.array_sort_indices(encoded.dictionary)
    places = np.argsort(order.to_numpy())[encoded.indices.to_numpy()]
    labels = encoded.dictionary.take(order).cast(pa.string()).to_pylist()
    ends = np.cumsum([len(row) for row in rows])[:-1]
    return labels, [np.sort(own) for own in np.split(places, ends)]
