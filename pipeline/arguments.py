"""The words of the command line. Every option names its default and its unit."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NoReturn

from pipeline.api import AS_BEFORE
from pipeline.option_groups import add_build, add_limits, add_quiet, add_reading, add_search, add_workers, natural
from schemas.errors import InputError

__all__ = ["HOW_TO_READ", "WHAT_TO_FIND", "parser"]

#: Options that are passed on to the API under the same name.
HOW_TO_READ = ("format", "left", "right", "delimiter", "header", "label_type", "skip_bad_lines")
WHAT_TO_FIND = ("min_left", "min_right", "max_left", "max_right")

_EXIT_CODES = """exit codes:
  0    complete (for count: counted to the end)
  1    failure: disk, memory, workers, or a proof that fails; one sentence says which
  2    bad input or options; nothing was written
  3    a limit was reached (--max-results, --time-limit); the run can be resumed
  130  stopped by Ctrl-C; the run can be resumed
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, as every other error is said."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see: {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The parser of ``bicliques``."""
    top = _Parser(
        prog="bicliques",
        description="List every maximal biclique of a bipartite graph, exactly, into Parquet.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _mine(_command(commands, "mine", "write every maximal biclique of SOURCE into the folder OUT"))
    _count(_command(commands, "count", "count them; nothing is kept"))
    _resume(_command(commands, "resume", "go on with the run in OUT, however it stopped"))
    _verify(_command(commands, "verify", "check the results of a complete run again, from its files"))
    _show(_command(commands, "show", "print the largest bicliques of a run"))
    _command(commands, "formats", "list the formats that can be read and the engines that can run")
    _demo(_command(commands, "demo", "mine the graph that comes with the project and show how to read the result"))
    return top


def _command(commands: Any, name: str, help: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=help[0].upper() + help[1:] + ".",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("--json", action="store_true", help="print the result as one JSON object (default: text)")
    return command


def _mine(command: argparse.ArgumentParser) -> None:
    _source(command)
    command.add_argument("-o", "--output", metavar="OUT", type=Path, help="folder of the run: empty or new")
    command.add_argument("--count-only", action="store_true", help="count and fingerprint, write no bicliques")
    command.add_argument(
        "--ids",
        choices=("labels", "dense"),
        default="labels",
        help="what the lists hold: labels, or row numbers of OUT/labels/*.parquet (default: labels)",
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="print the profile, the plan and estimates of memory, output and time; OUT is not touched",
    )
    command.add_argument(
        "--sample-time",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="for the estimates of --dry-run (default: 10)",
    )
    add_search(command)
    add_limits(command, "no limit")
    add_build(command)
    add_workers(command)
    add_reading(command)


def _count(command: argparse.ArgumentParser) -> None:
    _source(command)
    command.add_argument("--fingerprint", action="store_true", help="also print the fingerprint; takes longer")
    command.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where the graph is put meanwhile; workers of --scheduler must see it (default: the temporary folder)",
    )
    add_search(command)
    add_limits(command, "no limit")
    add_build(command)
    add_workers(command)
    add_reading(command)


def _resume(command: argparse.ArgumentParser) -> None:
    _run(command)
    add_limits(command, AS_BEFORE)
    add_workers(command)


def _verify(command: argparse.ArgumentParser) -> None:
    _run(command)
    command.add_argument(
        "--sample", type=natural, default=1000, metavar="ROWS", help="rows to compare with the input (default: 1000)"
    )
    command.add_argument("--seed", type=int, default=0, metavar="N", help="of the choice of rows (default: 0)")
    add_quiet(command)


def _show(command: argparse.ArgumentParser) -> None:
    _run(command)
    command.add_argument("--top", type=int, default=20, metavar="N", help="how many (default: 20)")
    command.add_argument(
        "--by",
        choices=("edges", "balance", "left", "right"),
        default="edges",
        help="number of edges, size of the smaller side, of the left side, of the right side (default: edges)",
    )


def _demo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        default=Path("demo-output"),
        help="folder of the run: empty or new (default: demo-output)",
    )
    add_workers(command)


def _source(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", metavar="SOURCE", help="an edge list; see: bicliques formats")


def _run(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="OUT", type=Path, help="folder of the run")
