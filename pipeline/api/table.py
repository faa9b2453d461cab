"""One table of all options that a run has, from the fields of the records that hold them.

The command line, the form of the flow and docs/options.md are made from `TABLE`; the signatures of the Python calls
are compared with it. A new option is a field of one of `RECORDS`, and whatever uses it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from kernels import engines
from pipeline.workers.options import WorkerOptions
from schemas.option import GROUPS, Call, Option, option_of
from schemas.options import BuildOptions, CallOptions, IngestOptions, RunLimits, RunOptions
from schemas.search import Search

__all__ = ["AS_BEFORE", "RECORDS", "TABLE", "Entry", "described", "entries_of", "record"]

#: For resuming: the limit the run was last started with.
AS_BEFORE: Literal["as before"] = "as before"

#: Within a group, options are shown in this order of records.
RECORDS: tuple[type, ...] = (CallOptions, Search, RunLimits, RunOptions, BuildOptions, WorkerOptions, IngestOptions)

_INDENT = 4 * " "

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One option.

    Parameters
    ----------
    name : str
        Of the keyword, and with hyphens of the option of the command line.
    record, field : type, str
        What holds it.
    told : Option
    default : object
        When a new run is asked for; see `default_on`.
    hint : type
        Of the values that the keyword takes.
    annotation : str
        The same, as it is written.
    choices : tuple of str or None
        All values, where they are words.
    """

    name: str
    record: type
    field: str
    told: Option
    default: Any
    hint: Any
    annotation: str
    choices: tuple[str, ...] | None

    @property
    def is_switch(self) -> bool:
        """Whether it is only there or not."""
        return self.hint is bool

    def default_on(self, call: Call) -> Any:
        """What a call takes when nobody says anything."""
        return AS_BEFORE if call == "resume" and self.told.is_limit else self.default

    def help_on(self, call: Call) -> str:
        """One clause, without the default."""
        return self.told.words.get(call, self.told.help)

    def sentence_on(self, call: Call) -> str:
        """The same with the unit and the default, where options are not written with hyphens."""
        words, otherwise = self.help_on(call), self.otherwise_on(call)
        if self.told.metavar and words.startswith(("of ", "for ")):
            words = f"{self.told.metavar.lower()} {words}"
        words = re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), words)
        end = f" (default: {otherwise})" if otherwise else ""
        return f"{words[0].upper()}{words[1:]}{end}."

    def otherwise_on(self, call: Call) -> str | None:
        """What happens without it, in words; None of a switch whose words say it."""
        default = self.default_on(call)
        if default == AS_BEFORE:
            return AS_BEFORE
        if self.told.otherwise is not None:
            return self.told.otherwise
        return None if self.is_switch else f"{default:g}" if isinstance(default, float) else str(default)


def entries_of(call: Call) -> tuple[Entry, ...]:
    """The options that can be given there."""
    return tuple(entry for entry in TABLE if call in entry.told.on)


def described(call: Call) -> Callable[[F], F]:
    """A decorator that tells of the options of a call in its docstring, in the place of the line ``{options}``."""

    def tell(function: F) -> F:
        lines = []
        for entry in entries_of(call):
            lines.append(f"{entry.name} : {entry.annotation}")
            lines += textwrap.wrap(entry.sentence_on(call), 110, initial_indent=_INDENT, subsequent_indent=_INDENT)
        function.__doc__ = (function.__doc__ or "").replace("{options}", f"\n{_INDENT}".join(lines))
        return function

    return tell


def record(kind: type[T], given: Mapping[str, Any], before: T | None = None, **more: Any) -> T:
    """A record of options.

    Parameters
    ----------
    kind : type
        One of `RECORDS`.
    given : mapping
        By the names of the table; what it lacks is as usual.
    before : record or None
        Has what is asked for as `AS_BEFORE`.
    **more
        Fields that the table does not have.
    """
    mine = {entry.field: given.get(entry.name, entry.default) for entry in TABLE if entry.record is kind}
    found = {name: getattr(before, name) if value == AS_BEFORE else value for name, value in mine.items()}
    return kind(**found, **more)


def _table() -> tuple[Entry, ...]:
    found = [entry for kind in RECORDS for entry in _entries(kind)]
    return tuple(entry for group in GROUPS for entry in found if entry.told.group == group)


def _entries(kind: Any) -> list[Entry]:
    hints = get_type_hints(kind)
    return [
        Entry(
            name=told.name or each.name,
            record=kind,
            field=each.name,
            told=told,
            default=each.default if told.asked is None else told.asked,
            hint=hints[each.name],
            annotation=str(each.type),
            choices=_engines() if (kind, each.name) == (RunOptions, "engine") else _words(hints[each.name]),
        )
        for each in fields(kind)
        if (told := option_of(each)) is not None
    ]


def _words(hint: Any) -> tuple[str, ...] | None:
    """The words of a `Literal`, or of a union of them."""
    parts = [hint] if get_origin(hint) is Literal else [part for part in get_args(hint) if part is not NoneType]
    if not parts or any(get_origin(part) is not Literal for part in parts):
        return None
    return tuple(word for part in parts for word in get_args(part))


def _engines() -> tuple[str, ...]:
    """Which the records cannot list: they know no engine."""
    return (engines.AUTO, *(kind.name for kind in engines.kinds()))


TABLE: tuple[Entry, ...] = _table()
