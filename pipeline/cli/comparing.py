"""The commands ``diff``, which compares two runs or edge lists, and ``refresh``, which makes one run from another."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.cli.command import COMPLETE, Command, progress, say
from bicliques.pipeline.cli.mining import say_results, so_far
from bicliques.pipeline.cli.options import add_options, chosen
from bicliques.schemas.errors import in_one_line
from bicliques.schemas.option import Call
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.compare.difference import Difference

#: How many new bicliques, and how many vertices, are shown.
_SHOWN = 5


def _add_diff(command: argparse.ArgumentParser) -> None:
    command.add_argument("old", metavar="OLD", type=local_path, help="folder of the run before, or an edge list")
    command.add_argument(
        "new", metavar="NEW", type=local_path, nargs="?", help="folder of the run after, or an edge list"
    )
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
    add_options(command, "diff")


def _diff(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api.diffing import diff
    from bicliques.pipeline.results import listing

    with _place(arguments.output) as place:
        options = _options(arguments, "diff", (arguments.old, arguments.new))
        found = diff(arguments.old, arguments.new, place, progress=progress(arguments), **options)
        width = None if arguments.full else listing.width()
        kept = arguments.output is not None
        say(arguments, lambda: difference_json(found), lambda: difference_card(found, width, kept))
    return COMPLETE


def _add_refresh(command: argparse.ArgumentParser) -> None:
    command.add_argument("run", metavar="RUN", type=local_path, help="folder of the complete run before")
    command.add_argument("source", metavar="NEW", type=local_path, help="the edge list of today")
    command.add_argument(
        "-o", "--output", metavar="OUT", type=local_path, required=True, help="folder of the run of today"
    )
    add_options(command, "refresh")


def _refresh(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api.refreshing import refresh

    options = _options(arguments, "refresh", (arguments.run,))
    work = partial(refresh, arguments.run, arguments.source, arguments.output, progress=progress(arguments), **options)
    return say_results(arguments, so_far(work))


def _options(arguments: argparse.Namespace, call: Call, sources: tuple[Any, ...]) -> dict[str, Any]:
    """The options. A run has thresholds of its own, so those that come from elsewhere are not for it."""
    from bicliques.pipeline.api.diffing import is_run
    from bicliques.pipeline.api.table import entries_of

    options = chosen(arguments, call)
    for entry in entries_of(call) if any(map(is_run, sources)) else ():
        if entry.name in arguments.settings and entry.told.group in ("thresholds", "reading"):
            del options[entry.name], arguments.settings[entry.name]
    return options


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
    from bicliques.pipeline.compare.diffing import PROVEN
    from bicliques.pipeline.results.listing import aligned, top_table

    record = found.record
    was, now = (each.found.count if each.found else None for each in (record.old_run, record.new_run))
    counts: dict[str, tuple[int | None, str]] = {
        "old": (was, record.old_run.folder),
        "gone": (record.gone.count, "" if was is None else f"{share_of(record.gone.count, was)} of old"),
        "new ones": (record.new.count, "" if now is None else f"{share_of(record.new.count, now)} of new"),
        "unchanged": (record.unchanged, ""),
        "new": (now, record.new_run.folder),
    }
    lines = aligned([(name, _or_unknown(n), words) for name, (n, words) in counts.items()], "<><")
    lines += map(in_one_line, record.notes)
    words = "each has a changed edge, or is what one with a changed edge leaves"
    if record.proven == PROVEN:
        words = "old - gone + new ones = new, in number and fingerprint, and for every vertex"
    lines += [f"proven: {words}"]
    lines += [f"files: {found.path}"] if is_kept else []
    if record.new.count:
        lines += ["", "the largest new ones:", top_table(found.new.top(_SHOWN), width)]
    if changed := found.most_changed(_SHOWN):
        lines += ["", "the vertices that changed most:", *_vertices(changed, width)]
    return "\n".join(lines)


def _or_unknown(n: int | None) -> str:
    return "not counted" if n is None else f"{n:,}"


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
    rows += [
        (
            *("" if row[name] is None else f"{row[name]:,}" for name in names),
            row["side"],
            shortened(row["label"], width),
        )
        for row in changed
    ]
    return aligned(rows, ">>>><<")


def difference_json(found: Difference) -> dict[str, Any]:
    """The record of a comparison, the largest new bicliques, and the vertices that changed most, for JSON."""
    shown = {"largest_new": found.new.top(_SHOWN).to_pylist() if len(found.new) else []}
    return found.record.to_json() | {"share": found.share} | shown | {"most_changed": found.most_changed(_SHOWN)}


COMMANDS = (
    Command(
        name="diff",
        help="compare two runs or edge lists: which bicliques are gone, and which are new",
        add_arguments=_add_diff,
        run=_diff,
        imports=("api.diffing", "results.listing"),
        gets_ready=True,
    ),
    Command(
        name="refresh",
        help="make the run of a new edge list from the run before, by what changed",
        add_arguments=_add_refresh,
        run=_refresh,
        imports=("api.refreshing", "cli.cards"),
        gets_ready=True,
    ),
)
