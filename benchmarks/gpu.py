r"""The GPU engines on one device: both root sides beside published programs, the cost of listing, and rates.

    python -m benchmarks.gpu            (or: make gpu-bench)

Every graph of ``rivals.json`` is mined in mode count from both root sides, and from the better one in modes prove
and list. A time is the median of ``--repeats`` runs after one that warms up, of the kernels alone; ``wall_s`` is the
call as a whole, with copies, and in mode list with the bicliques handed to the host. Every count must be the known
one. Then: the CPU engine on all cores of the same machine, and how far a limited time gets on graphs that no
published program finishes in 30 s.

Graphs are NAME.parquet with columns u and v in ``--data``. ``benchmarks/h200.json`` (``--output``) gets everything,
each entry with the run it comes from: ``--sections graphs hard`` records these anew and keeps the others.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cumbe import ABLATION, ablation, published
from benchmarks.facts import DATA, GOLDEN, ROOT, commit, machine
from benchmarks.timing import load, timed
from kernels.bitmatrix import BitMatrixEngine
from kernels.cpu.engine import CpuEngine
from kernels.gpu.cumbe_memory import CumbeSizes
from kernels.gpu.memory import GpuSizes
from schemas.bicliques import Bicliques
from schemas.graph import MiningGraph
from schemas.work import Limits, Search, Subtrees

RIVALS = json.loads((ROOT / "benchmarks" / "rivals.json").read_text())["graphs"]
#: To list more than a hundred million bicliques, 2 GiB of the device at a time: every launch less saves a millisecond.
LONG_LISTS = GpuSizes(values=1 << 29, records=1 << 25)
#: Graphs whose end is far away.
HARD = ("cp4im_heart_cleveland", "movielens_100k", "steam_purchase", "anime_ratings", "fimi_chess")


def compare(name: str, data: Path, repeats: int) -> dict[str, Any]:
    """One graph of the published comparisons: both sides, the one that ``auto`` takes `repeats` times; all modes."""
    path, known, engine = data / f"{name}.parquet", GOLDEN[name], BitMatrixEngine()
    graph = load(path, "auto")
    other = load(path, "right" if graph.root_side == "left" else "left")
    times = {graph.root_side: timed(engine, graph, "count", repeats, known)}
    times[other.root_side] = timed(engine, other, "count", 1, known)
    entry: dict[str, Any] = {"bicliques": known, "auto_side": graph.root_side, "count": times}
    for mode in ("prove", "list"):
        entry[mode] = timed(engine, graph, mode, repeats, known)
    return entry


def rate(name: str, data: Path, seconds: float) -> dict[str, Any]:
    """How far one slice of limited time gets, in mode count; if to the end, also the kernels of mode list."""
    graph = load(data / f"{name}.parquet", "auto")
    engine, roots = BitMatrixEngine(), Subtrees.of_roots(np.arange(graph.n_roots))
    engine.mine(graph, roots, Search("count"), Limits(seconds=0.2), lambda _: None)
    found = engine.mine(graph, roots, Search("count"), Limits(seconds=seconds), lambda _: None)
    entry = {
        "bicliques": found.count,
        "complete": len(found.left_over) == 0,
        "kernel_s": found.stats["kernel_s"],
        "bicliques_per_s": found.count / found.stats["kernel_s"],
        "busy_ratio": found.stats["busy_ratio"],
    }
    if entry["complete"]:
        engine = BitMatrixEngine(sizes=LONG_LISTS)
        listed = [engine.mine(graph, roots, Search("list"), Limits(), _leave_there).stats["kernel_s"] for _ in range(3)]
        entry["list_kernel_s"] = statistics.median(listed)
    return entry


def _leave_there(batch: Bicliques) -> None:
    """Take no bicliques off the device."""


_leave_there.on_device = True  # type: ignore[attr-defined]

_graph: MiningGraph | None = None


def _take(path: Path) -> None:
    global _graph
    _graph = load(path, "auto")


def _mine(work: bytes, seconds: float) -> tuple[int, bytes]:
    assert _graph is not None
    found = CpuEngine().mine(
        _graph, Subtrees.from_bytes(work), Search("count"), Limits(seconds=seconds), lambda _: None
    )
    return found.count, found.left_over.to_bytes()


def on_all_cores(name: str, data: Path, cores: int) -> dict[str, Any]:
    """The CPU engine in as many processes as there are cores; left-overs are dealt anew."""
    path = data / f"{name}.parquet"
    n_roots = load(path, "auto").n_roots
    deal = [np.arange(start, n_roots, 16 * cores) for start in range(min(16 * cores, n_roots))]
    with ProcessPoolExecutor(cores, get_context("spawn"), _take, (path,)) as pool:
        for _ in pool.map(_mine, [Subtrees.of_roots(np.zeros(1, np.int64)).to_bytes()] * 4 * cores, [0.2] * 4 * cores):
            pass  # every process has the graph and the compiled search
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
    if total != GOLDEN[name]:
        raise SystemExit(f"cpu counts {total} bicliques in {name}; there are {GOLDEN[name]}")
    return {"seconds": seconds, "cores": cores}


def device() -> str:
    """Name, driver and highest clock of the first GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0]


#: Graphs whose count is known and that published programs finish.
COMPARED = tuple(name for name in RIVALS if name in GOLDEN and name not in HARD)
#: What can be recorded -> its graphs when none are named.
SECTIONS = {"graphs": COMPARED, "hard": HARD, "cumbe": COMPARED, "ablation": ABLATION, "cpu": COMPARED}


def measure(section: str, name: str, words: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """An entry of a section, and a word about it."""
    if section == "graphs":
        entry = compare(name, words.data, words.repeats)
        return entry, ", ".join(f"{side} {1e3 * one['kernel_s']:.3f} ms" for side, one in entry["count"].items())
    if section == "hard":
        entry = rate(name, words.data, words.seconds)
        return entry, f"{entry['bicliques_per_s']:.3g} bicliques/s"
    if section == "cumbe":
        entry = published(name, words.data)
        return entry, f"{entry['kernel_s']:.4f} s by cuMBE"
    if section == "ablation":
        return {"variants": ablation(name, words.data)}, "cuMBE with and without"
    entry = on_all_cores(name, words.data, os.cpu_count() or 1)
    return entry, f"{entry['seconds']:.3f} s on all cores"


def main() -> None:
    """Measure, and write down graph by graph; what is not measured now stays as it was recorded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", help="names (default: all of each section)")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="SECTION")
    parser.add_argument("--data", type=Path, default=DATA, help=f"(default: {DATA})")
    parser.add_argument("--repeats", type=int, default=5, metavar="N")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each hard graph (default: 8)")
    parser.add_argument("--output", type=Path, default=ROOT / "benchmarks" / "h200.json", metavar="FILE")
    words = parser.parse_args()
    result: dict[str, Any] = json.loads(words.output.read_text()) if words.output.exists() else {}
    run = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": {"device": device(), **machine()},
        "options": {
            "repeats": words.repeats,
            "sizes": GpuSizes()._asdict(),
            "cumbe_sizes": CumbeSizes()._asdict(),
            "seconds": words.seconds,
        },
    }
    number = f"{run['commit']} {run['date']}"
    for section in words.sections:
        for name in words.graphs or SECTIONS[section]:
            entry, said = measure(section, name, words)
            result.setdefault("runs", {})[number] = run
            result.setdefault(section, {})[name] = {"run": number, **entry}
            print(name, said, flush=True)
            words.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
