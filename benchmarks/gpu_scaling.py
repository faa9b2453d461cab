r"""Speed-ups of two and four GPUs of one machine over one, on graphs that take one GPU twenty seconds and longer.

    python -m benchmarks.gpu_scaling
    python -m benchmarks.gpu_scaling movielens_100k random --find
    python -m benchmarks.gpu_scaling movielens_100k=0.7 random=0.8 --devices 1 2 4

Bicliques are counted and hashed through the whole pipeline (ledger, scheduler, worker processes), but not written.
GRAPH=SHARE takes a share of the edges, drawn at random, of a graph that would take hours, and mines all of that share.
``--find`` looks for shares that take ``--seconds`` on one GPU, and prints them. The clock starts after the workers have
started and mined something. Count and fingerprint must be those of one GPU. With ``--cpu SHARE``, this share of the
roots is also mined with the CPU engine and compared. A table goes to stdout.

``random`` is generated (2,000 x 400 with 240,000 edges). Other graphs are files, or names of graphs that ship or lie in
--data. Shares are drawn from Parquet files only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.command import add_data, add_output, add_repeats, new_parser, output_file, run, write
from benchmarks.facts import commit, find, machine, nvidia_smi
from benchmarks.runs import keep_share, prepared_run
from benchmarks.timing import load
from bicliques.kernels.bitmatrix.engine import BitMatrixEngine
from bicliques.kernels.gpu.cuda import CUDA
from bicliques.pipeline.mining import driver
from bicliques.pipeline.run.accounts import by_worker
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.workers.opening import open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import Pool
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees


def random_graph() -> pa.Table:
    """A graph without structure: each of 2,000 x 400 pairs is an edge with probability 0.3."""
    adjacent = np.random.default_rng(1).random((2000, 400)) < 0.3
    left, right = np.nonzero(adjacent)
    return pa.table({"u": left, "v": right})


def split(graphs: Sequence[str]) -> dict[str, float]:
    """The share of the edges of each graph, from words of the form GRAPH=SHARE. 1 where no share is given.

    Raises
    ------
    InputError
        If a share is no number from 0 to 1.
    """
    shares = {}
    for word in graphs:
        name, _, share = word.rpartition("=") if "=" in word else (word, "", "1")
        try:
            shares[name] = float(share)
        except ValueError:
            shares[name] = -1.0
        if not 0 < shares[name] <= 1:
            raise InputError(f"{word}: the share of the edges must be a number from 0 to 1")
    return shares


def thinned(word: str, share: float, data: Path, folder: Path) -> Path:
    """The file of a graph, or a new file in `folder` with a share of its edges.

    Raises
    ------
    InputError
        If there is no such graph, or a share is wanted and the graph is no Parquet file.
    """
    if word == "random":
        path, table = folder / "random.parquet", random_graph()
        pq.write_table(table, path)
    else:
        path = find(word, data).path
    if share == 1.0:
        return path
    if path.suffix != ".parquet":
        raise InputError(f"a share of the edges is drawn from Parquet files only, and {path} is none")
    table = pq.read_table(path)
    path = folder / f"{path.stem}-{share}.parquet"
    pq.write_table(table.filter(np.random.default_rng(0).random(len(table)) < share), path)
    return path


@contextmanager
def gpus(n: int, warm: Path) -> Iterator[Pool]:
    """A worker on each of `n` GPUs. All of them have mined something already."""
    with open_pool(WorkerOptions(workers=n), CUDA) as pool:
        with copied(warm) as folder:
            while pool.capacity().workers < n:  # they may join while others mine
                driver.mine_run(Run(folder), pool, RunLimits(time_limit_s=1.0), quiet)
            driver.mine_run(Run(folder), pool, RunLimits(time_limit_s=1.0), quiet)
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
    """Mine a share of the roots of a prepared run, and return the numbers of the run."""
    with copied(prepared, share) as folder:
        mined = Run(folder)
        session, ledger = driver.mine_run(mined, pool, RunLimits(), quiet), mined.ledger()
        entries = list(ledger.entries.values())
        return {
            # from the first slice on, because the session also copies the graph to the devices, and may compile
            "seconds": max(e.result.began + e.result.seconds for e in entries) - min(e.result.began for e in entries),
            "session_s": session.seconds,
            "bicliques": ledger.total.count,
            "fingerprint": str(ledger.total.fingerprint),
            "busy_ratio": session.busy_ratio,
            "busy_s": sorted(own.busy_seconds for own in by_worker(entries).values()),
            "kernel_s": sum(entry.result.stats.engine.kernel_s for entry in entries),
            "slices": len(entries),
            "retries": session.retries,
            "left_over_nodes": sum(entry.result.n_left_over for entry in entries),
            "joules": sum(entry.result.stats.joules or 0.0 for entry in entries),
        }


def find_share(name: str, data: Path, seconds: float) -> float:
    """A share of the edges that takes one GPU from `seconds` to twice as long. Longer tries are cut short."""
    tries: list[tuple[float, float]] = []
    share, high = 0.4, 1.0
    for _ in range(20):
        with tempfile.TemporaryDirectory() as folder:
            graph = load(thinned(name, share, data, Path(folder)), "auto")
        roots, engine = Subtrees.of_roots(np.arange(graph.n_roots)), BitMatrixEngine()
        found = engine.mine(graph, roots, Search("fingerprint"), Limits(seconds=2 * seconds), nowhere)
        took, complete = found.stats.kernel_s, len(found.left_over) == 0
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
    """Mine a small share of the roots on the GPUs and on all cores, and compare count and fingerprint."""
    found = mine(prepared, pool, share)
    with copied(prepared, share) as folder:
        options = folder.options()
        folder.write_options(RunOptions(source=options.source, search=options.search, engine="cpu"), RunLimits())
        with open_pool(WorkerOptions(workers=os.cpu_count())) as cores:
            session = driver.mine_run(Run(folder), cores, RunLimits(), quiet)
        ledger = Run(folder).ledger()
    same = (found["bicliques"], found["fingerprint"]) == (ledger.total.count, str(ledger.total.fingerprint))
    return {
        "share": share,
        "bicliques": ledger.total.count,
        "same": same,
        "cpu_s": session.seconds,
        "gpu_s": found["seconds"],
    }


def scale(
    prepared: dict[str, Path], shares: dict[str, float], words: argparse.Namespace, output: Path
) -> dict[str, dict[str, Any]]:
    """Mine every graph on every number of devices. The file is written after each run."""
    result: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "graphs": {},
    }
    for n in sorted(words.devices):
        began = time.perf_counter()
        with gpus(n, next(iter(prepared.values()))) as pool:
            print(f"{n} GPUs are there after {time.perf_counter() - began:.1f} s", flush=True)
            for name, folder in prepared.items():
                entry = result["graphs"].setdefault(name, {"share": shares[name], "runs": []})
                if words.cpu and "cpu" not in entry:
                    entry["cpu"] = compare_with_cpu(folder, words.cpu, pool)
                    print(f"  {name}: {entry['cpu']}", flush=True)
                for _ in range(words.repeats):
                    found = {"devices": n} | mine(folder, pool)
                    entry["runs"].append(found)
                    first = entry["runs"][0]
                    same = all(found[key] == first[key] for key in ("bicliques", "fingerprint"))
                    found |= {"same": same, "speed_up": first["seconds"] / found["seconds"] * first["devices"]}
                    print(
                        f"| {name} | {n} | {found['seconds']:.2f} s | {found['speed_up']:.2f} "
                        f"| {found['busy_ratio']:.3f} | {found['slices']} | {found['bicliques']:,} "
                        f"| {'same' if same else 'DIFFERENT'} |",
                        flush=True,
                    )
                    write(output, result)
    graphs: dict[str, dict[str, Any]] = result["graphs"]
    return graphs


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("gpu_scaling", __doc__)
    parser.add_argument("graphs", nargs="*", default=["random"], metavar="GRAPH=SHARE", help="(default: random)")
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4], metavar="N", help="(default: 1 2 4)")
    parser.add_argument("--find", action="store_true", help="only look for shares of the edges that take --seconds")
    parser.add_argument("--seconds", type=float, default=25.0, help="wanted seconds on one GPU (default: 25)")
    add_repeats(parser, 1, "runs of each")
    parser.add_argument("--cpu", type=float, metavar="SHARE", help="share of the roots that the CPU engine mines, too")
    parser.add_argument("--engine", default="bitmatrix")
    parser.add_argument("--place", type=Path, help="where the runs are put (default: the temporary folder)")
    add_data(parser)
    add_output(parser, "h200_scaling.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, compare, print and write."""
    words = parser().parse_args(arguments)
    shares, options = (
        split(words.graphs),
        RunOptions(source="benchmark", search=Search("fingerprint"), engine=words.engine),
    )
    nvidia_smi("name")
    if words.find:
        print(" ".join(f"{word}={find_share(word, words.data, words.seconds)}" for word in shares))
        return
    output = output_file(words, "gpu_scaling")
    with tempfile.TemporaryDirectory(dir=words.place) as temporary:
        place, prepared, of = Path(temporary), {}, {}
        for number, (word, share) in enumerate(shares.items()):
            name = Path(word).stem
            with prepared_run(thinned(word, share, words.data, place), options, place) as folder:
                prepared[name], of[name] = place / f"graph-{number}", share
                shutil.copytree(folder.path, prepared[name])
        graphs = scale(prepared, of, words, output)
    print(f"numbers: {output}")
    bad = [name for name, entry in graphs.items() if not all(found["same"] for found in entry["runs"])]
    bad += [name for name, entry in graphs.items() if not entry.get("cpu", {"same": True})["same"]]
    if bad:
        raise SystemExit(f"different results: {', '.join(bad)}")


if __name__ == "__main__":
    run(main)
