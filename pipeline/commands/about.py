"""``formats`` and ``demo``: what the program can do, told and shown."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.commands.command import COMPLETE, Command, chosen, progress, say
from pipeline.commands.mining import say_results, so_far
from pipeline.commands.options import WORKERS, add_workers
from pipeline.engines import kinds

__all__ = ["COMMANDS"]


def _add_formats(command: argparse.ArgumentParser) -> None:
    pass  # nothing to choose


def _add_demo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=Path,
        default=Path("demo-output"),
        help="folder of the run: empty or new (default: demo-output)",
    )
    add_workers(command, writes=False)


def _formats(arguments: argparse.Namespace) -> int:
    from pipeline import cards
    from pipeline.readers import formats

    def names() -> dict[str, Any]:
        engines = {kind.name: kind.why_not() for kind in kinds()}
        return {"formats": {f.name: list(f.patterns) for f in formats()}, "engines": engines}

    say(arguments, names, cards.formats_table)
    return COMPLETE


def _demo(arguments: argparse.Namespace) -> int:
    from pipeline import api
    from pipeline.demo import demo_source, how_to_read

    options = chosen(arguments, *WORKERS)
    results = so_far(partial(api.mine, demo_source(), arguments.output, progress=progress(arguments), **options))
    code = say_results(arguments, results)
    if code == COMPLETE and not arguments.json:
        print(f"\n{how_to_read(results)}")
    return code


COMMANDS = (
    Command(
        name="formats",
        help="list the formats that can be read and the engines that can run",
        add_arguments=_add_formats,
        run=_formats,
        imports=("cards", "readers"),
    ),
    Command(
        name="demo",
        help="mine the graph that comes with the project and show how to read the result",
        add_arguments=_add_demo,
        run=_demo,
        imports=("api", "cards", "demo"),
        gets_ready=True,
    ),
)
