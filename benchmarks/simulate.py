"""Simulates up to 1,000 workers, to measure how well the scheduler uses them.

    python -m benchmarks.simulate run
    python -m benchmarks.simulate roots mine.csv --output roots.json
    python -m benchmarks.simulate run --roots roots.json

    python -m benchmarks.simulate run --workers 1000 --drivers 16 --event-ms 2.5
    python -m benchmarks.simulate run --workers 992 --threads 16

The first line simulates with the roots that are recorded in benchmarks/. The second line records the roots of other
graphs, and the third simulates with those. The fourth line shares roots and workers among 16 drivers, at random. The
fifth has 62 workers of 16 threads, which share each slice.

The scheduler is the real one (`pipeline.dealing.schedule`), but time is simulated (`benchmarks.simulation`). A node of
the plan is a recorded root, drawn with replacement. Its weight is the estimate of `pipeline.prepare.weights`, and its
work is the time that it took. A worker has two slices in hand, or one if several threads share it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import add_data, add_output, chosen, new_parser, numbers, output_file, run, write
from benchmarks.facts import FOLDER
from benchmarks.runs import prepared_run
from benchmarks.simulation import Nodes, World, simulate, simulate_apart
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.dealing.schedule import Policy
from bicliques.pipeline.prepare.weights import RootWeights
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

RECORDED = FOLDER / "recorded_roots.json"
#: Largest number of roots recorded per graph.
_MOST_ROOTS = 3000


def draw(recorded: dict[str, Any], n_roots: int, total_s: float, seed: int) -> Nodes:
    """`n_roots` recorded roots, drawn with replacement. Their work is scaled to `total_s` seconds of one worker."""
    rng = np.random.default_rng(seed)
    weights, seconds = np.array(recorded["weight"]), np.array(recorded["seconds"])
    chosen = rng.choice(len(weights), n_roots, p=np.array(recorded["share"]) / sum(recorded["share"]))
    work = np.maximum(seconds[chosen], 1e-7)
    return Nodes(weights[chosen], work * total_s / work.sum())


def record(path: Path) -> dict[str, Any]:
    """Weight and time of the roots of a graph, which the CPU engine mines one after the other.

    If there are too many roots, a sample is mined: a third of it are the heaviest roots, and the rest is drawn at
    random. ``share`` is the number of roots of the graph that each root of the sample stands for.
    """
    with prepared_run(path) as folder:
        graph = MiningGraph.open(folder.graph)
    weights = RootWeights(graph).by_rank
    order = np.argsort(-weights, kind="stable")
    top = order[: _MOST_ROOTS // 3]
    others = order[_MOST_ROOTS // 3 :]
    drawn = np.random.default_rng(0).permutation(others)[: _MOST_ROOTS - len(top)]
    engine, search = CpuEngine(), Search("count")
    seconds = []
    for root in (order[-1], *top, *drawn):  # the first call is not counted
        began = time.perf_counter()
        engine.mine(graph, Subtrees.of_roots(np.array([root])), search, Limits(), nowhere)
        seconds.append(time.perf_counter() - began)
    overhead = min(seconds)  # of a call; a slice of many roots pays it once
    share = np.concatenate([np.ones(len(top)), np.full(len(drawn), len(others) / max(len(drawn), 1))])
    roots = np.concatenate([top, drawn])
    return {
        "roots": graph.n_roots,
        "weight": [float(f"{w:.4g}") for w in weights[roots]],
        "seconds": [float(f"{s - overhead:.3g}") for s in seconds[1:]],
        "share": [round(float(s), 2) for s in share],
    }


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("simulate", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("roots", help="record weight and time of the roots of graphs")
    recording.add_argument("graphs", nargs="+", metavar="GRAPH")
    add_data(recording)
    add_output(recording, RECORDED.name)
    running = commands.add_parser("run", help="simulate, and print a Markdown table")
    running.add_argument("--roots", type=Path, default=RECORDED, metavar="FILE", help="(default: the recorded ones)")
    running.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8, 64, 256, 1000])
    running.add_argument("--minutes", type=float, nargs="+", default=[0.5, 10.0], help="minutes of work per worker")
    running.add_argument("--slice-seconds", type=float, default=10.0)
    running.add_argument("--event-ms", type=float, default=3.0, help="what an event takes a driver, in milliseconds")
    running.add_argument(
        "--threads", type=int, default=1, help="so many of the workers are one process, and share slices"
    )
    running.add_argument("--draws", type=int, nargs="+", default=[1], help="seeds of the draws of roots")
    running.add_argument("--drivers", type=int, default=1, help="drivers that share workers and roots")
    add_output(running, "simulated.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Record, or simulate and print a Markdown table."""
    words = parser().parse_args(arguments)
    output = output_file(words, f"simulate-{words.command}")
    if words.command == "roots":
        output.write_text(json.dumps({graph.name: record(graph.path) for graph in chosen(words, ())}) + "\n")
    else:
        write(output, _table(words))
    print(f"numbers: {output}")


def _table(words: argparse.Namespace) -> list[dict[str, Any]]:
    lines = []
    print(
        "| graph | workers | work / worker | draw | time | efficiency | slices | pieces | driver busy |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    each = itertools.product(numbers(words.roots).items(), words.minutes, words.workers, words.draws)
    for (name, recorded), minutes, workers, seed in each:
        seconds = 60 * minutes * workers
        nodes = draw(recorded, max(recorded["roots"], 20 * workers), seconds, seed)
        world = World(workers, commit_s=words.event_ms / 1e3)
        policy = Policy(words.slice_seconds, event_seconds=world.commit_s)
        if words.threads > 1:
            world = replace(world, workers=workers // words.threads, in_hand=1, threads=words.threads)
            policy = policy.of_sharing()
        line: dict[str, Any] = {"graph": name, "workers": workers, "minutes": minutes}
        line |= {"draw": seed} if len(words.draws) > 1 else {}
        begin = f"| {name} | {workers:,} | {60 * minutes:.0f} s | {seed} "
        if words.drivers > 1:
            least, most = simulate_apart(nodes, world, policy, words.drivers, seed - 1)
            lines.append(line | {"least": least, "most": most})
            print(f"{begin}| | {least:.3f}-{most:.3f} | | | |", flush=True)
            continue
        found = simulate(nodes, world, policy, seed - 1)
        lines.append(line | vars(found))
        print(
            f"{begin}| {found.seconds:.1f} s | {found.efficiency:.3f} | {found.slices:,} | {found.pieces:,} "
            f"| {found.driver_busy:.2f} |",
            flush=True,
        )
    return lines


if __name__ == "__main__":
    run(main)
