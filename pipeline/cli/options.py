"""Options of the command line. Most come from the table of all options, and a few are only here."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Sequence
from types import NoneType
from typing import Any, get_args, get_origin

from bicliques.pipeline.api.table import TABLE, Entry, entries_of
from bicliques.schemas.errors import InputError, flag
from bicliques.schemas.option import GROUPS, Call
from bicliques.schemas.values import local_path


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
    command.add_argument("run", metavar="OUT", type=local_path, help="folder of the run")


def add_options(command: argparse.ArgumentParser, *calls: Call, only: Iterable[str] = GROUPS) -> None:
    """Add the options of the calls that a command makes."""
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
    """The options of a call, by name. Those that nothing gives a value are left out (`fill_in`)."""
    given = {entry.name: getattr(arguments, entry.name) for entry in entries_of(call) if entry.name in arguments}
    return {name: value for name, value in given.items() if value is not UNSAID}


def refuse(arguments: argparse.Namespace, call: Call, instead: Call, sentence: str) -> None:
    """Refuse an option that was given if `call` takes it and `instead` does not. `sentence` contains ``{option}``."""
    there = entries_of(instead)
    for entry in entries_of(call):
        if entry not in there and getattr(arguments, entry.name) is not UNSAID:
            raise InputError(sentence.format(option=word(entry)))


def fill_in(arguments: argparse.Namespace, call: Call) -> None:
    """Give the options of a call that have no value yet their defaults. Others stay as they are."""
    for entry in entries_of(call):
        if getattr(arguments, entry.name, None) is UNSAID:
            setattr(arguments, entry.name, entry.default_on(call))


class _Unsaid:
    """Value of an option that the command line does not give."""

    def __repr__(self) -> str:
        return "unsaid"


UNSAID = _Unsaid()


class _Source(argparse.Action):
    """One path, or a list of several."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values[0] if len(values) == 1 else values)


class Gather(argparse.Action):
    """Takes several values, and those of the same option given again. The default does not count among them."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        """Add values."""
        before = getattr(namespace, self.dest)
        setattr(namespace, self.dest, [*(before if isinstance(before, list) else []), *values])


def word(entry: Entry) -> str:
    """An option as it is written on the command line. For a switch that is on by default, the option turns it off."""
    return flag(f"no_{entry.name}" if entry.is_switch and entry.default else entry.name)


def _add(place: Any, entry: Entry, calls: tuple[Call, ...]) -> None:
    call = next(call for call in calls if call in entry.told.on)
    otherwise, words = entry.otherwise_on(call), entry.help_on(call)
    lifts = "; none lifts the limit" if entry.told.is_limit else ""
    if entry.is_switch and entry.default:
        words = f"do not {words}"
    end = f" (default: {otherwise})" if otherwise else ""
    action = place.add_argument(word(entry), dest=entry.name, help=f"{words}{lifts}{end}", **_how(entry))
    action.default = UNSAID  # only now, because argparse writes the default of some actions into their help


def _how(entry: Entry) -> dict[str, Any]:
    """Arguments that tell argparse how to parse the value of an option."""
    if entry.is_switch:
        return {"action": "store_false" if entry.default else "store_true"}
    if get_origin(entry.hint) is Sequence:
        return {"action": Gather, "nargs": "+", "metavar": entry.told.metavar}
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
        return str if kinds <= {str, object} else local_path  # an object comes from Python only
    (kind,) = kinds
    if entry.told.least is not None:
        return natural
    return or_none(kind) if entry.told.is_limit else kind


#: What a switch may be set to in the environment.
_SWITCH = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


def from_text(entry: Entry, text: str) -> Any:
    """The value of an option that is given as text. Several values are written as behind the option.

    Raises `ValueError` or `argparse.ArgumentTypeError` if it cannot be parsed.
    """
    how = _how(entry)
    if "action" not in how:
        return _one_of(entry, text) if "choices" in how else how["type"](text)
    if "nargs" in how:
        return shlex.split(text)
    if text.lower() not in _SWITCH:
        raise ValueError(text)
    return _SWITCH[text.lower()]


def from_value(entry: Entry, value: Any) -> Any:
    """The value of an option that is given as a value of TOML.

    Raises `ValueError` or `argparse.ArgumentTypeError` if it is of another type.
    """
    how = _how(entry)
    is_switch, is_many = "action" in how and "nargs" not in how, "nargs" in how
    if isinstance(value, bool) or is_switch:
        if not (isinstance(value, bool) and is_switch):
            raise ValueError(value)
        return value
    if isinstance(value, list):
        if any(isinstance(each, bool) or not isinstance(each, (str, int)) for each in value):
            raise ValueError(value)
        words = [str(each) for each in value]
        if is_many:
            return words
        listed = from_text(entry, ",".join(words))
        if not isinstance(listed, (list, tuple)):  # a list of one, for an option that takes no list
            raise ValueError(value)
        return listed
    if not isinstance(value, (str, int, float)):
        raise ValueError(value)
    if how.get("type") is _column:
        return value
    return [str(value)] if is_many else from_text(entry, str(value))


def _one_of(entry: Entry, text: str) -> str:
    if text not in (entry.choices or ()):
        raise ValueError(text)
    return text


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
    add_log(group)


def add_log(group: Any) -> None:
    """Add the option for the form of what is said on stderr."""
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


def pair(text: str) -> tuple[int, int]:
    """Parse two numbers, as 3x4."""
    left, right = map(int, text.split("x"))
    return left, right


def or_none(kind: type[int] | type[float]) -> Any:
    """A parser for numbers of a type, and for the word none."""

    def parse(text: str) -> int | float | None:
        return None if text == "none" else kind(text)

    parse.__name__ = kind.__name__
    return parse
