"""The Python API: mine, open_run, resume, verify. The command line says the same words."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Literal

from kernels import engines
from pipeline.api import steps
from pipeline.api.choices import Asked, with_engine
from pipeline.api.table import AS_BEFORE, described, record
from pipeline.process.interrupts import Interrupted
from pipeline.proof.verification import Verification, verify_run
from pipeline.results.results import Results, open_results
from pipeline.run.files import PathLike
from pipeline.run.folder import RunFolder, how_to_resume
from pipeline.run.names import REPORT_FILE
from pipeline.run.progress import OnProgress, Progress, pass_on
from pipeline.run.session import MiningSession
from pipeline.workers.devices import Devices
from pipeline.workers.opening import check_workers
from pipeline.workers.options import WorkerOptions
from schemas.options import Ids, LabelType, Order, RootSide, RunLimits, Where
from schemas.totals import By

__all__ = ["mine", "open_run", "resume", "verify"]


@described("mine")
def mine(
    source: Any,
    output: PathLike,
    *,
    count_only: bool = False,
    report: bool = True,
    sizes: bool = False,
    largest: int | None = None,
    by: By = "edges",
    ids: Ids = "labels",
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    max_results: int | None = None,
    time_limit: float | None = None,
    engine: str = "auto",
    root_side: RootSide = "auto",
    order: Order = "degree",
    workers: int | None = None,
    scheduler: str | None = None,
    slice_seconds: float = 10.0,
    devices: Devices | None = None,
    rmm_pool: str | None = None,
    spill: bool = False,
    write_on: Where = "auto",
    ingest_on: Where = "auto",
    format: str | None = None,
    left: str | int | None = None,
    right: str | int | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    label_type: LabelType = "auto",
    skip_bad_lines: bool = False,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
) -> Results:
    """Write every maximal biclique of a bipartite graph to Parquet.

    Parameters
    ----------
    source : path or object
        An edge list in a format of ``bicliques formats``, or a pandas, Polars or Arrow table, a scipy.sparse
        matrix or a networkx graph.
    output : path
        Folder of the run; empty, or not there yet.
    {options}
    progress : callable, bool or None
        Called with `pipeline.run.progress.Progress` a few times a second; True writes a bar to stderr, False
        nothing, None the bar if stderr is a terminal.
    stop : threading.Event
        Set it to stop: what is running is committed, and the run, which is returned, can be resumed.

    Returns
    -------
    Results
        Nothing is read until it is asked for. ``complete`` is False when a limit was reached.

    Raises
    ------
    InputError
        If the input, the folder or an option is wrong; nothing was written.
    ResourceError
        If the disk is full, or workers fail; the run can be resumed.
    IncompleteError
        If the proof fails.
    KeyboardInterrupt
        After Ctrl-C, once what was running is committed (`Interrupted`); the run can be resumed.

    Notes
    -----
    Memory is the graph, which workers share, and a bounded workspace per worker; never the results. Worker processes
    do not import the script that calls this.
    """
    given = locals()
    asked = Asked.of(source, given, mode="fingerprint" if count_only else "list")
    notes: list[Progress] = []
    options = with_engine(asked.options, scheduler, notes.append)
    check_workers(asked.workers, engines.kind(options.engine).platform)
    with steps.started(source, Path(output), options, asked.limits, progress, ingest_on) as run:
        pass_on(notes, progress)
        session = steps.complete_run(run, asked.workers, asked.limits, progress, stop)
    return _results(Path(output), session, report, progress)


def open_run(folder: PathLike) -> Results:
    """The results of a run, complete or not; see `pipeline.results.results.Results`."""
    return open_results(Path(folder))


@described("resume")
def resume(
    folder: PathLike,
    *,
    report: bool = True,
    max_results: int | Literal["as before"] | None = AS_BEFORE,
    time_limit: float | Literal["as before"] | None = AS_BEFORE,
    workers: int | None = None,
    scheduler: str | None = None,
    slice_seconds: float = 10.0,
    devices: Devices | None = None,
    rmm_pool: str | None = None,
    spill: bool = False,
    write_on: Where = "auto",
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
) -> Results:
    """Go on with a run that stopped, however it stopped; a complete one is left alone.

    Parameters
    ----------
    folder : path
    progress, stop
        As for `mine`.
    {options}

    Notes
    -----
    Options may differ from last time. `max_results` counts what is there already.
    """
    given, path = locals(), Path(folder)
    limits = record(RunLimits, given, before=RunFolder(path).limits())
    session = steps.run(path, record(WorkerOptions, given), limits, progress, stop)
    return _results(path, session, report, progress)


def verify(
    folder: PathLike, *, sample: int = 1000, seed: int = 0, progress: OnProgress | bool | None = None
) -> Verification:
    """Check the results of a complete run again; see `pipeline.proof.verification.verify_run`."""
    return verify_run(Path(folder), sample, seed, progress)


def _results(path: Path, session: MiningSession | None, report: bool, progress: OnProgress | bool | None) -> Results:
    """Of a run that has ended, after its page is written."""
    results = open_results(path)
    if session is not None and session.ctrl_c:
        raise Interrupted(f"stopped with {len(results):,} bicliques; go on with: {how_to_resume(path)}", results)
    if report and results.complete and (session is not None or not (path / REPORT_FILE).exists()):
        steps.report(path, progress)
    return results
