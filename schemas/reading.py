"""How an input is read: which partitions of a folder, one record that every reader fills in, and the doubts about it.

A condition on partitions is written as ``day>=2026-11-01``, for files below ``day=2026-11-23``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bicliques.schemas.errors import InputError

#: Formats whose names are words of their own.
_NAMES = {name: name.upper() for name in ("csv", "tsv", "snap", "konect", "fimi", "cxt")} | {
    "matrix-market": "Matrix Market",
    "parquet": "Parquet",
    "arrow": "Arrow",
}


@dataclass(frozen=True)
class Doubt:
    """Something that may be meant otherwise than it is read.

    Parameters
    ----------
    kind : str
        A word that stays the same from night to night, such as "duplicates".
    text : str
        What was found, in a sentence without a full stop.
    """

    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What an input is taken for.

    Parameters
    ----------
    format : str
        Name of the format, or of the library that an object in memory is of.
    separator : str
        What stands between two columns. Empty if the format says it.
    header : bool or None
        Whether the first line has the names of the columns. None if the format has no such line.
    header_why : str
        Why, such as "user and item are usual names".
    columns : (str, str)
        Names of the left and of the right column, in a form that can be shown.
    columns_why : str
        Why these two, such as "the first two". Empty if the format says it.
    is_guess : bool
        Whether nobody has named these columns, although the input may have meant others.
    labels : (str, str)
        Types of the labels of each side, "integers" or "text". Empty before any is read.
    weight : str
        Name of the column of weights, if they matter.
    not_read : tuple of str
        Names, or positions from 0, of the columns that are not read. The last one may count those without room.
    lines_above : int
        Lines above the header, or above the first edge, that are not read.
    doubts : tuple of Doubt
        What is doubtful: before any edge is read, what the first lines show, and later everything.
    """

    format: str
    separator: str = ""
    header: bool | None = None
    header_why: str = ""
    columns: tuple[str, str] = ("left", "right")
    columns_why: str = ""
    is_guess: bool = False
    labels: tuple[str, str] = ("", "")
    weight: str = ""
    not_read: tuple[str, ...] = ()
    lines_above: int = 0
    doubts: tuple[Doubt, ...] = ()

    def __str__(self) -> str:
        """As "CSV with a header, left = user (text), right = item (integers); not read: year, rating"."""
        header = {True: " with a header", False: " without a header", None: ""}[self.header]
        is_usual = (self.format, self.separator) in (("csv", "commas"), ("tsv", "tabs"))
        separated = f", separated by {self.separator}" if self.separator and not is_usual else ""
        sides = zip(("left", "right"), self.columns, self.labels, strict=True)
        columns = "".join(
            f", {side}{'' if name == side else f' = {name}'}{f' ({kind})' if kind else ''}"
            for side, name, kind in sides
        )
        weight = f", weight = {self.weight}" if self.weight else ""
        left_out = list(self.not_read)
        if self.lines_above:
            left_out.append("the first line" if self.lines_above == 1 else f"the first {self.lines_above} lines")
        not_read = f"; not read: {', '.join(left_out)}" if left_out else ""
        return f"{_NAMES.get(self.format, self.format)}{header}{separated}{columns}{weight}{not_read}"


#: Conditions as a user writes them. All of them have to hold.
Conditions = Sequence[str]

_COMPARE: MappingProxyType[str, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        "=": operator.eq,
        "!=": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
)
_FORM = re.compile(r"\s*(?P<key>[^=!<>\s][^=!<>]*?)\s*(?P<sign>!=|<=|>=|=|<|>)\s*(?P<value>.*?)\s*", re.DOTALL)


@dataclass(frozen=True)
class Condition:
    """A condition on the value of a key.

    Parameters
    ----------
    key, sign, value : str
        The sign is one of = != < <= > >=.
    """

    key: str
    sign: str
    value: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition such as ``day>=2026-11-01``.

        Raises
        ------
        InputError
            It is none.
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise InputError(f"{text!r} is no condition; write KEY=VALUE, or another of != < <= > >= in place of =")
        return cls(found["key"], found["sign"], found["value"])

    def holds(self, value: str) -> bool:
        """Whether a value fits. Two whole numbers are compared as numbers, other values as text."""
        if re.fullmatch(r"-?\d+", value, re.ASCII) and re.fullmatch(r"-?\d+", self.value, re.ASCII):
            return _COMPARE[self.sign](int(value), int(self.value))
        return _COMPARE[self.sign](value, self.value)


def as_conditions(given: object) -> tuple[str, ...]:
    """The conditions that a user gave, one or several.

    Raises
    ------
    InputError
        One of them is no condition.
    """
    if not isinstance(given, (str, Iterable)):
        raise InputError(f"where takes conditions such as 'day=2026-11-23', not {given!r}")
    conditions = (given,) if isinstance(given, str) else tuple(given)
    for each in conditions:
        if not isinstance(each, str):
            raise InputError(f"where takes conditions such as 'day=2026-11-23', not {each!r}")
        Condition.parse(each)
    return conditions
