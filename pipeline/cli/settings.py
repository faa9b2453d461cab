"""Options that the environment and a file give, where the command line does not.

There is one order: the command line, then a variable such as ``BICLIQUES_MIN_LEFT``, then ``bicliques.toml`` in the
current folder, then the default. Names and types are those of the table of options. What a command does not take is
passed over, so that one file can serve several commands; a name that no command takes is refused. The file may have
come with the data, so it does not say whom to trust and what to remove.
"""

from __future__ import annotations

import argparse
import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from bicliques.pipeline.api.table import TABLE, Entry, entries_of
from bicliques.pipeline.cli.options import UNSAID, fill_in, from_text, from_value
from bicliques.schemas.errors import BicliqueError, InputError, in_one_line
from bicliques.schemas.option import Call
from bicliques.schemas.regular_files import read_regular

FILE = "bicliques.toml"
PREFIX = "BICLIQUES_"
#: What a table of the file has to be named after. Other commands take options from the command line alone.
_COMMAND = "command that takes options from here"
#: Options that a file may not give: why, and what gives them.
_USERS_OWN = {
    "overwrite": ("it removes a run", "give --overwrite on the command line"),
    "scheduler": (
        "whoever has the scheduler can run code here",
        f"give --scheduler on the command line, or set {PREFIX}SCHEDULER",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The value of an option, and the place that gives it.

    Parameters
    ----------
    value : object
        As from the command line.
    place : str
        The variable of the environment, or the file.
    """

    value: Any
    place: str


def calls_of(command: str | None) -> tuple[Call, ...]:
    """The calls that a command makes. None for a command whose options are not in the table."""
    if command not in get_args(Call):
        return ()
    return ("mine", "dry_run") if command == "mine" else (command,)  # type: ignore[return-value]


def settings_of(
    command: str, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> dict[str, Setting]:
    """What the environment and the file say of the options of a command, by the names of the table.

    Raises `InputError` if one of them has a name or a value that is wrong. The sentence names the place.

    Parameters
    ----------
    command : str
        Its name, one of those that `calls_of` knows.
    environment : mapping or None
        None: that of this process.
    folder : Path or None
        Where the file is. None: the current folder.
    """
    entries = {entry.name: entry for call in calls_of(command) for entry in entries_of(call)}
    found = _of_file(command, entries, (folder or Path()) / FILE)
    return found | _of_environment(entries, os.environ if environment is None else environment)


def fill(arguments: argparse.Namespace, call: Call) -> None:
    """Give every option of `call` that the command line leaves open the value of its setting, or its default.

    ``arguments.settings`` has the settings that were used. Options that `call` does not take stay as they are.
    """
    found = settings_of(arguments.command)
    arguments.settings = {}
    for entry in entries_of(call):
        if getattr(arguments, entry.name) is UNSAID and entry.name in found:
            arguments.settings[entry.name] = found[entry.name]
            setattr(arguments, entry.name, found[entry.name].value)
    fill_in(arguments, call)


def listed(settings: Mapping[str, Setting]) -> str:
    """The settings in one line, each with its place."""
    return ", ".join(f"{name}={shown(each.value)} ({each.place})" for name, each in settings.items())


def naming(arguments: argparse.Namespace, error: BicliqueError) -> str:
    """The sentence of an error, and after it the settings that it is about."""
    used = {name: each for name, each in getattr(arguments, "settings", {}).items() if name in error.options}
    return f"{error} ({'; '.join(f'{each.place} sets {name}' for name, each in used.items())})" if used else str(error)


def shown(value: Any) -> str:
    """A value as it is written in a line."""
    words = {True: "yes", False: "no", None: "none"}
    if value is None or isinstance(value, bool):
        return words[value]
    return in_one_line(",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value))


def _of_environment(entries: Mapping[str, Entry], environment: Mapping[str, str]) -> dict[str, Setting]:
    names = {entry.name for entry in TABLE}
    found = {}
    for variable, text in sorted(environment.items()):
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or not text:
            continue
        if name not in names:
            if close := difflib.get_close_matches(name, names, 1, 0.8):  # others may be somebody else's
                meant = f"{PREFIX}{close[0].upper()}"
                raise InputError(f"there is no option for {variable} (did you mean {meant}?); unset it")
        elif name in entries:
            _refuse_ambiguous(name, variable)
            found[name] = _setting(entries[name], variable, text, from_text)
    return found


def _of_file(command: str, entries: Mapping[str, Entry], path: Path) -> dict[str, Setting]:
    if not os.path.lexists(path):  # a link to nowhere is there, and cannot be read
        return {}
    content = _read(path)
    names = {entry.name for entry in TABLE}
    tables = {key: value for key, value in content.items() if isinstance(value, dict)}
    commands = {call for call in get_args(Call) if calls_of(call)} - {"dry_run", "flow"}
    for name in sorted(commands & (content.keys() - tables.keys())):  # as count = 3, or [[count]]
        raise InputError(f"{FILE}: {name} is a command and has no value; its options stand below a line [{name}]")
    _refuse_unknown(content.keys() - tables.keys(), names, "option")
    _refuse_unknown(tables, commands, _COMMAND)
    for table, options in tables.items():
        own = {entry.name for call in calls_of(table) for entry in entries_of(call)}
        _refuse_unknown(options, own, f"option of {table}", f"[{table}] ")
    for name in sorted(_USERS_OWN.keys() & {*content, *chain(*tables.values())}):
        why, way = _USERS_OWN[name]
        raise InputError(f"{FILE}: {name} is not taken from a file, because {why}; take it out, and {way}")
    found = {}
    for name, value in content.items():
        if name in entries and name not in tables:
            _refuse_ambiguous(name, FILE)
            found[name] = _setting(entries[name], FILE, value, from_value)
    for name, value in tables.get(command, {}).items():
        found[name] = _setting(entries[name], f"{FILE} [{command}]", value, from_value)
    return found


def _read(path: Path) -> dict[str, Any]:
    import tomllib  # only where there is such a file

    try:
        return tomllib.loads(read_regular(path).decode("utf-8-sig"))  # an editor of Windows may put a mark before it
    except (OSError, RecursionError, ValueError) as error:  # TOML and UTF-8 that are wrong are both a ValueError
        raise InputError(f"{FILE} in this folder cannot be read ({error}); correct it or rename it") from error


def _refuse_unknown(given: Iterable[str], known: set[str], what: str, where: str = "") -> None:
    for name in sorted(set(given) - known):
        close = difflib.get_close_matches(name.replace("-", "_"), known, 1, 0.6)
        meant = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"{FILE}: {where}{name} is no {what}{meant}; take it out")


def _refuse_ambiguous(name: str, place: str) -> None:
    if sum(entry.name == name for entry in TABLE) > 1:
        raise InputError(
            f"{place} gives {name}, which is not the same for all commands; "
            f"give it on the command line, or in the table of one command in {FILE}"
        )


def _setting(entry: Entry, place: str, raw: Any, parse: Callable[[Entry, Any], Any]) -> Setting:
    try:
        return Setting(value=parse(entry, raw), place=place)
    except (ValueError, argparse.ArgumentTypeError) as error:
        what = "" if place.startswith(PREFIX) else f": {entry.name}"
        raise InputError(f"{place}{what} is {raw!r}, and should be {_wanted(entry)}") from error


def _wanted(entry: Entry) -> str:
    if entry.choices is not None:
        return f"one of {', '.join(entry.choices)}"
    if entry.told.metavar is None:
        return "yes or no, in a file true or false"
    return f"{entry.told.metavar}: {entry.told.help}"
