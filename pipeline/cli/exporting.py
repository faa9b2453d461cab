"""The commands ``export`` and ``publish``, which hand results to other programs: as text, or as a copy of the run."""

from __future__ import annotations

import argparse
import io
import os
import sys
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.cli.command import (
    COMPLETE,
    INTERRUPTED,
    LIMIT,
    TERMINATED,
    Command,
    complain,
    in_file,
    progress,
    say,
)
from bicliques.pipeline.cli.options import add_quiet, add_run
from bicliques.pipeline.process.interrupts import Terminated
from bicliques.pipeline.run.progress import number, size
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import InputError, ResourceError, on_terminal
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.publishing.publish_run import Published

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


def _add_publish(command: argparse.ArgumentParser) -> None:
    add_run(command)
    command.add_argument(
        "url", metavar="URL", help="folder to publish to: a path, file://, s3://, gs://, abfs://, or what fsspec knows"
    )
    command.add_argument(
        "--overwrite", action="store_true", help="replace another run that was published there (default: keep it)"
    )
    add_quiet(command)


def _publish(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.publishing.publish_run import publish

    try:
        found = publish(arguments.run, arguments.url, overwrite=arguments.overwrite, progress=progress(arguments))
    except (KeyboardInterrupt, Terminated) as stop:
        complain(arguments, "stopped; the same command goes on, and until then there is no _SUCCESS", "stopped")
        return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
    say(arguments, found.to_json, lambda: publish_card(found))
    return COMPLETE


def publish_card(found: Published) -> str:
    """What was published, and how much of it was there already."""
    there = found.files - found.written
    written = f"{number(found.written, 'file')}, {size(found.written_bytes)}" if found.written else "nothing"
    lines = [
        f"{number(found.count, 'biclique')} at {found.url}",
        f"written: {written}" + (f"; there already: {there:,} of {number(found.files, 'file')}" if there else ""),
    ]
    if found.removed:
        lines.append(f"removed: {number(found.removed, 'file')} of an earlier publication")
    return "\n".join([*lines, f"fingerprint: {found.fingerprint}", f"time: {found.seconds:.1f} s"])


COMMANDS = (
    Command(
        name="export",
        help="write the bicliques of a run, or its graph, as text for other programs",
        add_arguments=_add_export,
        run=_export,
        imports=("results.results", "results.exporting"),
    ),
    Command(
        name="publish",
        help="copy a complete run to a folder or a bucket, for other programs to read",
        add_arguments=_add_publish,
        run=_publish,
        imports=("publishing.publish_run",),
    ),
)
