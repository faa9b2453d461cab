"""The command ``diff``, which compares two runs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.cli.command import COMPLETE, Command, progress, say
from bicliques.pipeline.cli.options import add_quiet
from bicliques.schemas.errors import in_one_line
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.compare.difference import Difference

#: How many new bicliques, and how many vertices, are shown.
_SHOWN = 5


def _add_diff(command: argparse.ArgumentParser) -> None:
    command.add_argument("old", metavar="OLD", type=local_path, help="folder of the run before")
    command.add_argument("new", metavar="NEW", type=local_path, help="folder of the run after")
    command.add_argument(
        "-o",
        "--output",
        type=local_path,
        metavar="DIR",
        help="folder for gone.parquet, new.parquet, vertices_left.parquet, vertices_right.parquet and diff.json "
        "(default: nothing is kept)",
    )
    command.add_argument(
        "--full", action="store_true", help="show all members, in long lines (default: as many as fit the terminal)"
    )
    add_quiet(command)


def _diff(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.compare.diffing import diff
    from bicliques.pipeline.results import listing

    with _place(arguments.output) as place:
        found = diff(arguments.old, arguments.new, place, progress=progress(arguments))
        width = None if arguments.full else listing.width()
        kept = arguments.output is not None
        say(arguments, lambda: difference_json(found), lambda: difference_card(found, width, kept))
    return COMPLETE


@contextmanager
def _place(output: Path | None) -> Iterator[Path]:
    """The folder that was asked for, or one that goes after the block."""
    from bicliques.pipeline.run.files import temporary_folder

    if output is not None:
        yield output
        return
    with temporary_folder() as temporary:
        yield temporary / "diff"


def difference_card(found: Difference, width: int | None, is_kept: bool = True) -> str:
    """The numbers of a comparison, the largest new bicliques, and the vertices that changed most."""
    from bicliques.pipeline.results.listing import aligned, top_table

    record = found.record
    counts = {
        "old": (record.old_run.found.count, record.old_run.folder),
        "gone": (record.gone.count, f"{share_of(record.gone.count, record.old_run.found.count)} of old"),
        "new ones": (record.new.count, f"{share_of(record.new.count, record.new_run.found.count)} of new"),
        "unchanged": (record.unchanged, ""),
        "new": (record.new_run.found.count, record.new_run.folder),
    }
    lines = aligned([(name, f"{n:,}", words) for name, (n, words) in counts.items()], "<><")
    lines += [
        *map(in_one_line, record.notes),
        "proven: old - gone + new ones = new, in number and fingerprint, and for every vertex",
    ]
    lines += [f"files: {found.path}"] if is_kept else []
    if record.new.count:
        lines += ["", "the largest new ones:", top_table(found.new.top(_SHOWN), width)]
    if changed := found.most_changed(_SHOWN):
        lines += ["", "the vertices that changed most:", *_vertices(changed, width)]
    return "\n".join(lines)


def share_of(part: int, whole: int) -> str:
    """A share in per cent. Only nothing is 0 %, and only all is 100 %."""
    percent = 100 * part / max(whole, 1)
    if 0 < percent < 0.001:
        return "less than 0.001 %"
    return f"{percent:.7g} %" if percent > 99.9 else f"{percent:.3g} %"


def _vertices(changed: list[dict[str, Any]], width: int | None) -> list[str]:
    from bicliques.pipeline.results.listing import aligned, shortened

    names = ("before", "after", "gone", "new")
    rows: list[tuple[str, ...]] = [(*names, "side", "vertex")]
    rows += [(*(f"{row[name]:,}" for name in names), row["side"], shortened(row["label"], width)) for row in changed]
    return aligned(rows, ">>>><<")


def difference_json(found: Difference) -> dict[str, Any]:
    """The record of a comparison, the largest new bicliques, and the vertices that changed most, for JSON."""
    from bicliques.pipeline.results.listing import top_json

    shown = {"largest_new": top_json(found.new.top(_SHOWN)) if len(found.new) else []}
    return found.record.to_json() | {"share": found.share} | shown | {"most_changed": found.most_changed(_SHOWN)}


COMMANDS = (
    Command(
        name="diff",
        help="compare two runs: which bicliques are gone, and which are new",
        add_arguments=_add_diff,
        run=_diff,
        imports=("compare.diffing", "results.listing"),
    ),
)
