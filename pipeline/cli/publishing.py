"""The command ``publish``, which copies a complete run to where other programs read it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bicliques.pipeline.cli.command import COMPLETE, INTERRUPTED, TERMINATED, Command, complain, progress, say
from bicliques.pipeline.cli.options import add_quiet, add_run
from bicliques.pipeline.process.interrupts import Terminated
from bicliques.pipeline.run.progress import number, size

if TYPE_CHECKING:
    from bicliques.pipeline.publishing.publish_run import Published


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
        name="publish",
        help="copy a complete run to a folder or a bucket, for other programs to read",
        add_arguments=_add_publish,
        run=_publish,
        imports=("publishing.publish_run",),
    ),
)
