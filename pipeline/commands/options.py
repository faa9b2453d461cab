"""Groups of options that several commands share. Every option names its default and its unit."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pipeline import engines
from pipeline.choices import AS_BEFORE

__all__ = [
    "BUILD",
    "LIMITS",
    "READING",
    "SEARCH",
    "WORKERS",
    "add_build",
    "add_limits",
    "add_quiet",
    "add_reading",
    "add_report",
    "add_run",
    "add_search",
    "add_source",
    "add_workers",
    "natural",
    "numbers",
    "or_none",
]

#: What each group adds; the API calls its parameters the same.
SEARCH = ("min_left", "min_right", "max_left", "max_right")
LIMITS = ("max_results", "time_limit")
BUILD = ("engine", "root_side", "order")
WORKERS = ("workers", "scheduler", "slice_seconds", "devices", "rmm_pool", "spill")
READING = ("format", "left", "right", "delimiter", "header", "label_type", "skip_bad_lines")


def add_source(command: argparse.ArgumentParser) -> None:
    """The input."""
    command.add_argument("source", metavar="SOURCE", help="an edge list; see: bicliques formats")


def add_run(command: argparse.ArgumentParser) -> None:
    """The folder of a run that is there."""
    command.add_argument("run", metavar="OUT", type=Path, help="folder of the run")


def add_search(command: argparse.ArgumentParser) -> None:
    """Which bicliques count."""
    group = command.add_argument_group("which bicliques")
    for side in ("left", "right"):
        group.add_argument(
            f"--min-{side}",
            type=int,
            default=1,
            metavar="N",
            help=f"fewest {side} members; prunes the search (default: 1)",
        )
        group.add_argument(
            f"--max-{side}",
            type=int,
            metavar="N",
            help=f"most {side} members; a filter: larger ones are left out, their parts do not appear (default: any)",
        )


def add_limits(command: argparse.ArgumentParser, default: str) -> None:
    """When to stop; `default` says what happens without a wish."""
    group = command.add_argument_group("when to stop, resumable")
    before = default == AS_BEFORE
    group.add_argument(
        "--max-results",
        type=or_none(int),
        metavar="N",
        default=AS_BEFORE if before else None,
        help=f"bicliques of the whole run, exact; none lifts the limit (default: {default})",
    )
    group.add_argument(
        "--time-limit",
        type=or_none(float),
        metavar="SECONDS",
        default=AS_BEFORE if before else None,
        help=f"of mining; reading the input does not count; none lifts the limit (default: {default})",
    )


def add_build(command: argparse.ArgumentParser) -> None:
    """How to search."""
    group = command.add_argument_group("how to search; none of these changes the result")
    names = (engines.AUTO, *(kind.name for kind in engines.kinds()))
    group.add_argument(
        "--engine", choices=names, default=engines.AUTO, help="(default: auto, the fastest that can run)"
    )
    group.add_argument(
        "--root-side",
        choices=("auto", "left", "right"),
        default="auto",
        help="(default: auto, the one with fewer wedges)",
    )
    group.add_argument(
        "--order",
        choices=("degree", "two-hop", "unilateral", "id"),
        default="degree",
        help="rank of the roots (default: degree)",
    )


def add_workers(command: argparse.ArgumentParser, writes: bool = True) -> None:
    """Where to search, and to write if the command does."""
    group = command.add_argument_group("workers")
    group.add_argument(
        "--workers",
        type=natural,
        metavar="N",
        help="processes on this machine; 0 works in this one "
        "(default: this one, then one a core or a GPU if it takes longer)",
    )
    group.add_argument(
        "--scheduler", metavar="ADDRESS", help="of a running Dask scheduler, as tls://10.0.0.1:8786 (default: none)"
    )
    group.add_argument(
        "--slice-seconds",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="longest time a worker works without reporting (default: 10)",
    )
    group.add_argument(
        "--devices",
        type=numbers,
        metavar="LIST",
        help="with a GPU engine: a worker on each of these GPUs, as 0,1 (default: all)",
    )
    group.add_argument(
        "--rmm-pool",
        metavar="SIZE",
        help="with a GPU engine: a pool of so much device memory in each worker, as 40GB or 0.8 (default: none)",
    )
    group.add_argument(
        "--spill",
        action="store_true",
        help="with a GPU engine: cuDF may move buffers to main memory (default: it fails when a device is full)",
    )
    if writes:
        group.add_argument(
            "--write-on",
            choices=("auto", "cpu", "gpu"),
            default="auto",
            help="with a GPU engine: who encodes the results (default: auto, the GPU if cuDF is there)",
        )
    add_quiet(group)


def add_report(command: argparse.ArgumentParser) -> None:
    """Whether to write the page with pictures."""
    command.add_argument(
        "--no-report", dest="report", action="store_false", help="do not write OUT/report.html once the run is complete"
    )


def add_quiet(group: Any) -> None:
    """Whether to show progress."""
    group.add_argument(
        "--quiet",
        action="store_true",
        help="no progress on stderr (default: a bar on a terminal, elsewhere a line every 10 seconds)",
    )
    group.add_argument(
        "--log",
        choices=("text", "json"),
        help="instead of progress, a line on stderr for every event, json for machines (default: only warnings)",
    )


def add_reading(command: argparse.ArgumentParser) -> None:
    """How to read the input."""
    group = command.add_argument_group("how to read SOURCE")
    group.add_argument(
        "--format", metavar="NAME", help="a name that bicliques formats lists (default: by name and content)"
    )
    for side, place in (("left", "first"), ("right", "second")):
        group.add_argument(
            f"--{side}",
            metavar="COLUMN",
            help=f"for the {side} side, by name or by position from 0 (default: the {place}; the run says its name)",
        )
    group.add_argument("--delimiter", metavar="CHAR", help="between columns of a CSV (default: by its first lines)")
    group.add_argument(
        "--header",
        action=argparse.BooleanOptionalAction,
        help="whether the first line of a CSV names the columns (default: by its first lines)",
    )
    group.add_argument(
        "--label-type",
        choices=("auto", "int", "string"),
        default="auto",
        help="(default: auto, integers if all labels of a side are)",
    )
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave out and count what cannot be read (default: refuse the file)",
    )
    group.add_argument(
        "--ingest-on",
        choices=("auto", "cpu", "gpu"),
        default="auto",
        help="where SOURCE is read; the result is the same (default: auto, the GPU for a large file if cuDF is there)",
    )


def numbers(text: str) -> tuple[int, ...]:
    """Numbers that are 0 or more, between commas."""
    return tuple(natural(part) for part in text.split(","))


def natural(text: str) -> int:
    """A number that is 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def or_none(kind: type[int] | type[float]) -> Any:
    """A parser of numbers of a type, and of the word none."""

    def parse(text: str) -> int | float | str | None:
        if text == AS_BEFORE:  # argparse parses defaults, too
            return text
        return None if text == "none" else kind(text)

    parse.__name__ = kind.__name__
    return parse
