"""The steps of a run, one by one or all together: each from the folder to the folder, under the run's lock.

    start -> ingest -> build -> plan -> mine -> prove -> report

A step that is done says so in ``steps/`` and is skipped the next time; mining goes on from its ledger. So
every step, and the whole, can simply be called again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from kernels import engines
from kernels.platform import Platform
from pipeline.ingest.gpu.ingest_on import IngestOn
from pipeline.ingest.step import ingest as ingest_source
from pipeline.mining import driver
from pipeline.prepare.build import build as build_graph
from pipeline.prepare.plan import plan as plan_roots
from pipeline.process import startup
from pipeline.process.logs import tell
from pipeline.proof import proving
from pipeline.proof.summary import why_damaged
from pipeline.proof.wholeness import why_not_whole
from pipeline.run.files import disk_errors, whole_file
from pipeline.run.folder import RunFolder, how_to_resume
from pipeline.run.lock import locked
from pipeline.run.names import INGEST_FILES, make_ready
from pipeline.run.new_run import new_run
from pipeline.run.progress import OnProgress, Progress, Step, to_callback
from pipeline.run.session import MiningSession, last_session, mend_sessions
from pipeline.series.marks import withdraw_mark
from pipeline.slices import first_use
from pipeline.workers.opening import open_pool
from pipeline.workers.options import WorkerOptions
from pipeline.workers.pool import Pool
from pipeline.workers.thread_pool import InThreads
from schemas.errors import IncompleteError, InputError, ResourceError
from schemas.jobs import job_of
from schemas.manifest import Manifest
from schemas.options import RunLimits, RunOptions

__all__ = ["build", "ingest", "mine", "plan", "prepare", "prove", "report", "run", "start"]

logger = logging.getLogger(__name__)


def start(
    source: Any,
    path: Path,
    options: RunOptions,
    limits: RunLimits,
    progress: OnProgress | bool | None = None,
    ingest_on: IngestOn = "auto",
    series: str | None = None,
    date: str | None = None,
) -> RunFolder:
    """Make the folder of a run and read the input into it; after an error the folder is not there.

    Parameters
    ----------
    source : path or object
        See `pipeline.ingest.step.ingest`.
    path : Path
        A folder that is empty or does not exist.
    options : RunOptions
    limits : RunLimits
        The ones to resume with.
    progress : callable, bool or None
        See `pipeline.run.progress.to_callback`.
    ingest_on : "auto", "cpu" or "gpu"
        See `pipeline.ingest.step.ingest`.
    series, date : str or None
        See `schemas.options.RunOrigin`. None takes the path of the source, and the day in the name of the folder.

    Raises
    ------
    InputError
        If the input or the folder cannot be used; one sentence.
    """
    if series is None and isinstance(source, (str, os.PathLike)):
        series = options.source
    startup.over()
    with new_run(path) as folder:
        folder.write_options(options, limits, series, date)
        _ingest(folder, to_callback(progress), source, ingest_on)
    return folder


def ingest(path: Path, progress: OnProgress | bool | None = None) -> dict[str, Any]:
    """Read the input, if that was interrupted in `start`. Returns an `IngestSummary` as a dictionary."""
    with _run(path) as folder:
        return _ingest(folder, to_callback(progress))


def build(path: Path, progress: OnProgress | bool | None = None) -> dict[str, Any]:
    """Make the graph; see `pipeline.prepare.build.build`."""
    with _run(path) as folder:
        return _build(folder, to_callback(progress))


def plan(path: Path, progress: OnProgress | bool | None = None) -> dict[str, Any]:
    """Weigh the roots; see `pipeline.prepare.plan.plan`."""
    with _run(path) as folder:
        return _plan(folder, to_callback(progress))


def mine(
    path: Path,
    workers: WorkerOptions | None = None,
    limits: RunLimits | None = None,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
) -> MiningSession:
    """Mine what is outstanding; see `pipeline.mining.driver.mine_run`. `limits` default to the run's own."""
    workers = workers or WorkerOptions()
    with _run(path) as folder:
        folder.check("build", "plan")
        manifest = _proven(folder)
        mend_sessions(folder, manifest)
        if manifest is not None:
            return last_session(folder)
        with open_pool(workers, _platform(folder)) as pool:
            return _mine(folder, pool, limits or folder.limits(), to_callback(progress), workers, stop)


def prove(path: Path, workers: WorkerOptions | None = None, progress: OnProgress | bool | None = None) -> Manifest:
    """Prove the run and write its manifest; see `pipeline.proof.proving.prove`."""
    with _run(path) as folder, open_pool(workers or WorkerOptions(workers=0)) as pool:
        with startup.getting_ready():
            first_use.before_proving()
        return folder.manifest() or proving.prove(folder, pool, to_callback(progress))


def report(path: Path, progress: OnProgress | bool | None = None) -> Path:
    """Write ``report.html``; see `pipeline.results.report.make.report`. It reads, and so needs no lock."""
    from pipeline.results.report import make  # only here: it imports a plotting library

    startup.over()
    on_progress = to_callback(progress)
    on_progress(Progress("report"))
    written = make.report(path)
    on_progress(Progress("report", share=1.0))
    return written


def prepare(path: Path, progress: OnProgress | bool | None = None, keep: bool = True) -> None:
    """Everything before mining that is not done yet. `keep` as in `run`."""
    with _run(path, keep) as folder:
        _prepare(folder, to_callback(progress))


def run(
    path: Path,
    workers: WorkerOptions,
    limits: RunLimits,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
    keep: bool = True,
) -> MiningSession | None:
    """All steps that are not done yet, with one set of workers; proven when it is complete.

    Parameters
    ----------
    keep : bool
        False for a folder that will not be there long: errors do not on_progress how to resume it.

    Returns
    -------
    MiningSession or None
        None when the run was complete already.
    """
    on_progress = to_callback(progress)
    with _run(path, keep) as folder:
        _prepare(folder, on_progress)
        manifest = _proven(folder)
        mend_sessions(folder, manifest)
        if manifest is not None:
            _mend_summary(folder, manifest, workers, on_progress)
            return None
        if limits != folder.limits():
            folder.write_options(folder.options(), limits)
        with open_pool(workers, _platform(folder)) as pool:
            session = _mine(folder, pool, limits, on_progress, workers, stop)
            if session.outcome == "complete":
                with _provers(pool, workers, _platform(folder)) as provers:
                    proving.prove(folder, provers, on_progress)
    return session


@contextmanager
def _provers(pool: Pool, workers: WorkerOptions, platform: Platform) -> Iterator[Pool]:
    """Who reads the parts back: the miners, unless they were one a GPU of this machine, which has more cores."""
    if not platform.leaves_cores or workers.scheduler is not None:
        yield pool
        return
    provers = InThreads(len(os.sched_getaffinity(0)))
    try:
        yield provers
    finally:
        provers.close()


def _platform(folder: RunFolder) -> Platform:
    return engines.kind(folder.options().engine).platform


def _proven(folder: RunFolder) -> Manifest | None:
    """The manifest of a run that is still whole; one that is damaged, or says more than there is, is withdrawn."""
    try:
        manifest = folder.manifest()
    except IncompleteError as error:
        reason: str | None = str(error.__cause__ or error)
    else:
        if manifest is None:
            return None
        reason = why_not_whole(folder, manifest)
        if reason is None:
            return manifest
    logger.warning("%s; the manifest is withdrawn, and what is missing is mined again", reason)
    withdraw_mark(folder.path)
    with disk_errors(folder.manifest_file):
        folder.manifest_file.unlink()
    return None


def _mend_summary(folder: RunFolder, manifest: Manifest, workers: WorkerOptions, on_progress: OnProgress) -> None:
    """Make the summary of a complete run anew if it is damaged: the parts are read, and nothing is mined."""
    if job_of(folder.options().search).rows == "none":
        return
    reason = why_damaged(folder, manifest)
    if reason is None:
        return
    logger.warning("%s; it is made anew from the parts", reason)
    with open_pool(workers, _platform(folder)) as pool, _provers(pool, workers, _platform(folder)) as provers:
        with startup.getting_ready():
            first_use.before_proving()
        proving.sum_up(folder, provers, on_progress)


def _prepare(folder: RunFolder, on_progress: OnProgress) -> None:
    _ingest(folder, on_progress)
    _build(folder, on_progress)
    _plan(folder, on_progress)


def _ingest(
    folder: RunFolder, on_progress: OnProgress, source: Any = None, ingest_on: IngestOn = "auto"
) -> dict[str, Any]:
    options = folder.options()

    def read() -> dict[str, Any]:
        given = options.source if source is None else source
        if source is None and isinstance(given, str) and not Path(given).exists():
            raise InputError(
                f"{given} cannot be read again, and {folder.path} does not hold all of it; start the run anew"
            )
        facts = asdict(ingest_source(given, options.ingest, folder.path, ingest_on))
        folder.finish("ingest", facts, [folder.path / file for file in INGEST_FILES])
        return facts

    ready = partial(first_use.before_reading, options.source if source is None else source, ingest_on)
    return _once(folder, "ingest", on_progress, ready, read)


def _build(folder: RunFolder, on_progress: OnProgress) -> dict[str, Any]:
    return _once(folder, "build", on_progress, _before_building(folder), lambda: build_graph(folder))


def _plan(folder: RunFolder, on_progress: OnProgress) -> dict[str, Any]:
    return _once(folder, "plan", on_progress, _before_building(folder), lambda: plan_roots(folder))


def _before_building(folder: RunFolder) -> Callable[[], None]:
    options = folder.options()
    prunes = options.search.min_left > 1 or options.search.min_right > 1
    return partial(first_use.before_building, options.build, prunes)


def _mine(
    folder: RunFolder,
    pool: Pool,
    limits: RunLimits,
    on_progress: OnProgress,
    workers: WorkerOptions,
    stop: threading.Event | None,
) -> MiningSession:
    with startup.getting_ready():
        first_use.before_mining(folder.options().engine, on_progress)
    return driver.mine_run(folder, pool, limits, on_progress, workers.slice_seconds, stop, workers.write_on)


def _once(
    folder: RunFolder,
    step: Step,
    on_progress: OnProgress,
    ready: Callable[[], None],
    work: Callable[[], dict[str, Any]],
) -> dict[str, Any]:
    damage = None
    try:
        facts = folder.facts(step)
        file = folder.broken(step) if facts is not None else None
        if facts is not None and file is None:
            return facts
        if file is not None:
            damage = f"{file} is missing or damaged"
    except IncompleteError as error:
        damage = str(error.__cause__ or error)
    on_progress(Progress(step))
    with startup.getting_ready():
        ready()
    startup.log_it()
    started = time.monotonic()
    if damage is None:
        facts = work()
    else:
        logger.warning("%s; step %s is done again", damage, step)
        facts = _again(folder, step, work)
    seconds = time.monotonic() - started
    on_progress(Progress(step, share=1.0, seconds=seconds))
    tell(logger, "step", f"step {step} is done in {seconds:.2f} s", step=step, seconds=round(seconds, 6))
    return facts


def _again(folder: RunFolder, step: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Redo a step whose files or record are damaged; what is mined already belongs to the files there were."""
    sums = folder.keep_checksums(step)
    told = folder.step_file(step).read_bytes()
    facts = work()
    if folder.checksums(step) != sums:
        with whole_file(folder.step_file(step)) as file:
            file.write(told)
        raise IncompleteError(
            f"step {step} of {folder.path} does not give again what it gave, as after a change of the input or of the "
            "package; start the run again"
        )
    return facts


@contextmanager
def _run(path: Path | str | os.PathLike[str], keep: bool = True) -> Iterator[RunFolder]:
    startup.over()
    folder = RunFolder(Path(path))
    folder.options()  # says so if this is not the folder of a run
    with locked(folder.lock_file):
        try:
            with disk_errors(folder.path):
                make_ready(folder.path)
            yield folder
        except ResourceError as error:
            if not keep:
                raise
            raise ResourceError(f"{error}, then continue with: {how_to_resume(path)}") from error
