"""One table of all options of a run, made from the fields of the records that hold them.

The command line, the form of the flow and docs/options.md are made from `TABLE`. A test compares the signatures of the
Python calls with it. A new option is a new field of one of `RECORDS`, and the code that reads the field.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, fields
from functools import wraps
from types import NoneType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

from bicliques.kernels import engines
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.option import GROUPS, Call, Option, as_plain, option_of
from bicliques.schemas.options import BuildOptions, CallOptions, IngestOptions, LabelFiles, RunLimits, RunOptions
from bicliques.schemas.search import Search

#: The default of a limit when a run is resumed: the limit with which the run was last started.
AS_BEFORE: Literal["as before"] = "as before"

#: Within a group, options are shown in this order of records.
RECORDS: tuple[type, ...] = (
    *(CallOptions, Search, LabelFiles, RunLimits, RunOptions, BuildOptions),
    *(WorkerOptions, IngestOptions),
)

_INDENT = 4 * " "
#: Keywords that stand behind the options in a signature.
_LAST = ("progress", "stop")

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One option.

    Parameters
    ----------
    name : str
        Name of the keyword. The option of the command line has the same name with hyphens.
    record, field : type, str
        The record and the field in it that hold the option.
    told : Option
        The description of the option.
    default : object
        The value for a new run if none is given; see `default_on`.
    hint : type
        The type of the values that the keyword takes.
    annotation : str
        That type as it is written in the source.
    choices : tuple of str or None
        All values, if they are words. Otherwise None.
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
        """Whether the option is a switch, which takes no value."""
        return self.hint is bool

    def default_on(self, call: Call) -> Any:
        """The value that `call` takes if none is given."""
        return AS_BEFORE if call == "resume" and self.told.is_limit else self.default

    def annotation_on(self, call: Call) -> str:
        """The type of the keyword of `call`, as it is written in the source."""
        if self.default_on(call) != AS_BEFORE:
            return self.annotation
        return f"{self.annotation.removesuffix(' | None')} | Literal[{AS_BEFORE!r}] | None"

    def help_on(self, call: Call) -> str:
        """The help for `call` in one clause, without the default."""
        return self.told.words.get(call, self.told.help)

    def sentence_on(self, call: Call) -> str:
        """The help for `call` as a sentence with the unit and the default. Options are written as keywords in it."""
        words, otherwise = self.help_on(call), self.otherwise_on(call)
        if self.told.metavar and words.startswith(("of ", "for ")):
            words = f"{self.told.metavar.lower()} {words}"
        words = re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), words)
        end = f" (default: {otherwise})" if otherwise else ""
        return f"{words[0].upper()}{words[1:]}{end}."

    def otherwise_on(self, call: Call) -> str | None:
        """What happens without the option, in words. None for a switch whose help says that."""
        default = self.default_on(call)
        if default == AS_BEFORE:
            return AS_BEFORE
        if self.told.otherwise is not None:
            return self.told.otherwise
        return None if self.is_switch else f"{default:g}" if isinstance(default, float) else str(default)


def entries_of(call: Call) -> tuple[Entry, ...]:
    """The options that `call` takes."""
    return tuple(entry for entry in TABLE if call in entry.told.on)


def with_options(call: Call, without_output: str = "") -> Callable[[F], F]:
    """A decorator for a function that takes the options of `call` as ``**options``.

    It puts them into the signature, and into the docstring in place of the line ``{options}``. Another keyword is a
    TypeError, as it is where all keywords are written out. So is a call without a folder, if `without_output` says what
    to call then.
    """
    import inspect  # only here, because a command that makes no such call begins without it

    def tell(function: F) -> F:
        entries, own, keyword = entries_of(call), inspect.signature(function), inspect.Parameter.KEYWORD_ONLY
        plain = [each for each in own.parameters.values() if each.kind is not each.VAR_KEYWORD]
        options = [
            inspect.Parameter(each.name, keyword, default=each.default_on(call), annotation=each.annotation_on(call))
            for each in entries
        ]
        known = {each.name for each in (*plain, *options)}

        @wraps(function)
        def checked(*args: Any, **given: Any) -> Any:
            refuse_unknown(call, given, known)
            if without_output and len(args) < 2 and "output" not in given:
                raise TypeError(f"{call}() needs output, the folder of the run; {without_output}")
            return function(*args, **given)

        lines = []
        for entry in entries:
            lines.append(f"{entry.name} : {entry.annotation}")
            lines += textwrap.wrap(entry.sentence_on(call), 110, initial_indent=_INDENT, subsequent_indent=_INDENT)
        checked.__doc__ = (function.__doc__ or "").replace("{options}", f"\n{_INDENT}".join(lines))
        ordered = sorted((*plain, *options), key=lambda each: (each.kind, each.name in _LAST))
        checked.__signature__ = own.replace(parameters=ordered)  # type: ignore[attr-defined]
        return cast(F, checked)

    return tell


def refuse_unknown(call: str, given: Mapping[str, Any], known: Set[str]) -> None:
    """Raise the TypeError of Python for a keyword that a call does not know, with the one that is spelt like it."""
    for name in sorted(given.keys() - known):
        from difflib import get_close_matches  # only here, because most calls make no such mistake

        near = get_close_matches(name, known, 1)
        meant = f". Did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{meant}")


def record(kind: type[T], given: Mapping[str, Any], before: T | None = None, **more: Any) -> T:
    """Make a record of options.

    Raises `InputError` if a value is wrong.

    Parameters
    ----------
    kind : type
        One of `RECORDS`.
    given : mapping
        Values by the names of the table. Options that it lacks have their default. Numbers may be NumPy's.
    before : record or None
        The record whose value is taken where `given` says `AS_BEFORE`.
    **more
        Fields that are not in the table.
    """
    mine = {entry.field: as_plain(given.get(entry.name, entry.default)) for entry in TABLE if entry.record is kind}
    found = {
        name: getattr(before, name) if isinstance(value, str) and value == AS_BEFORE else value
        for name, value in mine.items()
    }
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
    """The names of all engines. The records cannot list them, because `schemas` does not import engines."""
    return (engines.AUTO, *(kind.name for kind in engines.kinds()))


TABLE: tuple[Entry, ...] = _table()
