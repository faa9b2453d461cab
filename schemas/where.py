"""Conditions on the partitions of a folder, as ``day>=2026-11-01`` for files below ``day=2026-11-23``."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bicliques.schemas.errors import InputError

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
