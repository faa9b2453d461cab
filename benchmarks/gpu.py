r"""The GPU engines on one device: times from both root sides, the cost of listing, and rates on very large graphs.

    python -m benchmarks.gpu
    python -m benchmarks.gpu mine.csv --sections graphs cpu
    python -m benchmarks.gpu --record       (as make gpu-bench does)

Every graph is mined in mode count from both root sides, and in modes fingerprint and list from the side that ``auto``
takes. A time is that of the kernels alone, the median of ``--repeats`` runs after one that warms up. ``wall_s`` is the
time of the whole call, with copies, and in mode list with handing the bicliques to the host. Every count must be the
known one. Two more sections measure the CPU engine on all cores of the same machine, and how far a limited time gets on
graphs that no published program finishes in 30 s.

A graph is a file in any format that `bicliques formats` lists, or the name of one that ships or lies in --data. Each
entry says which run it comes from. If the file is there already, ``--sections graphs hard`` replaces only the entries
of these two sections.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import add_data, add_output, add_repeats, chosen, new_parser, numbers, output_file, run, write
from benchmarks.cumbe import ABLATION, ablation, published
from benchmarks.facts import FOLDER, GOLDEN, Graph, commit, machine, nvidia_smi
from benchmarks.timing import load, timed
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.bitmatrix.memory import GpuSizes
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cumbe.memory import CumbeSizes
from bicliques.schemas.bicliques import emit_to, nowhere
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees

RIVALS = json.loads((FOLDER / "rivals.json").read_text())["graphs"]
#: Buffers to list more than a hundred million bicliques: 2 GiB of the device at a time. Each launch that is saved saves
#: a millisecond.
LONG_LISTS = GpuSizes(values=1 << 29, records=1 << 25)
#: Graphs that take so long that only a limited time is measured.
HARD = ("cp4im_heart_cleveland", "movielens_100k", "steam_purchase", "anime_ratings", "fimi_chess")


def compare(of: Graph, repeats: int) -> dict[str, Any]:
    """Times of one graph in all modes from the root side that ``auto`` takes, and of one count from the other side."""
    engine, graph = BitMatrixEngine(), load(of.path, "auto")
    other = load(of.path, "right" if graph.root_side == "left" else "left")
    everything = Subtrees.of_roots(np.arange(graph.n_roots))
    known = of.known or engine.mine(graph, everything, Search("count"), Limits(), nowhere).count
    times = {graph.root_side: timed(engine, graph, "count", repeats, known)}
    times[other.root_side] = timed(engine, other, "count", 1, known)
    entry: dict[str, Any] = {"bicliques": known, "auto_side": graph.root_side, "count": times}
    for mode in ("fingerprint", "list"):
        entry[mode] = timed(engine, graph, mode, repeats, known)
    return entry


def rate(of: Graph, seconds: float) -> dict[str, Any]:
    """How far one slice of `seconds` gets in mode count. If it finds all, the kernels of mode list are timed, too."""
    graph = load(of.path, "auto")
    engine, roots = BitMatrixEngine(), Subtrees.of_roots(np.arange(graph.n_roots))
    engine.mine(graph, roots, Search("count"), Limits(seconds=0.2), nowhere)
    found = engine.mine(graph, roots, Search("count"), Limits(seconds=seconds), nowhere)
    entry = {
        "bicliques": found.count,
        "complete": len(found.left_over) == 0,
        "kernel_s": found.stats.kernel_s,
        "bicliques_per_s": found.count / found.stats.kernel_s,
        "busy_ratio": found.stats.busy_ratio,
    }
    if entry["complete"]:
        engine = BitMatrixEngine(sizes=LONG_LISTS)
        listed = [engine.mine(graph, roots, Search("list"), Limits(), _LEFT_THERE).stats.kernel_s for _ in range(3)]
        entry["list_kernel_s"] = statistics.median(listed)
    return entry


#: A receiver that leaves all bicliques on the device.
_LEFT_THERE = emit_to(lambda batch: None, on_device=True)

_graph: MiningGraph | None = None


def _take(path: Path) -> None:
    global _graph
    _graph = load(path, "auto")


def _mine(work: bytes, seconds: float) -> tuple[int, bytes]:
    assert _graph is not None
    found = CpuEngine().mine(_graph, Subtrees.from_bytes(work), Search("count"), Limits(seconds=seconds), nowhere)
    return found.count, found.left_over.to_bytes()


def on_all_cores(of: Graph, cores: int) -> dict[str, Any]:
    """Seconds of the CPU engine in `cores` processes. Left-overs are dealt again.

    Raises
    ------
    ResourceError
        If the count is not the known one.
    """
    n_roots = load(of.path, "auto").n_roots
    deal = [np.arange(start, n_roots, 16 * cores) for start in range(min(16 * cores, n_roots))]
    with ProcessPoolExecutor(cores, get_context("spawn"), _take, (of.path,)) as pool:
        for _ in pool.map(_mine, [Subtrees.of_roots(np.zeros(1, np.int64)).to_bytes()] * 4 * cores, [0.2] * 4 * cores):
            pass  # now every process has the graph and the compiled search
        total, began = 0, time.perf_counter()
        running: set[Future[tuple[int, bytes]]] = {
            pool.submit(_mine, Subtrees.of_roots(roots).to_bytes(), 0.1) for roots in deal
        }
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                count, rest = future.result()
                total += count
                left = Subtrees.from_bytes(rest)
                if len(left):
                    pieces = left.spread(4)
                    cuts = np.linspace(0, len(pieces), min(4, len(pieces)) + 1).astype(int)
                    for a, b in pairwise(cuts):
                        running.add(pool.submit(_mine, pieces.take(int(a), int(b)).to_bytes(), 0.1))
        seconds = time.perf_counter() - began
    if of.known not in (None, total):
        raise ResourceError(f"cpu counts {total:,} bicliques in {of.name}, not {of.known:,}")
    return {"seconds": seconds, "cores": cores}


#: Graphs whose count is known, and that published programs finish.
COMPARED = tuple(name for name in RIVALS if name in GOLDEN and name not in HARD)
#: Every section that can be measured -> its graphs with ``--record``.
SECTIONS = {"graphs": COMPARED, "hard": HARD, "cumbe": COMPARED, "ablation": ABLATION, "cpu": COMPARED}


def measure(section: str, graph: Graph, words: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """An entry of a section, and a few words about it to print."""
    if section == "graphs":
        entry = compare(graph, words.repeats)
        return entry, ", ".join(f"{side} {1e3 * one['kernel_s']:.3f} ms" for side, one in entry["count"].items())
    if section == "hard":
        entry = rate(graph, words.seconds)
        return entry, f"{entry['bicliques_per_s']:.3g} bicliques/s"
    if section == "cumbe":
        entry = published(graph)
        return entry, f"{entry['kernel_s']:.4f} s by cuMBE"
    if section == "ablation":
        return {"variants": ablation(graph)}, "cuMBE with and without"
    entry = on_all_cores(graph, os.cpu_count() or 1)
    return entry, f"{entry['seconds']:.3f} s on all cores"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("gpu", __doc__)
    parser.add_argument(
        "graphs", nargs="*", metavar="GRAPH", help="(default: those that ship; with --record those of docs)"
    )
    parser.add_argument(
        "--sections",
        nargs="+",
        choices=SECTIONS,
        default=list(SECTIONS),
        metavar="SECTION",
        help=f"{', '.join(SECTIONS)}",
    )
    add_data(parser)
    add_repeats(parser, 5)
    parser.add_argument("--seconds", type=float, default=8.0, help="for each hard graph (default: 8)")
    add_output(parser, "h200.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the file after each graph. Entries that are not measured now stay as they were."""
    words = parser().parse_args(arguments)
    of_section = {section: chosen(words, SECTIONS[section]) for section in words.sections}
    output = output_file(words, "gpu")
    result = numbers(output) if output.exists() else {}
    now = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {"device": nvidia_smi("name,driver_version,clocks.max.sm")[0], **machine()},
        "options": {
            "repeats": words.repeats,
            "sizes": GpuSizes()._asdict(),
            "cumbe_sizes": CumbeSizes()._asdict(),
            "seconds": words.seconds,
        },
    }
    number = f"{now['commit']} {now['date']}"
    for section, graphs in of_section.items():
        for graph in graphs:
            entry, said = measure(section, graph, words)
            result.setdefault("runs", {})[number] = now
            result.setdefault(section, {})[graph.name] = {"run": number, **entry}
            print(graph.name, said, flush=True)
            write(output, result)
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
