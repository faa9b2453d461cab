"""The commands ``mine``, ``largest``, ``count``, ``cliques``, ``look`` and ``resume``."""

from __future__ import annotations

import argparse
import logging
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.cli.command import COMPLETE, INTERRUPTED, Command, code_of, complain, progress, say
from bicliques.pipeline.cli.options import add_options, add_run, add_source, chosen, refuse
from bicliques.pipeline.process.startup import age
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import InputError
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.results.results import Results

#: Most rows that the command ``largest`` prints. The folder has all.
_MOST_SHOWN = 10


def _add_mine(command: argparse.ArgumentParser) -> None:
    add_source(command)
    command.add_argument(
        "-o", "--output", metavar="OUT", type=local_path, help="folder of the run: empty, new, or of the same run"
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="print the profile, the plan and estimates of memory, output and time; OUT is not touched",
    )
    add_options(command, "mine", "dry_run")


def _add_largest(command: argparse.ArgumentParser) -> None:
    add_source(command)
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        type=local_path,
        help="folder of the run: empty, new, or of the same run (default: nothing is kept)",
    )
    add_options(command, "largest")


def _add_count(command: argparse.ArgumentParser) -> None:
    add_source(command)
    command.add_argument(
        "--pq-per-vertex",
        nargs=2,
        metavar=("PxQ", "FOLDER"),
        help="the same as --pq PxQ --per-vertex FOLDER: for every vertex the number of P x Q bicliques that contain "
        "it, and with 2x2 for every edge (default: not written)",
    )
    add_options(command, "count")


def _add_cliques(command: argparse.ArgumentParser) -> None:
    add_source(command)
    add_options(command, "cliques")


def _add_look(command: argparse.ArgumentParser) -> None:
    add_source(command)
    add_options(command, "look")


def _add_resume(command: argparse.ArgumentParser) -> None:
    add_run(command)
    add_options(command, "resume")


def _mine(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api import runs

    if arguments.dry_run:
        return _dry_run(arguments)
    refuse(arguments, "dry_run", "mine", "{option} is an option of --dry-run; leave it out")
    if arguments.output is None:
        raise InputError("mine needs a folder to write into; give it with --output")
    options = chosen(arguments, "mine")
    mine = partial(runs.mine, arguments.source, arguments.output, progress=progress(arguments), **options)
    return say_results(arguments, so_far(mine))


def _largest(arguments: argparse.Namespace) -> int:
    if arguments.output is not None:
        return _largest_into(arguments.output, arguments, **chosen(arguments, "largest"))
    with tempfile.TemporaryDirectory(prefix="bicliques-") as place:
        return _largest_into(Path(place) / "run", arguments, **chosen(arguments, "largest") | {"report": False})


def _largest_into(output: Path, arguments: argparse.Namespace, **options: Any) -> int:
    from bicliques.pipeline.api import runs
    from bicliques.pipeline.cli import cards
    from bicliques.pipeline.results import listing

    found = so_far(partial(runs.largest, arguments.source, output, progress=progress(arguments), **options))
    rows = found.top(min(len(found), _MOST_SHOWN), arguments.by) if len(found) else None
    table = f"\n\n{listing.top_table(rows, listing.width())}" if rows is not None else ""
    is_kept = arguments.output is not None
    say(
        arguments,
        lambda: cards.run_json(found) | {"rows": [] if rows is None else rows.to_pylist()},
        lambda: cards.run_card(found, is_kept, age()) + table,
    )
    return _code(arguments, found, is_kept)


def _dry_run(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api.dry_running import dry_run
    from bicliques.pipeline.cli import cards
    from bicliques.pipeline.process.interrupts import Interrupted

    no_use = "a dry run has no use for {option}: it writes nothing and estimates all; leave it out"
    refuse(arguments, "mine", "dry_run", no_use)
    code = COMPLETE
    try:
        found = dry_run(arguments.source, progress=progress(arguments), **chosen(arguments, "dry_run"))
    except Interrupted as stopped:
        found, code = stopped.so_far, INTERRUPTED
    say(arguments, lambda: found.to_json() | {"settings": {}}, lambda: cards.dry_run_card(found))
    return code


def _count(arguments: argparse.Namespace) -> int:
    options = chosen(arguments, "count")
    if arguments.pq_per_vertex is not None:
        options |= dict(zip(("pq", "per_vertex"), arguments.pq_per_vertex, strict=True))
    from bicliques.pipeline.api import counting

    return _counted(arguments, counting.count, options)


def _cliques(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api import counting
    from bicliques.schemas.leaves import CLIQUES

    return _counted(arguments, counting.count_of_any, chosen(arguments, "cliques") | {"pq": CLIQUES})


def _counted(arguments: argparse.Namespace, call: Callable[..., Any], options: dict[str, Any]) -> int:
    from bicliques.pipeline.cli import cards

    count = so_far(partial(call, arguments.source, progress=progress(arguments), **options))
    say(arguments, count.to_json, lambda: cards.count_card(count))
    return code_of(count.outcome)


def _look(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api.looking import look

    try:
        found = look(arguments.source, **chosen(arguments, "look"))
    except InputError as error:
        if not arguments.json and (lines := getattr(error, "__notes__", ())):
            print("\n".join(("the first lines:", *lines)), flush=True)
        raise
    say(arguments, found.to_json, lambda: str(found))
    return COMPLETE


def _resume(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.api import runs

    options = chosen(arguments, "resume")
    return say_results(arguments, so_far(partial(runs.resume, arguments.run, progress=progress(arguments), **options)))


def so_far(work: Callable[[], Any]) -> Any:
    """The result of `work`, or its result so far when Ctrl-C stopped it."""
    from bicliques.pipeline.process.interrupts import Interrupted

    try:
        return work()
    except Interrupted as stopped:
        return stopped.so_far


def say_results(arguments: argparse.Namespace, results: Results) -> int:
    """Print the run card. If the run is not complete, say on stderr how to go on. Returns the exit code."""
    from bicliques.pipeline.cli import cards

    say(arguments, lambda: cards.run_json(results), lambda: cards.run_card(results, seconds=age()))
    return _code(arguments, results)


def _code(arguments: argparse.Namespace, results: Results, is_kept: bool = True) -> int:
    """The exit code of a run. If it is kept and not complete, say on stderr how to go on."""
    if is_kept and not results.complete:
        asked_for = results.outcome in ("max_results", "time_limit")
        level = logging.INFO if asked_for else logging.WARNING
        complain(
            arguments, f"not complete; go on with: {how_to_resume(results.path, results.outcome)}", "stopped", level
        )
    return code_of(results.outcome)


COMMANDS = (
    Command(
        name="mine",
        help="write every maximal biclique of SOURCE into the folder OUT",
        add_arguments=_add_mine,
        run=_mine,
        imports=("api.runs", "cli.cards", "api.dry_running"),
        gets_ready=True,
    ),
    Command(
        name="largest",
        help="find the largest bicliques of SOURCE, and prove that none is larger",
        add_arguments=_add_largest,
        run=_largest,
        imports=("api.runs", "cli.cards", "results.listing"),
        gets_ready=True,
    ),
    Command("count", "count them; nothing is kept", _add_count, _count, ("cli.cards", "api.counting"), gets_ready=True),
    Command(
        name="cliques",
        help="count the cliques of a graph of one kind of vertices, and its motifs; nothing is kept",
        add_arguments=_add_cliques,
        run=_cliques,
        imports=("cli.cards", "api.counting"),
        gets_ready=True,
    ),
    Command("look", "say how SOURCE is read, and what is doubtful about it", _add_look, _look, ("api.looking",)),
    Command("resume", "go on with the run in OUT, however it stopped", _add_resume, _resume, gets_ready=True),
)
