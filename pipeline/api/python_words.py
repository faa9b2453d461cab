"""Errors in the words of Python. A sentence names the options of the command line; a caller of Python has keywords.

The functions of `pipeline` and `bicliques` are those of the rooms with `speaking_python` around them, and so are the
methods of the results that they return. Commands and flows call the rooms. Nothing that is needed for the words alone
is imported before there is an error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import fields, replace
from functools import cache, wraps
from inspect import getattr_static
from types import FunctionType, GeneratorType
from typing import Any, ParamSpec, TypeVar, cast

from bicliques.pipeline.process import shell
from bicliques.schemas.errors import BicliqueError

P = ParamSpec("P")
T = TypeVar("T")

#: How a sentence says how to go on; the path is quoted for a shell.
_RESUME = re.compile(rf"bicliques resume ((?:{shell.PATTERN}|[^\s;,'\"])+)( --max-results none)?")
#: Another command. The sentence has named the runs before.
_VERIFY = re.compile(r"with: bicliques verify\b")
#: Two columns that are named or numbered.
_COLUMNS = re.compile(rf"--left (?!and\b|or\b)((?:{shell.PATTERN}|[^\s,;])+) --right ((?:{shell.PATTERN}|[^\s,;])+)")
#: A switch that is to be on or off.
_EITHER = re.compile(r"--([a-z]+) or --no-\1\b")
#: Methods without a plain name that users call by what they write.
_CALLED_BY_PYTHON = frozenset({"__arrow_c_stream__", "__contains__", "__getitem__", "__iter__", "_repr_html_"})
#: An option, and what may be its value. No option stands in quotes: that is a label.
_OPTION = re.compile(r"(?<![\w'\"-])(with )?--(no-)?([a-z]+(?:-[a-z]+)*)(?: ([a-z]+(?:-[a-z]+)*\b|\d+\b|'[^']*'))?")
#: Two keywords that were options behind one another.
_TWO = re.compile(r"(?<==)('[^']*'|\w+) (?=[a-z_]+=)")


def in_python(sentence: str, package: str = "bicliques") -> str:
    """The sentence of an error with keywords in place of options, and calls in place of commands.

    Parameters
    ----------
    package : "pipeline" or "bicliques"
        The name by which the caller has our calls.

    Examples
    --------
    >>> in_python("x.csv, line 3: too few columns; leave such lines out with --skip-bad-lines")
    'x.csv, line 3: too few columns; leave such lines out with skip_bad_lines=True'
    >>> in_python("OUT is not complete; continue with: bicliques resume OUT --max-results none")
    "OUT is not complete; continue with: bicliques.resume('OUT', max_results=None)"
    """
    sentence = _RESUME.sub(lambda found: _call(found, package), sentence)
    sentence = _VERIFY.sub(f"with: {package}.verify", sentence)
    sentence = _EITHER.sub(r"\1=True or \1=False", sentence)
    sentence = _COLUMNS.sub(lambda found: f"left={_column(found[1])}, right={_column(found[2])}", sentence)
    return _TWO.sub(r"\1, ", _OPTION.sub(_keyword, sentence))


def speaking_python(function: Callable[P, T], package: str = "bicliques") -> Callable[P, T]:
    """The same function, whose errors are in the words of Python; also those of an iterator or results that it returns.

    It belongs to `package`, where `pickle` finds it.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            value = function(*args, **kwargs)
        except (BicliqueError, KeyboardInterrupt) as error:
            _translate(error, package)
            raise
        return _speaking(value, package)

    call.__module__ = package
    return call


def _speaking(value: Any, package: str) -> Any:
    """What a function returns, in the words of Python from then on."""
    if isinstance(value, GeneratorType):
        return _speaking_rows(value, package)
    if _is("bicliques.pipeline.results.results", "Results", value):
        value.__class__ = _speaking_class(value.__class__, package)
    elif _is("bicliques.pipeline.results.run_status", "Status", value):
        told = {name: in_python(getattr(value, name), package) for name in ("why", "go_on")}
        return replace(value, **told, problems=tuple(in_python(each, package) for each in value.problems))
    return value


def _is(module: str, name: str, value: object) -> bool:
    """Whether a value is of a class. It is not if the module of the class was not imported."""
    return module in sys.modules and type(value) is getattr(sys.modules[module], name)


@cache
def _speaking_class(of: type, package: str) -> type:
    """A class of the same name whose public methods and properties have errors in the words of Python."""

    def reduced(self: Any) -> Any:
        return _made_again, (package, *cast(Any, of).__reduce__(self))

    members: dict[str, Any] = {"__module__": of.__module__, "__doc__": of.__doc__, "__reduce__": reduced}
    for name in dir(of):
        own = getattr_static(of, name)
        if name.startswith("_") and name not in _CALLED_BY_PYTHON:
            continue
        if isinstance(own, FunctionType):
            members[name] = speaking_python(own, package)
        elif isinstance(own, property) and own.fget is not None:
            members[name] = property(speaking_python(own.fget, package), doc=own.__doc__)
    return type(of.__name__, (of,), members)


def _made_again(package: str, make: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What was pickled, in the words of Python again."""
    return speaking_python(make, package)(*args)


def _speaking_rows(rows: Iterator[T], package: str) -> Generator[T, None, None]:
    try:
        yield from rows
    except (BicliqueError, KeyboardInterrupt) as error:
        _translate(error, package)
        raise


def _translate(error: BaseException, package: str) -> None:
    error.args = tuple(in_python(each, package) if isinstance(each, str) else each for each in error.args)


def _call(found: re.Match[str], package: str) -> str:
    return f"{package}.resume({shell.read(found[1])!r}{', max_results=None' if found[2] else ''})"


def _column(text: str) -> str:
    word = shell.read(text)
    return word if word.isdecimal() else repr(word)


@cache
def _options() -> dict[str, tuple[bool, tuple[str, ...]]]:
    """For every option: whether it is a switch, and its words. Those of `bicliques.generate` are not in the table."""
    from bicliques.pipeline.api.table import TABLE
    from bicliques.pipeline.ingest.readers import formats
    from bicliques.pipeline.synthetic.wanted import Wanted

    found: dict[str, tuple[bool, tuple[str, ...]]]
    found = {name: (False, ()) for name in (*(each.name for each in fields(Wanted)), "part_edges", "threads")}
    found |= {entry.name: (entry.is_switch, entry.choices or ()) for entry in TABLE}
    found["format"] = (False, tuple(format.name for format in formats()))
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
    if value is not None and (value in choices or value.isdecimal() or value[0] == "'"):
        return f"{before}{keyword}={repr(value) if value in choices else value}"
    return f"{before}{keyword}{'=True' if is_switch and before else ''}{rest}"
