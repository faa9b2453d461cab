"""The commands ``formats`` and ``demo``, which tell people what the program can do."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.kernels.engines import kinds
from bicliques.pipeline.cli.command import COMPLETE, Command, progress, say
from bicliques.pipeline.cli.mining import say_results, so_far
from bicliques.pipeline.cli.options import add_options, chosen
from bicliques.schemas.errors import InputError, on_terminal
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.results.results import Results

_GRAPH = Path("examples/debian12_package_tag.parquet")
_PACKAGE = Path(__file__).parents[2]


def demo_source() -> Path:
    """The file of the packages of Debian 12 and their tags.

    Raises
    ------
    InputError
        The file is missing.
    """
    places = (_PACKAGE / _GRAPH, _PACKAGE.parent / _GRAPH)  # in a wheel, and in the repository
    for path in places:
        if path.exists():
            return path
    raise InputError(f"{places[0]} is not there; install the project again")


def how_to_read(results: Results) -> str:
    """The paths of the files, and three lines of pandas that read them."""
    files = "\n".join(f"  {file}" for file in results.files)
    return (
        f"The Parquet files:\n{files}\n\nRead them with pandas:\n\n"
        f"import pandas as pd\n"
        f'bicliques = pd.read_parquet("{results.path / "bicliques"}", columns=["n_left", "n_right", "left", "right"])\n'
        f'print(bicliques.sort_values("n_left").tail())'
    )


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
    from bicliques.pipeline.cli import cards
    from bicliques.pipeline.ingest.readers import formats

    def names() -> dict[str, Any]:
        engines = {kind.name: kind.why_not() for kind in kinds()}
        return {"formats": {f.name: list(f.patterns) for f in formats()}, "engines": engines}

    say(arguments, names, cards.formats_table)
    return COMPLETE


def _demo(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api import runs

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
        imports=("api.runs", "cli.cards"),
        gets_ready=True,
    ),
)
