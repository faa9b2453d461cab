"""The bicliques of the page for its script: small enough that the page stays small, and no label can end an element."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from markupsafe import Markup

from bicliques.pipeline.results.report.listed import Listed, only_used

#: Number of members of a side that are shown at once, and that are shown when the list is unfolded.
SHOWN, UNFOLDED = 12, 200
#: Number of bicliques that are shown at once.
PAGE = 10
#: Of zlib. Level 6 takes twice as long and saves two percent, level 9 ten times as long and four percent. So that
#: is for pages which would have to be cut otherwise, although they are nearly short enough.
_LEVEL, _LAST_LEVEL, _NEARLY = 5, 9, 1.05
#: So that the letter which says how many letters two labels have in common needs no escape in JSON.
_MOST_COMMON = ord("[") - ord("0")
#: The last letter that JavaScript does not count as two.
_LAST_OF_ONE_UNIT = 0xFFFF


def packed(listed: Listed, more: dict[str, Any], room: int) -> Markup:
    """The bicliques as JSON, compressed by zlib, in base64.

    Parameters
    ----------
    listed : Listed
    more : dict
        Other entries of the object.
    room : int
        Largest length of the result. Long lists of members are cut until it is kept, or until nothing is left of them.

    Returns
    -------
    Markup
        An object with the entries of `more` and these: ``n``, ``numeric``, ``lists``, ``numbers``, ``looked``,
        ``repeats`` and ``most`` as `Listed` has them; ``ids`` as text; the numbers `PAGE`, `SHOWN` and `UNFOLDED`;
        ``shares`` of the rows of the rankings in percent, rounded down, if members are cut, because the script cannot
        find out then; ``labels`` and ``members``. The first letter of a label says how many letters it has in common
        with the one before (`_folded`). Members are a list per side and row. The first number of it is a row above, or
        -1. The others are the positions of the members that the row has and the one above has not, or the other way
        round. Each is given as the difference to the one before.
    """
    data: dict[str, Any] = more | {
        "n": {side: listed.rows[f"n_{side}"].to_pylist() for side in listed.labels},
        "ids": [str(each) for each in listed.ids],
        "numeric": listed.numeric,
        "lists": {by: own.tolist() for by, own in listed.lists.items()},
        "numbers": {by: own.tolist() for by, own in listed.numbers.items()},
        "looked": listed.looked_at,
        "repeats": {by: own.tolist() for by, own in listed.repeats.items()},
        "page": PAGE,
        "shown": SHOWN,
        "unfolded": UNFOLDED,
    }
    alike = {side: _most_alike(common) for side, common in listed.common.items()}
    longest = max((len(own) for rows in listed.members.values() for own in rows), default=0)
    most = longest
    while True:
        data["most"] = listed.most if most == longest else most
        data["shares"] = [] if data["most"] is None else _percents(listed)
        data["labels"], data["members"] = {}, {}
        for side in listed.labels:
            data["labels"][side], data["members"][side] = _cut(listed, side, most, alike[side])
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        raw = text.encode("utf-8", "replace")
        made = base64.b64encode(zlib.compress(raw, _LEVEL)).decode()
        if room < len(made) <= _NEARLY * room:
            made = base64.b64encode(zlib.compress(raw, _LAST_LEVEL)).decode()
        if len(made) <= room or most == 0:
            return Markup(made)
        most = min(int(most * min(room / len(made), 0.9)), most - 1)


def _percents(listed: Listed) -> list[list[int]]:
    n = listed.n_ranked
    percents: list[list[int]] = np.floor(100 * listed.shares[:n, :n] + 1e-9).astype(int).tolist()
    return percents


def _most_alike(common: np.ndarray) -> np.ndarray:
    """For each row the one above it from which it differs least, or -1 if it differs more than it is long."""
    length = np.diag(common)
    differ = length[:, None] + length[None, :] - 2 * common
    differ[np.triu_indices(len(differ))] = np.inf
    if not len(differ):
        return np.zeros(0, np.int64)
    found: np.ndarray = np.where(differ.min(axis=1) < length, differ.argmin(axis=1), -1)
    return found


def _cut(listed: Listed, side: str, most: int, alike: np.ndarray) -> tuple[list[str], list[list[int]]]:
    """The labels of the first `most` members of all rows, and the rows, packed."""
    rows, labels = listed.members[side], listed.labels[side]
    if most < max(map(len, rows), default=0):
        labels, rows = only_used(labels, [own[:most] for own in rows])
    differences = [
        own if above < 0 else np.setxor1d(own, rows[above], assume_unique=True)
        for own, above in zip(rows, alike.tolist(), strict=True)
    ]
    numbers = [
        [above, *np.diff(own, prepend=0).tolist()] for own, above in zip(differences, alike.tolist(), strict=True)
    ]
    return _folded(labels), numbers


def _folded(labels: list[str]) -> list[str]:
    """The labels without what they have in common with the one before. Its length comes first, as a letter from "0" on.

    A letter that JavaScript counts as two ends the common part.
    """
    if not labels:
        return []
    letters = np.array(labels, f"U{_MOST_COMMON}").view(np.uint32).reshape(len(labels), -1)
    is_common = np.zeros((len(labels), letters.shape[1] + 1), bool)  # the last column stays, and ends every common part
    is_common[1:, :-1] = (letters[1:] == letters[:-1]) & (letters[1:] > 0) & (letters[1:] <= _LAST_OF_ONE_UNIT)
    common = is_common.argmin(axis=1).tolist()
    return [chr(ord("0") + k) + label[k:] for label, k in zip(labels, common, strict=True)]
