"""The Python API: mine, open_run, resume, verify. The command line says the same words."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Literal

from pipeline import engines, steps
from pipeline.choices import AS_BEFORE, PathLike, run_options
from pipeline.folder import RunFolder, how_to_resume
from pipeline.gpu.devices import Devices
from pipeline.gpu.ingest import IngestOn
from pipeline.interrupts import Interrupted
from pipeline.progress import Progress, Report, pass_on
from pipeline.results import Results, open_results
from pipeline.verification import Verification, verify_run
from pipeline.workers import WorkerOptions, check_workers
from pipeline.writing import WriteOn
from schemas.errors import InputError
from schemas.graph import Side
from schemas.options import BuildOptions, IngestOptions, LabelType, RunLimits
from schemas.work import Search

__all__ = ["mine", "open_run", "resume", "verify"]


def mine(
    source: Any,
    output: PathLike,
    *,
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    max_results: int | None = None,
    time_limit: float | None = None,
    count_only: bool = False,
    sizes: bool = False,
    engine: str = engines.AUTO,
    workers: int | None = None,
    scheduler: str | None = None,
    slice_seconds: float = 10.0,
    devices: Devices | None = None,
    rmm_pool: str | None = None,
    spill: bool = False,
    write_on: WriteOn = "auto",
    ids: Literal["labels", "dense"] = "labels",
    root_side: Literal["auto"] | Side = "auto",
    order: Literal["degree", "two-hop", "unilateral", "id"] = "degree",
    format: str | None = None,
    left: str | int | None = None,
    right: str | int | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    label_type: LabelType = "auto",
    skip_bad_lines: bool = False,
    ingest_on: IngestOn = "auto",
    report: bool = True,
    progress: Report | bool | None = None,
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
    min_left, min_right : int
        Smallest sides of a biclique; they prune the search.
    max_left, max_right : int or None
        Largest sides. Filters: a larger biclique is left out, its parts do not appear in its place.
    max_results : int or None
        Stop after so many bicliques: never one more.
    time_limit : float or None
        Stop after so many seconds of mining.
    count_only : bool
        Count and fingerprint, write no bicliques.
    sizes : bool
        With `count_only`: also count how many there are of each size; see `Results.sizes`.
    engine : str
        A name of `pipeline.engines`, or "auto" for the fastest that can run here.
    workers, scheduler, slice_seconds, devices, rmm_pool, spill, write_on
        See `pipeline.workers.WorkerOptions`.
    ids : "labels" or "dense"
        The user's labels, or row numbers of the tables in ``labels/``.
    root_side, order
        See `schemas.options.BuildOptions`; they do not change the result.
    format, left, right, delimiter, header, label_type, skip_bad_lines
        See `schemas.options.IngestOptions`.
    ingest_on : "auto", "cpu" or "gpu"
        Where the input is read; see `pipeline.gpu.ingest.choose_reader`. The result is the same.
    report : bool
        Write ``report.html`` once the run is complete.
    progress : callable, bool or None
        Called with `pipeline.progress.Progress` a few times a second; True writes a bar to stderr, False
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
        After Ctrl-C, once what was running is committed (`pipeline.interrupts.Interrupted`); the run can be resumed.

    Notes
    -----
    Memory is the graph, which workers share, and a bounded workspace per worker; never the results. Worker processes
    do not import the script that calls this.
    """
    if sizes and not count_only:
        raise InputError("sizes are counted with count_only; a run that lists its bicliques has them in its files")
    worker_options = WorkerOptions(workers, scheduler, slice_seconds, devices, rmm_pool, spill, write_on)
    limits = RunLimits(max_results, time_limit)
    notes: list[Progress] = []
    options = run_options(
        source,
        search=Search("prove" if count_only else "list", min_left, min_right, max_left, max_right, sizes),
        build=BuildOptions(root_side, order),
        ingest=IngestOptions(format, left, right, delimiter, header, label_type, skip_bad_lines),
        engine=engine,
        ids=ids,
        report=notes.append,
        scheduler=scheduler,
    )
    check_workers(worker_options, engines.kind(options.engine).place)
    steps.start(source, Path(output), options, limits, progress, ingest_on)
    pass_on(notes, progress)
    return _run(Path(output), worker_options, limits, progress, stop, report)


def open_run(folder: PathLike) -> Results:
    """The results of a run, complete or not; see `pipeline.results.Results`."""
    return open_results(Path(folder))


def resume(
    folder: PathLike,
    *,
    max_results: int | Literal["as before"] | None = AS_BEFORE,
    time_limit: float | Literal["as before"] | None = AS_BEFORE,
    workers: int | None = None,
    scheduler: str | None = None,
    slice_seconds: float = 10.0,
    devices: Devices | None = None,
    rmm_pool: str | None = None,
    spill: bool = False,
    write_on: WriteOn = "auto",
    report: bool = True,
    progress: Report | bool | None = None,
    stop: threading.Event | None = None,
) -> Results:
    """Go on with a run that stopped, however it stopped; a complete one is left alone.

    Parameters
    ----------
    folder : path
    max_results : int, None or "as before"
        Of the whole run, what is there already included; None lifts the limit.
    time_limit : float, None or "as before"
        Seconds of mining from now on.
    workers, scheduler, slice_seconds, devices, rmm_pool, spill, write_on, report, progress, stop
        As for `mine`; they may differ from last time.
    """
    path = Path(folder)
    before = RunFolder(path).limits()
    limits = RunLimits(
        before.max_results if max_results == AS_BEFORE else max_results,
        before.time_limit_s if time_limit == AS_BEFORE else time_limit,
    )
    worker_options = WorkerOptions(workers, scheduler, slice_seconds, devices, rmm_pool, spill, write_on)
    return _run(path, worker_options, limits, progress, stop, report)


def verify(
    folder: PathLike, *, sample: int = 1000, seed: int = 0, progress: Report | bool | None = None
) -> Verification:
    """Check the results of a complete run again; see `pipeline.verification.verify_run`."""
    return verify_run(Path(folder), sample, seed, progress)


def _run(
    path: Path,
    workers: WorkerOptions,
    limits: RunLimits,
    progress: Report | bool | None,
    stop: threading.Event | None,
    report: bool,
) -> Results:
    session = steps.run(path, workers, limits, progress, stop)
    results = open_results(path)
    if session is not None and session.ctrl_c:
        raise Interrupted(f"stopped with {len(results):,} bicliques; go on with: {how_to_resume(path)}", results)
    if report and session is not None and results.complete:
        steps.page(path, progress)
    return results
