r"""Listing compared with counting on one GPU: how fast the threads of the host and cuDF write, and the disk alone.

    python -m benchmarks.gpu_write --place /fast/disk
    python -m benchmarks.gpu_write mine.csv --repeats 3

Every graph is mined in this process: first in mode count, then in mode list with the host's threads writing, and then
in mode list with cuDF writing. A time is the median of ``--repeats`` runs after one that warms up. It goes from the
first slice to the last part on disk (flushed). The proof is timed separately. For the speed of the disk alone, as many
bytes as the parts have are written at once and flushed, ``--repeats`` times. A table goes to stdout.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.command import add_data, add_output, add_repeats, chosen, new_parser, output_file, run, write
from benchmarks.facts import Graph, commit, machine, nvidia_smi
from benchmarks.gpu_scaling import quiet
from benchmarks.runs import prepared_run
from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.mining import driver
from bicliques.pipeline.output.writers import WriteOn
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers.opening import open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import InThreads
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.search import Mode, Search

#: Graphs with many bicliques.
RECORDED = ("bookcrossing_core", "cp4im_heart_cleveland")


def mine(source: Path, place: Path, mode: Mode, write_on: WriteOn, words: argparse.Namespace) -> dict[str, Any]:
    """Mine a graph once, and return the numbers of the run."""
    options = RunOptions(source=str(source), search=Search(mode), engine=words.engine, ids=words.ids)
    limits = RunLimits(max_results=words.max_results)
    with prepared_run(source, options, place) as folder, open_pool(WorkerOptions(workers=0), CUDA) as pool:
        session = driver.mine_run(Run(folder), pool, limits, quiet, write_on=write_on)
        ledger = Run(folder).ledger()
        results = [entry.result for entry in ledger.entries.values()]
        began = min(result.began for result in results)
        ended = max(own.began + own.seconds + own.stats.closing_seconds for own in results)
        size = sum(part.bytes for part in ledger.parts)
        line = {
            "seconds": ended - began,
            "session_s": session.seconds,
            "search_s": sum(result.seconds for result in results),
            "kernel_s": sum(result.stats.engine.kernel_s for result in results),
            "writing_s": sum(own.stats.writing_seconds + own.stats.closing_seconds for own in results),
            "bicliques": ledger.total.count,
            "bytes": size,
            "bytes_a_biclique": size / max(ledger.total.count, 1),
            "parts": len(ledger.parts),
            "slices": len(results),
            "outcome": session.outcome,
        }
        if mode == "list" and session.outcome == "complete":
            provers, clock = InThreads(count_cores()), time.perf_counter()
            proving.prove(Run(folder), provers, quiet)
            line["prove_s"] = time.perf_counter() - clock
            provers.close()
    return line


def middle(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The numbers of the run that took the median time."""
    return sorted(lines, key=lambda line: line["seconds"])[len(lines) // 2]


def disk_speed(place: Path, size: int) -> float:
    """Bytes per second of writing about `size` bytes at once and flushing them."""
    block = os.urandom(1 << 24)
    with tempfile.NamedTemporaryFile(dir=place) as file:
        began = time.perf_counter()
        for _ in range(max(1, size >> 24)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return max(1, size >> 24) * len(block) / (time.perf_counter() - began)


def measure(graph: Graph, place: Path, words: argparse.Namespace) -> dict[str, Any]:
    """Count one graph, and list it with each of the writers.

    Raises
    ------
    ResourceError
        If a number of bicliques is not the known one.
    """
    kinds: list[tuple[str, Mode, WriteOn]] = [("count", "count", "cpu")]
    kinds += [(who, "list", who) for who in words.write_on]
    runs = {
        kind: [mine(graph.path, place, mode, who, words) for _ in range(words.repeats + 1)][1:]
        for kind, mode, who in kinds
    }
    median = {who: middle(lines) for who, lines in runs.items()}
    for who in words.write_on:
        line, count = median[who], median["count"]["seconds"]
        known = line["bicliques"] if graph.known is None else graph.known
        expected = known if words.max_results is None else min(known, words.max_results)
        if line["bicliques"] != expected:
            raise ResourceError(f"{who} writes {line['bicliques']:,} bicliques of {graph.name}, not {expected:,}")
        line["disk_bytes_a_s"] = statistics.median(disk_speed(place, line["bytes"]) for _ in range(words.repeats))
        print(
            f"| {graph.name} | {line['bicliques']:,} | {line['bytes_a_biclique']:.1f} | {count:.3f} s "
            f"| {line['seconds']:.3f} s, {who} | {line['seconds'] / count:.1f} "
            f"| {line['bytes'] / line['disk_bytes_a_s']:.3f} s | {line.get('prove_s', 0.0):.2f} s |",
            flush=True,
        )
    return {"median": median, "all_s": {kind: [line["seconds"] for line in some] for kind, some in runs.items()}}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("gpu_write", __doc__)
    parser.add_argument("graphs", nargs="*", metavar="GRAPH", help=f"(default: random_dense; with --record {RECORDED})")
    parser.add_argument("--write-on", nargs="+", choices=("cpu", "gpu"), default=["cpu", "gpu"])
    parser.add_argument("--ids", choices=("labels", "dense"), default="labels")
    add_repeats(parser, 5)
    parser.add_argument("--max-results", type=int, metavar="N", help="stop after so many bicliques")
    parser.add_argument("--engine", default="bitmatrix")
    parser.add_argument("--place", type=Path, help="where the runs are put (default: the temporary folder)")
    add_data(parser)
    add_output(parser, "h200_write.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and write."""
    words = parser().parse_args(arguments)
    graphs, output = chosen(words, RECORDED, ["random_dense"]), output_file(words, "gpu_write")
    nvidia_smi("name")
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "ids": words.ids,
        "max_results": words.max_results,
        "graphs": {},
    }
    print("| graph | bicliques | bytes each | count | list, by | list / count | disk alone | proof |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir=words.place) as temporary:
        for graph in graphs:
            result["graphs"][graph.name] = measure(graph, Path(temporary), words)
            write(output, result)
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
