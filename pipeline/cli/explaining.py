"""The command ``explain``, about one biclique of a run."""

from __future__ import annotations

import argparse

from pipeline.cli.command import COMPLETE, Command, say
from pipeline.cli.options import add_run, natural
from schemas.errors import InputError

__all__ = ["COMMANDS"]


def _add_explain(command: argparse.ArgumentParser) -> None:
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
    command.add_argument(
        "-n",
        type=int,
        default=20,
        metavar="N",
        help="most members, vertices that nearly belong, and overlapping bicliques (default: 20)",
    )
    command.add_argument(
        "--full", action="store_true", help="show all members, in long lines (default: as many as fit the terminal)"
    )


def _explain(arguments: argparse.Namespace) -> int:
    from pipeline.results.listing import width
    from pipeline.results.results import open_results

    results = open_results(arguments.run)
    id = arguments.id
    if id is None:
        largest = results.top(1)["id"].to_pylist()
        if not largest:
            raise InputError(f"{results.path} has no biclique to explain")
        (id,) = largest
    found = results.explain(id, arguments.missing, arguments.n)
    say(arguments, found.to_json, lambda: found.text(None if arguments.full else width()))
    return COMPLETE


COMMANDS = (
    Command(
        name="explain",
        help="explain a biclique of a run: its members, who nearly belongs, and what overlaps it",
        add_arguments=_add_explain,
        run=_explain,
        imports=("results.results", "results.explaining", "results.listing"),
    ),
)
