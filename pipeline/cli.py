"""The command line: ``bicliques COMMAND``. Results go to stdout, progress and errors to stderr."""

from __future__ import annotations

import argparse
import sys
from typing import NoReturn

from pipeline.commands import COMMANDS
from pipeline.commands.command import BAD_INPUT, COMPLETE, FAILURE, INTERRUPTED, complain
from pipeline.folder import how_to_resume
from pipeline.logs import log_to_stderr
from schemas.errors import BicliqueError, InputError

__all__ = ["main", "parser"]

_EXIT_CODES = """exit codes:
  0    complete (for count: counted to the end)
  1    failure: disk, memory, workers, or a proof that fails; one sentence says which
  2    bad input or options; nothing was written
  3    a limit was reached (--max-results, --time-limit), or for status: stopped; the run can be resumed
  4    for status: the run is being worked on now
  130  stopped by Ctrl-C; the run can be resumed
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, as every other error is said."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see: {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The parser of ``bicliques``."""
    shape = argparse.RawDescriptionHelpFormatter
    top = _Parser(
        prog="bicliques",
        description="List every maximal biclique of a bipartite graph, exactly, into Parquet.",
        epilog=_EXIT_CODES,
        formatter_class=shape,
    )
    words = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in COMMANDS:
        text = command.help[0].upper() + command.help[1:] + "."
        options = words.add_parser(
            command.name, help=command.help, description=text, epilog=_EXIT_CODES, formatter_class=shape
        )
        options.add_argument("--json", action="store_true", help="print the result as one JSON object (default: text)")
        command.add_arguments(options)
    return top


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0 complete, 1 failure, 2 bad input, 3 limit reached, 4 running, 130 stopped by Ctrl-C.
    """
    words = parser()
    arguments = argparse.Namespace()
    try:
        words.parse_args(argv, arguments)
        log_to_stderr(getattr(arguments, "log", None))
        if arguments.command is None:
            words.print_help()
            return COMPLETE
        return next(command for command in COMMANDS if command.name == arguments.command).run(arguments)
    except InputError as error:
        complain(arguments, str(error))
        return BAD_INPUT
    except BicliqueError as error:
        complain(arguments, str(error))
        return FAILURE
    except KeyboardInterrupt:
        complain(arguments, f"stopped; {_what_is_left(arguments)}")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()  # the reader of stdout has gone, and there is nobody to tell
        return FAILURE


def _what_is_left(arguments: argparse.Namespace) -> str:
    folder = getattr(arguments, "output", None) or getattr(arguments, "run", None)
    if folder is None or not (folder / "options.json").exists():
        return "nothing was written"
    if (folder / "manifest.json").exists():
        return f"the run in {folder} is complete"
    return f"go on with: {how_to_resume(folder)}"
