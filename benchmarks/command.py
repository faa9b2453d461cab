"""What the command lines of all benchmarks share: their parsers, the files for the numbers, and errors in one sentence.

A benchmark has a function ``parser``, which makes its parser and does nothing else, and a function ``main``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.facts import DATA, FOLDER, Graph, commit, find, machine, shipped
from bicliques.schemas.errors import BicliqueError, InputError


def new_parser(name: str, text: str | None, end: str | None = None) -> argparse.ArgumentParser:
    """A parser for the module `name`, whose help begins with `text` and ends with `end`."""
    layout = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(f"python -m benchmarks.{name}", description=text, epilog=end, formatter_class=layout)


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--data``: the folder in which graphs that are named without a folder are looked for first."""
    parser.add_argument(
        "--data", type=Path, default=DATA, metavar="FOLDER", help=f"folder of NAME.parquet (default: {DATA})"
    )


def add_output(parser: argparse.ArgumentParser, recorded: str) -> None:
    """Add the options for the file of the numbers: a file that is named, the file of this project, or else a new one.

    Parameters
    ----------
    parser : ArgumentParser
    recorded : str
        Name of the file in ``benchmarks/`` from which the pages of the project are made.
    """
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--output", type=Path, metavar="FILE", help="file for the numbers (default: a new one in this folder)"
    )
    what = f"write the numbers to benchmarks/{recorded}, from which pages of this project are made"
    group.add_argument("--record", action="store_const", const=FOLDER / recorded, help=what)


def add_repeats(parser: argparse.ArgumentParser, usual: int, what: str = "runs of each; the median counts") -> None:
    """Add the option ``--repeats``: how often something is measured, which is once at least."""
    parser.add_argument("--repeats", type=_repeats, default=usual, metavar="N", help=f"{what} (default: {usual})")


def _repeats(text: str) -> int:
    n = int(text)
    if n < 1:
        raise argparse.ArgumentTypeError(f"it must be 1 or more, not {n}")
    return n


def add_table(parser: argparse.ArgumentParser, recorded: Path, nothing: str = "measure nothing") -> None:
    """Add the option ``--table``: print the numbers of a file, or those that are recorded, and do nothing else."""
    shown = f"print the numbers of FILE as Markdown, and {nothing} (default: benchmarks/{recorded.name})"
    parser.add_argument("--table", type=Path, nargs="?", const=recorded, metavar="FILE", help=shown)


def prints_table(words: argparse.Namespace, table: Callable[[dict[str, Any]], Iterable[str]]) -> bool:
    """Print the numbers that ``--table`` asks for, and return whether it did.

    Parameters
    ----------
    words : Namespace
        What a parser with `add_table` has parsed.
    table : callable
        (numbers) -> the lines of a Markdown table.

    Raises
    ------
    InputError
        See `numbers`.
    """
    if words.table:
        print("\n".join(table(numbers(words.table))))
    return bool(words.table)


def chosen(words: argparse.Namespace, recorded: Iterable[str], usual: Iterable[str] | None = None) -> list[Graph]:
    """The graphs to measure: those that are named, else with ``--record`` the recorded ones, else the usual ones.

    Parameters
    ----------
    words : Namespace
        What a parser with ``graphs``, `add_data` and `add_output` has parsed.
    recorded : iterable of str
        Names of the graphs whose numbers this project keeps.
    usual : iterable of str or None
        Names of the graphs that are measured otherwise. None: the graphs that ship.

    Raises
    ------
    InputError
        If a graph is not there.
    """
    usual = shipped() if usual is None else usual
    return [find(word, words.data) for word in words.graphs or (recorded if words.record else usual)]


def output_file(words: argparse.Namespace, name: str) -> Path:
    """The file for the numbers. It is checked before anything is measured.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    file: Path = words.output or words.record or Path(f"{name}-{datetime.now():%Y%m%d-%H%M%S}.json")
    folder = file.absolute().parent
    if not folder.is_dir() or file.is_dir():
        raise InputError(f"{file} cannot be a file, because {folder if not folder.is_dir() else file} is {_what(file)}")
    if not os.access(file if file.exists() else folder, os.W_OK):
        raise InputError(f"{file} cannot be written; name another file with --output")
    return file


def _what(file: Path) -> str:
    return "a folder; name another file with --output" if file.is_dir() else "no folder; make it first"


def numbers(file: Path) -> dict[str, Any]:
    """The numbers that a benchmark has written.

    Raises
    ------
    InputError
        If `file` is not there, or is not JSON.
    """
    try:
        result: dict[str, Any] = json.loads(file.read_text())
        return result
    except (OSError, ValueError) as error:
        raise InputError(f"{file} has no numbers of a benchmark: {error}") from None


def begun(
    words: argparse.Namespace, file: Path, kind: str, options: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The numbers that a file has, by kind of machine, and new ones for this kind, without any graph yet.

    With ``--record`` the graphs that were measured at the same commit with the same options keep their numbers.
    """
    recorded: dict[str, Any] = json.loads(file.read_text()) if words.record and file.exists() else {}
    before = recorded.get(kind, {})
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "options": options,
        "graphs": {},
    }
    if before.get("commit") == result["commit"] and before["options"] == options:
        result["graphs"] = before["graphs"]
    return recorded, result


def write(file: Path, result: Any) -> None:
    """Write the numbers to `file` as JSON."""
    file.write_text(json.dumps(result, indent=1) + "\n")


def run(main: Callable[[], None]) -> None:
    """Run a benchmark. An error of the project is printed as a sentence; the exit code is 2 for bad input, else 1."""
    try:
        main()
    except BicliqueError as error:
        print(f"error: {error.written}", file=sys.stderr)
        raise SystemExit(2 if isinstance(error, InputError) else 1) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
