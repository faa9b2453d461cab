"""Counting without keeping anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from pipeline import engines, steps
from pipeline.choices import PathLike, how_to_read, run_options
from pipeline.files import temporary_folder
from pipeline.folder import RunFolder
from pipeline.gpu.ingest import IngestOn
from pipeline.progress import Report
from pipeline.results import Count, open_results
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
    devices: Sequence[int] | None = None,
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
    """
    started = time.perf_counter()
    mode: Mode = "prove" if fingerprint else "count"
    worker_options = WorkerOptions(workers, scheduler, slice_seconds, devices, rmm_pool, spill)
    limits = RunLimits(max_results, time_limit)
    build, ingest = how_to_read(how)
    search = Search(mode, min_left, min_right, max_left, max_right, sizes)
    options = run_options(source, search, build, ingest, engine, "dense", progress, scheduler)
    with temporary_folder(folder) as temporary:
        path = temporary / "run"
        steps.start(source, path, options, limits, progress, ingest_on)
        session = steps.run(path, worker_options, limits, progress, stop, keep=False)
        manifest = RunFolder(path).manifest()
        by_size = open_results(path).sizes() if sizes else None
    assert session is not None  # a new run is not complete before it is mined
    return Count(
        count=session.count,
        outcome=session.outcome,
        fingerprint=manifest.fingerprint if manifest else None,
        seconds=time.perf_counter() - started,
        sizes=by_size,
    )
