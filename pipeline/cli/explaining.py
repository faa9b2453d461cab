"""The commands about one biclique of a run: ``explain`` and ``plot``."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from bicliques.pipeline.cli.command import COMPLETE, Command, in_file, say
from bicliques.pipeline.cli.options import add_run, natural
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.results.results import Results


def _add_which(command: argparse.ArgumentParser, n: int, of_what: str) -> None:
    add_run(command)
    command.add_argument(
        "--id", metavar="ID", help="id of the biclique, as show --ids prints it (default: the largest by edges)"
    )
    command.add_argument(
        "--missing",
        type=natural,
        default=1,
        metavar="N",
        help="a vertex nearly belongs if it misses at most so many members of the other side (default: 1)",
    )
    command.add_argument("-n", type=int, default=n, metavar="N", help=f"most {of_what} (default: {n})")


def _add_explain(command: argparse.ArgumentParser) -> None:
    _add_which(command, 20, "members, vertices that nearly belong, and overlapping bicliques")
    command.add_argument(
        "--full", action="store_true", help="show all members, in long lines (default: as many as fit the terminal)"
    )


def _add_plot(command: argparse.ArgumentParser) -> None:
    _add_which(command, 8, "vertices that nearly belong, and overlapping bicliques")
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=local_path,
        help="a .svg file to write, or to replace; or a .png file, with Matplotlib (default: SVG on standard output)",
    )


def _chosen(arguments: argparse.Namespace, results: Results) -> int | str:
    """The id of the biclique that is asked for."""
    if arguments.id is not None:
        return str(arguments.id)
    largest: list[int] = results.top(1)["id"].to_pylist()
    if not largest:
        raise InputError(f"{results.path} has no biclique to {arguments.command}")
    return largest[0]


def _explain(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.listing import width
    from bicliques.pipeline.results.results import open_results

    results = open_results(arguments.run)
    found = results.explain(_chosen(arguments, results), arguments.missing, arguments.n)
    say(arguments, found.to_json, lambda: found.text(None if arguments.full else width()))
    return COMPLETE


def _plot(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.picture import picture_file
    from bicliques.pipeline.results.results import open_results

    if arguments.output is not None:
        picture_file(arguments.output)
    elif arguments.json:
        raise InputError("the picture goes to standard output, where --json prints, too; name a file with --output")
    results = open_results(arguments.run)
    id = _chosen(arguments, results)
    picture = results.plot(id, arguments.missing, arguments.n)
    if arguments.output is not None:
        replaced = os.path.lexists(arguments.output)
        file = picture.save(arguments.output)
        found = {"file": str(file), "id": str(id), "replaced": replaced}
        say(arguments, lambda: found, lambda: f"biclique {id} {in_file(file, replaced)}")
        return COMPLETE
    try:
        sys.stdout.buffer.write(f"{picture.svg}\n".encode())  # SVG is UTF-8, whatever the terminal is
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise ResourceError(f"the picture cannot be written ({error.strerror}); make room where it goes") from error
    return COMPLETE


COMMANDS = (
    Command(
        name="explain",
        help="explain a biclique of a run: its members, who nearly belongs, and what overlaps it",
        add_arguments=_add_explain,
        run=_explain,
        imports=("results.results", "results.explaining", "results.listing"),
    ),
    Command(
        name="plot",
        help="draw a biclique of a run as SVG: its edges, who nearly belongs, and what overlaps it",
        add_arguments=_add_plot,
        run=_plot,
        imports=("results.results", "results.explaining", "results.picture"),
    ),
)
