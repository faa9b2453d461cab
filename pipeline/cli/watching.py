"""The commands ``status`` and ``prune``, which look at runs from outside, while they run and afterwards."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bicliques.pipeline.cli.command import (
    COMPLETE,
    FAILURE,
    INTERRUPTED,
    LIMIT,
    RUNNING,
    TERMINATED,
    Command,
    complain,
    say,
)
from bicliques.pipeline.cli.options import add_run
from bicliques.pipeline.process.interrupts import Terminated
from bicliques.pipeline.run.progress import number, size
from bicliques.schemas.errors import in_one_line, on_terminal
from bicliques.schemas.values import local_path

if TYPE_CHECKING:
    from bicliques.pipeline.results.run_status import Status
    from bicliques.pipeline.series.pruning import Pruning

_CODES = {"complete": COMPLETE, "running": RUNNING, "stopped": LIMIT, "failed": FAILURE, "dead": FAILURE}


def _add_prune(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", metavar="FOLDER", type=local_path, help="holds one folder per run")
    command.add_argument(
        "--keep", type=int, default=7, metavar="N", help="complete runs that stay, the newest (default: 7)"
    )
    command.add_argument(
        "--keep-created",
        type=int,
        default=0,
        metavar="DAYS",
        help="runs that were created within so many days stay, too (default: 0)",
    )
    command.add_argument(
        "--unfinished",
        action="store_true",
        help="also runs that are not complete and older than those that stay (default: they stay)",
    )
    command.add_argument("--remove", action="store_true", help="do it (default: only say what would be removed)")


def _status(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.results.run_status import status

    found = status(arguments.run)
    say(arguments, found.to_json, lambda: open_metrics(found) if arguments.openmetrics else status_card(found))
    return _CODES[found.state]


def _prune(arguments: argparse.Namespace) -> int:
    from bicliques.pipeline.series.pruning import carry_out, survey

    found = survey(arguments.folder, arguments.keep, arguments.unfinished, arguments.keep_created)
    if not arguments.remove:
        say(arguments, found.to_json, lambda: prune_table(found))
        return COMPLETE
    # the runs are printed before any is removed, so that there is a record even if the removal is interrupted
    if arguments.json:
        print(on_terminal(prune_table(found, "goes")), file=sys.stderr, flush=True)
    else:
        say(arguments, found.to_json, lambda: prune_table(found, "goes"))
    try:
        done = carry_out(found)
    except (KeyboardInterrupt, Terminated) as stop:
        complain(arguments, "stopped; the same command removes the rest")
        return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED
    say(arguments, done.to_json, lambda: prune_result(found, done))
    for problem in done.problems:
        complain(arguments, problem)
    return FAILURE if done.problems else COMPLETE


def _add_status(command: argparse.ArgumentParser) -> None:
    add_run(command)
    command.add_argument(
        "--openmetrics", action="store_true", help="print the numbers as OpenMetrics text, as for Prometheus"
    )


def open_metrics(found: Status) -> str:
    """The numbers of a status as OpenMetrics text. All are gauges, which Prometheus' older format has, too."""
    folder, source = (
        text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for text in (str(found.folder), found.source)
    )
    seen = max((worker.last_seen for worker in found.workers), default=None)
    families: list[tuple[str, str, dict[str, float | None]]] = [
        ("run", "1; what is mined, and where", {f',source="{source}"': 1}),
        (
            "state",
            "1 for the state of the run, 0 for others",
            {f',state="{each}"': int(each == found.state) for each in _CODES},
        ),
        ("found", "bicliques in committed slices", {"": found.count}),
        ("part_bytes", "bytes of their files", {"": found.bytes}),
        ("mined_ratio", "share of the estimated work of mining that is done", {"": found.share}),
        ("mining_seconds", "wall time of the sessions that are over", {"": found.mining_seconds}),
        ("last_slice_timestamp_seconds", "when the last committed slice ended", {"": seen}),
        ("problems", "files that do not count any more", {"": len(found.problems)}),
    ]
    lines = []
    for name, words, values in families:
        lines += [f"# TYPE bicliques_{name} gauge", f"# HELP bicliques_{name} {words}"]
        for labels, value in values.items():
            if value is not None:
                lines.append(f'bicliques_{name}{{folder="{folder}"{labels}}} {value}')
    return "\n".join([*lines, "# EOF"])


def status_card(found: Status) -> str:
    """About ten lines about a run at one moment."""
    rows = [
        ("source", found.source),
        ("state", f"{found.state} ({found.why})"),
        ("done", ", ".join(found.done) or "nothing"),
    ]
    if found.step:
        rows.append(("now" if found.state == "running" else "next", found.step))
    if found.share is not None:
        rows.append(("mined", f"{100 * found.share:.1f} % of the estimated work in {number(found.slices, 'slice')}"))
        rows.append(("bicliques", f"{found.count:,}" + (f", {size(found.bytes)}" if found.bytes else "")))
        if found.gap is not None:
            rows.append(("so far", str(found.gap)))
        rows.append(("left", number(found.nodes_left, "subtree") if found.nodes_left else "nothing to mine"))
    if found.silent_seconds is not None:
        rows.append(("last slice", f"{ago(found.silent_seconds)} ago"))
    now = time.time()
    for worker in found.workers:
        slices = number(worker.slices, "slice")
        work = f"{slices}, {number(worker.bicliques, 'biclique')}, busy {worker.busy_seconds:.1f} s"
        rows.append((f"worker {worker.name}", f"{work}, last seen {ago(now - worker.last_seen)} ago"))
    rows += [("does not count", problem) for problem in found.problems]
    if found.go_on:
        rows.append(("go on with", found.go_on))
    return "\n".join(in_one_line(f"{key}: {value}") for key, value in rows)


def prune_table(found: Pruning, goes: str = "would go") -> str:
    """One line per run, with its verdict. If there are several series, each has a heading."""
    names = list(dict.fromkeys(run.series for run in found.runs))
    lines = []
    for name in names:
        if len(names) > 1:
            lines.append(f"{in_one_line(name)}:" if name else "of no series:")
        for run in (run for run in found.runs if run.series == name):
            word = "stays" if run.verdict == "keep" else goes
            lines.append(f"{word:<9} {size(run.bytes):>9}  {shown(run.path)}  ({run.reason})")
    if goes != "would go":
        return "\n".join(lines)
    return "\n".join([*lines, f"would remove {_total(found)}" + ("; do it with --remove" if found.chosen else "")])


def prune_result(found: Pruning, done: Pruning) -> str:
    """How many of the chosen runs were removed, and which could not be."""
    wanted, gone = {run.path for run in found.chosen}, {run.path for run in done.chosen}
    lines = [f"stays {shown(run.path)} ({run.reason})" for run in done.runs if run.path in wanted - gone]
    return "\n".join([*lines, f"removed {_total(done)}"])


def _total(found: Pruning) -> str:
    return f"{len(found.chosen):,} of {number(len(found.runs), 'run')}, {size(found.bytes)}"


def shown(path: Path) -> str:
    """A path without control characters."""
    return str(path) if str(path).isprintable() else repr(str(path))


def ago(seconds: float) -> str:
    """The time since then, rounded."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


_STATUS_HELP = "say what is done of the run in OUT, what is left and how to go on; 4 if it is running"

COMMANDS = (
    Command("status", _STATUS_HELP, _add_status, _status, ("results.run_status",)),
    Command(
        name="prune",
        help="remove old runs from FOLDER; says what would go until told --remove",
        add_arguments=_add_prune,
        run=_prune,
        imports=("series.pruning",),
    ),
)
