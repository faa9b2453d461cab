"""Counting without keeping anything."""

from __future__ import annotations

import threading
import time
from typing import Any

from pipeline import engines, startup, steps
from pipeline.accounts import peak_rss_of, seconds_of
from pipeline.choices import PathLike, how_to_read, run_options
from pipeline.files import temporary_folder
from pipeline.folder import RunFolder
from pipeline.gpu.devices import Devices
from pipeline.gpu.ingest import IngestOn
from pipeline.interrupts import Interrupted
from pipeline.ledger import Ledger
from pipeline.plan import Plan
from pipeline.progress import Progress, Report, pass_on
from pipeline.results import Count, open_results
from pipeline.session import MiningSession
from pipeline.workers import WorkerOptions
from schemas.options import RunLimits
from schemas.work import Mode, Search

__all__ = ["count"]


def count(
    source: Any,
    *,
    fingerprint: bool = False,
    sizes: bool = False,
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    max_results: int | None = None,
    time_limit: float | None = None,
    engine: str = engines.AUTO,
    workers: int | None = None,
    scheduler: str | None = None,
    slice_seconds: float = 10.0,
    devices: Devices | None = None,
    rmm_pool: str | None = None,
    spill: bool = False,
    ingest_on: IngestOn = "auto",
    folder: PathLike | None = None,
    progress: Report | bool | None = None,
    stop: threading.Event | None = None,
    **how: Any,
) -> Count:
    """Count the maximal bicliques; nothing is kept.

    Parameters
    ----------
    fingerprint : bool
        Also compute the fingerprint, which takes longer.
    sizes : bool
        Also count how many there are of each size.
    folder : path or None
        Where the graph is put while it is mined; the workers of a `scheduler` must see it. None takes the
        folder for temporary files.
    **how
        ``root_side``, ``order``, and how to read; as for `mine`, where the other parameters are, too.

    Raises
    ------
    KeyboardInterrupt
        After Ctrl-C; what was counted until then is its ``so_far`` (`pipeline.interrupts.Interrupted`).
    """
    started = startup.began()
    mode: Mode = "prove" if fingerprint else "count"
    worker_options = WorkerOptions(workers, scheduler, slice_seconds, devices, rmm_pool, spill)
    limits = RunLimits(max_results, time_limit)
    build, ingest = how_to_read(how)
    search = Search(mode, min_left, min_right, max_left, max_right, sizes)
    notes: list[Progress] = []
    options = run_options(source, search, build, ingest, engine, "dense", notes.append, scheduler)
    startup.over()  # for there is a folder to remove from now on
    with temporary_folder(folder) as temporary:
        run = steps.start(source, temporary / "run", options, limits, progress, ingest_on)
        pass_on(notes, progress)
        session = steps.run(run.path, worker_options, limits, progress, stop, keep=False)
        assert session is not None  # a new run is not complete before it is mined
        counted = _count_of(run, session, time.perf_counter() - started)
    if session.ctrl_c:
        raise Interrupted(f"stopped with {counted.count:,} bicliques counted; nothing is kept", counted)
    return counted


def _count_of(run: RunFolder, session: MiningSession, total_seconds: float) -> Count:
    manifest, options = run.manifest(), run.options()
    entries = Ledger.load(run, len(Plan.open(run).roots)).entries.values()
    return Count(
        count=session.count,
        outcome=session.outcome,
        fingerprint=manifest.fingerprint if manifest else None,
        total_seconds=total_seconds,
        sizes=open_results(run.path).sizes() if options.search.sizes else None,
        input=run.need("ingest"),
        graph=run.need("build"),
        options=options.to_json(),
        seconds=manifest.seconds if manifest else seconds_of(run),
        peak_rss=manifest.peak_rss if manifest else peak_rss_of(run, entries),
    )
