"""What graphs of growing size take from Parquet to a sealed result: the memory that a dry run tells, and that of a run.

    python -m benchmarks.sizing --edges 1000000 10000000 --place /fast/disk
    python -m benchmarks.sizing --table

The graphs are generated, and kept in the place for the next time. Each side has a tenth as many vertices as there are
edges. Left degrees go up to 1,000, and right degrees up to a thousandth of the edges. A biclique of 60 x 40 is planted,
which the run must find. Each command is a process of its own. A run that has not ended in ``--patience`` seconds of
mining is recorded as not complete.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pipeline
from benchmarks.command import add_output, add_table, begun, new_parser, numbers, output_file, run, write
from benchmarks.commands import kind_of_machine
from benchmarks.facts import FOLDER, ROOT
from pipeline.process.cores import count_cores
from pipeline.run.progress import size
from schemas.errors import InputError, ResourceError

__all__ = ["RESULT", "main", "measured", "parser", "table"]

RESULT = FOLDER / "sizing.json"
PLANTED = (60, 40)
LEAST = (20, 20)
#: Fewest edges, so that the planted biclique is a small part of the graph.
_FEWEST = 100_000
#: Exit codes of a run that is complete, and of one that has reached its limit.
_ENDED = (0, 3)


def measured(edges: int, labels: str, place: Path, engine: str, patience: float) -> dict[str, Any]:
    """Generate a graph unless it is there, ask a dry run, and mine.

    Raises
    ------
    ResourceError
        A command fails, or the run does not find the planted biclique.
    """
    graph, out = place / f"{edges}-{labels}", place / "run"
    n = edges // 10
    made = pipeline.generate(
        graph,
        n_left=n,
        n_right=n,
        edges=edges,
        left_exponent=2.5,
        right_exponent=2.1,
        max_left_degree=1000,
        max_right_degree=max(edges // 1000, 1000),
        plant=[PLANTED],
        labels=labels,  # type: ignore[arg-type]
        progress=False,
    )
    asked = [str(graph), "--min-left", str(LEAST[0]), "--min-right", str(LEAST[1]), "--engine", engine, "--quiet"]
    told, _ = _command("mine", *asked, "--dry-run", "--sample-time", "1", "--json")
    shutil.rmtree(out, ignore_errors=True)
    said, seconds = _command("mine", *asked, "-o", str(out), "--time-limit", str(patience), "--json")
    entry = {
        "vertices": [n, n],
        "file_bytes": sum(path.stat().st_size for path in graph.glob("*.parquet")),
        "told": {"prepare": told["peak_rss"], "mine": _bound(told), "device": told["memory"]["device"]},
        "complete": said["complete"],
        "seconds": seconds,
    }
    if said["complete"]:
        entry |= _taken(said)
        found = pipeline.open_run(out).to_arrow().select(["n_left", "n_right"]).to_pylist()
        if not any((row["n_left"], row["n_right"]) >= PLANTED for row in found):
            raise ResourceError(
                f"a run of {made.path} did not find the planted biclique of {PLANTED[0]} x {PLANTED[1]}"
            )
    shutil.rmtree(out)
    return entry


def _bound(told: dict[str, Any]) -> int:
    """Main memory that mining takes at most: of one worker of a GPU, or of a process with a thread per core."""
    memory = told["memory"]
    threads = 1 if memory["device"] else count_cores()
    return int(memory["shared"] + memory["process"] + threads * (memory["workspace"] + memory["writing"]))


def _taken(manifest: dict[str, Any]) -> dict[str, Any]:
    workers = manifest["mining"]["workers"].values()
    return {
        "engine": manifest["options"]["engine"],
        "core_edges": manifest["graph"]["core_edges"],
        "bicliques": manifest["count"],
        "steps": manifest["seconds"],
        "peak_rss": max(manifest["peak_rss"]["driver"], *manifest["peak_rss"]["workers"].values()),
        "device_bytes": max((worker.get("device_bytes", 0) for worker in workers), default=0),
    }


def _command(*words: str) -> tuple[dict[str, Any], float]:
    """What a command prints as JSON, and its seconds by the clock."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pipeline", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode not in _ENDED:
        raise ResourceError(f"bicliques {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    said: dict[str, Any] = json.loads(done.stdout)
    return said, seconds


def table(recorded: dict[str, Any]) -> list[str]:
    """A Markdown table, a line per machine and graph."""
    told = "told for reading and building | told for mining | taken | GPU: told | taken"
    lines = [
        f"| machine | edges | labels | files | {told} | ingest | build | mine | in all |",
        "|---|--:|---|" + "--:|" * 10,
    ]
    for kind, result in recorded.items():
        for graph in result["graphs"].values():
            for labels, entry in graph.items():
                lines.append(f"| {kind} | {_cells(labels, entry)} |")
    return lines


def _cells(labels: str, entry: dict[str, Any]) -> str:
    told, steps = entry["told"], entry.get("steps", {})
    cells = [f"{10 * entry['vertices'][0]:,}", labels, size(entry["file_bytes"])]
    cells += [size(told["prepare"]), size(told["mine"]), size(entry["peak_rss"]) if steps else "-"]
    cells += [size(n) if n else "-" for n in (told["device"], entry.get("device_bytes", 0))]
    cells += [f"{steps[step]:.1f} s" if steps else "-" for step in ("ingest", "build", "mine")]
    return " | ".join([*cells, f"{entry['seconds']:.1f} s" if steps else f"not complete in {entry['seconds']:.0f} s"])


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("sizing", __doc__)
    parser.add_argument("--edges", type=int, nargs="+", metavar="N", help="sizes of the graphs")
    parser.add_argument(
        "--labels", nargs="+", choices=("integers", "text"), default=["integers"], help="(default: integers)"
    )
    parser.add_argument("--place", type=Path, metavar="FOLDER", help="folder for the graphs and the runs")
    parser.add_argument("--engine", default="auto", metavar="NAME", help="(default: auto)")
    parser.add_argument("--patience", type=float, default=600, metavar="SECONDS", help="(default: 600)")
    add_output(parser, RESULT.name)
    add_table(parser, RESULT)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the file after each graph."""
    words = parser().parse_args(arguments)
    if words.table:
        print("\n".join(table(numbers(words.table))))
        return
    if not words.edges or not words.place or min(words.edges) < _FEWEST:
        raise InputError(f"name sizes of {_FEWEST:,} edges or more with --edges, and a folder for them with --place")
    output, kind = output_file(words, "sizing"), kind_of_machine(words.engine)
    recorded, result = begun(words, output, kind, {"engine": words.engine, "patience": words.patience})
    words.place.mkdir(parents=True, exist_ok=True)
    for edges in words.edges:
        for labels in words.labels:
            entry = measured(edges, labels, words.place, words.engine, words.patience)
            result["graphs"].setdefault(str(edges), {})[labels] = entry
            print(f"{edges:,} edges, {labels}: {_cells(labels, entry)}", flush=True)
            write(output, recorded | {kind: result})
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
