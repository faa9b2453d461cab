r"""The CPU engine on one core, beside another program on the same core in the same run.

    python -m benchmarks.cpu --rival 'PROGRAM -i {file}' --rival-name NAME \
        --pattern '(?P<seconds>...)...(?P<count>...)' --core 1 --repeats 5

Both only count, and take turns, so that what disturbs the machine disturbs both. Every count must be the known one.
Ours is timed in two parts: preparing (from the sorted edge list to the reduced, merged and ranked graph) and searching,
memory for it included, compiling not. A rival is timed by its own clock; what that covers is for its name to say.
``benchmarks/cpu.json`` gets all times; ``--table`` prints it as Markdown.

Graphs are NAME.parquet in ``--data`` (default: $BICLIQUES_DATA, else ../shared/data) or in examples/.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import shlex
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from benchmarks.facts import DATA, GOLDEN, ROOT, commit
from kernels.cpu.engine import CpuEngine
from kernels.graph.prepare import prepare
from pipeline import steps
from schemas.options import BuildOptions, RunLimits, RunOptions
from schemas.work import Limits, Search, Subtrees

RESULT = ROOT / "benchmarks" / "cpu.json"
#: Real graphs from published comparisons whose count is known.
GRAPHS = (
    *("ucforum", "escorts", "marvel", "youtube", "movielens_ui", "movielens_ut", "movielens_ti", "bookcrossing_core"),
    *("dbpedia_writers", "dbpedia_locations", "debian12_package_depends", "fimi_mushroom", "fimi_t10i4d100k"),
    "cp4im_heart_cleveland",
)


@dataclass(frozen=True)
class Rival:
    """Another program. `command` has ``{file}``; `pattern` has the groups ``seconds`` and ``count``."""

    name: str
    command: str
    pattern: re.Pattern[str]

    def run(self, file: Path) -> tuple[int, float]:
        """Run it on an adjacency list in the folder of `file`; its count and its own seconds."""
        words = [word.format(file=file.name) for word in shlex.split(self.command)]
        result = subprocess.run(words, cwd=file.parent, capture_output=True, text=True, check=False)
        found = self.pattern.search(result.stdout)
        if result.returncode or found is None:
            raise SystemExit(f"{self.name} on {file.name} gave {result.returncode}: {result.stdout}{result.stderr}")
        return int(found["count"]), float(found["seconds"])


class Edges(NamedTuple):
    """The normalised edge list: dense ids, int32, sorted by (left, right), and their number a side."""

    left: np.ndarray
    right: np.ndarray
    n_left: int
    n_right: int


def read(source: Path, path: Path) -> Edges:
    """Ingest a graph as a run would."""
    folder = steps.start(source, path, RunOptions(str(source)), RunLimits(), False)
    table = pq.read_table(folder.path / "edges" / "edges.parquet")
    left, right = (table[name].to_numpy() for name in table.column_names[:2])
    return Edges(left, right, int(left.max()) + 1, int(right.max()) + 1)


def write_adjacency(edges: Edges, file: Path) -> None:
    """One line a left vertex, the right ids on it."""
    starts = np.flatnonzero(np.diff(edges.left, prepend=-1))
    with file.open("w") as out:
        out.writelines(" ".join(map(str, ids)) + "\n" for ids in np.split(edges.right, starts[1:]))


def count(edges: Edges) -> tuple[int, float, float]:
    """Our count, and the seconds of preparing and of searching."""
    began = time.perf_counter()
    graph, _ = prepare(*edges, BuildOptions())
    ready = time.perf_counter()
    roots = Subtrees.of_roots(np.arange(graph.n_roots))
    found = CpuEngine().mine(graph, roots, Search("count"), Limits(), lambda _: None)
    return found.count, ready - began, time.perf_counter() - ready


def compare(source: Path, repeats: int, rival: Rival | None) -> dict[str, Any]:
    """Times of one graph.

    Raises
    ------
    SystemExit
        If anybody's count is not the known one.
    """
    times: dict[str, list[float]] = {what: [] for what in ("prepare", "search", *(["rival"] if rival else []))}
    with tempfile.TemporaryDirectory() as temporary:
        edges = read(source, Path(temporary) / "run")
        adjacency = Path(temporary) / f"{source.stem}.adj"
        write_adjacency(edges, adjacency)
        for _ in range(repeats):
            found, *seconds = count(edges)
            _check(source.stem, "this program", found)
            if rival:
                found, rival_s = rival.run(adjacency)
                _check(source.stem, rival.name, found)
                seconds.append(rival_s)
            for some, one in zip(times.values(), seconds, strict=True):
                some.append(one)
    sizes = {"left": edges.n_left, "right": edges.n_right, "edges": len(edges.left), "bicliques": found}
    return sizes | {f"{what}_s": statistics.median(some) for what, some in times.items()} | {"all_s": times}


def _check(name: str, who: str, found: int) -> None:
    if found != GOLDEN[name]:
        raise SystemExit(f"{who} counts {found} maximal bicliques in {name}; there are {GOLDEN[name]}")


def find(name: str, data: Path) -> Path:
    """The file of a graph whose count is known."""
    for folder in (data, ROOT / "examples"):
        if name in GOLDEN and (folder / f"{name}.parquet").exists():
            return folder / f"{name}.parquet"
    raise SystemExit(f"{name}: no count in tests/golden/golden.json, or no {name}.parquet in {data}")


def machine(core: int | None) -> dict[str, Any]:
    """What the times depend on."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = re.search(r"(?m)^model name\s*: (.*)", info)
    mhz = re.search(r"(?m)^cpu MHz\s*: (.*)", info)
    return {
        "cpu": model[1] if model else platform.processor(),
        "cores": os.cpu_count(),
        "mhz": float(mhz[1]) if mhz else None,
        "pinned_to_core": core,
        "load_before": os.getloadavg()[0],
        "system": platform.platform(),
        "python": platform.python_version(),
        "numba": version("numba"),
    }


def table(result: dict[str, Any]) -> str:
    """The result as Markdown, graphs by their number of bicliques, ratios with their geometric means."""
    rival = result["options"]["rival_name"]
    lines = [
        f"| graph | edges | maximal bicliques | prepare, s | search, s | {rival}, s | / search | / both |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    ratios = []
    for name, entry in sorted(result["graphs"].items(), key=lambda item: item[1]["bicliques"]):
        prepare_s, search_s, rival_s = (entry[f"{what}_s"] for what in ("prepare", "search", "rival"))
        ratios.append((rival_s / search_s, rival_s / (prepare_s + search_s)))
        times = " | ".join(f"{seconds:.3g}" for seconds in (prepare_s, search_s, rival_s))
        lines.append(f"| {name} | {entry['edges']:,} | {entry['bicliques']:,} | {times} | {_both(ratios[-1])} |")
    means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)]
    return "\n".join([*lines, f"| geometric mean | | | | | | {_both(means)} |"])


def _both(ratios: Sequence[float]) -> str:
    return " | ".join(f"{ratio:.1f}" for ratio in ratios)


def arguments() -> argparse.Namespace:
    """The command line."""
    data = DATA
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", help=f"names (default: {' '.join(GRAPHS)})")
    parser.add_argument("--data", type=Path, default=data, help=f"folder of NAME.parquet (default: {data})")
    parser.add_argument("--rival", metavar="COMMAND", help="reads the adjacency list {file} (default: none)")
    parser.add_argument("--rival-name", default="rival", metavar="NAME")
    parser.add_argument("--pattern", default=r"(?P<count>\d+)\s+(?P<seconds>[\d.]+)", help="of the rival's output")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="runs of each; the median counts")
    parser.add_argument("--core", type=int, metavar="N", help="run both on this core (default: any)")
    parser.add_argument("--output", type=Path, default=RESULT, metavar="FILE", help=f"(default: {RESULT})")
    parser.add_argument("--table", action="store_true", help="print FILE as Markdown and measure nothing")
    return parser.parse_args()


def main() -> None:
    """Measure, or print what was measured."""
    words = arguments()
    if words.table:
        print(table(json.loads(words.output.read_text())))
        return
    sources = [find(name, words.data) for name in words.graphs or GRAPHS]
    if words.core is not None:
        os.sched_setaffinity(0, {words.core})  # a rival inherits it
    rival = Rival(words.rival_name, words.rival, re.compile(words.pattern)) if words.rival else None
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(words.core),
        "options": {"mode": "count", "repeats": words.repeats, "rival_name": rival.name if rival else None},
        "graphs": {},
    }
    with tempfile.TemporaryDirectory() as temporary:
        count(read(sources[0], Path(temporary) / "run"))  # compiles
    for source in sources:
        entry = result["graphs"][source.stem] = compare(source, words.repeats, rival)
        print(source.stem, {what: entry[what] for what in entry if what.endswith("_s") and what != "all_s"}, flush=True)
    words.output.write_text(json.dumps(result, indent=1) + "\n")
    if rival:
        print(table(result))


if __name__ == "__main__":
    main()
