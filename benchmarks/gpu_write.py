r"""Counting beside listing on one GPU: who writes how fast, and how fast the disk would take it.

    python -m benchmarks.gpu_write --graphs bookcrossing_core cp4im_heart_cleveland --place /fast/disk

Every graph is mined in this process, mode count first, then mode list with the host's threads writing and with cuDF
writing: the median of some runs after one that warms up. A time is from the first slice to the last part on disk
(flushed), the proof apart, which is timed, too. The disk's speed is that of writing as many bytes as the parts have, in
one go, flushed, the median of as many times. ``benchmarks/h200_write.json``
(``--output``) gets everything; a table goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.facts import DATA, GOLDEN, ROOT, commit, machine
from benchmarks.gpu_scaling import quiet, source_of
from benchmarks.runs import prepared_run
from pipeline import mining, sealing
from pipeline.ledger import Ledger
from pipeline.plan import Plan
from pipeline.threads import InThreads
from pipeline.workers import WorkerOptions, open_pool
from pipeline.writing import WriteOn
from schemas.options import RunLimits, RunOptions
from schemas.work import Mode, Search

RESULT = ROOT / "benchmarks" / "h200_write.json"


def mine(source: Path, place: Path, mode: Mode, write_on: WriteOn, arguments: argparse.Namespace) -> dict[str, Any]:
    """One run; its line in the result."""
    options = RunOptions(str(source), Search(mode), engine=arguments.engine, ids=arguments.ids)
    limits = RunLimits(max_results=arguments.max_results)
    with prepared_run(source, options, place) as folder, open_pool(WorkerOptions(workers=0), "gpu") as pool:
        session = mining.mine_run(folder, pool, limits, quiet, write_on=write_on)
        ledger = Ledger.load(folder, len(Plan.open(folder).roots))
        entries = list(ledger.entries.values())
        began = min(entry.began for entry in entries)
        ended = max(
            e.began + e.seconds + (e.stats.get("writing_seconds", 0.0) if mode == "list" else 0) for e in entries
        )
        size = sum(part.bytes for entry in entries for part in entry.parts)
        line = {
            "seconds": ended - began,
            "session_s": session.seconds,
            "search_s": sum(entry.seconds for entry in entries),
            "kernel_s": sum(entry.stats.get("kernel_s", 0.0) for entry in entries),
            "writing_s": sum(entry.stats.get("writing_seconds", 0.0) for entry in entries),
            "bicliques": ledger.count,
            "bytes": size,
            "bytes_a_biclique": size / max(ledger.count, 1),
            "parts": sum(len(entry.parts) for entry in entries),
            "slices": len(entries),
            "outcome": session.outcome,
        }
        if mode == "list" and session.outcome == "complete":
            provers, clock = InThreads(len(os.sched_getaffinity(0))), time.perf_counter()
            sealing.seal(folder, provers, quiet)
            line["prove_s"] = time.perf_counter() - clock
            provers.close()
    return line


def middle(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The run that took the median time."""
    return sorted(lines, key=lambda line: line["seconds"])[len(lines) // 2]


def disk_speed(place: Path, size: int) -> float:
    """Bytes a second of writing so many in one go, flushed."""
    block = os.urandom(1 << 24)
    with tempfile.NamedTemporaryFile(dir=place) as file:
        began = time.perf_counter()
        for _ in range(max(1, size >> 24)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return max(1, size >> 24) * len(block) / (time.perf_counter() - began)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["bookcrossing_core", "cp4im_heart_cleveland"])
    parser.add_argument("--write-on", nargs="+", choices=("cpu", "gpu"), default=["cpu", "gpu"])
    parser.add_argument("--ids", choices=("labels", "dense"), default="labels")
    parser.add_argument("--repeats", type=int, default=5, help="the median counts (default: 5)")
    parser.add_argument("--max-results", type=int, metavar="N", help="stop after so many bicliques")
    parser.add_argument("--engine", default="bitmatrix")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--place", type=Path, help="where the runs are put (default: the temporary folder)")
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "ids": arguments.ids,
        "max_results": arguments.max_results,
        "graphs": {},
    }
    print("| graph | bicliques | bytes each | count | list, by | list / count | disk alone | proof |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory(dir=arguments.place) as temporary:
        place = Path(temporary)
        for name in arguments.graphs:
            source = source_of(name, arguments.data, place)
            kinds: list[tuple[str, Mode, WriteOn]] = [("count", "count", "cpu")]
            kinds += [(who, "list", who) for who in arguments.write_on]
            runs = {
                kind: [mine(source, place, mode, who, arguments) for _ in range(arguments.repeats + 1)][1:]
                for kind, mode, who in kinds
            }
            median = {who: middle(lines) for who, lines in runs.items()}
            entry: dict[str, Any] = {
                "median": median,
                "all_s": {k: [line["seconds"] for line in v] for k, v in runs.items()},
            }
            result["graphs"][name] = entry
            for who in arguments.write_on:
                line, count = median[who], median["count"]["seconds"]
                expected = arguments.max_results or GOLDEN.get(name, line["bicliques"])
                if line["bicliques"] != min(expected, GOLDEN.get(name, expected)):
                    raise SystemExit(f"{name}: {line['bicliques']} bicliques instead of {expected}")
                speeds = [disk_speed(place, line["bytes"]) for _ in range(arguments.repeats)]
                line["disk_bytes_a_s"] = statistics.median(speeds)
                print(
                    f"| {name} | {line['bicliques']:,} | {line['bytes_a_biclique']:.1f} | {count:.3f} s "
                    f"| {line['seconds']:.3f} s, {who} | {line['seconds'] / count:.1f} "
                    f"| {line['bytes'] / line['disk_bytes_a_s']:.3f} s | {line.get('prove_s', 0.0):.2f} s |",
                    flush=True,
                )
            arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
