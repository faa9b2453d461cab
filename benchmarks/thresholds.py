r"""Thresholds on one GPU: kernel times and tests of `bitmatrix`, and another program with the same thresholds.

    python -m benchmarks.thresholds
    python -m benchmarks.thresholds mine.csv --bounds 5x5 10x20 --sides left right
    python -m benchmarks.thresholds --rival AdaMBE=~/AdaMBE/bin/MBE_ALL --limit 20
    python -m benchmarks.thresholds --record

Each graph is counted without thresholds, and with each of the bounds LEFTxRIGHT. A time is that of the kernels, the
median of --repeats runs after one that warms up. A run ends after --seconds, and is not complete then. `tests` are
nodes of the search tree that were looked at.

The other program gets AdaMBE's options for thresholds, -x LEFT -y RIGHT, behind its own arguments. It runs once for
each bound, and is given up after --limit seconds. So that the GPU need not wait, half of the cores run one each,
beside the kernels. Both must count the same.

A graph is a file in any format that `bicliques formats` lists, or the name of one that ships or lies in --data. If the
file of numbers is there already, only the entries that are measured now are replaced.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import add_data, add_output, add_repeats, chosen, new_parser, numbers, output_file, run, write
from benchmarks.facts import commit, machine, nvidia_smi
from benchmarks.gpu import COMPARED, HARD
from benchmarks.rivals import Rival, TooSlowError, add_rival, rival_of
from benchmarks.runs import Bounds, Edges, read
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.graph.prepare import prepare
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

#: Bounds for every graph, and more for graphs of which they leave too many bicliques.
USUAL = tuple(map(Bounds.of, ("5x5", "10x10", "20x3", "3x20")))
NARROW = {
    "movielens_100k": ("13x40", "20x50", "30x30", "50x20"),
    "anime_ratings": ("30x30", "50x50"),
    "steam_purchase": ("15x15",),
    "fimi_chess": ("1000x10",),
}


def timed(edges: Edges, bounds: Bounds, side: str, words: argparse.Namespace) -> dict[str, Any]:
    """What one count takes from one root side."""
    graph, _ = prepare(*edges, BuildOptions(root_side=side), *bounds)  # type: ignore[arg-type]
    entry: dict[str, Any] = {"side": graph.root_side, "core_edges": graph.n_edges}
    if graph.n_roots == 0:
        return entry | {"bicliques": 0, "complete": True, "kernel_s": 0.0, "tests": 0}
    engine, roots = BitMatrixEngine(), Subtrees.of_roots(np.arange(graph.n_roots))
    search = Search("count", min_left=bounds.left, min_right=bounds.right)
    runs = []
    for _ in range(words.repeats + 1):
        found = engine.mine(graph, roots, search, Limits(seconds=words.seconds), nowhere)
        runs.append(found)
        if len(runs) > 1 and len(found.left_over):
            break
    runs = runs[1:]  # the first one warms up
    last = runs[-1]
    assert last.stats is not None
    return entry | {
        "bicliques": last.count,
        "complete": len(last.left_over) == 0,
        "kernel_s": statistics.median(run.stats.kernel_s for run in runs if run.stats is not None),
        "tests": int(last.stats.counters["tests"]),
        "given": int(last.stats.counters["given"]),
        "busy_ratio": last.stats.busy_ratio,
    }


def compared(entry: dict[str, Any], edges: Edges, bounds: Bounds, rival: Rival) -> dict[str, Any]:
    """What the other program takes.

    Raises
    ------
    ResourceError
        If it fails, or counts something else.
    """
    own = replace(rival, arguments=f"{rival.arguments} -x {bounds.left} -y {bounds.right}")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        try:
            count, seconds = own.run(own.prepare(edges, Path(folder)), Path(folder))
        except TooSlowError:
            return {"name": rival.name, "more_than_s": rival.limit_s}
    if entry["complete"] and count != entry["bicliques"]:
        raise ResourceError(f"{rival.name} counts {count:,} bicliques with {bounds}, not {entry['bicliques']:,}")
    return {"name": rival.name, "seconds": seconds}


def said(name: str, bounds: Bounds, entry: dict[str, Any]) -> str:
    """One line about an entry."""
    done = "" if entry["complete"] else ", not complete"
    return (
        f"{name} {bounds} {entry['side']}: {entry['bicliques']:,}{done}, {1e3 * entry['kernel_s']:.3f} ms, "
        f"{entry['tests']:,} tests"
    )


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("thresholds", __doc__)
    parser.add_argument(
        "graphs", nargs="*", metavar="GRAPH", help="(default: those that ship; with --record those of docs)"
    )
    parser.add_argument("--bounds", nargs="+", metavar="LEFTxRIGHT", help="(default: some for every graph)")
    sides = ("auto", "left", "right")
    parser.add_argument("--sides", nargs="+", choices=sides, default=["auto"], help="root sides (default: auto)")
    add_data(parser)
    add_repeats(parser, 3)
    parser.add_argument("--seconds", type=float, default=5.0, help="for one run (default: 5)")
    add_rival(parser)
    add_output(parser, "thresholds.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the file after each graph."""
    words = parser().parse_args(arguments)
    graphs = chosen(words, (*COMPARED, *HARD))
    given = [Bounds.of(word) for word in words.bounds or ()]
    rival, output = rival_of(words), output_file(words, "thresholds")
    result = numbers(output) if output.exists() else {}
    number = f"{commit()} {datetime.now(UTC).isoformat(timespec='seconds')}"
    now = {"machine": {"device": nvidia_smi("name,driver_version,clocks.max.sm")[0], **machine()}}
    result.setdefault("runs", {})[number] = now | {"options": {"repeats": words.repeats, "seconds": words.seconds}}
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as beside:
        running: list[tuple[dict[str, Any], Future[dict[str, Any]]]] = []
        for graph in graphs:
            edges = read(graph.path)
            narrow = map(Bounds.of, NARROW.get(graph.name, ()))
            for bounds in given or (Bounds(1, 1), *USUAL, *narrow):
                for side in words.sides:
                    entry = {"run": number, **timed(edges, bounds, side, words)}
                    result.setdefault("graphs", {}).setdefault(graph.name, {})[f"{bounds} {side}"] = entry
                    print(said(graph.name, bounds, entry), flush=True)
                    if rival and side == words.sides[0] and bounds != (1, 1):
                        running.append((entry, beside.submit(compared, entry, edges, bounds, rival)))
            write(output, result)
        for entry, one in running:
            entry["rival"] = one.result()
    write(output, result)
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
