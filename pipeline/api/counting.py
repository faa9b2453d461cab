"""Counts maximal bicliques in a temporary run, and keeps nothing."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from typing import Any

from kernels import engines
from pipeline.api import steps
from pipeline.api.choices import Asked, with_engine
from pipeline.api.table import described
from pipeline.process import startup
from pipeline.process.interrupts import Interrupted
from pipeline.proof import vertices
from pipeline.results.counted import Count
from pipeline.results.results import Results
from pipeline.run.accounts import peak_rss_of, seconds_of
from pipeline.run.files import temporary_folder
from pipeline.run.opened import Run
from pipeline.run.progress import OnProgress, Progress, number, pass_on, to_callback
from pipeline.run.session import MiningSession
from pipeline.workers.devices import Devices
from pipeline.workers.opening import begun, check_workers
from pipeline.workers.options import Scheduler
from schemas.members import Labels
from schemas.options import LabelType, Order, RootSide, Where
from schemas.search import Mode
from schemas.values import as_path
from schemas.where import Conditions

__all__ = ["count"]


@described("count")
def count(
    source: Any,
    *,
    fingerprint: bool = False,
    folder: str | os.PathLike[str] | None = None,
    per_vertex: str | os.PathLike[str] | None = None,
    sizes: bool = False,
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    containing_left: Labels = (),
    containing_right: Labels = (),
    containing_left_from: str | os.PathLike[str] | None = None,
    containing_right_from: str | os.PathLike[str] | None = None,
    max_results: int | None = None,
    time_limit: float | None = None,
    engine: str = "auto",
    root_side: RootSide = "auto",
    order: Order = "degree",
    workers: int | None = None,
    scheduler: Scheduler | None = None,
    slice_seconds: float = 10.0,
    devices: Devices | None = None,
    device_memory: str | None = None,
    rmm_pool: str | None = None,
    spill: bool = False,
    strict: bool = False,
    ingest_on: Where = "auto",
    format: str | None = None,
    left: str | int | None = None,
    right: str | int | None = None,
    where: Conditions = (),
    delimiter: str | None = None,
    skip_lines: int | None = None,
    header: bool | None = None,
    label_type: LabelType = "auto",
    min_weight: float | None = None,
    weight: str | int | None = None,
    skip_bad_lines: bool = False,
    progress: OnProgress | bool | None = None,
    stop: threading.Event | None = None,
) -> Count:
    """Count the maximal bicliques of a bipartite graph. Nothing is kept.

    Parameters
    ----------
    source, progress, stop
        As for `pipeline.mine`.
    {options}

    Returns
    -------
    Count
        ``count`` is the number, and ``complete`` is False when a limit was reached. Then nothing is written into the
        folder of `per_vertex`.

    Raises
    ------
    InputError
        If the input or an option is wrong, or the folder of `per_vertex` is not empty.
    ResourceError
        If the engine cannot run, workers fail, or a folder is full.
    KeyboardInterrupt
        After Ctrl-C. What was counted until then is its ``so_far`` (`pipeline.process.interrupts.Interrupted`).

    Examples
    --------
    >>> import pipeline
    >>> counted = pipeline.count("examples/debian12_package_tag.parquet", min_left=5, min_right=5)
    >>> counted.count, counted.complete
    (11869, True)
    """
    given, started, progress = locals(), startup.began(), to_callback(progress)
    mode: Mode = "fingerprint" if fingerprint else "count"
    asked = Asked.of(source, given, mode=mode, ids="dense", per_vertex=per_vertex is not None)
    if per_vertex is not None:
        per_vertex = as_path(per_vertex, "the folder of --per-vertex")
        vertices.refuse_full(per_vertex)
    notes: list[Progress] = []
    options = with_engine(asked.options, scheduler, notes.append)
    platform = engines.kind(options.engine).platform
    check_workers(asked.workers, platform)
    startup.over()  # from now on Ctrl-C must not end the process at once, because a folder has to be removed
    with (
        asked.workers.limited(),
        begun(asked.workers, platform),
        temporary_folder(folder) as temporary,
        steps.started(source, temporary / "run", options, asked.limits, progress, asked.call, keep=False) as run,
    ):
        pass_on(notes, progress)
        session = steps.complete_run(run, asked.workers, asked.limits, progress, stop)
        assert session is not None  # a new run is not complete before it is mined
        counted = _count_of(run, session, time.perf_counter() - started)
        if per_vertex is not None and counted.complete:
            vertices.copy(run, per_vertex)
            counted = replace(counted, vertices=os.fspath(per_vertex))
    if session.ctrl_c:
        raise Interrupted(f"stopped with {number(counted.count, 'biclique')} counted; nothing is kept", counted)
    return counted


def _count_of(run: Run, session: MiningSession, total_seconds: float) -> Count:
    manifest = run.folder.manifest()
    return Count(
        count=session.count,
        outcome=session.outcome,
        fingerprint=manifest.fingerprint if manifest else None,
        total_seconds=total_seconds,
        sizes=Results(run).sizes() if run.options.search.sizes else None,
        input=run.facts("ingest"),
        graph=run.facts("build"),
        options=run.options.to_json(),
        seconds=manifest.seconds if manifest else seconds_of(run),
        peak_rss=manifest.peak_rss if manifest else peak_rss_of(run, run.ledger().entries.values()),
    )
