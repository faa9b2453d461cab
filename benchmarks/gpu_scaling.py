r"""One GPU beside two and four of the same machine, on graphs that take one of them twenty seconds and longer.

    python -m benchmarks.gpu_scaling --find --graphs movielens_100k random
    python -m benchmarks.gpu_scaling --devices 1 2 4 --graphs movielens_100k=0.7 random=0.8

Bicliques are counted and hashed through the whole pipeline (ledger, scheduler, LocalCUDACluster), not written. Of a
graph that would take hours, NAME=SHARE takes a share of the edges, drawn at random, and mines all of that; ``--find``
looks for shares that take ``--seconds`` on one GPU, and prints them. Workers are started, and have the graph, before
the clock starts. Count and fingerprint must be those of one GPU; with ``--cpu SHARE``, so many of the roots are also
compared with the CPU engine. ``benchmarks/h200_scaling.json`` (``--output``) gets everything; a table goes to stdout.

``random`` is generated (2,000 x 400 with 240,000 edges); other names are NAME.parquet in ``--data`` (default:
$BICLIQUES_DATA, else ../shared/data) or in examples/.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.facts import DATA, ROOT, commit, machine
from benchmarks.runs import keep_share, prepared_run
from benchmarks.timing import load
from kernels.bitmatrix import BitMatrixEngine
from pipeline import mining
from pipeline.folder import RunFolder
from pipeline.ledger import Ledger
from pipeline.plan import Plan
from pipeline.pool import Pool
from pipeline.progress import Progress
from pipeline.workers import WorkerOptions, open_pool
from schemas.options import RunLimits, RunOptions
from schemas.work import Limits, Search, Subtrees

RESULT = ROOT / "benchmarks" / "h200_scaling.json"


def random_graph() -> pa.Table:
    """A graph without structure: every one of 2,000 x 400 pairs is an edge with probability 0.3."""
    adjacent = np.random.default_rng(1).random((2000, 400)) < 0.3
    left, right = np.nonzero(adjacent)
    return pa.table({"u": left, "v": right})


def source_of(name: str, data: Path, folder: Path) -> Path:
    """The file of a graph."""
    if name == "random":
        path = folder / "random.parquet"
        if not path.exists():
            pq.write_table(random_graph(), path)
        return path
    for place in (data, ROOT / "examples"):
        if (place / f"{name}.parquet").exists():
            return place / f"{name}.parquet"
    raise SystemExit(f"{name}.parquet is neither in {data} nor in examples/; name the folder with --data")


def thinned(name: str, share: float, data: Path, folder: Path) -> Path:
    """A share of the edges of a graph, in `folder`."""
    table = pq.read_table(source_of(name, data, folder))
    path = folder / f"{name}-{share}.parquet"
    pq.write_table(table.filter(np.random.default_rng(0).random(len(table)) < share), path)
    return path


@contextmanager
def gpus(n: int, warm: Path) -> Iterator[Pool]:
    """A worker on each of so many GPUs, which has mined something already."""
    with open_pool(WorkerOptions(workers=n), "gpu") as pool:
        with copied(warm) as folder:
            mining.mine_run(folder, pool, RunLimits(time_limit_s=1.0), quiet)
        yield pool


@contextmanager
def copied(prepared: Path, share: float = 1.0) -> Iterator[RunFolder]:
    """A copy of a prepared run with a share of its roots."""
    with tempfile.TemporaryDirectory(dir=prepared.parent) as temporary:
        path = Path(temporary) / "run"
        shutil.copytree(prepared, path)
        folder = RunFolder(path)
        if share < 1.0:
            keep_share(folder, share)
        yield folder


def quiet(progress: Progress) -> None:
    """Say nothing."""


def mine(prepared: Path, pool: Pool, share: float = 1.0) -> dict[str, Any]:
    """One run; its line in the result."""
    with copied(prepared, share) as folder:
        session = mining.mine_run(folder, pool, RunLimits(), quiet)
        ledger = Ledger.load(folder, len(Plan.open(folder).roots))
        entries = list(ledger.entries.values())
        busy: dict[str, float] = {}
        for entry in entries:
            busy[entry.worker] = busy.get(entry.worker, 0.0) + entry.seconds
        return {
            # from the first slice on: the session also places the graph on the devices, and may compile
            "seconds": max(e.began + e.seconds for e in entries) - min(e.began for e in entries),
            "session_s": session.seconds,
            "bicliques": ledger.count,
            "fingerprint": str(ledger.fingerprint),
            "busy_ratio": session.busy_ratio,
            "busy_s": sorted(busy.values()),
            "kernel_s": sum(entry.stats.get("kernel_s", 0.0) for entry in entries),
            "slices": len(entries),
            "retries": session.retries,
            "left_over_nodes": sum(entry.n_left_over for entry in entries),
            "joules": sum(entry.stats.get("joules", 0.0) for entry in entries),
        }


def find_share(name: str, data: Path, seconds: float) -> float:
    """A share of the edges that takes one GPU so many seconds, up to twice as long; a try ends after that."""
    tries: list[tuple[float, float]] = []
    share, high = 0.4, 1.0
    for _ in range(20):
        with tempfile.TemporaryDirectory() as folder:
            graph = load(thinned(name, share, data, Path(folder)), "auto")
        roots, engine = Subtrees.of_roots(np.arange(graph.n_roots)), BitMatrixEngine()
        found = engine.mine(graph, roots, Search("prove"), Limits(seconds=2 * seconds), lambda _: None)
        took, complete = found.stats["kernel_s"], len(found.left_over) == 0
        print(f"  {name}={share:.4f}: {found.count:,} in {took:.2f} s{'' if complete else ' and longer'}", flush=True)
        if complete and (took >= seconds or share == 1.0):
            return share
        if not complete:
            high, share = share, (share + max(tries, default=(0.0, 0.0))[0]) / 2
            continue
        tries.append((share, took))
        (s0, t0), (s1, t1) = tries[-2:] if len(tries) > 1 else ((0.0, took / 1000), tries[0])
        step = np.log(1.3 * seconds / t1) * (s1 - s0) / np.log(t1 / t0)  # as if the time grew exponentially
        share = round(float(min(s1 + min(max(step, 0.001), 0.2), 1.0 if high == 1.0 else (s1 + high) / 2)), 4)
    raise SystemExit(f"{name}: no share of its edges takes {seconds:.0f} to {2 * seconds:.0f} s")


def compare_with_cpu(prepared: Path, share: float, pool: Pool) -> dict[str, Any]:
    """A small share on the GPUs and on all cores."""
    found = mine(prepared, pool, share)
    with copied(prepared, share) as folder:
        options = folder.options()
        folder.write_options(RunOptions(options.source, options.search, engine="cpu"), RunLimits())
        with open_pool(WorkerOptions(workers=os.cpu_count())) as cores:
            session = mining.mine_run(folder, cores, RunLimits(), quiet)
        ledger = Ledger.load(folder, len(Plan.open(folder).roots))
    same = (found["bicliques"], found["fingerprint"]) == (ledger.count, str(ledger.fingerprint))
    return {
        "share": share,
        "bicliques": ledger.count,
        "same": same,
        "cpu_s": session.seconds,
        "gpu_s": found["seconds"],
    }


def main() -> None:
    """Measure, compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--graphs", nargs="+", default=["movielens_100k", "random"], metavar="NAME=SHARE")
    parser.add_argument("--find", action="store_true", help="shares of the edges that take --seconds; nothing else")
    parser.add_argument("--seconds", type=float, default=25.0, help="on one GPU")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--cpu", type=float, metavar="SHARE", help="of the roots, also by the CPU engine")
    parser.add_argument("--engine", default="bitmatrix")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--place", type=Path, help="where the runs are put (default: the temporary folder)")
    parser.add_argument("--output", type=Path, default=RESULT)
    arguments = parser.parse_args()
    shares = {name: float(share) for name, _, share in (graph.partition("=") for graph in arguments.graphs) if share}
    names = [graph.partition("=")[0] for graph in arguments.graphs]
    if arguments.find:
        print(" ".join(f"{name}={find_share(name, arguments.data, arguments.seconds)}" for name in names))
        return
    options = RunOptions("benchmark", Search("prove"), engine=arguments.engine)
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "graphs": {},
    }
    with tempfile.TemporaryDirectory(dir=arguments.place) as temporary:
        place = Path(temporary)
        prepared: dict[str, Path] = {}
        for name in names:
            source = thinned(name, shares.get(name, 1.0), arguments.data, place)
            with prepared_run(source, options, place) as folder:
                prepared[name] = place / name
                shutil.copytree(folder.path, prepared[name])
        for n in sorted(arguments.devices):
            began = time.perf_counter()
            with gpus(n, prepared[names[0]]) as pool:
                print(f"{n} GPUs are there after {time.perf_counter() - began:.1f} s", flush=True)
                for name in names:
                    entry = result["graphs"].setdefault(name, {"share": shares.get(name, 1.0), "runs": []})
                    if arguments.cpu and "cpu" not in entry:
                        entry["cpu"] = compare_with_cpu(prepared[name], arguments.cpu, pool)
                        print(f"  {name}: {entry['cpu']}", flush=True)
                    for _ in range(arguments.repeats):
                        run = {"devices": n} | mine(prepared[name], pool)
                        entry["runs"].append(run)
                        first = entry["runs"][0]
                        same = all(run[key] == first[key] for key in ("bicliques", "fingerprint"))
                        run |= {"same": same, "speed_up": first["seconds"] / run["seconds"] * first["devices"]}
                        print(
                            f"| {name} | {n} | {run['seconds']:.2f} s | {run['speed_up']:.2f} "
                            f"| {run['busy_ratio']:.3f} | {run['slices']} | {run['bicliques']:,} "
                            f"| {'same' if same else 'DIFFERENT'} |",
                            flush=True,
                        )
                        arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    bad = [name for name, entry in result["graphs"].items() if not all(run["same"] for run in entry["runs"])]
    bad += [name for name, entry in result["graphs"].items() if not entry.get("cpu", {"same": True})["same"]]
    if bad:
        raise SystemExit(f"different results: {', '.join(bad)}")


if __name__ == "__main__":
    main()
