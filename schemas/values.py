"""Checks of what a call gets from Python, where nothing has looked at the type before.

Options are checked by the records that hold them; these are for the parameters of methods and for paths.
"""

from __future__ import annotations

import os
from operator import index
from pathlib import Path
from typing import Any

from schemas.errors import InputError
from schemas.option import as_plain

__all__ = ["above_0", "as_index", "as_path", "share", "whole"]


def as_index(value: Any) -> int:
    """A whole number of Python or of another library, as an int.

    Raises
    ------
    TypeError
        If it is none. A bool is none: it is a mistake.
    """
    if isinstance(value, bool):
        raise TypeError
    return index(value)


def whole(value: Any, what: str, least: int) -> int:
    """A number as `as_index` has it.

    Raises
    ------
    InputError
        If it is none, or less than `least`.

    Examples
    --------
    >>> whole(3, "the number of bicliques", 1)
    3
    """
    try:
        number = as_index(value)
    except TypeError:
        raise InputError(f"{what} must be a whole number (int), not {value!r:.60}") from None
    if number < least:
        raise InputError(f"{what} must be at least {least}, not {number}")
    return number


def share(value: Any, what: str) -> float:
    """A number from 0 to 1.

    Raises
    ------
    InputError
        If it is none. A bool is none: it is a mistake.
    """
    number = as_plain(value)
    if type(number) not in (int, float) or not 0 <= number <= 1:
        raise InputError(f"{what} is a number from 0 to 1, not {value!r:.60}")
    return float(number)


def above_0(value: Any) -> bool:
    """Whether something is a number more than 0, as of seconds."""
    return type(value) in (int, float) and value > 0


def as_path(value: Any, what: str) -> Path:
    """A path that is given as text or as a path.

    Raises
    ------
    InputError
        If it is something else, as the results of a run, whose path is their ``path``.
    """
    if not isinstance(value, (str, os.PathLike)):
        remedy = f"; give its path, {value.path}" if isinstance(getattr(value, "path", None), Path) else ""
        raise InputError(f"{what} must be text or a path, not {value!r:.60}{remedy}")
    return Path(value)
