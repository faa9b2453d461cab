"""The flow `mine`: from an edge list to proven bicliques in Parquet, in a folder that a second call goes on with."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any, Literal

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.logging import get_run_logger
from prefect.states import Cancelled, Completed

from flows import stages
from flows.cards import publish_run
from flows.identity import complete_since, depends_on_moment, fill_in, folder_for, moment_of
from flows.keys import Keys
from flows.logs import run_logs
from flows.notify import note, tell
from pipeline import engines
from pipeline.choices import run_options
from pipeline.folder import RunFolder, how_to_resume, without_days
from pipeline.results import Results, open_results
from pipeline.sealing import ROWS_WORTH_WORKERS
from pipeline.series import is_run
from pipeline.workers import WorkerOptions, check_workers
from schemas.errors import BicliqueError
from schemas.options import BuildOptions, IngestOptions, RunLimits, RunOptions
from schemas.work import Search

__all__ = ["mine"]


# "Args:" is the form that Prefect reads, and shows beside the fields of the form of a run.
@flow(name="mine", on_completion=[tell], on_failure=[tell], on_cancellation=[tell], on_crashed=[tell])
def mine(
    source: str,
    output: str = "runs/{date}",
    *,
    date: datetime.date | None = None,
    min_left: int = 1,
    min_right: int = 1,
    max_left: int | None = None,
    max_right: int | None = None,
    max_results: int | None = None,
    time_limit: float | None = None,
    count_only: bool = False,
    sizes: bool = False,
    engine: Literal["auto", "bitmatrix", "cpu", "cumbe", "reference"] = "auto",
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
    latest: bool = False,
    concurrency_limit: str | None = None,
    notify: str | None = None,
) -> Any:
    """Write every maximal biclique of a bipartite graph to Parquet.

    Returns ``folder``, ``count``, ``fingerprint`` (decimal string) and ``outcome``; None when it was stopped. The flow
    run is Completed, by the name Limit reached if there may be more bicliques, or Needs attention if all are there and
    something beside them went wrong; Cancelled if it was stopped.

    Args:
        source: Path of an edge list, as the worker sees it. {date} and {time} are filled in, as in the output.
        output: Folder of the run. {date} becomes the day and {time} the time for which the run was scheduled, UTC. If
            the folder holds this run already, the run goes on, and a complete one is left alone. If it holds another
            run of that day, this one begins in a folder with a number, as runs/2026-01-31.2.
        date: The day to fill in, as 2026-01-31, if it is not the scheduled one: to make up for a night.
        min_left: Fewest left members of a biclique; prunes the search.
        min_right: Fewest right members of a biclique; prunes the search.
        max_left: Most left members; a filter, larger bicliques are left out.
        max_right: Most right members; a filter, larger bicliques are left out.
        max_results: Stop after so many bicliques, never one more. It may differ when the run goes on.
        time_limit: Stop after so many seconds of mining. It may differ when the run goes on.
        count_only: Count and fingerprint, write no bicliques.
        sizes: With count_only, also count how many there are of each size.
        engine: What searches; auto takes the fastest that can run here, or the one the run was begun with.
        workers: Worker processes, 0 for none beside the process of the flow; else one per core or per GPU.
        scheduler: Address of a Dask scheduler to work on, instead of processes on this machine.
        slice_seconds: Longest time of a slice, in seconds.
        devices: Numbers of the GPUs to use; all if none is given.
        rmm_pool: A pool of so much GPU memory in each worker, as 40GB, or 0.8 of the GPU.
        spill: Let cuDF move its tables to main memory when a GPU is full.
        write_on: Where Parquet is encoded; the result is the same.
        ids: What the lists hold, the labels of the input or row numbers of the label tables.
        root_side: The side whose vertices begin the search; the result is the same.
        order: Of the vertices that begin the search; the result is the same.
        format: Of the input, by a name that `bicliques formats` lists; else by name and content.
        left: Column of the left side, by name or position from 0; else the first.
        right: Column of the right side, by name or position from 0; else the second.
        delimiter: One character between columns of a CSV; else by the first lines.
        header: Whether the first line of a CSV holds names; else by its content.
        label_type: Of the labels; auto takes integers when every label of a column is one.
        skip_bad_lines: Leave out and count lines that cannot be read, instead of refusing the file.
        ingest_on: Where the input is read; the result is the same.
        report: Write report.html once the run is complete.
        keep: Once this run is complete and the newest of its series, so many complete runs of the series stay beside
            it, the newest; older ones are removed. Without it nothing is removed.
        latest: Once this run is complete, have the link `latest` beside it lead to the newest run of its series.
        concurrency_limit: A global concurrency limit of the Prefect server; the run waits for a slot before it mines.
        notify: A notification block, as custom-webhook/on-call, that is told how the run ended unless all went well.
    """
    moment = moment_of(date)
    named = Path(fill_in(output, moment))
    note(_name(source, named), named)
    asked = RunOptions(
        source=str(Path(fill_in(source, moment)).absolute()),
        search=Search("prove" if count_only else "list", min_left, min_right, max_left, max_right, sizes),
        build=BuildOptions(root_side, order),
        ingest=IngestOptions(format, left, right, delimiter, header, label_type, skip_bad_lines),
        engine=engine,
        ids=ids,
    )
    limits = RunLimits(max_results, time_limit)
    miners = WorkerOptions(workers, scheduler, slice_seconds, devices, rmm_pool, spill, write_on)
    path = folder_for(named, asked, may_be_numbered=depends_on_moment(output))
    if path != named:
        note(_name(source, path), path)
    since = complete_since(path) if is_run(path) else None
    options = _options(path, asked, scheduler, since)
    check_workers(miners, engines.kind(options.engine).place)
    series = str(Path(source).absolute())
    keys = Keys.of(without_days(series))
    day = f"{moment:%Y-%m-%d}" if date or depends_on_moment(source) or depends_on_moment(output) else None
    stages.ingest(path, options, limits, ingest_on, series, day)
    stages.build(path)
    stages.plan(path)
    session = stages.mine(path, miners, limits, concurrency_limit, keys)
    if session.outcome == "complete":
        worth_them = session.count > ROWS_WORTH_WORKERS
        stages.seal(path, WorkerOptions(workers, scheduler) if worth_them else WorkerOptions(workers=0), keys)
    results = open_results(path)
    problems = _finish(results, keys, report, latest, keep) if results.complete else []
    if not results.complete:
        publish_run(results, keys)
    state = _state(results, since, problems)
    context = FlowRunContext.get()
    if state.is_cancelled() and context is not None and context.flow_run is not None:
        tell(mine, context.flow_run, state)  # Prefect calls no hook for a state that a flow returns
    return state


def _name(source: str, folder: Path) -> str:
    return f"{Path(source).name} to {folder}"


def _options(path: Path, asked: RunOptions, scheduler: str | None, since: str | None) -> RunOptions:
    """Those of the run that is there; else what is asked for, the engine chosen."""
    log = get_run_logger()
    if not is_run(path):
        with run_logs():
            return run_options(
                asked.source, asked.search, asked.build, asked.ingest, asked.engine, asked.ids, scheduler=scheduler
            )
    options = RunFolder(path).options()
    if since is None:
        log.info("going on with the run in %s, engine %s as before", path, options.engine)
    else:
        log.info("%s is complete since %s, from the same input with the same options; it is left alone", path, since)
    return options


def _finish(results: Results, keys: Keys, report: bool, latest: bool, keep: int | None) -> list[str]:
    """All that comes after the proof; what goes wrong there does not make the run fail, and is returned."""
    path, problems = results.path, []
    page = None
    if report:
        try:
            page = stages.page(path)
        except Exception as error:  # a task may fail for want of anything; the bicliques are there
            problems.append(f"the page could not be written: {error}")
    publish_run(results, keys, page)
    try:
        stages.mark(path, latest)
    except BicliqueError as error:
        problems.append(str(error))
    if keep is not None:
        try:
            problems += stages.prune(path, keep).problems
        except BicliqueError as error:
            problems.append(str(error))
    return problems


def _state(results: Results, since: str | None, problems: list[str]) -> State[Any]:
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
    if outcome != "complete":
        go_on = how_to_resume(folder, outcome)
        message = f"{len(results):,} bicliques in {folder}, not all: {outcome}; go on with: {go_on}"
        return Completed(name="Limit reached", message=message, data=summary)
    message = f"{len(results):,} bicliques, all of them, in {folder}"
    message += f", complete since {since} and left alone" if since else ""
    if problems:
        return Completed(name="Needs attention", message=f"{message}; but {'; '.join(problems)}", data=summary)
    return Completed(message=message, data=summary)
