"""Options of the command line. Most come from the table of all options, and a few are only here."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from pipeline.api.table import AS_BEFORE, TABLE, Entry, entries_of
from schemas.errors import InputError
from schemas.option import GROUPS, Call

__all__ = ["add_options", "add_quiet", "add_run", "add_source", "chosen", "natural", "refuse", "word"]


def add_source(command: argparse.ArgumentParser) -> None:
    """Add the argument for the input."""
    command.add_argument(
        "source",
        metavar="SOURCE",
        nargs="+",
        action=_Source,
        help="an edge list (see: bicliques formats), several, a folder of them, a URL, or - for standard input; "
        "or the folder of a run that has read one",
    )


def add_run(command: argparse.ArgumentParser) -> None:
    """Add the argument for the folder of an existing run."""
    command.add_argument("run", metavar="OUT", type=Path, help="folder of the run")


def add_options(command: argparse.ArgumentParser, *calls: Call, only: Iterable[str] = GROUPS) -> None:
    """Add the options of the calls that a command makes.

    Parameters
    ----------
    command : ArgumentParser
    *calls : Call
    only : iterable of str
        Keys of `GROUPS`.
    """
    wanted = set(only)
    for key, group in GROUPS.items():
        entries = [entry for entry in TABLE if entry.told.group == key and set(calls) & set(entry.told.on)]
        if key not in wanted or not entries:
            continue
        place = command if group.title is None else command.add_argument_group(group.title)
        for entry in entries:
            _add(place, entry, calls)
        if key == "workers":
            add_quiet(place)


def chosen(arguments: argparse.Namespace, call: Call) -> dict[str, Any]:
    """The options of a call, by name. Options that were not given have their defaults, or are left out."""
    given = {entry.name: getattr(arguments, entry.name) for entry in entries_of(call) if entry.name in arguments}
    return {name: value for name, value in given.items() if value is not _UNSAID}


def refuse(arguments: argparse.Namespace, call: Call, instead: Call, sentence: str) -> None:
    """Refuse an option that was given if `call` takes it and `instead` does not. `sentence` contains ``{option}``."""
    there = entries_of(instead)
    for entry in entries_of(call):
        if entry not in there and getattr(arguments, entry.name) is not _UNSAID:
            raise InputError(sentence.format(option=word(entry)))


class _Unsaid:
    """Default of an option that only some calls of a command take. It shows that the option was not given."""

    def __repr__(self) -> str:
        return "unsaid"


_UNSAID = _Unsaid()


class _Source(argparse.Action):
    """One path, or a list of several."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values[0] if len(values) == 1 else values)


class _Gather(argparse.Action):
    """Takes several values, and those of the same option given again. The default does not count among them."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*(before if isinstance(before, list) else []), *values])


def word(entry: Entry) -> str:
    """An option as it is written on the command line. For a switch that is on by default, the option turns it off."""
    hyphens = entry.name.replace("_", "-")
    return f"--no-{hyphens}" if entry.is_switch and entry.default else f"--{hyphens}"


def _add(place: Any, entry: Entry, calls: tuple[Call, ...]) -> None:
    call = next(call for call in calls if call in entry.told.on)
    otherwise, words = entry.otherwise_on(call), entry.help_on(call)
    lifts = "; none lifts the limit" if entry.told.is_limit else ""
    default = entry.default_on(call) if set(calls) <= set(entry.told.on) else _UNSAID
    if entry.is_switch and entry.default:
        words = f"do not {words}"
    end = f" (default: {otherwise})" if otherwise else ""
    place.add_argument(word(entry), dest=entry.name, default=default, help=f"{words}{lifts}{end}", **_how(entry))


def _how(entry: Entry) -> dict[str, Any]:
    """Arguments that tell argparse how to parse the value of an option."""
    if entry.is_switch:
        return {"action": "store_false" if entry.default else "store_true"}
    if get_origin(entry.hint) is Sequence:
        return {"action": _Gather, "nargs": "+", "metavar": entry.told.metavar}
    kinds = set(get_args(entry.hint)) - {NoneType} or {entry.hint}
    if kinds == {bool}:
        return {"action": argparse.BooleanOptionalAction}
    if entry.choices is not None:
        return {"choices": entry.choices}
    return {"type": _parser(kinds, entry), "metavar": entry.told.metavar}


def _parser(kinds: set[Any], entry: Entry) -> Any:
    if any(get_origin(kind) is Sequence for kind in kinds):
        return numbers
    if kinds == {str, int}:
        return _column
    if str in kinds:
        return str if kinds == {str} else Path
    (kind,) = kinds
    if entry.told.least is not None:
        return natural
    return or_none(kind) if entry.told.is_limit else kind


def _column(text: str) -> str | int:
    """Parse a column: digits are a position, other text is a name."""
    return int(text) if text.isdecimal() and len(text) < 10 else text  # int() raises for thousands of digits


def add_quiet(group: Any) -> None:
    """Add the options for progress and log."""
    group.add_argument(
        "--quiet",
        action="store_true",
        help="show no progress on stderr (default: a bar on a terminal, elsewhere a line every 10 seconds)",
    )
    group.add_argument(
        "--log",
        choices=("text", "json"),
        help="instead of progress, one line on stderr per event, json for machines (default: only warnings)",
    )


def numbers(text: str) -> tuple[int, ...]:
    """Parse numbers of 0 or more, separated by commas."""
    return tuple(natural(part) for part in text.split(","))


def natural(text: str) -> int:
    """Parse a number of 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def or_none(kind: type[int] | type[float]) -> Any:
    """A parser for numbers of a type, and for the word none."""

    def parse(text: str) -> int | float | str | None:
        if text == AS_BEFORE:  # argparse parses defaults, too
            return text
        return None if text == "none" else kind(text)

    parse.__name__ = kind.__name__
    return parse
