"""The command ``export``, which writes results as text for other programs."""

from __future__ import annotations

import argparse
import io
import os
import sys
from typing import Any

from bicliques.pipeline.cli.command import COMPLETE, LIMIT, Command, complain, in_file, say
from bicliques.pipeline.cli.options import add_run
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import InputError, ResourceError, on_terminal
from bicliques.schemas.values import local_path

#: Names of `pipeline.results.exporting.FORMATS`, which is not imported for ``--help``.
FORMATS = ("csv", "jsonl", "spmf", "cxt", "adj")


def _add_export(command: argparse.ArgumentParser) -> None:
    add_run(command)
    command.add_argument(
        "--format",
        choices=FORMATS,
        default="csv",
        help="bicliques as csv, jsonl or spmf (closed itemsets), or the graph as cxt or adj (default: csv)",
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=local_path,
        help="a file to write, or to replace (default: standard output)",
    )


class _Terminal(io.BytesIO):
    """Shows a text to people, whose terminal would obey an escape sequence in a label. Programs get it as it is."""

    def write(self, piece: Any) -> int:
        """Show a piece of whole lines."""
        sys.stdout.write(on_terminal(piece.decode()))
        return len(piece)

    def flush(self) -> None:
        """Show what was written."""
        sys.stdout.flush()


def _export(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.exporting import FORMATS
    from bicliques.pipeline.results.results import open_results

    if arguments.json and arguments.output is None:
        raise InputError("the text goes to standard output, where --json prints, too; name a file with --output")
    results = open_results(arguments.run)
    if arguments.output is not None:
        replaced = os.path.lexists(arguments.output)
        results.export(arguments.format, arguments.output)
        what = number(len(results), "biclique") if FORMATS[arguments.format].of == "bicliques" else "the graph"
        found = {"file": str(arguments.output), "format": arguments.format, "count": len(results)}
        say(arguments, lambda: found | {"replaced": replaced}, lambda: f"{what} {in_file(arguments.output, replaced)}")
    else:
        try:
            results.export(arguments.format, _Terminal() if sys.stdout.isatty() else sys.stdout.buffer)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise ResourceError(f"the text cannot be written ({error.strerror}); make room where it goes") from error
    if results.complete or FORMATS[arguments.format].of == "graph":
        return COMPLETE
    complain(arguments, f"not complete; go on with: {how_to_resume(results.path, results.outcome)}", "stopped")
    return LIMIT


COMMANDS = (
    Command(
        name="export",
        help="write the bicliques of a run, or its graph, as text for other programs",
        add_arguments=_add_export,
        run=_export,
        imports=("results.results", "results.exporting"),
    ),
)
