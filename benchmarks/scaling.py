r"""Speed-ups of two or more worker processes over one, on graphs that take one process ten seconds and longer.

    python -m benchmarks.scaling
    python -m benchmarks.scaling random mine.csv --workers 1 2 4

``random`` is generated. Other graphs are files, or names of graphs that ship or lie in --data.
Bicliques are counted and hashed, but not written. The clock starts after the workers have started and mined something.
There are two speed-ups. The first is by the clock, and other work on the machine makes it smaller. The second is the
processor time of one worker alone divided by that of the busiest of several. The clock would show it on an idle machine
with an equally fast core for each worker.
A table goes to stdout.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.command import add_data, add_output, new_parser, output_file, run, write
from benchmarks.facts import commit, find
from bicliques.kernels import engines
from bicliques.pipeline.api import steps
from bicliques.pipeline.mining import driver
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers.opening import open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import Pool
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.search import Search

_SLICE_S = 10.0


def random_graph(n_left: int = 800) -> pa.Table:
    """A graph of 800 x 200 with 40,000 edges, which takes some 15 s on one core."""
    adjacent = np.random.default_rng(1).random((n_left, 200)) < 0.25
    left, right = np.nonzero(adjacent)
    return pa.table({"left": left, "right": right})


def prepared(source: Any, folder: Path) -> RunFolder:
    """A run of a table or a file, up to its plan."""
    name = str(source) if isinstance(source, Path) else "random"
    steps.start(source, folder, RunOptions(source=name, search=Search("fingerprint")), RunLimits(), False)
    steps.prepare(folder, False)
    return RunFolder(folder)


@contextmanager
def warm(workers: int, folder: Path) -> Iterator[Pool]:
    """A pool of workers that have mined something already."""
    table = pa.table({"left": [1, 1, 2], "right": [1, 2, 1]})
    with open_pool(WorkerOptions(workers=workers)) as pool:
        driver.mine_run(Run(prepared(table, folder / f"warm-{workers}")), pool, RunLimits(), lambda _: None)
        yield pool


def processor_seconds() -> dict[int, float]:
    """Processor seconds of every process that this one has started, by process id."""
    times = {child.pid: child.cpu_times() for child in psutil.Process().children(recursive=True)}
    return {pid: time.user + time.system for pid, time in times.items()}


def measure(source: Any, workers: int, folder: Path) -> dict[str, Any]:
    """Mine a graph once with so many workers, prove the run, and return its numbers."""
    with warm(workers, folder) as pool:
        ready = prepared(source, folder / f"run-{workers}")
        before = processor_seconds()
        session = driver.mine_run(Run(ready), pool, RunLimits(), lambda _: None, _SLICE_S)
        used = sorted((now - before.get(pid, 0.0) for pid, now in processor_seconds().items()), reverse=True)
    manifest = steps.prove(ready.path, progress=False)
    return {
        "workers": workers,
        "seconds": session.seconds,
        "processor_s": used[:workers],
        "busy_ratio": session.busy_ratio,
        "slices": session.slices,
        "count": manifest.count,
        "fingerprint": str(manifest.fingerprint),
    }


def speed_up(alone: dict[str, Any], several: dict[str, Any]) -> float:
    """The speed-up by processor time."""
    return float(sum(alone["processor_s"]) / max(several["processor_s"]))


def table(runs: dict[str, list[dict[str, Any]]]) -> str:
    """The numbers as a Markdown table."""
    lines = ["| graph | bicliques | workers | seconds | speed-up | by processor time | busy | slices |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, some in runs.items():
        alone = some[0]
        for one in some:
            clock = alone["seconds"] / one["seconds"]
            lines.append(
                f"| {name} | {one['count']:,} | {one['workers']} | {one['seconds']:.1f} | {clock:.2f} | "
                f"{speed_up(alone, one):.2f} | {100 * one['busy_ratio']:.0f} % | {one['slices']} |"
            )
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("scaling", __doc__)
    parser.add_argument("graphs", nargs="*", default=["random"], metavar="GRAPH", help="(default: random)")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2], metavar="N", help="the first is the measure")
    add_data(parser)
    add_output(parser, "scaling.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse, measure, check that all counts agree, write, print."""
    words = parser().parse_args(arguments)
    sources = {Path(word).stem: None if word == "random" else find(word, words.data).path for word in words.graphs}
    output = output_file(words, "scaling")
    engines.compile_engine("cpu")
    engines.compile_proof()
    runs: dict[str, list[dict[str, Any]]] = {}
    for name, path in sources.items():
        source = path or random_graph()
        with tempfile.TemporaryDirectory() as folder:
            runs[name] = [measure(source, workers, Path(folder)) for workers in words.workers]
        if len({(one["count"], one["fingerprint"]) for one in runs[name]}) != 1:
            raise ResourceError(f"the runs on {name} do not agree: {runs[name]}")
    facts = {
        "commit": commit(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "load_average": os.getloadavg()[2],
        "graphs": runs,
    }
    write(output, facts)
    print(table(runs))
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
