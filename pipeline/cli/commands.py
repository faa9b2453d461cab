"""All commands of ``bicliques``, and their parser. Each group of commands has a module with a tuple of `Command`.

The modules import the pipeline inside functions, so that the parser, and with it ``--help``, does not import it. The
command ``completion`` is here, because it tells a shell the words of all commands.
"""

from __future__ import annotations

import argparse
import re
from typing import NoReturn

from bicliques.pipeline.cli import (
    about,
    comparing,
    explaining,
    exporting,
    generating,
    mining,
    results,
    settings,
    watching,
)
from bicliques.pipeline.cli.command import COMPLETE, Command, say
from bicliques.pipeline.cli.completion import SHELLS, script
from bicliques.pipeline.cli.options import add_log
from bicliques.pipeline.run.version import __version__
from bicliques.schemas.errors import InputError

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
    *explaining.COMMANDS,
    *comparing.COMMANDS,
    *exporting.COMMANDS,
    *watching.COMMANDS,
    *generating.COMMANDS,
    *about.COMMANDS,
    Command(
        name="completion",
        help="print a script that lets a shell complete commands and options",
        add_arguments=_add_completion,
        run=_completion,
        imports=(),
    ),
)
