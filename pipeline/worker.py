"""What runs in a worker: one slice of mining, or the proof of a few parts. Knows no scheduler.

A worker opens a run once and keeps it: the graph and the labels are memory-mapped, so all workers of a
machine share one copy; the engine's workspace is the worker's own, one a thread.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from pipeline import engines
from pipeline.folder import RunFolder
from pipeline.labels import open_labels
from pipeline.version import __version__
from pipeline.writer import PartWriter, Tables, to_batch
from schemas.bicliques import Bicliques
from schemas.errors import IncompleteError
from schemas.graph import MiningGraph
from schemas.manifest import Part
from schemas.options import RunOptions
from schemas.work import EVERYTHING, Emit, Engine, Limits, Slice, Subtrees

__all__ = ["OpenRun", "SliceReport", "SliceTask", "forget", "identity", "mine_slice", "open_run", "version", "warm_up"]

#: Roots of a slice that are mined alone and timed, and the share of the slice's time they may take together.
_PROBES, _PROBE_SHARE = 8, 0.1


@dataclass(frozen=True)
class SliceTask:
    """What a worker needs to know to mine one slice.

    Parameters
    ----------
    folder : str
        Of the run, as every worker sees it.
    run : str
        Identity of the run: another one may have been in the same folder before.
    slice, attempt : int
    subtrees : bytes
        Packed by `Subtrees.to_bytes`.
    limits : Limits
    """

    folder: str
    run: str
    slice: int
    attempt: int
    subtrees: bytes
    limits: Limits


@dataclass(frozen=True)
class SliceReport:
    """What a worker says of a slice; see `schemas.manifest.LedgerEntry`. `left_over` is packed."""

    slice: int
    attempt: int
    parts: tuple[Part, ...]
    count: int
    fingerprint: int | None
    left_over: bytes
    n_left_over: int
    began: float
    seconds: float
    worker: str
    stats: dict[str, float]
    timed: tuple[tuple[int, float], ...]


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run as a worker holds it."""

    folder: RunFolder
    options: RunOptions
    graph: MiningGraph
    tables: Tables


def mine_slice(task: SliceTask) -> SliceReport:
    """Mine one slice: its bicliques go to Parquet, everything else into the report.

    Raises
    ------
    ResourceError
        If the disk is full, or the like; nothing is left behind.
    """
    began, started = time.time(), time.perf_counter()
    run = open_run(task.folder, task.run)
    engine = _engine(run.options.engine, task.run)
    listing = run.options.search.mode == "list"
    writer = PartWriter(run.folder.bicliques, task.slice, run.tables)
    try:
        session = _Session(engine, run, task.limits, writer.add)
        session.all_of(Subtrees.from_bytes(task.subtrees))
        closing = time.perf_counter()
        parts = writer.close() if listing else []
        writing = session.writing + time.perf_counter() - closing
    except BaseException:
        writer.discard()
        raise
    rows, left_over = sum(part.rows for part in parts), Subtrees.concat(session.left_over)
    if listing and rows != session.count:
        writer.discard()
        raise IncompleteError(f"slice {task.slice} found {session.count} bicliques, but {rows} were written")
    return SliceReport(
        slice=task.slice,
        attempt=task.attempt,
        parts=tuple(parts),
        count=session.count,
        fingerprint=session.fingerprint,
        left_over=left_over.to_bytes() if len(left_over) else b"",
        n_left_over=len(left_over),
        began=began,
        seconds=time.perf_counter() - started,
        worker=identity(),
        stats=session.stats | {"writing_seconds": writing},
        timed=tuple(session.timed),
    )


class _Session:
    """Several calls of an engine that together are one slice."""

    def __init__(self, engine: Engine, run: OpenRun, limits: Limits, emit: Emit):
        self.started = time.perf_counter()
        self.engine, self.run, self.limits, self._emit = engine, run, limits, emit
        self.count = 0
        self.writing = 0.0  # seconds in which the search waited for the output
        self.fingerprint: int | None = 0
        self.stats: dict[str, float] = {}
        self.left_over: list[Subtrees] = []
        self.timed: list[tuple[int, float]] = []

    def mine(self, work: Subtrees, seconds: float | None) -> Slice | None:
        """Mine `work` for at most `seconds`; None, and all of it left over, when the slice's limits are reached."""
        rows = None if self.limits.rows is None else self.limits.rows - self.count
        if rows == 0 or (seconds is not None and seconds <= 0):
            self.left_over.append(work)
            return None
        found = self.engine.mine(self.run.graph, work, self.run.options.search, Limits(seconds, rows), self.emit)
        self.count += found.count
        if found.fingerprint is None or self.fingerprint is None:
            self.fingerprint = None
        else:
            self.fingerprint = (self.fingerprint + found.fingerprint) % 2**64
        for name, value in found.stats.items():
            self.stats[name] = self.stats.get(name, 0.0) + float(value)
        return found

    def emit(self, found: Bicliques) -> None:
        began = time.perf_counter()
        self._emit(found)
        self.writing += time.perf_counter() - began

    def seconds_left(self) -> float | None:
        return None if self.limits.seconds is None else self.limits.seconds - (time.perf_counter() - self.started)

    def all_of(self, work: Subtrees) -> None:
        """A few roots alone, with their times, so that weights can be compared with times; then the rest."""
        n_probes = _PROBES if len(work) > _PROBES else 0
        probes = np.unique(np.linspace(0, len(work) - 1, n_probes).astype(int)).tolist()
        rest, start = [], 0
        patience = None if self.limits.seconds is None else _PROBE_SHARE * self.limits.seconds
        for k in (k for k in probes if work.todo[k] == EVERYTHING):
            began = time.perf_counter()
            if patience is not None and began - self.started > patience:
                break
            rest.append(work.take(start, k))
            start = k + 1
            found = self.mine(work.take(k, k + 1), patience)
            if found is not None and len(found.left_over) == 0:
                self.timed.append((int(work.path_of(k)[0]), time.perf_counter() - began))
            elif found is not None:
                rest.append(found.left_over)
        found = self.mine(Subtrees.concat([*rest, work.take(start, len(work))]), self.seconds_left())
        if found is not None:
            self.left_over.append(found.left_over)


@lru_cache(maxsize=1)
def open_run(folder: str, run: str) -> OpenRun:
    """The run in `folder`, opened once in this process.

    Raises
    ------
    IncompleteError
        If it is another run than `run`.
    """
    opened = RunFolder(Path(folder))
    options = opened.options()
    if opened.run_id() != run:
        raise IncompleteError(f"{folder} holds another run on this worker than on the driver; share one file system")
    tables: Tables = None
    if options.ids == "labels":
        tables = (open_labels(opened, "left"), open_labels(opened, "right"))
    return OpenRun(opened, options, MiningGraph.open(opened.graph), tables)


class _Local(threading.local):
    """The engine of each thread, with its workspace, and what it was made for."""

    key: tuple[str, str] | None = None
    engine: Engine | None = None


_local = _Local()


def _engine(name: str, run: str) -> Engine:
    if _local.engine is None or _local.key != (name, run):
        _local.engine, _local.key = engines.kind(name).make(), (name, run)
    return _local.engine


def forget() -> None:
    """Give back the memory of the last run, in the thread that calls it."""
    open_run.cache_clear()
    _local.engine = _local.key = None


def warm_up(engine: str) -> None:
    """Load what the first slice would load: machine code, and what pyarrow imports at its first array."""
    engines.compile_engine(engine)
    to_batch(Bicliques.from_pairs([([0], [0])]), None)


def identity(_: object = None) -> str:
    """Host and process, as the ledger and the log name a worker."""
    return f"{socket.gethostname()}:{os.getpid()}"


def version() -> str:
    """Of the package, where this runs."""
    return __version__
