r"""The CPU engine on one core, and another program in turns with it on the same core.

    python -m benchmarks.cpu
    python -m benchmarks.cpu --rival AdaMBE=~/AdaMBE/bin/MBE_ALL --core 1
    python -m benchmarks.cpu mine.csv other.mtx --rival ooMBEA=~/AdaMBE/bin/mbbp
    python -m benchmarks.cpu mine.csv --count 16261
    python -m benchmarks.cpu fimi_chess@800x1 fimi_mushroom@1x1 --rival LCM=~/lcm53/lcm
    python -m benchmarks.cpu --rival NEW=PROGRAM --arguments '{edges}' --pattern '(?P<count>\d+) in (?P<seconds>.*) s'
    python -m benchmarks.cpu --table cpu-20261123-120000.json

The first line measures our engine alone, on the graphs that ship. --count gives the number of maximal bicliques, where
it is known. The last line prints the table of numbers that were written before.

Both programs only count, and take turns, so that what disturbs the machine disturbs both. If a count is known (by
--count or from tests/golden/golden.json), both must find it. Otherwise both must find the same count.
Our time has two parts. Preparing goes from the sorted edge list to the reduced, merged and ranked graph. Searching
includes the allocation of its memory, but not compiling. The time of the other program is by its own clock, and what
that clock covers is up to that program.

If that program has no clock, processor seconds are counted: of all that it does with its file, and of ours.

A graph is a file in any format that `bicliques formats` lists, or the name of one that ships or lies in --data. Behind
it @LEFTxRIGHT may say how many members a biclique has at least on the left and on the right.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import (
    add_data,
    add_output,
    add_repeats,
    add_table,
    chosen,
    new_parser,
    numbers,
    output_file,
    run,
    write,
)
from benchmarks.facts import FOLDER, Graph, commit
from benchmarks.rivals import KNOWN, Rival, add_rival, rival_of
from benchmarks.runs import NO_BOUNDS, Bounds, Edges, read
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.engines import compile_engine
from bicliques.kernels.graph.prepare import prepare
from bicliques.pipeline.api.table import record
from bicliques.pipeline.cli import options
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.options import BuildOptions, IngestOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

RESULT = FOLDER / "cpu.json"
#: Real graphs from published comparisons whose count is known: the table of the README.
PUBLISHED = (
    *("ucforum", "escorts", "marvel", "youtube", "movielens_ui", "movielens_ut", "movielens_ti", "bookcrossing_core"),
    *("dbpedia_writers", "dbpedia_locations", "debian12_package_depends", "fimi_mushroom", "fimi_t10i4d100k"),
    "cp4im_heart_cleveland",
)


def count(
    edges: Edges, bounds: Bounds = NO_BOUNDS, clock: Callable[[], float] = time.perf_counter
) -> tuple[int, float, float]:
    """The count of our engine, the seconds of preparing, and the seconds of searching."""
    began = clock()
    graph, _ = prepare(*edges, BuildOptions(), *bounds)
    ready = clock()
    roots = Subtrees.of_roots(np.arange(graph.n_roots))
    search = Search("count", min_left=bounds.left, min_right=bounds.right)
    found = CpuEngine().mine(graph, roots, search, Limits(), nowhere)
    return found.count, ready - began, clock() - ready


def compare(graph: Graph, edges: Edges, bounds: Bounds, repeats: int, rival: Rival | None) -> dict[str, Any]:
    """Sizes and times of one graph. Each time is the median of `repeats` runs, in seconds.

    Raises
    ------
    ResourceError
        If the two programs do not count the same, or not the known number, or the other program fails.
    """
    times: dict[str, list[float]] = {what: [] for what in ("prepare", "search", *(["rival"] if rival else []))}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = rival.prepare(edges, folder, bounds) if rival else []
        clock = time.perf_counter if rival is None or rival.has_clock else time.process_time
        for _ in range(repeats):
            ours, *seconds = count(edges, bounds, clock)
            if graph.known not in (None, ours):
                raise ResourceError(
                    f"this program counts {ours:,} maximal bicliques in {graph.name}, not {graph.known:,}"
                )
            if rival:
                theirs, rival_s = rival.run(command, folder)
                _check(graph, rival, ours, theirs)
                seconds.append(rival_s)
            for some, one in zip(times.values(), seconds, strict=True):
                some.append(one)
    sizes = {"left": edges.n_left, "right": edges.n_right, "edges": len(edges.left), "bicliques": ours}
    return sizes | {f"{what}_s": statistics.median(some) for what, some in times.items()} | {"all_s": times}


def _check(graph: Graph, rival: Rival, ours: int, theirs: int) -> None:
    if theirs != ours:
        ground = "which is the known count" if graph.known is not None else "and nobody has said which is right"
        raise ResourceError(
            f"{rival.name} counts {theirs:,} maximal bicliques in {graph.name}, this program {ours:,}, {ground}; "
            f"the count of {rival.name} was read by the pattern '{rival.pattern.pattern}'"
        )


def machine(core: int | None) -> dict[str, Any]:
    """What the times depend on: processor, cores, load and versions."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"(?m)^model name\s*: (.*)", info)
    mhz = re.search(r"(?m)^cpu MHz\s*: (.*)", info)
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "mhz": float(mhz[1]) if mhz else None,
        "pinned_to_core": core,
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "numba": version("numba"),
    }


def table(result: dict[str, Any]) -> str:
    """The result as a Markdown table: graphs by their number of bicliques, and geometric means of the ratios."""
    rival = result["options"]["rival_name"]
    heads = ["graph", "edges", "maximal bicliques", "prepare, s", "search, s"]
    heads += [f"{rival}, s", "/ search", "/ both"] if rival else []
    lines = [f"| {' | '.join(heads)} |", "|---|" + "--:|" * (len(heads) - 1)]
    ratios = []
    for name, entry in sorted(result["graphs"].items(), key=lambda item: item[1]["bicliques"]):
        seconds = [entry["prepare_s"], entry["search_s"], *([entry["rival_s"]] if rival else [])]
        cells = [name, f"{entry['edges']:,}", f"{entry['bicliques']:,}", *(f"{one:.3g}" for one in seconds)]
        if rival:
            rival_s = max(seconds[2], 1e-6)  # a clock may say 0
            ratios.append((rival_s / seconds[1], rival_s / (seconds[0] + seconds[1])))
            cells.append(_both(ratios[-1]))
        lines.append(f"| {' | '.join(cells)} |")
    if rival:
        means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)]
        lines.append(f"| geometric mean | | | | | | {_both(means)} |")
    return "\n".join(lines)


def _both(ratios: Sequence[float]) -> str:
    return " | ".join(f"{ratio:.1f}" for ratio in ratios)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    known = "\n".join(f"  {name:10s} {one.arguments:38s} {one.where}" for name, one in KNOWN.items())
    parser = new_parser(
        "cpu", __doc__, f"programs that --rival knows, how they are called, and where they are:\n{known}"
    )
    parser.add_argument(
        "graphs", nargs="*", metavar="GRAPH", help="(default: those that ship; with --record those of the README)"
    )
    parser.add_argument("--count", type=int, metavar="N", help="maximal bicliques of the one graph that is named")
    add_data(parser)
    add_rival(parser)
    add_repeats(parser, 5)
    parser.add_argument("--core", type=int, metavar="N", help="run both on this core (default: any)")
    add_output(parser, RESULT.name)
    options.add_options(parser, "count", only=["reading"])
    add_table(parser, RESULT)
    return parser


def _graphs(words: argparse.Namespace) -> list[tuple[Graph, Bounds]]:
    """The graphs to measure, and the fewest members.

    Raises
    ------
    InputError
        If a graph is not there, two graphs have the same name, or --count is given for several.
    """
    parted = [re.fullmatch(r"(.+)@(\d+x\d+)", word) for word in words.graphs]
    bounds = [Bounds.of(found[2]) if found else NO_BOUNDS for found in parted] or [NO_BOUNDS]
    words.graphs = [found[1] if found else word for word, found in zip(words.graphs, parted, strict=True)]
    graphs = chosen(words, PUBLISHED)
    bounds *= len(graphs) // len(bounds)
    graphs = [
        graph if least == NO_BOUNDS else graph._replace(name=f"{graph.name}@{least}", known=None)
        for graph, least in zip(graphs, bounds, strict=True)
    ]
    names = [graph.name for graph in graphs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InputError(f"two graphs are called {min(twice)}; rename a file, or measure them one after the other")
    if words.count is None:
        return list(zip(graphs, bounds, strict=True))
    if len(graphs) != 1:
        raise InputError(f"--count is that of one graph, and {len(graphs)} are to be measured; name one")
    return [(graphs[0]._replace(known=words.count), bounds[0])]


def _pin(core: int | None) -> None:
    if core is not None:
        try:
            os.sched_setaffinity(0, {core})  # the other program inherits it
        except OSError:
            there = ", ".join(map(str, sorted(os.sched_getaffinity(0))))
            raise InputError(f"there is no core {core} for --core to take; there are {there}") from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or print what was measured."""
    words = parser().parse_args(arguments)
    options.fill_in(words, "count")
    if words.table:
        print(table(numbers(words.table)))
        return
    graphs, output = _graphs(words), output_file(words, "cpu")
    reading = record(IngestOptions, vars(words))
    rival = rival_of(words)
    _pin(words.core)
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(words.core),
        "options": {"mode": "count", "repeats": words.repeats, "rival_name": rival.name if rival else None},
        "graphs": {},
    }
    if rival:
        result["options"] |= {"rival_arguments": rival.arguments, "rival_pattern": rival.pattern.pattern}
    for least in (1, 2):  # which dense graphs need, too
        compile_engine("cpu", Search(min_left=least))
    count(Edges(np.zeros(1, np.int32), np.zeros(1, np.int32), 1, 1))  # compiles the preparing, too
    for graph, bounds in graphs:
        edges = read(graph.path, reading, words.ingest_on)
        entry = result["graphs"][graph.name] = compare(graph, edges, bounds, words.repeats, rival)
        times = ", ".join(f"{what.removesuffix('_s')} {entry[what]:.3g} s" for what in entry if what in _TIMES)
        print(f"{graph.name}: {entry['bicliques']:,} maximal bicliques, {times}", flush=True)
        write(output, result)
    print(table(result))
    print(f"numbers: {output}")


_TIMES = ("prepare_s", "search_s", "rival_s")

if __name__ == "__main__":
    run(main)
