r"""One worker process beside two or more, on graphs that take one of them ten seconds and longer.

    python -m benchmarks.scaling --workers 1 2 --graphs random bookcrossing_core

``random`` is generated; other names are NAME.parquet in ``--data`` (default: $BICLIQUES_DATA, else ../shared/data).
Bicliques are counted and hashed, not written. Workers are started and warm before the clock starts. Two speed-ups:
by the clock, which other work on the machine spoils; and by processor time: that of one worker alone over that of
the busiest of several, which is what the clock would show on an idle machine with as fast a core for each.
``benchmarks/scaling.json`` gets the numbers; a table goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa

from benchmarks.facts import DATA, ROOT, commit
from pipeline import engines, mining, steps
from pipeline.folder import RunFolder
from pipeline.pool import Pool
from pipeline.workers import WorkerOptions, open_pool
from schemas.options import RunLimits, RunOptions
from schemas.work import Search

RESULT = ROOT / "benchmarks" / "scaling.json"
_SLICE_S = 10.0


def random_graph(n_left: int = 800) -> pa.Table:
    """A graph of 800 x 200 with 40,000 edges: some 15 s on one core."""
    adjacent = np.random.default_rng(1).random((n_left, 200)) < 0.25
    left, right = np.nonzero(adjacent)
    return pa.table({"left": left, "right": right})


def prepared(source: Any, folder: Path) -> RunFolder:
    """A run that is planned, of a table or a file."""
    name = str(source) if isinstance(source, Path) else "random"
    steps.start(source, folder, RunOptions(name, Search("prove")), RunLimits(), False)
    steps.prepare(folder, False)
    return RunFolder(folder)


@contextmanager
def warm(workers: int, folder: Path) -> Iterator[Pool]:
    """Workers that have mined something already."""
    table = pa.table({"left": [1, 1, 2], "right": [1, 2, 1]})
    with open_pool(WorkerOptions(workers=workers)) as pool:
        mining.mine_run(prepared(table, folder / f"warm-{workers}"), pool, RunLimits(), lambda _: None)
        yield pool


def processor_seconds() -> dict[int, float]:
    """Of every process below this one."""
    times = {child.pid: child.cpu_times() for child in psutil.Process().children(recursive=True)}
    return {pid: time.user + time.system for pid, time in times.items()}


def measure(source: Any, workers: int, folder: Path) -> dict[str, Any]:
    """One run."""
    with warm(workers, folder) as pool:
        run = prepared(source, folder / f"run-{workers}")
        before = processor_seconds()
        session = mining.mine_run(run, pool, RunLimits(), lambda _: None, _SLICE_S)
        used = sorted((now - before.get(pid, 0.0) for pid, now in processor_seconds().items()), reverse=True)
    manifest = steps.seal(run.path, report=False)
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
    """By processor time."""
    return float(sum(alone["processor_s"]) / max(several["processor_s"]))


def table(runs: dict[str, list[dict[str, Any]]]) -> str:
    """As Markdown."""
    lines = ["| graph | bicliques | workers | seconds | speed-up | by processor time | busy | slices |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name, some in runs.items():
        alone = some[0]
        for run in some:
            clock = alone["seconds"] / run["seconds"]
            lines.append(
                f"| {name} | {run['count']:,} | {run['workers']} | {run['seconds']:.1f} | {clock:.2f} | "
                f"{speed_up(alone, run):.2f} | {100 * run['busy_ratio']:.0f} % | {run['slices']} |"
            )
    return "\n".join(lines)


def main() -> None:
    """Parse, measure, check that all counts agree, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["random"], metavar="NAME")
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2], metavar="N", help="the first is the measure")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    engines.compile_engine("cpu")
    runs: dict[str, list[dict[str, Any]]] = {}
    for name in arguments.graphs:
        source = random_graph() if name == "random" else arguments.data / f"{name}.parquet"
        with tempfile.TemporaryDirectory() as folder:
            runs[name] = [measure(source, workers, Path(folder)) for workers in arguments.workers]
        if len({(run["count"], run["fingerprint"]) for run in runs[name]}) != 1:
            raise SystemExit(f"the runs on {name} do not agree: {runs[name]}")
    facts = {
        "commit": commit(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "load_average": os.getloadavg()[2],
        "graphs": runs,
    }
    arguments.output.write_text(json.dumps(facts, indent=1) + "\n")
    print(table(runs))


if __name__ == "__main__":
    main()
