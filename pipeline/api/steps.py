"""The steps of a run, one by one or all together. Each reads from the folder and writes to it, under the run's lock.

    start -> ingest -> build -> plan -> mine -> prove -> report

A step that is done is recorded in ``steps/`` and is skipped the next time. Mining goes on from its ledger. So
each step, or all of them, can be called again after an interruption.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from bicliques.kernels import engines
from bicliques.pipeline.api import preparing
from bicliques.pipeline.api.preparing import is_complete_as_it_is, proven_manifest
from bicliques.pipeline.ingest.doubts import refuse_doubts
from bicliques.pipeline.ingest.readers.files import is_named
from bicliques.pipeline.mining import driver
from bicliques.pipeline.prepare.members import find_members
from bicliques.pipeline.process import startup
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.proof import proving, vertices
from bicliques.pipeline.proof.reading import Reading
from bicliques.pipeline.proof.summary import why_damaged
from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.names import make_ready
from bicliques.pipeline.run.new_run import new_run
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import OnProgress, Progress, to_callback
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.session import last_session, mend_sessions
from bicliques.pipeline.slices import first_use
from bicliques.pipeline.workers.opening import are_faster, check_workers, on_all_cores, open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import InThreads, Pool
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.facts import MiningSession
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.options import CallOptions, RunLimits, RunOptions
from bicliques.schemas.platform import CORES, Platform

logger = logging.getLogger(__name__)


def start(
    source: Any,
    path: Path,
    options: RunOptions,
    limits: RunLimits,
    progress: OnProgress | bool | None = None,
    call: CallOptions | None = None,
    origin: tuple[str | None, str | None] = (None, None),
) -> Run:
    """Make the folder of a run and read the input into it. Parameters and errors are those of `started`."""
    with started(source, path, options, limits, progress, call, origin) as run:
        return run


@contextmanager
def started(
    source: Any,
    path: Path,
    options: RunOptions,
    limits: RunLimits,
    progress: OnProgress | bool | None = None,
    call: CallOptions | None = None,
    origin: tuple[str | None, str | None] = (None, None),
    keep: bool = True,
) -> Iterator[Run]:
    """Make a new run, read its input, and hold its lock during the block.

    If reading fails, or a given label is not in the input, the folder is removed. Raises `InputError` if the input, the
    folder or a given label cannot be used, and `ResourceError` if the disk is full, or a file cannot be written for
    another reason.

    Parameters
    ----------
    source : path or object
        See `pipeline.ingest.step.ingest`.
    path : Path
        A folder that is empty or does not exist.
    limits : RunLimits
        Limits that are stored, and that resuming keeps by default.
    progress : callable, bool or None
        See `pipeline.run.progress.to_callback`.
    call : CallOptions or None
        Where the input is read, and whether its doubts are errors. None: the defaults.
    origin : (str or None, str or None)
        Series and date; see `schemas.options.RunOrigin`. None takes the path of the source, and the day in the name of
        the folder.
    keep : bool
        False for a temporary folder. Then errors do not say how to resume the run.
    """
    series, date = origin
    if series is None and is_named(source):
        series = options.source
    startup.over()
    with new_run(path) as new:
        new.folder.write_options(options, limits, series, date)
        run = Run(new.folder)
        preparing.ingest(run, to_callback(progress), source, call)
        find_members(run)  # raises while the folder still goes if a label is wrong
        new.stays()
        with _resumable(run, keep):
            yield run


def ingest(path: Path, progress: OnProgress | bool | None = None, call: CallOptions | None = None) -> dict[str, Any]:
    """Read the input if `start` was interrupted before that was done. Returns an `IngestSummary` as a dictionary."""
    with opened(path) as run:
        return preparing.ingest(run, to_callback(progress), call=call)


def build(path: Path, progress: OnProgress | bool | None = None) -> dict[str, Any]:
    """Make the graph; see `pipeline.prepare.build.build`."""
    with opened(path) as run:
        return preparing.build(run, to_callback(progress))


def plan(path: Path, progress: OnProgress | bool | None = None) -> dict[str, Any]:
    """Weigh the roots; see `pipeline.prepare.weights.plan`."""
    with opened(path) as run:
        return preparing.plan(run, to_callback(progress))


def mine(
    path: Path,
    workers: WorkerOptions | None = None,
    limits: RunLimits | None = None,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
) -> MiningSession:
    """Mine what is outstanding; see `pipeline.mining.driver.mine_run`. `limits` None takes the run's stored limits."""
    workers = workers or WorkerOptions()
    with opened(path) as run:
        run.folder.check("build", "plan")
        manifest = proven_manifest(run)
        mend_sessions(run.folder, manifest)
        if manifest is not None:
            return last_session(run.folder)
        with open_pool(workers, _platform(run)) as pool:
            on_device = _reads_on_device(run, workers)
            return _mine(run, pool, limits or run.folder.limits(), to_callback(progress), workers, stop, on_device)


def prove(path: Path, workers: WorkerOptions | None = None, progress: OnProgress | bool | None = None) -> Manifest:
    """Prove the run and write its manifest; see `pipeline.proof.proving.prove`."""
    workers = workers or WorkerOptions(workers=0)
    with opened(path) as run:
        if (manifest := run.folder.manifest()) is not None:
            return manifest
        on_device = _reads_on_device(run, workers)
        _get_ready_to_prove(run, on_device)
        with open_pool(workers, _platform(run) if on_device else CORES) as pool:
            return proving.prove(run, pool, to_callback(progress), on_device)


def report(path: Path, progress: OnProgress | bool | None = None) -> Path:
    """Write ``report.html``; see `pipeline.results.report.make.report`. The run is only read, so no lock is needed."""
    began = time.monotonic()
    from bicliques.pipeline.results.report import make  # imported only here, because most commands make no page

    startup.over()
    on_progress = to_callback(progress)
    on_progress(Progress("report"))
    written = make.report(path)
    seconds = time.monotonic() - began
    on_progress(Progress("report", share=1.0, seconds=seconds))
    tell(logger, "step", f"step report is done in {seconds:.2f} s", step="report", seconds=round(seconds, 6))
    return written


def prepare(path: Path, progress: OnProgress | bool | None = None) -> None:
    """Open a run and do every step before mining that is not done yet."""
    with opened(path) as run:
        preparing.prepare(run, to_callback(progress))


def run(
    path: Path,
    workers: WorkerOptions,
    limits: RunLimits,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    source: Any = None,
    call: CallOptions | None = None,
) -> MiningSession | None:
    """Open a run and do all steps that are not done yet; see `complete_run`. A complete run is only read."""
    startup.over()
    there = Run.to_go_on(path)
    if is_complete_as_it_is(there):
        check_workers(workers, _platform(there))
        refuse_doubts(str(path), there.facts("ingest").get("notes", ()) if call and call.strict else ())
        return None
    with workers.limited(), opened(there.path) as run:
        check_workers(workers, _platform(run))  # before anything is changed
        return complete_run(run, workers, limits, progress, stop, source, call)


def complete_run(
    run: Run,
    workers: WorkerOptions,
    limits: RunLimits,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    source: Any = None,
    call: CallOptions | None = None,
) -> MiningSession | None:
    """Do all steps that are not done yet, with one set of workers. The run is proven once all of it is mined.

    Raises `ResourceError` if the disk is full, no worker is left, or a slice fails again and again, and
    `IncompleteError` if the proof fails, or damaged files cannot be mended.

    Parameters
    ----------
    run : Run
        A run whose lock the caller holds.
    limits : RunLimits
        Stored with the run if they differ from those stored before.
    progress : callable, bool or None
        See `pipeline.run.progress.to_callback`.
    stop : threading.Event or None
        When it is set, running slices are committed, and the call returns.
    source : path, object or None
        The input, for a run that was killed before it had read it. None opens it by the name in the options of the run.
    call : CallOptions or None
        Where the input is read, and whether its doubts are errors. None: the defaults.

    Returns
    -------
    MiningSession or None
        None when the run was complete already.
    """
    on_progress, folder = to_callback(progress), run.folder
    preparing.prepare(run, on_progress, source, call)
    manifest = proven_manifest(run)
    mend_sessions(folder, manifest)
    if manifest is not None:
        _mend_summary(run, manifest, workers, on_progress)
        folder.store.keep_result()  # the driver may have been killed before it had put all into the store
        return None
    if limits != folder.limits():
        folder.write_options(run.options, limits)
    with open_pool(workers, _platform(run)) as pool:
        on_device = _reads_on_device(run, workers)
        with _provers(run, pool, workers, on_device) as provers:
            reading = _reading(run, pool, provers, on_device)
            session = _mine(run, pool, limits, on_progress, workers, stop, on_device, reading)
            if session.outcome == "complete":
                proving.prove(run, provers, on_progress, on_device, reading)
    return session


def _reading(run: Run, pool: Pool, provers: Pool, on_device: bool) -> Reading | None:
    """What reads parts back while the run is mined. None if no parts are written while it is mined.

    A GPU reads beside its search. On cores, and where cores encode what a GPU has found, the slots are used that have
    no slice.
    """
    if run.job.rows != "slices":
        return None
    return Reading(run, on_device, provers if on_device and provers is not pool else None)


@contextmanager
def _provers(run: Run, pool: Pool, workers: WorkerOptions, on_device: bool) -> Iterator[Pool]:
    """The pool that reads the parts back: the one that mined, unless others of this machine read faster."""
    n = run.input["n_left"] + run.input["n_right"]
    if workers.scheduler is not None or not are_faster(n, pool, _platform(run), on_device):
        yield pool
        return
    if on_device:
        from bicliques.pipeline.proof.on_device import READERS  # only where there is a GPU engine

        provers: Pool = InThreads(READERS)
    else:
        provers = on_all_cores(n)
    with closing(provers):
        yield provers


def _get_ready_to_prove(run: Run, on_device: bool) -> None:
    """Load the code that reads rows back, if there will be rows, and the GPUs do not read them."""
    if run.job.rows != "none" and not on_device:
        with startup.getting_ready():
            first_use.before_proving()


def _reads_on_device(run: Run, workers: WorkerOptions) -> bool:
    """Whether the GPUs that mine read the parts back, too."""
    if (
        not _platform(run).works_with_cudf
        or run.job.rows != "slices"
        or run.job.cores_write
        or run.store.url is not None
    ):
        return False
    with startup.getting_ready():  # it imports cuDF
        from bicliques.pipeline.proof.on_device import why_not  # only where there is a GPU engine

        reason = why_not(_platform(run), run.tables, workers.write_on)
    if reason is not None:
        logger.info("processor cores read the parts back, because %s", reason)
    return reason is None


def _platform(run: Run) -> Platform:
    return engines.kind(run.options.engine).platform


def _mend_summary(run: Run, manifest: Manifest, workers: WorkerOptions, on_progress: OnProgress) -> None:
    """Make the summary of a complete run anew if it is damaged, and the numbers of its vertices. Nothing is mined."""
    if run.options.search.per_vertex and (reason := vertices.why_damaged(run)) is not None:
        logger.warning("%s; they are made anew from the ledger", reason)
        vertices.write(run, run.ledger().total)
    if run.job.rows == "none":
        return
    if (reason := why_damaged(run.folder, manifest)) is None:
        return
    logger.warning("%s; it is made anew from the parts", reason)
    on_device = _reads_on_device(run, workers)
    _get_ready_to_prove(run, on_device)
    with open_pool(workers, _platform(run)) as pool, _provers(run, pool, workers, on_device) as provers:
        proving.sum_up(run, provers, on_progress, on_device)


def _mine(
    run: Run,
    pool: Pool,
    limits: RunLimits,
    on_progress: OnProgress,
    workers: WorkerOptions,
    stop: threading.Event | None,
    on_device: bool,
    reading: Reading | None = None,
) -> MiningSession:
    preparing.check_room(run, workers)
    with startup.getting_ready():
        search = run.options.search
        first_use.before_mining(run.options.engine, search, on_progress, not search.prunes and run.graph.is_dense)
    _get_ready_to_prove(run, on_device)  # now, because it belongs to no step, and the proof follows at once
    return driver.mine_run(run, pool, limits, on_progress, workers.slice_seconds, stop, workers.write_on, reading)


@contextmanager
def opened(path: Path | str | os.PathLike[str]) -> Iterator[Run]:
    """Open a run, and hold its lock during the block."""
    startup.over()
    run = Run.to_go_on(Path(path))
    with run.store.locked(), _resumable(run):
        yield run


@contextmanager
def _resumable(run: Run, keep: bool = True) -> Iterator[None]:
    """Prepare the folder of a run for a step. With `keep`, a `ResourceError` of the block also says how to go on."""
    try:
        with disk_errors(run.path):
            make_ready(run.path)
        yield
    except ResourceError as error:
        if not keep:
            raise
        raise ResourceError(f"{error}, then continue with: {how_to_resume(run.path)}") from error
