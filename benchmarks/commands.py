r"""Whole commands by the wall clock, as a person waits for them, and where their time goes.

    python -m benchmarks.commands
    python -m benchmarks.commands mine.csv --rival ParAdaMBE=~/AdaMBE/bin/MBE_ALL
    python -m benchmarks.commands youtube --engine bitmatrix --only count --rival GMBE=~/GMBE/bin/MBE_GPU
    python -m benchmarks.commands --table commands-20261123-120000.json

Each graph is written as a text file, an edge per line, and read by ``bicliques count``, ``bicliques mine --no-report``
and ``bicliques mine``. ``bicliques verify`` then checks the run that was just mined. Every command is run once to warm
up, and then several times, all commands and the other program in turns, so that what disturbs the machine disturbs all.
The time of a command begins before its process is started and ends when the process has ended. The steps are those that
the command itself reports, in the run with the median time, and the end of the process after its answer. The rest is
time that no step explains; the last column of the table says how much of the whole is explained.

Python keeps bytecode, as an installed package has it, even where ``PYTHONDONTWRITEBYTECODE`` forbids it.

Other programs read a file that was written before, in their own format, and only count. They are timed on both sides of
the graph, because some are much faster on one of them, and no program says on which.

``--record`` replaces the numbers of this kind of machine. Graphs that are not measured keep their numbers if these are
of the same commit.

A graph is a file in any format that `bicliques formats` lists, or the name of one that ships or lies in --data.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any, NamedTuple

import numpy as np

from benchmarks.command import (
    add_data,
    add_output,
    add_repeats,
    add_table,
    begun,
    chosen,
    new_parser,
    numbers,
    output_file,
    run,
    write,
)
from benchmarks.facts import FOLDER, Graph, machine, nvidia_smi
from benchmarks.rivals import Rival, TooSlowError, add_rival, edge_list, rivals_of
from benchmarks.runs import Edges, read
from bicliques.kernels import engines
from bicliques.schemas.errors import ResourceError

RESULT = FOLDER / "commands.json"
#: Graphs whose whole commands the README shows.
PUBLISHED = ("ucforum", "youtube", "bookcrossing_core")
#: The commands that can be timed, in this order: `verify` looks at the run that was mined before it.
TIMED = ("count", "mine --no-report", "mine", "verify")


class Timed(NamedTuple):
    """A run: its seconds, the seconds of its steps, and its number of bicliques. None if the run counts none."""

    seconds: float
    steps: dict[str, float]
    bicliques: int | None


def command(words: Sequence[str]) -> Timed:
    """Run ``bicliques`` with these words. Steps and count are known only if the words include ``--json``.

    The steps are those that the command tells, the page of `mine`, and the end of the process after its last word.

    Raises
    ------
    ResourceError
        If the command fails.
    """
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode, so this tree gets it, too
    start = [sys.executable, "-m", "bicliques", *words]
    with tempfile.TemporaryFile("w+") as log:
        began = time.perf_counter()
        process = subprocess.Popen(start, env=environment, stdout=PIPE, stderr=log, text=True)
        first = process.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
        said = time.perf_counter()
        rest, _ = process.communicate()
        ended = time.perf_counter()
        log.seek(0)
        lines = log.read().splitlines()
    if process.returncode:
        raise ResourceError(f"bicliques {' '.join(words)} ended with {process.returncode}: {' '.join(lines).strip()}")
    if "--json" not in words:
        return Timed(ended - began, {}, None)
    told = json.loads(first + rest)
    if not isinstance(told["seconds"], dict):  # verify has no steps
        return Timed(ended - began, {"verify": told["seconds"], "end": ended - said}, told["count"])
    events = (json.loads(line) for line in lines if line.startswith("{"))
    pages = {e["step"]: e["seconds"] for e in events if e.get("event") == "step" and e["step"] == "report"}
    return Timed(ended - began, told["seconds"] | pages | {"end": ended - said}, told["count"])


def of_graph(
    graph: Graph,
    edges: Edges,
    repeats: int,
    rivals: Sequence[Rival] = (),
    names: Sequence[str] = TIMED,
    engine: str = "auto",
) -> dict[str, Any]:
    """The times of commands and of other programs on one graph. ``verify`` needs ``mine``, with or without its page.

    Raises
    ------
    ResourceError
        If a command fails, or its count is not the known one, or not that of the others.
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        source, out = folder / "edges.txt", folder / "out"
        with source.open("w") as file:
            file.writelines(edge_list(edges))
        says = ["--quiet", "--json", "--log", "json"]
        reads = [str(source), "--format", "snap", "--engine", engine, *says]
        runs: dict[str, Callable[[], Timed]] = {}
        for name in names:
            word, *options = name.split()
            if word == "mine":
                runs[name] = partial(_mined, [word, *reads, "-o", str(out), *options], out)
            else:
                runs[name] = partial(command, [word, *([str(out), *says] if word == "verify" else reads)])
        for rival in rivals:
            for side, own in (("left", edges), ("right", _turned(edges))):
                place = folder / f"{rival.name}-{side}"
                place.mkdir()
                run_it = partial(_of_rival, rival, rival.prepare(own, place), place)
                try:
                    run_it()  # a side that takes too long is not waited for again
                except TooSlowError:
                    continue
                runs[f"{rival.name} from the {side} side"] = run_it
            if not any(name.startswith(f"{rival.name} from ") for name in runs):
                raise ResourceError(
                    f"{rival.name} took more than {rival.limit_s:g} s from either side of {graph.name}; give it more "
                    "with --limit"
                )
        times = _in_turns(runs, repeats)
    check_counts(graph, times)
    summaries = {name: _summary(some) for name, some in times.items()}
    for rival in rivals:
        sides = {side: summaries.pop(f"{rival.name} from the {side} side", None) for side in ("left", "right")}
        seconds = {side: entry["seconds"] if entry else None for side, entry in sides.items()}
        better = min((side for side in sides if sides[side]), key=lambda side: sides[side]["seconds"])
        summaries[rival.name] = sides[better] | {"side": better, "both": seconds, "limit": rival.limit_s}
    return {"edges": len(edges.left), "commands": summaries}


def _turned(edges: Edges) -> Edges:
    """The same graph with its other side on the left."""
    order = np.lexsort((edges.left, edges.right))
    return Edges(edges.right[order], edges.left[order], edges.n_right, edges.n_left)


def check_counts(graph: Graph, times: dict[str, list[Timed]]) -> None:
    """Refuse the times of programs that counted different numbers.

    Raises
    ------
    ResourceError
        If a count is not the known one, or, where none is known, not that of the first program.
    """
    counts = [(name, timed.bicliques) for name, some in times.items() for timed in some]
    known = graph.known if graph.known is not None else counts[0][1]
    for name, count in counts:
        if count != known:
            raise ResourceError(f"{name} counts {count:,} maximal bicliques in {graph.name}, not {known:,}")


def _mined(words: Sequence[str], out: Path) -> Timed:
    """A command that makes a new run in `out`."""
    shutil.rmtree(out, ignore_errors=True)
    return command(words)


def _of_rival(rival: Rival, words: list[str], folder: Path) -> Timed:
    began = time.perf_counter()
    count, seconds = rival.run(words, folder)
    return Timed(time.perf_counter() - began, {"search": seconds}, count)


def _in_turns(runs: dict[str, Callable[[], Timed]], repeats: int) -> dict[str, list[Timed]]:
    times: dict[str, list[Timed]] = {name: [] for name in runs}
    for turn in range(repeats + 1):
        for name, measure in runs.items():
            timed = measure()
            if turn:  # the first one warms up
                times[name].append(timed)
    return times


def _summary(times: list[Timed]) -> dict[str, Any]:
    seconds, steps, _ = sorted(times, key=lambda timed: timed.seconds)[(len(times) - 1) // 2]
    return {
        "seconds": statistics.median(timed.seconds for timed in times),
        "all_seconds": [timed.seconds for timed in times],
        "steps_of": seconds,
        "steps": steps,
        "rest": seconds - sum(steps.values()),
    }


def table(result: dict[str, Any]) -> str:
    """The result as a Markdown table with a line per command."""
    steps = ["startup", "ingest", "build", "plan", "mine", "prove", "report", "end"]
    lines = [f"| | whole, s | {' | '.join(steps)} | rest | explained |", "|---|" + "--:|" * (len(steps) + 3)]
    for name, entry in result["commands"].items():
        lines.append(f"| `{name}` | {entry['seconds']:.2f} |{' |' * (len(steps) + 2)}")
    for graph, of in result["graphs"].items():
        for name, entry in of["commands"].items():
            known = "ingest" in entry["steps"]
            cells = [f"{entry['steps'].get(step, 0):.2f}" if known else "" for step in steps]
            name = f"{name} from the {entry['side']} side" if "side" in entry else name
            rest = f"{entry['rest']:.2f} | {1 - entry['rest'] / entry['steps_of']:.0%}" if known else " | "
            lines.append(f"| {name}, {graph} | {entry['seconds']:.2f} | {' | '.join(cells)} | {rest} |")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("commands", __doc__)
    parser.add_argument(
        "graphs", nargs="*", metavar="GRAPH", help="(default: those that ship; with --record those of the README)"
    )
    add_data(parser)
    add_rival(parser, several=True)
    add_repeats(parser, 5, "runs of each")
    parser.add_argument("--engine", default="auto", metavar="NAME", help="engine of the commands (default: auto)")
    parser.add_argument(
        "--only", action="append", choices=TIMED, help="time this command, and no other; may repeat (default: all)"
    )
    add_output(parser, RESULT.name)
    add_table(parser, RESULT)
    return parser


def kind_of_machine(engine: str) -> str:
    """What the numbers depend on most: the GPU that runs the engine, or the number of cores."""
    if engines.kind(engines.choose(engine).name).platform.leaves_cores:
        return nvidia_smi("name")[0]
    return f"{machine()['cores']} cores"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or print what was measured."""
    words = parser().parse_args(arguments)
    if words.table:
        print("\n\n".join(f"{kind}\n\n{table(result)}" for kind, result in numbers(words.table).items()))
        return
    graphs, output = chosen(words, PUBLISHED), output_file(words, "commands")
    rivals, kind = rivals_of(words), kind_of_machine(words.engine)
    recorded, result = begun(words, output, kind, {"repeats": words.repeats, "engine": words.engine})
    alone: dict[str, Callable[[], Timed]] = {name: partial(command, [name]) for name in ("--version", "--help")}
    result["commands"] = {name: _summary(times) for name, times in _in_turns(alone, words.repeats).items()}
    for graph in graphs:
        entry = of_graph(graph, read(graph.path), words.repeats, rivals, words.only or TIMED, words.engine)
        result["graphs"][graph.name] = entry
        times = ", ".join(f"{name} {one['seconds']:.2f} s" for name, one in entry["commands"].items())
        print(f"{graph.name}: {times}", flush=True)
        write(output, recorded | {kind: result})
    print(f"{kind}\n\n{table(result)}")
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
