"""What an event costs the driver: to take a slice back, commit it, and deal the next one.

    python -m benchmarks.events
    python -m benchmarks.events --workers 4 --slices 4000 --place FOLDER
    python -m benchmarks.events movielens_100k --workers 2 --threads 16 --slices 100

The driver, the ledger and Dask are the real ones: a Dask scheduler and its workers are started as processes of their
own. Only the search is left out. A slice ends at once, writes no parts, and leaves over as many nodes as a real one
does. So the driver is never idle, and what it reaches is the most it can. The processor time of the driver is told
apart by thread: the loop of the driver, that of Dask's client, and the threads that write entries. The processor time
of the Dask scheduler is told, too.

With ``--threads`` a worker has several threads, which share each slice. Then slices are real, and take up to a second
each: what they are for is that threads get pieces of them, of which the driver knows nothing. So the processor time of
a piece is told, too. The graph has to be large enough for so many slices.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import distributed
import psutil

from benchmarks.command import add_output, new_parser, output_file, run, write
from benchmarks.facts import ROOT, find
from benchmarks.runs import prepared_run
from bicliques.pipeline.mining import driver
from bicliques.pipeline.process.children import identity
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.slices.left_over import LeftOver, unpacked
from bicliques.pipeline.slices.worker import SliceDone, SliceTask, open_in_worker
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.schemas.errors import InputError
from bicliques.schemas.manifest import LedgerEntry, SliceResult
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.search import Search

#: Nodes that a slice leaves over. The CPU engine leaves some ten to some hundred.
_LEFT_OVER = 100
#: Longest time of a slice in seconds, of one thread and of several.
_SLICE_S, _SHARED_S = 0.01, 1.0


def idle_slice(task: SliceTask) -> SliceDone:
    """The answer to a slice, without a search. All of it but the first node is left over, and at most 100 nodes."""
    run = open_in_worker(task.folder, task.run)
    work = unpacked(task.work)
    left_over = work.take(min(1, len(work) - 1), min(len(work), _LEFT_OVER))
    result = SliceResult(
        slice=task.slice,
        attempt=task.attempt,
        parts=(),
        total=run.job.zero,
        n_left_over=len(left_over),
        began=time.time(),
        seconds=task.limits.seconds or 1.0,
        worker=identity(),
    )
    return SliceDone(result, LeftOver.of(left_over))


@contextmanager
def _dask(workers: int, threads: int) -> Iterator[tuple[str, psutil.Process]]:
    """A scheduler with workers, as processes. Gives its address and its process."""
    file = "import sys; from dask.__main__ import main; sys.exit(main())"
    started: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([sys.executable, "-c", file, *words], stderr=subprocess.PIPE, text=True, cwd=ROOT)
        started.append(process)
        return process

    try:
        scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
        assert scheduler.stderr is not None
        address = next(line.split()[-1] for line in scheduler.stderr if "Scheduler at:" in line)
        threading.Thread(target=scheduler.stderr.read, daemon=True).start()
        for _ in range(workers):
            words = ("--nthreads", str(threads), "--no-nanny", "--memory-limit", "0", "--no-dashboard")
            process = start("worker", address, *words)
            assert process.stderr is not None
            threading.Thread(target=process.stderr.read, daemon=True).start()
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(workers)
        yield address, psutil.Process(scheduler.pid)
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()


def measure(graph: Path, workers: int, slices: int, place: Path | None, threads: int = 1) -> dict[str, Any]:
    """Let the driver deal so many slices: of one thread, which end at once, or of several, which are mined.

    Returns
    -------
    dict
        Per event: milliseconds by the clock (``event_ms``), and of processor time of the driver, in all (``driver_ms``)
        and in the thread of its loop (``loop_ms``), and of the Dask scheduler (``scheduler_ms``). Also ``pieces``, the
        number of pieces in which threads were given the work of the slices.
    """
    options = RunOptions(source=str(graph), engine="cpu", search=Search(mode="count"))
    with prepared_run(graph, options, place) as folder, _dask(workers, threads) as (address, scheduler):
        pool = DaskPool.connect(address)
        stop, began = threading.Event(), dict[str, float]()

        def watch(progress: Progress) -> None:
            entries = list(ledger.entries.values()) if (ledger := mining.get("ledger")) else []
            if len(entries) >= slices // 10 and not began:  # what the first slices load does not count
                began.update(_clocks(scheduler), **_counts(entries))
            if len(entries) >= slices and not stop.is_set():
                ended.update(_clocks(scheduler), **_counts(entries))
                stop.set()

        mining: dict[str, Any] = {}
        ended: dict[str, float] = {}
        real = Run.repaired_ledger

        def remember(self: Run) -> Any:
            mining["ledger"] = real(self)
            return mining["ledger"]

        with mock.patch.object(Run, "repaired_ledger", remember), ExitStack() as patched:
            if threads == 1:
                patched.enter_context(mock.patch.object(driver, "mine_slice", idle_slice))
            driver.mine_run(Run(folder), pool, RunLimits(), watch, _SLICE_S if threads == 1 else _SHARED_S, stop)
        pool.close()
    if not ended:
        raise InputError(f"{graph} was mined before {slices} slices had ended; take a larger graph, or fewer --slices")
    done = {name: ended.pop(name) - began[name] for name in ("slices", "pieces")}
    each = {f"{name}_ms": round(1e3 * (ended[name] - began[name]) / done["slices"], 4) for name in ended}
    return {"workers": workers, "threads": threads} | done | each


def _counts(entries: list[LedgerEntry]) -> dict[str, int]:
    return {"slices": len(entries), "pieces": sum(entry.result.stats.pieces for entry in entries)}


def _clocks(scheduler: psutil.Process) -> dict[str, float]:
    times = scheduler.cpu_times()
    return {
        "event": time.perf_counter(),
        "driver": time.process_time(),
        "loop": time.thread_time(),
        "scheduler": times.user + times.system,
    }


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = new_parser("events", __doc__)
    parser.add_argument("graph", nargs="?", default="bookcrossing_core", metavar="GRAPH")
    parser.add_argument("--workers", type=int, nargs="+", default=[2])
    parser.add_argument("--threads", type=int, default=1, help="threads of a worker, which share its slices")
    parser.add_argument("--slices", type=int, default=2000)
    parser.add_argument("--place", type=Path, metavar="FOLDER", help="where runs are made (default: temporary files)")
    add_output(parser, "events.json")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print a Markdown table."""
    words = parser().parse_args(arguments)
    output = output_file(words, "events")
    graph = find(words.graph).path
    print("| workers | slices | an event | driver | of it its loop | Dask scheduler | pieces | driver, a piece |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    lines = []
    for workers in words.workers:
        found = measure(graph, workers, words.slices, words.place, words.threads)
        lines.append(found)
        cells = " | ".join(f"{found[f'{name}_ms']:.2f} ms" for name in ("event", "driver", "loop", "scheduler"))
        piece_ms = found["driver_ms"] * found["slices"] / found["pieces"]
        of = f"{workers}" if words.threads == 1 else f"{workers} of {words.threads} threads"
        print(f"| {of} | {found['slices']:,.0f} | {cells} | {found['pieces']:,.0f} | {piece_ms:.3f} ms |", flush=True)
    write(output, lines)
    print(f"numbers: {output}")


if __name__ == "__main__":
    run(main)
