"""What graphs of growing size take from Parquet to a sealed result: the memory that a dry run tells, and that of a run.

    python -m benchmarks.sizing --edges 1000000 10000000 --place /fast/disk
    python -m benchmarks.sizing --edges 100000000 --device-memory 16GB --place /fast/disk --output some.json
    python -m benchmarks.sizing --merge some.json others.json --record
    python -m benchmarks.sizing --table

The graphs are generated, and kept in the place for the next time. Each side has a tenth as many vertices as there are
edges, and 20 million at most. Left degrees go up to 300, and right degrees up to a thousandth of the edges. A biclique
of 60 x 40 is planted, which the run must find. Each run is a process of its own. It is told to end after
``--patience`` seconds, and what it has done until then is recorded.

What is *told* is what a dry run of the same graph prints. It is computed from the folder of the run when that has
ended, because a dry run would read and build once more. A file keeps its other rows, so a table can be measured in
parts and on several machines.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import bicliques as bq
from benchmarks.command import add_output, add_table, new_parser, numbers, output_file, prints_table, run, write
from benchmarks.commands import kind_of_machine
from benchmarks.facts import FOLDER, ROOT, commit, machine
from bicliques.kernels import engines
from bicliques.pipeline.estimate.memory import memory_bound, preparing_bound
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.run.accounts import seconds_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import size
from bicliques.pipeline.workers.devices import limited
from bicliques.schemas.errors import InputError, ResourceError

RESULT = FOLDER / "sizing.json"
PLANTED = (60, 40)
LEAST = (20, 20)
#: Fewest edges, so that the planted biclique is a small part of the graph.
_FEWEST = 100_000
#: Most vertices of a side, and the largest left degree. With larger ones hubs have more bicliques than can be listed.
_VERTICES, _LEFT_DEGREE = 20_000_000, 300
#: Exit codes of a run that is complete, that has reached its limit, that was told to end, and that did not.
_ENDED = (0, 3, 130, -signal.SIGINT, -signal.SIGKILL)
#: Seconds that a run gets to end when it is told to, and between two looks at its memory.
_GRACE, _LOOK = 30.0, 0.05
#: By these a row is known: a new one replaces it.
_KEY = ("edges", "labels", "device_memory")

Row = dict[str, Any]


def measured(edges: int, labels: str, place: Path, engine: str, patience: float, device_memory: str | None) -> Row:
    """Generate a graph unless it is there, and mine it.

    Raises
    ------
    ResourceError
        A command fails, or the run does not find the planted biclique.
    """
    graph, out = place / f"{edges}-{labels}", place / "run"
    _generate(graph, edges, labels)
    shutil.rmtree(out, ignore_errors=True)
    words = ["mine", str(graph), "-o", str(out), "--min-left", str(LEAST[0]), "--min-right", str(LEAST[1])]
    words += ["--engine", engine, "--no-report", "--quiet", "--json"]
    words += [] if device_memory is None else ["--device-memory", device_memory]
    row: Row = {"edges": edges, "labels": labels, "device_memory": device_memory, "commit": commit()}
    with _looking() as device:
        said, row["seconds"], row["host_bytes"] = _command(patience, *words)
    row |= {"date": datetime.now(UTC).isoformat(timespec="seconds"), "patience": patience}
    row |= {"file_bytes": sum(path.stat().st_size for path in graph.glob("*.parquet"))}
    row |= {"complete": said is not None and bool(said["complete"]), "device_bytes": max(device, default=0)}
    row |= {"steps": {}, "told": {}}  # a run that ends early may leave no folder
    if out.exists():
        # in a process of its own, because asking a device for its memory takes some of it as long as a process lives
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            row |= pool.submit(_found, out, device_memory).result()
    if row["complete"]:
        rows = bq.open_run(out).to_arrow().select(["n_left", "n_right"]).to_pylist()
        row["bicliques"] = len(rows)
        if not any((one["n_left"], one["n_right"]) >= PLANTED for one in rows):
            raise ResourceError(f"a run of {graph} did not find the planted biclique of {PLANTED[0]} x {PLANTED[1]}")
    shutil.rmtree(out, ignore_errors=True)
    return row


def _generate(graph: Path, edges: int, labels: str) -> None:
    n = min(edges // 10, _VERTICES)
    bq.generate(
        graph,
        n_left=n,
        n_right=n,
        edges=edges,
        left_exponent=2.5,
        right_exponent=2.1,
        max_left_degree=_LEFT_DEGREE,
        max_right_degree=max(edges // 1000, 1000),
        plant=[PLANTED],
        labels=labels,  # type: ignore[arg-type]
        progress=False,
    )


def _found(folder: Path, device_memory: str | None) -> Row:
    """What a run, complete or not, says of itself, and what a dry run of it would have told."""
    opened = Run.at(folder)
    row: Row = {"engine": opened.options.engine, "steps": seconds_of(opened), "told": {}}
    if opened.has("build"):
        preparing = preparing_bound(opened)
        row["told"] |= {"reading": preparing.reading, "building": preparing.building}
        row["vertices"] = [opened.input["n_left"], opened.input["n_right"]]
        row["pieces"] = [facts.get("pieces", 1) for facts in (opened.input, opened.built)]
        with limited(device_memory):
            bound = memory_bound(opened)
        threads = 1 if bound.device else count_cores()
        mining = bound.shared + bound.process + threads * (bound.workspace + bound.writing)
        row["told"] |= {"mining": mining, "device": bound.device, "scratch": bound.scratch, "free": bound.free}
        row["core_edges"] = opened.built["core_edges"]
    return row


def _command(patience: float, *words: str) -> tuple[Row | None, float, int]:
    """What a command prints as JSON, its seconds by the clock, and the most main memory of its process in bytes.

    None if it was told to end before it had something to print.
    """
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "bicliques", *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        peaks: list[int] = []
        ended = threading.Event()
        looking = threading.Thread(target=_look_at, args=(process.pid, ended, peaks))
        looking.start()
        try:
            printed, errors = _until(process, patience)
        finally:
            ended.set()
            looking.join()
    seconds = time.perf_counter() - began
    if process.returncode not in _ENDED:
        raise ResourceError(f"bicliques {' '.join(words)} ended with {process.returncode}: {errors.strip()[-500:]}")
    said: Row | None = json.loads(printed) if printed.strip() else None
    return said, seconds, max(peaks, default=0)


def _until(process: subprocess.Popen[str], patience: float) -> tuple[str, str]:
    """What a process prints. When its time is over it is told to end, and killed if it does not."""
    for signal_number, seconds in ((signal.SIGINT, patience), (signal.SIGKILL, _GRACE)):
        try:
            return process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal_number)
    return process.communicate()


def _look_at(pid: int, ended: threading.Event, peaks: list[int]) -> None:
    """Note the peak of the main memory of a process, until it has ended. Nothing where there is no ``/proc``."""
    while not ended.wait(_LOOK):
        try:
            found = re.search(r"VmHWM:\s*(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        except OSError:
            return
        if found:
            peaks.append(int(found[1]) << 10)


@contextmanager
def _looking() -> Iterator[list[int]]:
    """The bytes of the first device that are in use, every tenth of a second. Nothing without ``nvidia-smi``."""
    found: list[int] = []
    if engines.kind(engines.choose("auto").name).platform.energy_counter is None or not shutil.which("nvidia-smi"):
        yield found
        return
    words = ["nvidia-smi", "--id=0", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--loop-ms=100"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = process.stdout

        def read() -> None:
            found.extend(int(line) << 20 for line in lines if line.strip().isdigit())

        reading = threading.Thread(target=read)
        reading.start()
        try:
            yield found
        finally:
            process.terminate()
            reading.join()


def merged(recorded: dict[str, Any], kind: str, about: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """Recorded numbers with rows of a kind of machine, which replace those with the same edges, labels and limit."""
    new = {tuple(row[name] for name in _KEY) for row in rows}
    kept = [row for row in recorded.get(kind, {}).get("rows", []) if tuple(row[name] for name in _KEY) not in new]
    both = sorted([*kept, *rows], key=lambda row: (row["edges"], row["labels"], row["device_memory"] or ""))
    return recorded | {kind: {"machine": about, "rows": both}}


def table(recorded: dict[str, Any]) -> list[str]:
    """A Markdown table, a line per machine and graph."""
    told = "told: reading | building | mining | taken | GPU, told: search | scratch | taken"
    lines = [
        f"| machine | edges | labels | files | {told} | ingest | build | mine | in all |",
        "|---|--:|---|" + "--:|" * 12,
    ]
    for kind, result in recorded.items():
        lines += [f"| {_machine(kind, row)} | {_cells(row)} |" for row in result["rows"]]
    return lines


def _machine(kind: str, row: Row) -> str:
    return kind if row["device_memory"] is None else f"{kind}, {row['device_memory']}"


def _cells(row: Row) -> str:
    told, steps = row["told"], row["steps"]
    cells = [f"{row['edges']:,}", row["labels"], size(row["file_bytes"])]
    numbers = [told.get(name, 0) for name in ("reading", "building", "mining")]
    numbers += [row["host_bytes"], told.get("device", 0), told.get("scratch", 0), row["device_bytes"]]
    cells += [size(n) if n else "-" for n in numbers]
    cells += [f"{steps[step]:.1f} s" if step in steps else "-" for step in ("ingest", "build", "mine")]
    ended = f"{row['seconds']:.1f} s" if row["complete"] else f"not complete in {row['seconds']:.0f} s"
    return " | ".join([*cells, ended])


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("sizing", __doc__)
    parser.add_argument("--edges", type=int, nargs="+", metavar="N", help="sizes of the graphs")
    parser.add_argument(
        "--labels", nargs="+", choices=("integers", "text"), default=["integers"], help="(default: integers)"
    )
    parser.add_argument("--place", type=Path, metavar="FOLDER", help="folder for the graphs and the runs")
    parser.add_argument("--engine", default="auto", metavar="NAME", help="(default: auto)")
    parser.add_argument("--device-memory", metavar="SIZE", help="as for `bicliques mine` (default: no limit)")
    parser.add_argument("--patience", type=float, default=600, metavar="SECONDS", help="of each run (default: 600)")
    parser.add_argument("--merge", type=Path, nargs="+", metavar="FILE", help="take the rows of FILE, measure nothing")
    add_output(parser, RESULT.name)
    add_table(parser, RESULT)
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the file after each graph."""
    words = parser().parse_args(arguments)
    if prints_table(words, table):
        return
    if not words.merge and (not words.edges or not words.place or min(words.edges) < _FEWEST):
        raise InputError(f"name sizes of {_FEWEST:,} edges or more with --edges, and a folder for them with --place")
    output = output_file(words, "sizing")
    recorded = numbers(output) if output.exists() else {}
    for file in words.merge or ():
        for kind, result in numbers(file).items():
            recorded = merged(recorded, kind, result["machine"], result["rows"])
    if words.merge:
        write(output, recorded)
    else:
        _measure_all(words, output, recorded)
    print(f"numbers: {output}")


def _measure_all(words: argparse.Namespace, output: Path, recorded: dict[str, Any]) -> None:
    kind, about = kind_of_machine(words.engine), machine()
    words.place.mkdir(parents=True, exist_ok=True)
    for edges in words.edges:
        for labels in words.labels:
            row = measured(edges, labels, words.place, words.engine, words.patience, words.device_memory)
            print(f"{_machine(kind, row)}: {_cells(row)}", flush=True)
            recorded = merged(recorded, kind, about, [row])
            write(output, recorded)


if __name__ == "__main__":
    run(main)
