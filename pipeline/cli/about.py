"""The commands ``formats`` and ``demo``, which tell people what the program can do."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from kernels.engines import kinds
from pipeline.cli.command import COMPLETE, Command, progress, say
from pipeline.cli.mining import say_results, so_far
from pipeline.cli.options import add_options, chosen
from schemas.errors import on_terminal
from schemas.values import local_path

__all__ = ["COMMANDS"]


def _add_formats(command: argparse.ArgumentParser) -> None:
    pass  # the command has no options


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=local_path,
        default=Path("demo-output"),
        help="folder of the run: empty or new (default: demo-output)",
    )
    add_options(command, "demo")


def _formats(arguments: argparse.Namespace) -> int:
    from pipeline.cli import cards
    from pipeline.ingest.readers import formats

    def names() -> dict[str, Any]:
        engines = {kind.name: kind.why_not() for kind in kinds()}
        return {"formats": {f.name: list(f.patterns) for f in formats()}, "engines": engines}

    say(arguments, names, cards.formats_table)
    return COMPLETE


def _demo(arguments: argparse.Namespace) -> int:
    from pipeline.api import runs
    from pipeline.cli.demo import demo_source, how_to_read

    options = chosen(arguments, "demo")
    results = so_far(partial(runs.mine, demo_source(), arguments.output, progress=progress(arguments), **options))
    code = say_results(arguments, results)
    if code == COMPLETE and not arguments.json:
        print(on_terminal(f"\n{how_to_read(results)}"))
    return code


COMMANDS = (
    Command(
        name="formats",
        help="list the formats that can be read and the engines that can run",
        add_arguments=_add_formats,
        run=_formats,
        imports=("cli.cards", "ingest.readers"),
    ),
    Command(
        name="demo",
        help="mine the graph that comes with the project and show how to read the result",
        add_arguments=_add_demo,
        run=_demo,
        imports=("api.runs", "cli.cards", "cli.demo"),
        gets_ready=True,
    ),
)
