"""All commands of ``bicliques``, and their parser. Each group of commands has a module with a tuple of `Command`.

The modules import the pipeline inside functions, so that the parser, and with it ``--help``, does not import it. The
command ``completion`` is here. It prints a script that lets a shell complete commands and options, which is made from
the parser, so it names what that takes.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn

from bicliques.pipeline import __version__
from bicliques.pipeline.cli import (
    about,
    comparing,
    exporting,
    mining,
    results,
    settings,
    watching,
)
from bicliques.pipeline.cli.command import COMPLETE, Command, say
from bicliques.pipeline.cli.options import add_log
from bicliques.schemas.errors import InputError


@dataclass(frozen=True, kw_only=True)
class _Option:
    """One option of a command: its names, what it is, and what may follow it."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Command:
    """One command: its name, what it does, its options, and the words that it takes in place of a file."""

    name: str
    help: str
    options: tuple[_Option, ...]
    words: tuple[str, ...]


def script(shell: str, parser: argparse.ArgumentParser) -> str:
    """The script for a shell."""
    return SHELLS[shell](_commands(parser))


def _commands(parser: argparse.ArgumentParser) -> list[_Command]:
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    helps = {action.dest: action.help or "" for action in commands._choices_actions}
    return [
        _Command(
            name=name,
            help=_plain(helps[name]),
            options=tuple(_option(action) for action in each._actions if action.option_strings),
            words=tuple(
                word for action in each._actions if not action.option_strings for word in map(str, action.choices or ())
            ),
        )
        for name, each in commands.choices.items()
    ]


def _option(action: argparse.Action) -> _Option:
    return _Option(
        names=tuple(action.option_strings),
        help=_plain(action.help or ""),
        takes_value=action.nargs != 0,
        choices=tuple(map(str, action.choices or ())),
    )


def _plain(text: str) -> str:
    """The first clause of a help, without what a shell could read as something else."""
    return re.sub(r"[^\w ,.-]", "", re.split(r" \(default|;", text.replace("%%", "%"))[0])


def _bash(commands: Iterable[_Command]) -> str:
    commands = list(commands)
    lines = [
        "_bicliques() {",
        '    local current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" words=""',
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f'        words="{" ".join(command.name for command in commands)} --help --version"',
        "    else",
        '        case "${COMP_WORDS[1]} $before" in',
    ]
    for command in commands:
        for option in command.options:
            if option.choices:
                patterns = "|".join(f'"{command.name} {name}"' for name in option.names)
                lines.append(f'        {patterns}) words="{" ".join(option.choices)}" ;;')
    lines += ['        *) case "${COMP_WORDS[1]} $current" in']
    for command in commands:
        names = " ".join(name for option in command.options for name in option.names)
        lines.append(f'            "{command.name} -"*) words="{names}" ;;')
        if command.words:
            lines.append(f'            "{command.name} "*) words="{" ".join(command.words)}" ;;')
    lines += [
        "            esac ;;",
        "        esac",
        "    fi",
        '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o bashdefault -o default -F _bicliques bicliques",
    ]
    return "\n".join(lines)


def _zsh(commands: Iterable[_Command]) -> str:
    commands = list(commands)
    lines = ["#compdef bicliques", "_bicliques() {", "    local -a commands=("]
    lines += [f"        '{command.name}:{command.help}'" for command in commands]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then _describe command commands; return; fi",
        "    local command=$words[2]",
        "    shift words; (( CURRENT-- ))",
        "    case $command in",
    ]
    for command in commands:
        lines.append(f"        {command.name}) _arguments \\")
        for option in command.options:
            what = f":value:({' '.join(option.choices)})" if option.choices else ":value:_files"
            end = what if option.takes_value else ""
            lines += [f"            '{name}[{option.help}]{end}' \\" for name in option.names]
        lines.append(
            f"            '*:{'word:(' + ' '.join(command.words) + ')' if command.words else 'file:_files'}' ;;"
        )
    lines += [
        "    esac",
        "}",
        'if [ "$funcstack[1]" = _bicliques ]; then _bicliques "$@"; else compdef _bicliques bicliques; fi',
    ]
    return "\n".join(lines)


def _fish(commands: Iterable[_Command]) -> str:
    lines = []
    for command in commands:
        lines.append(f"complete -c bicliques -n __fish_use_subcommand -f -a {command.name} -d '{command.help}'")
        here = f"complete -c bicliques -n '__fish_seen_subcommand_from {command.name}'"
        if command.words:
            lines.append(f"{here} -f -a '{' '.join(command.words)}'")
        for option in command.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            value = f" -x -a '{' '.join(option.choices)}'" if option.choices else " -r" if option.takes_value else ""
            lines.append(f"{here} {names}{value} -d '{option.help}'")
    return "\n".join(lines)


#: Shell -> what makes its script.
SHELLS: dict[str, Callable[[Iterable[_Command]], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


_EXIT_CODES = """exit codes:
  0    complete (for count: counted to the end)
  1    failure: disk, memory, workers, or a proof that fails; one sentence says which
  2    bad input or options; nothing was written
  3    a limit was reached (--max-results, --time-limit), or for status: stopped; the run can be resumed
  4    for status: the run is being worked on now
  130  stopped by Ctrl-C; the run can be resumed
  143  ended by SIGTERM; the run can be resumed
"""

_SETTINGS = f"""options may also be given as variables ({settings.PREFIX}MIN_LEFT=3), or in the file
{settings.FILE} of the current folder (min_left = 3); the command line goes first, then
the variable, then the file

"""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like all others."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{_in_our_words(message)}; see: {self.prog} --help")


#: What the parser of a value asks for, by its name.
_WANTED = {
    "int": "a whole number",
    "natural": "a whole number of 0 or more",
    "numbers": "whole numbers of 0 or more with commas between them",
    "float": "a number",
    "pair": "two numbers as 3x4",
}


def _in_our_words(message: str) -> str:
    """An error of argparse about a value, as our other errors are. Other messages stay as they are."""
    if (found := re.fullmatch(r"argument (?:\S+/)?(\S+): invalid (\w+) value: (.*)", message)) and found[2] in _WANTED:
        return f"{found[1]} must be {_WANTED[found[2]]}, not {found[3]}"
    if found := re.fullmatch(r"argument (?:\S+/)?(\S+): invalid choice: (.*) \(choose from (.*)\)", message):
        return f"{found[1]} must be one of {found[3].replace(chr(39), '')}, not {found[2]}"
    return message


def parser() -> argparse.ArgumentParser:
    """The parser of ``bicliques``."""
    top, _ = parsers()
    return top


def parsers(named: str | None = None) -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of ``bicliques``, and the parsers of its commands, or only that of the command `named`."""
    shape = argparse.RawDescriptionHelpFormatter
    top = _Parser(
        prog="bicliques",
        description="List every maximal biclique of a bipartite graph, exactly, into Parquet.",
        epilog=_EXIT_CODES,
        formatter_class=shape,
    )
    top.add_argument("-V", "--version", action="version", version=f"bicliques {__version__}")
    words = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in COMMANDS:
        if named not in (None, command.name):
            continue
        text = command.help[0].upper() + command.help[1:] + "."
        epilog = _SETTINGS + _EXIT_CODES if settings.calls_of(command.name) else _EXIT_CODES
        options = words.add_parser(
            command.name, help=command.help, description=text, epilog=epilog, formatter_class=shape
        )
        options.add_argument("--json", action="store_true", help="print the result as one JSON object (default: text)")
        command.add_arguments(options)
        if "--log" not in options._option_string_actions:
            add_log(options)  # an error is in the form that the other commands give it
    return top, dict(words.choices)


def _add_completion(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", choices=tuple(SHELLS), help="the shell that reads it")


def _completion(arguments: argparse.Namespace) -> int:
    text = script(arguments.shell, parser())
    say(arguments, lambda: {"shell": arguments.shell, "script": text}, lambda: text)
    return COMPLETE


#: All commands, in the order in which they are shown.
COMMANDS: tuple[Command, ...] = (
    *mining.COMMANDS,
    *results.COMMANDS,
    *comparing.COMMANDS,
    *exporting.COMMANDS,
    *watching.COMMANDS,
    *about.COMMANDS,
    Command(
        name="completion",
        help="print a script that lets a shell complete commands and options",
        add_arguments=_add_completion,
        run=_completion,
        imports=(),
    ),
)
