"""Options of the command line, from the table of all options; and the few words that only the command line has."""

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
    """The input."""
    command.add_argument("source", metavar="SOURCE", help="an edge list; see: bicliques formats")


def add_run(command: argparse.ArgumentParser) -> None:
    """The folder of a run that is there."""
    command.add_argument("run", metavar="OUT", type=Path, help="folder of the run")


def add_options(command: argparse.ArgumentParser, *calls: Call, only: Iterable[str] = GROUPS) -> None:
    """The options of the calls that a command makes.

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
    """The options of a call, by name; what nobody has said is as usual."""
    given = {entry.name: getattr(arguments, entry.name) for entry in entries_of(call) if entry.name in arguments}
    return {name: value for name, value in given.items() if value is not _UNSAID}


def refuse(arguments: argparse.Namespace, call: Call, instead: Call, sentence: str) -> None:
    """Refuse what somebody has said that `call` has and `instead` has not; `sentence` holds ``{option}``."""
    there = entries_of(instead)
    for entry in entries_of(call):
        if entry not in there and getattr(arguments, entry.name) is not _UNSAID:
            raise InputError(sentence.format(option=word(entry)))


class _Unsaid:
    """The default of an option that only some calls of a command take: the others refuse what somebody has said."""

    def __repr__(self) -> str:
        return "unsaid"


_UNSAID = _Unsaid()


def word(entry: Entry) -> str:
    """An option as it is given; that of a switch which is on is the one that turns it off."""
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
    """What argparse is to do with the words behind an option."""
    if entry.is_switch:
        return {"action": "store_false" if entry.default else "store_true"}
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
    """A name, or digits for a position."""
    return int(text) if text.isdecimal() and len(text) < 10 else text  # int() refuses thousands of digits


def add_quiet(group: Any) -> None:
    """Whether to show progress."""
    group.add_argument(
        "--quiet",
        action="store_true",
        help="no progress on stderr (default: a bar on a terminal, elsewhere a line every 10 seconds)",
    )
    group.add_argument(
        "--log",
        choices=("text", "json"),
        help="instead of progress, a line on stderr for every event, json for machines (default: only warnings)",
    )


def numbers(text: str) -> tuple[int, ...]:
    """Numbers that are 0 or more, between commas."""
    return tuple(natural(part) for part in text.split(","))


def natural(text: str) -> int:
    """A number that is 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def or_none(kind: type[int] | type[float]) -> Any:
    """A parser of numbers of a type, and of the word none."""

    def parse(text: str) -> int | float | str | None:
        if text == AS_BEFORE:  # argparse parses defaults, too
            return text
        return None if text == "none" else kind(text)

    parse.__name__ = kind.__name__
    return parse
