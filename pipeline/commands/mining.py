"""``mine``, ``count`` and ``resume``."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.choices import AS_BEFORE
from pipeline.commands.command import COMPLETE, Command, chosen, code_of, complain, progress, say
from pipeline.commands.options import (
    BUILD,
    LIMITS,
    READING,
    SEARCH,
    WORKERS,
    add_build,
    add_limits,
    add_reading,
    add_report,
    add_run,
    add_search,
    add_source,
    add_workers,
)
from pipeline.folder import how_to_resume
from schemas.errors import InputError

if TYPE_CHECKING:
    from pipeline.results import Results

__all__ = ["COMMANDS", "say_results", "so_far"]

#: Options of ``mine`` that ``--dry-run`` refuses, and what they are when nobody asks for them.
_NOT_IN_A_DRY_RUN = {
    "max_results": None,
    "time_limit": None,
    "slice_seconds": 10.0,
    "rmm_pool": None,
    "spill": False,
    "write_on": "auto",
    "no_report": True,
}


def _add_mine(command: argparse.ArgumentParser) -> None:
    add_source(command)
    command.add_argument("-o", "--output", metavar="OUT", type=Path, help="folder of the run: empty or new")
    command.add_argument("--count-only", action="store_true", help="count and fingerprint, write no bicliques")
    _add_sizes(command, "with --count-only: also count how many there are of each size; see: bicliques sizes")
    command.add_argument(
        "--ids",
        choices=("labels", "dense"),
        default="labels",
        help="what the lists hold: labels, or row numbers of OUT/labels/*.parquet (default: labels)",
    )
    command.add_argument(
        "--dry-run",
        action="store_true",
        help="print the profile, the plan and estimates of memory, output and time; OUT is not touched",
    )
    command.add_argument(
        "--sample-time",
        type=float,
        metavar="SECONDS",
        help="for the estimates of --dry-run (default: 10)",
    )
    add_report(command)
    _add_how(command)


def _add_count(command: argparse.ArgumentParser) -> None:
    add_source(command)
    command.add_argument("--fingerprint", action="store_true", help="also print the fingerprint; takes longer")
    _add_sizes(command, "also print how many there are of each size; takes longer")
    command.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where the graph is put meanwhile; workers of --scheduler must see it (default: the temporary folder)",
    )
    _add_how(command, writes=False)


def _add_sizes(command: argparse.ArgumentParser, help: str) -> None:
    command.add_argument("--sizes", action="store_true", help=help)


def _add_how(command: argparse.ArgumentParser, writes: bool = True) -> None:
    add_search(command)
    add_limits(command, "no limit")
    add_build(command)
    add_workers(command, writes)
    add_reading(command)


def _add_resume(command: argparse.ArgumentParser) -> None:
    add_run(command)
    add_report(command)
    add_limits(command, AS_BEFORE)
    add_workers(command)


def _mine(arguments: argparse.Namespace) -> int:
    from pipeline import api

    if arguments.dry_run:
        return _dry_run(arguments)
    if arguments.sample_time is not None:
        raise InputError("--sample-time is an option of --dry-run; leave it out")
    if arguments.output is None:
        raise InputError("mine needs a folder to write into; give it with --output")
    options = chosen(arguments, *READING, *SEARCH, *BUILD, *LIMITS, *WORKERS)
    options |= chosen(arguments, "count_only", "ids", "ingest_on", "report", "sizes", "write_on")
    mine = partial(api.mine, arguments.source, arguments.output, progress=progress(arguments), **options)
    return say_results(arguments, so_far(mine))


def _dry_run(arguments: argparse.Namespace) -> int:
    from pipeline import cards
    from pipeline.dry_running import dry_run

    for name, default in _NOT_IN_A_DRY_RUN.items():
        if getattr(arguments, name.removeprefix("no_")) != default:
            option = f"--{name.replace('_', '-')}"
            raise InputError(f"a dry run has no use for {option}: it writes nothing and estimates all; leave it out")
    options = chosen(arguments, *READING, *SEARCH, *BUILD)
    options |= chosen(arguments, "count_only", "devices", "ids", "ingest_on", "scheduler", "sizes", "workers")
    if arguments.sample_time is not None:
        options["sample_time"] = arguments.sample_time
    found = dry_run(arguments.source, progress=progress(arguments), **options)
    say(arguments, found.to_json, lambda: cards.dry_run_card(found))
    return COMPLETE


def _count(arguments: argparse.Namespace) -> int:
    from pipeline import cards, counting

    options = chosen(
        arguments, *READING, *SEARCH, *BUILD, *LIMITS, *WORKERS, "fingerprint", "sizes", "folder", "ingest_on"
    )
    count = so_far(partial(counting.count, arguments.source, progress=progress(arguments), **options))
    say(arguments, count.to_json, lambda: cards.count_card(count))
    return code_of(count.outcome)


def _resume(arguments: argparse.Namespace) -> int:
    from pipeline import api

    options = chosen(arguments, *LIMITS, *WORKERS, "write_on", "report")
    return say_results(arguments, so_far(partial(api.resume, arguments.run, progress=progress(arguments), **options)))


def so_far(work: Callable[[], Any]) -> Any:
    """What `work` returns, or what it had when Ctrl-C stopped it."""
    from pipeline.interrupts import Interrupted

    try:
        return work()
    except Interrupted as stopped:
        return stopped.so_far


def say_results(arguments: argparse.Namespace, results: Results) -> int:
    """Print the run card, and on stderr how to go on if the run is not complete; the exit code."""
    from pipeline import cards

    say(arguments, lambda: cards.run_json(results), lambda: cards.run_card(results))
    if not results.complete:
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
        imports=("api", "cards", "dry_running"),
        gets_ready=True,
    ),
    Command("count", "count them; nothing is kept", _add_count, _count, ("cards", "counting"), gets_ready=True),
    Command("resume", "go on with the run in OUT, however it stopped", _add_resume, _resume, gets_ready=True),
)
