"""Checks of what a call gets from Python, where nothing has looked at the type before.

Options are checked by the records that hold them; these are for the parameters of methods and for paths.
"""

from __future__ import annotations

import os
from datetime import timedelta
from operator import index
from pathlib import Path
from typing import Any

from bicliques.schemas.errors import InputError
from bicliques.schemas.option import as_plain


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


def sizes_of(sizes: Any, what: str) -> tuple[int, int]:
    """Two numbers of members.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(sizes, (tuple, list)) or len(sizes) != 2:
        raise InputError(f"{what} must be two sizes, as (2, 2), not {sizes!r:.60}")
    left, right = sizes
    return whole(left, "the number of left members", 1), whole(right, "the number of right members", 1)


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


def seconds(value: Any, what: str, or_0: bool = False) -> float:
    """A time in seconds, which may also be given as a `datetime.timedelta`.

    Raises
    ------
    InputError
        If it is none, or not more than 0. With `or_0`, 0 is a time, too.
    """
    number = value.total_seconds() if isinstance(value, timedelta) else as_plain(value)
    if type(number) not in (int, float):
        raise InputError(f"{what} must be a number of seconds, not {value!r:.60} ({type(value).__name__})")
    if not (number > 0 or (or_0 and number == 0)):
        raise InputError(f"{what} must be {'0 or more' if or_0 else 'more than 0'} seconds, not {value!r:.60}")
    return number


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
    return local_path(value)


def local_path(path: str | os.PathLike[str]) -> Path:
    """A path of this machine that people give; see `at_home` and `literal`."""
    return literal(Path(at_home(os.fspath(path))))


def at_home(path: str) -> str:
    """A path with the home folder in place of ``~`` or ``~user`` at its beginning, as shells have it.

    Shells leave it alone in ``--output=~/out``, and files of settings always do. A name such as ``~old.csv`` that is
    there, and of no user, is that file, as it is for a shell.

    Raises
    ------
    InputError
        There is no such user, or the home folder is not known.
    """
    home = os.path.expanduser(path)  # noqa: PTH111 - Path.expanduser forgets ./ and the slash at the end
    if home.startswith("~") and not os.path.lexists(path):
        user = path.partition("/")[0]
        raise InputError(
            f"{path} cannot be found, because there is no home folder for {user}; write ./{path} or a whole path"
        )
    return home


def literal(path: Path) -> Path:
    """A path that Arrow takes as it is. Of one that begins with ``~`` it would take the home folder."""
    return path.absolute() if str(path).startswith("~") else path
