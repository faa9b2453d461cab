"""The tasks of a worker: one slice of mining, or the proof of a few parts. It does not depend on the scheduler.

Each process opens a run once and keeps it, with memory-mapped graph and labels, so all workers of a machine share one
copy of the pages. The engine and its workspace are those of `pipeline.slices.engine_turns`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from traceback import clear_frames

import numpy as np

from bicliques.kernels import engines
from bicliques.pipeline import __version__
from bicliques.pipeline.output import writers
from bicliques.pipeline.output.part_writer import to_batch
from bicliques.pipeline.output.writers import WriteOn, Writer, open_writer
from bicliques.pipeline.process.children import identity
from bicliques.pipeline.run.accounts import peak_rss
from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.names import url_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices import engine_turns, thread_team
from bicliques.pipeline.slices.ending import may_end
from bicliques.pipeline.slices.engine_turns import Server, turn
from bicliques.pipeline.slices.left_over import LeftOver, Packed, Roots, unpacked
from bicliques.pipeline.slices.power import COUNTERS, PowerMeter, Usage
from bicliques.pipeline.slices.slice_search import SliceSearch
from bicliques.schemas.bicliques import Bicliques, nowhere
from bicliques.schemas.errors import DeviceMemoryError, IncompleteError
from bicliques.schemas.jobs import job_of
from bicliques.schemas.manifest import Part, SliceResult
from bicliques.schemas.platform import CORES, EngineKind, Platform
from bicliques.schemas.search import Limits
from bicliques.schemas.stats import SliceStats
from bicliques.schemas.totals import Total
from bicliques.schemas.work import Subtrees

_opening = threading.Lock()


def open_in_worker(folder: str, identity: str) -> Run:
    """The run in `folder`, which may be a URL of a store, opened once in this process.

    Raises `IncompleteError`: the folder does not have the run that is called `identity`.
    """
    with _opening:  # or two threads would have a graph each, and a GPU both
        return _opened(folder, identity)


@lru_cache(maxsize=1)
def _opened(folder: str, identity: str) -> Run:
    url = url_of(folder)
    if url is None:
        run = Run.with_holes(Path(folder))
    else:
        from bicliques.pipeline.run.bucket import worker_folder  # here, because most runs are kept in folders

        run = Run.with_holes(worker_folder(url, identity))
        with disk_errors(run.folder.pending):
            run.folder.pending.mkdir(exist_ok=True)
    if run.identity != identity:
        raise IncompleteError(f"{folder} holds another run on this worker than on the driver; share one file system")
    _ = (
        run.graph,
        run.bands,
        run.tables,
        run.provenance,
        run.job,
    )  # now, while no other thread can open them a second time
    return run


def close_in_worker() -> None:
    """Give back the memory of the last run."""
    _opened.cache_clear()


logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SliceTask:
    """All that a worker needs to mine one slice.

    Parameters
    ----------
    folder : str
        Path of the run's folder, as every worker sees it, or the URL that the run is kept at.
    run : str
        Identity of the run, because another run may have been in the same folder before.
    band : int
        The band that the nodes are of; see `pipeline.run.opened.Run.bands`.
    work : tuple of Packed or Roots
        The nodes to search; see `pipeline.slices.left_over.unpacked`.
    """

    folder: str
    run: str
    slice: int
    attempt: int
    band: int
    work: tuple[Packed | Roots, ...]
    limits: Limits
    write_on: WriteOn = "auto"


@dataclass(frozen=True)
class SliceDone:
    """The answer of a worker: the result of a slice, and its left-over."""

    result: SliceResult
    left_over: LeftOver


def mine_alone(task: SliceTask) -> SliceDone:
    """Mine one slice. Its bicliques go to Parquet, and everything else is in the answer.

    Raises `ResourceError`: a resource is missing, as when the disk is full. No files of the slice are left.
    """
    run = open_in_worker(task.folder, task.run)
    kind = engines.kind(run.options.engine)
    work = _prepared(run, kind, task)  # before its turn, and the left-over after it, because the device waits meanwhile
    with turn(kind, task.run) as server, _metered(kind) as used:
        began, started = time.time(), time.perf_counter()
        session, writer = _search(server, run, task, work)
        searched = time.perf_counter()
    try:
        left_over = Subtrees.concat(session.left_over)
        parts = writer.close()
        usage = used.result() if used is not None else None
    except DeviceMemoryError as error:  # the last chunks did not fit, so mine the slice again
        writer.discard()
        del writer, session  # they hold the engine
        with turn(kind, task.run) as server:
            _take_less(server, run, task, error)
        return mine_alone(task)
    except BaseException:
        writer.discard()
        raise
    hand_in(run, task, parts, session.total)
    closed = time.perf_counter()
    # if the worker has another slice, it is searched while this one is written
    own = (closed if kind.platform.slices_in_hand == 1 else searched) - started
    result = SliceResult(
        slice=task.slice,
        attempt=task.attempt,
        parts=tuple(parts),
        total=session.total,
        n_left_over=len(left_over),
        began=began,
        seconds=own,
        worker=identity(),
        stats=SliceStats(
            engine=session.stats,
            writing_seconds=session.writing + own - (searched - started),
            closing_seconds=closed - started - own,
            peak_rss=peak_rss(),
            halvings=server.halvings,
            joules=usage.joules if usage is not None else None,
            peak_watts=usage.peak_watts if usage is not None else None,
        ),
        timed=tuple(session.timed),
    )
    return SliceDone(result, LeftOver.of(left_over))


def _prepared(run: Run, kind: EngineKind, task: SliceTask) -> Subtrees:
    search, graph = run.bands[task.band]
    return kind.prepare(graph, unpacked(task.work), job_of(search).of_engine)


def hand_in(run: Run, task: SliceTask, parts: Sequence[Part], total: Total) -> None:
    """Check that the parts of a slice have the rows that it found, and bring them to where the driver expects them."""
    rows = sum(part.rows for part in parts)
    if run.job.rows == "slices" and rows != total.count:
        for part in parts:
            (run.folder.pending / part.name).unlink()
        raise IncompleteError(f"slice {task.slice} found {total.count} bicliques, but {rows} were written")
    run.store.deliver(parts)


def _search(server: Server, run: Run, task: SliceTask, work: Subtrees) -> tuple[SliceSearch, Writer]:
    """The search of a slice. If a device has too little memory, it is repeated with less; see `_take_less`."""
    while True:
        try:
            session, writer = _attempt(server, run, task, work)
        except DeviceMemoryError as error:
            _take_less(server, run, task, error)
        else:
            if nodes := session.stats.cpu_nodes:
                text = "slice %d: the cpu engine mined %d nodes of hubs that do not fit into the memory of the GPU"
                logger.warning(text, task.slice, nodes)
            return session, writer


def _attempt(server: Server, run: Run, task: SliceTask, work: Subtrees) -> tuple[SliceSearch, Writer]:
    """One attempt. If it fails, nothing of it stays."""
    writer = writer_of(run, server.kind, task.slice, "cpu" if server.leaves_writing else task.write_on)
    try:
        search, graph = run.bands[task.band]
        session = SliceSearch(server.engine, graph, search, task.limits, writer)
        with may_end(session.stop):
            session.all_of(work, server.kind.platform.timed_roots)
    except BaseException:
        writer.discard()
        raise
    return session, writer


def writer_of(run: Run, kind: EngineKind, number: int, write_on: WriteOn) -> Writer:
    """The writer of a slice. A job that only counts needs no writer on the device, nor does one that looks at rows."""
    return open_writer(run.folder.pending, number, run.tables, *_where(run, kind, write_on), run.provenance)


def _where(run: Run, kind: EngineKind, write_on: WriteOn) -> tuple[Platform, WriteOn]:
    """The platform beside which rows are written, and on which part of it."""
    platform = kind.platform if run.job.rows == "slices" else CORES
    return platform, "cpu" if run.job.looks_on or run.job.cores_write else write_on


def _take_less(server: Server, run: Run, task: SliceTask, error: DeviceMemoryError) -> None:
    """Use an engine with half the memory from now on. If there is none smaller, leave writing to the cores.

    Raises the error if the cores write already, or if the device was asked to.
    """
    cause: BaseException | None = error
    while cause is not None:  # its frames hold the engine and the writer, whose memory must be freed
        clear_frames(cause.__traceback__)
        cause = cause.__cause__
    if server.make_smaller():
        logger.warning("%s goes on with half the device memory: %s", identity(), error)
        return
    is_free = task.write_on == "auto" and not server.leaves_writing
    if not is_free or not writers.is_on_device(*_where(run, server.kind, task.write_on)):
        raise error
    server.leaves_writing = True
    writers.forget()
    server.kind.platform.release()
    logger.warning("%s leaves writing to the CPU from now on: %s", identity(), error)


@contextmanager
def _metered(kind: EngineKind) -> Iterator[Future[Usage] | None]:
    """Measure the energy of the block, if its engine has a device of its own whose energy can be read."""
    counter = kind.platform.energy_counter
    meter = None if counter is None else _meter(counter)
    if meter is None:
        yield None
    else:
        with meter.stretch() as usage:
            yield usage


@cache
def _meter(name: str) -> PowerMeter | None:
    counter = COUNTERS[name]()
    if isinstance(counter, str):
        logger.warning("the energy of this GPU is not measured: %s", counter)
        return None
    return PowerMeter(counter)


def forget() -> None:
    """Free the memory of the last run and of its engines: of the calling thread, of the team, and the shared one."""
    thread_team.forget()
    close_in_worker()
    writers.forget()
    engine_turns.forget()


#: Most seconds that an engine gets to warm up. A single root can have more bicliques than anybody can list.
_WARM_UP_S = 0.01


def warm_up(task: tuple[str, str, WriteOn]) -> None:
    """Load all that the first task would load: machine code, imports of pyarrow, a device's graph, cuDF.

    Parameters
    ----------
    task : (str, str, WriteOn)
        Folder and identity of the run, and where the results are encoded.
    """
    folder, run, write_on = task
    opened = open_in_worker(folder, run)
    kind = engines.kind(opened.options.engine)
    if kind.platform.shares_engine:
        _warm_up_device(opened, kind, write_on)
    else:  # every thread has an engine of its own, and they share its code
        from bicliques.pipeline.slices import first_use  # which imports all readers; a worker with a GPU needs none

        search = opened.options.search
        first_use.load_engine(kind.name, search.prunes or opened.graph.is_dense, search.pq is not None)
        if opened.job.rows != "none":
            first_use.before_proving()
    to_batch(Bicliques.from_pairs([([0], [0])]), None)


def _warm_up_device(run: Run, kind: EngineKind, write_on: WriteOn) -> None:
    """Bring the graph onto the device, and use the engine on one root and the writer on no rows."""
    with turn(kind, run.identity) as server:
        first = Subtrees.of_roots(np.zeros(min(1, run.graph.n_roots), np.int32))
        with suppress(DeviceMemoryError):  # the first slice uses less memory, and says so
            server.engine.mine(run.graph, first, run.job.of_engine, Limits(_WARM_UP_S), nowhere)
            writer_of(run, kind, 0, write_on).discard()


def reasons() -> dict[str, str | None]:
    """Why each engine cannot run in this process. None for engines that can."""
    return {kind.name: kind.why_not() for kind in engines.kinds()}


def version() -> str:
    """Version of the package in this process."""
    return __version__
