"""The flow `mine`: from an edge list to proven bicliques in Parquet, in a folder that a second call goes on with."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Completed

from flows import stages
from flows.cards import publish_run
from flows.identity import fill_in, is_run
from flows.logs import run_logs
from flows.notify import notify_of_failure
from pipeline import engines
from pipeline.choices import run_options
from pipeline.folder import RunFolder, how_to_resume
from pipeline.results import Results, open_results
from pipeline.sealing import ROWS_WORTH_WORKERS
from pipeline.workers import WorkerOptions, check_workers
from schemas.options import BuildOptions, IngestOptions, RunLimits
from schemas.work import Search

__all__ = ["mine"]


@flow(name="mine", on_failure=[notify_of_failure], on_crashed=[notify_of_failure])
def mine(
    source: str,
    output: str = "runs/{date}",
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
    devices: list[int] | None = None,
    rmm_pool: str | None = None,
    spill: bool = False,
    write_on: Literal["auto", "cpu", "gpu"] = "auto",
    ids: Literal["labels", "dense"] = "labels",
    root_side: Literal["auto", "left", "right"] = "auto",
    order: Literal["degree", "two-hop", "unilateral", "id"] = "degree",
    format: str | None = None,
    left: str | int | None = None,
    right: str | int | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    label_type: Literal["auto", "int", "string"] = "auto",
    skip_bad_lines: bool = False,
    ingest_on: Literal["auto", "cpu", "gpu"] = "auto",
    report: bool = True,
    keep: int | None = None,
    concurrency_limit: str | None = None,
    notify: str | None = None,
) -> Any:
    """Write every maximal biclique of a bipartite graph to Parquet.

    Parameters
    ----------
    source : str
        Path of an edge list, as the worker sees it.
    output : str
        Folder of the run; ``{date}`` and ``{time}`` become the day and the time of its first start, UTC. If it
        holds this run already, the run goes on, and a complete one is left alone.
    min_left, min_right, max_left, max_right, max_results, time_limit, count_only, sizes, engine
        See `pipeline.api.mine`, also for all that follow up to ``ingest_on``.
    workers, scheduler, slice_seconds, devices, rmm_pool, spill, write_on
        They may differ when a run goes on, as may ``max_results`` and ``time_limit``.
    ids, root_side, order
    format, left, right, delimiter, header, label_type, skip_bad_lines, ingest_on
    report : bool
        Write ``report.html`` once the run is complete.
    keep : int or None
        Once this run is complete, so many of the complete runs beside it stay, the newest; the others are removed.
    concurrency_limit : str or None
        A global concurrency limit of the Prefect server; the run waits for a slot of it before it mines.
    notify : str or None
        A notification block, as ``custom-webhook/on-call``, that is told when the run fails or crashes.

    Returns
    -------
    dict
        ``folder``, ``count``, ``fingerprint`` (decimal string) and ``outcome``; None when it was stopped. The flow
        run is Completed, by the name Limit reached if there may be more bicliques; Cancelled if it was stopped.
    """
    path = fill_in(output, _first_start())
    limits = RunLimits(max_results, time_limit)
    miners = WorkerOptions(workers, scheduler, slice_seconds, devices, rmm_pool, spill, write_on)
    if engine == engines.AUTO and is_run(path):
        engine = RunFolder(path).options().engine
    with run_logs():
        options = run_options(
            source,
            search=Search("prove" if count_only else "list", min_left, min_right, max_left, max_right, sizes),
            build=BuildOptions(root_side, order),
            ingest=IngestOptions(format, left, right, delimiter, header, label_type, skip_bad_lines),
            engine=engine,
            ids=ids,
            scheduler=scheduler,
        )
    check_workers(miners, engines.kind(options.engine).place)
    stages.ingest(path, source, options, limits, ingest_on)
    stages.build(path)
    stages.plan(path)
    session = stages.mine(path, miners, limits, concurrency_limit)
    if session.outcome == "complete":
        worth_them = session.count > ROWS_WORTH_WORKERS
        stages.seal(path, WorkerOptions(workers, scheduler) if worth_them else WorkerOptions(workers=0))
    results = open_results(path)
    publish_run(results, stages.page(path) if report and results.complete else None)
    if results.complete and keep is not None:
        stages.prune(path, keep)
    return _state(results)


def _first_start() -> datetime:
    """When this flow run was started first: an attempt later than that, after midnight, is to find its folder."""
    context = FlowRunContext.get()
    started = context.flow_run.start_time if context and context.flow_run else None
    return started or datetime.now(UTC)


def _state(results: Results) -> dict[str, Any] | State[Any]:
    folder, outcome = results.path, results.outcome
    if outcome == "interrupted":
        return Cancelled(message=f"stopped; run it again, or go on with: {how_to_resume(folder)}")
    number = results.manifest.fingerprint if results.complete else None
    summary = {
        "folder": str(folder.absolute()),
        "count": len(results),
        "fingerprint": None if number is None else str(number),
        "outcome": outcome,
    }
    if outcome == "complete":
        return Completed(message=f"{len(results):,} bicliques, all of them, in {folder}", data=summary)
    message = f"{len(results):,} bicliques in {folder}, not all: {outcome}; go on with: {how_to_resume(folder)}"
    return Completed(name="Limit reached", message=message, data=summary)
