"""How large a biclique is by each measure, and how many members a side needs beside a given number on the other.

Every measure grows with both sides. So a measure of the most members that two sides can have bounds whatever lies
below, and a measure that has to be reached gives thresholds.

Imports no library, because `schemas.search` is read before anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bicliques.schemas.search import By

#: More members than any side has: nothing on this side is enough.
TOO_MANY = 2**62

_MEASURES: dict[By, Callable[[Any, Any], Any]] = {
    "edges": lambda left, right: left * right,
    "vertices": lambda left, right: left + right,
    "balance": min,
    "left": lambda left, right: left,
    "right": lambda left, right: right,
}
_TRANSPOSED: dict[By, By] = {"left": "right", "right": "left"}


def measure(by: By, left: Any, right: Any) -> Any:
    """The measure of a biclique with so many members: numbers, or arrays unless the measure is balance."""
    return _MEASURES[by](left, right)


def fewest_left(by: By, least: int, right: int) -> int:
    """The fewest left members whose measure, with `right` right members, is `least` or more. May be 0 or `TOO_MANY`."""
    if by == "edges":
        return -(-least // right) if right > 0 else (TOO_MANY if least > 0 else 0)
    if by == "vertices":
        return max(least - right, 0)
    if by == "balance":
        return max(least, 0) if right >= least else TOO_MANY
    if by == "left":
        return max(least, 0)
    return 0 if right >= least else TOO_MANY


def fewest_right(by: By, least: int, left: int) -> int:
    """As `fewest_left`, with the sides exchanged."""
    return fewest_left(_TRANSPOSED.get(by, by), least, left)
