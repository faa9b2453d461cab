"""Errors in the words of Python. A sentence names the options of the command line; a caller of Python has keywords.

The functions of `pipeline` and `bicliques` are those of the rooms with `speaking_python` around them. Commands and
flows call the rooms. Nothing that is needed for the words alone is imported before there is an error.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields
from functools import cache, wraps
from types import GeneratorType
from typing import ParamSpec, TypeVar

from schemas.errors import BicliqueError

__all__ = ["in_python", "speaking_python"]

P = ParamSpec("P")
T = TypeVar("T")

#: How a sentence says how to go on; the path is quoted for a shell.
_RESUME = re.compile(r"bicliques resume ((?:'[^']*'|\"'\"|[^\s;,'\"])+)( --max-results none)?")
#: Two columns that are named or numbered.
_COLUMNS = re.compile(r"--left (?!and\b|or\b)('[^']*'|[^\s,;]+) --right ('[^']*'|[^\s,;]+)")
#: An option, and what may be its value. No option stands in quotes: that is a label.
_OPTION = re.compile(r"(?<![\w'\"-])(with )?--(no-)?([a-z]+(?:-[a-z]+)*)(?: ([a-z]+|\d+)\b)?")


def in_python(sentence: str, package: str = "pipeline") -> str:
    """The sentence of an error with keywords in place of options, and calls in place of commands.

    Parameters
    ----------
    sentence : str
    package : "pipeline" or "bicliques"
        The name by which the caller has our calls.

    Examples
    --------
    >>> in_python("x.csv, line 3: too few columns; leave such lines out with --skip-bad-lines")
    'x.csv, line 3: too few columns; leave such lines out with skip_bad_lines=True'
    >>> in_python("OUT is not complete; continue with: bicliques resume OUT --max-results none")
    "OUT is not complete; continue with: pipeline.resume('OUT', max_results=None)"
    """
    sentence = _RESUME.sub(lambda found: _call(found, package), sentence)
    sentence = _COLUMNS.sub(lambda found: f"left={_column(found[1])}, right={_column(found[2])}", sentence)
    return _OPTION.sub(_keyword, sentence)


def speaking_python(function: Callable[P, T], package: str = "pipeline") -> Callable[P, T]:
    """The same function, whose errors are in the words of Python, also those of an iterator that it returns.

    It belongs to `package`, where `pickle` finds it.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            value = function(*args, **kwargs)
        except (BicliqueError, KeyboardInterrupt) as error:
            _translate(error, package)
            raise
        return _speaking(value, package) if isinstance(value, GeneratorType) else value  # type: ignore[return-value]

    call.__module__ = package
    return call


def _speaking(rows: Iterator[T], package: str) -> Generator[T, None, None]:
    try:
        yield from rows
    except (BicliqueError, KeyboardInterrupt) as error:
        _translate(error, package)
        raise


def _translate(error: BaseException, package: str) -> None:
    error.args = tuple(in_python(each, package) if isinstance(each, str) else each for each in error.args)


def _call(found: re.Match[str], package: str) -> str:
    (path,) = shlex.split(found[1])
    return f"{package}.resume({path!r}{', max_results=None' if found[2] else ''})"


def _column(text: str) -> str:
    (word,) = shlex.split(text)
    return word if word.isdecimal() else repr(word)


@cache
def _options() -> dict[str, tuple[bool, tuple[str, ...]]]:
    """For every option: whether it is a switch, and its words. Those of `pipeline.generate` are not in the table."""
    from pipeline.api.table import TABLE
    from pipeline.synthetic.wanted import Wanted

    found: dict[str, tuple[bool, tuple[str, ...]]]
    found = {name: (False, ()) for name in (*(each.name for each in fields(Wanted)), "part_edges", "threads")}
    found |= {entry.name: (entry.is_switch, entry.choices or ()) for entry in TABLE}
    return {name.replace("_", "-"): told for name, told in found.items()}


def _keyword(found: re.Match[str]) -> str:
    before, no, name, value = found[1] or "", found[2], found[3], found[4]
    if name not in _options():
        return found[0]
    is_switch, choices = _options()[name]
    keyword, rest = name.replace("-", "_"), f" {value}" if value is not None else ""
    if no:
        return f"{before}{keyword}=False{rest}"
    if value == "none":
        return f"{before}{keyword}=None"
    if value is not None and (value in choices or value.isdecimal()):
        return f"{before}{keyword}={value if value.isdecimal() else repr(value)}"
    return f"{before}{keyword}{'=True' if is_switch and before else ''}{rest}"
