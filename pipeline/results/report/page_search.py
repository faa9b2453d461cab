"""The data that the search on the page looks through: all labels of the listed bicliques, also of hidden members."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

__all__ = ["MOST_BYTES", "MOST_MEMBERS", "search_data"]

#: Largest number of members of all lists together on the page, and of bytes of their labels. A member takes 3 bytes.
MOST_MEMBERS, MOST_BYTES = 1_000_000, 4 << 20


def search_data(top: dict[str, pa.Table]) -> Markup:
    """The data as JSON that is safe inside a script element, whatever the labels are.

    Parameters
    ----------
    top : dict of str to Table
        The bicliques that are listed, by ranking.

    Returns
    -------
    Markup
        An object with three entries. ``labels`` is a list of all labels. ``lists`` has, for each row of each ranking,
        the positions of its members in ``labels``, ascending, each as the difference to the one before. ``most`` is
        null, or the number of members to which each side of a row was cut, because the page has no room for more.
    """
    sides = [table[side].combine_chunks() for table in top.values() for side in ("left", "right")]
    lengths = np.concatenate([side.value_lengths().to_numpy() for side in sides]) if sides else np.zeros(0, np.int64)
    most, longest = _fair(lengths), int(lengths.max(initial=0))
    labels, positions = _numbered(sides, most)
    while sum(map(len, labels)) > MOST_BYTES and most > 1:
        most //= 2
        labels, positions = _numbered(sides, most)
    lists = {
        by: [np.diff(np.unique(np.concatenate(pair)), prepend=0).tolist() for pair in zip(left, right, strict=True)]
        for by, left, right in zip(top, positions[::2], positions[1::2], strict=True)
    }
    data: dict[str, Any] = {"labels": labels, "lists": lists, "most": most if most < longest else None}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


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


def _numbered(sides: list[pa.ListArray], most: int) -> tuple[list[str], list[list[np.ndarray]]]:
    """The labels of the first `most` members of every list, each once, and the positions of the members in them.

    The positions are by side and row.
    """
    texts = [[side[k].values[:most].cast(pa.string()) for k in range(len(side))] for side in sides]
    flat = pa.chunked_array([text for rows in texts for text in rows], pa.string()).combine_chunks()
    encoded = pc.dictionary_encode(flat)
    indices = encoded.indices.to_numpy()
    positions, start = [], 0
    for rows in texts:
        own = []
        for text in rows:
            own.append(indices[start : start + len(text)])
            start += len(text)
        positions.append(own)
    return encoded.dictionary.to_pylist(), positions
