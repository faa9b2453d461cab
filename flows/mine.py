"""The flow `mine`: from an edge list to proven bicliques in Parquet. Another call for the same folder goes on there.

Prefect shows its options as a form with one model per group. They are made from the table of all options, and have the
descriptions of the table.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args, get_origin

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Completed, Failed
from pydantic import BaseModel, ConfigDict, Field, create_model

from bicliques.flows import tasks
from bicliques.flows.cards import publish_run
from bicliques.flows.ending import Ending, announce_complete, compare, find_new_doubts, finish, much, refusal
from bicliques.flows.events import note, tell
from bicliques.flows.identity import (
    complete_since,
    days_of,
    depends_on_moment,
    fill_in,
    folder_for,
    moment_of,
    unchanged_in,
)
from bicliques.flows.names import OUTPUT, Keys, name_of, name_of_mining
from bicliques.flows.progress import run_logs, say
from bicliques.flows.publishing import Target, check_beside, check_shares, refuse_secrets
from bicliques.kernels import engines
from bicliques.pipeline.api.choices import Asked, with_engine
from bicliques.pipeline.api.table import Entry, entries_of
from bicliques.pipeline.ingest.sources.names import recorded
from bicliques.pipeline.proof.reading import ROWS_WORTH_WORKERS
from bicliques.pipeline.results.listing import shown
from bicliques.pipeline.results.results import Results, open_results
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import day_in, without_days
from bicliques.pipeline.run.opened import driven
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.pruning import refuse_short_lived
from bicliques.pipeline.series.runs import is_run, mark_refused
from bicliques.pipeline.workers.opening import check_workers
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import spoken, written
from bicliques.schemas.option import GROUPS
from bicliques.schemas.options import RunOptions
from bicliques.schemas.values import at_home


def given(*groups: BaseModel) -> dict[str, Any]:
    """The options of all groups in one dictionary, by name."""
    return {name: value for group in groups for name, value in group.model_dump().items()}


def _model(key: str) -> type[BaseModel]:
    entries = [entry for entry in entries_of("flow") if entry.told.group == key]
    return create_model(
        key.capitalize(),
        __config__=ConfigDict(extra="forbid", frozen=True),
        __doc__=GROUPS[key].help,
        __module__=__name__,
        **{
            entry.name: (_hint(entry), Field(entry.default, description=entry.sentence_on("flow"))) for entry in entries
        },
    )  # type: ignore[call-overload]


def _hint(entry: Entry) -> Any:
    """The type of an option, changed where a form cannot ask for it: words to choose from, lists, paths, objects."""
    if entry.choices is not None:
        return Literal[entry.choices]
    if get_origin(entry.hint) is Sequence:
        return tuple[str, ...]  # text may stand for a number
    kinds: Iterable[Any] = get_args(entry.hint)
    if any(kind is object or get_origin(kind) is PathLike for kind in kinds):
        return str | None
    if any(get_origin(kind) is Sequence for kind in kinds):
        return list[int] | None if NoneType in kinds else list[int]
    return entry.hint


if TYPE_CHECKING:
    Result: TypeAlias = Any
    Thresholds: TypeAlias = Any
    Limits: TypeAlias = Any
    Searching: TypeAlias = Any
    Workers: TypeAlias = Any
    Reading: TypeAlias = Any
else:
    Result, Thresholds, Limits, Searching, Workers, Reading = (_model(key) for key in GROUPS)


_USUAL_RESULT, _USUAL_THRESHOLDS, _USUAL_LIMITS = Result(), Thresholds(), Limits()
_USUAL_SEARCH, _USUAL_WORKERS, _USUAL_READING = Searching(), Workers(), Reading()


# Prefect reads the part of the docstring below "Args:", and shows it beside the fields of the form of a run.
@flow(
    name="mine",
    flow_run_name=name_of_mining,
    on_completion=[tell],
    on_failure=[tell],
    on_cancellation=[tell],
    on_crashed=[tell],
)
def mine(
    source: str,
    output: str = OUTPUT,
    *,
    date: datetime.date | None = None,
    last_date: datetime.date | None = None,
    result: Result = _USUAL_RESULT,
    thresholds: Thresholds = _USUAL_THRESHOLDS,
    limits: Limits = _USUAL_LIMITS,
    search: Searching = _USUAL_SEARCH,
    workers: Workers = _USUAL_WORKERS,
    reading: Reading = _USUAL_READING,
    keep: int | None = None,
    keep_created: int = 0,
    latest: bool = False,
    concurrency_limit: str | None = None,
    notify: str | None = None,
    changes: bool = False,
    notify_above: float | None = None,
    notify_unchanged_after: int | None = 2,
    refuse_above: float | None = None,
    refuse_below: int | None = None,
    alert_as: Literal["completed", "failed"] = "completed",
    publish: str | None = None,
) -> Any:
    """Write every maximal biclique of a bipartite graph to Parquet.

    Returns ``folder``, ``count``, ``fingerprint`` (decimal string) and ``outcome``, or None if the run was stopped. A
    run that was stopped is Cancelled. Any other is Completed. Its state is called Limit reached if there may be more
    bicliques, Refused if a gate says so, Needs attention if all bicliques are there, but something else went
    wrong, or the input has a doubt that it did not have in the run before, Unchanged if the input and all options are
    those of the newest run, which then stands for this one, and Much has changed if `notify_above` says so.

    Args:
        source: Path or URL of an edge list, a folder of them, a pattern or a run, as the worker sees it. {date} and
            {time} are filled in, as in the output.
        output: Folder of the run. {date} becomes the day and {time} the time for which the run was scheduled, UTC. If
            the folder holds this run already, the run goes on, and a complete one is left alone. If it holds another
            run of that day, this one begins in a folder with a number, as runs/2026-01-31.2. Or a place in a store, as
            s3://lake/runs/{date}, which gets no number; keep and latest are for folders.
        date: The day to fill in, such as 2026-01-31, if it is not the scheduled one, as to make up for a night.
        last_date: Make up for all nights from date to this day, one after the other, each in a flow run of its own.
        result: What the run gives: bicliques, or only their number and fingerprint; a page.
        thresholds: Which bicliques count, by the sizes of their sides and by given members.
        limits: When the run stops although work is left. They may differ when the run goes on.
        search: How to search; none of these changes the result. A run that goes on keeps its engine if this says auto.
        workers: Who searches, and where; the result is the same. They may differ when the run goes on.
        reading: How to read the input: its format, columns and labels.
        keep: Number of complete runs of the series that stay beside this run, the newest ones. Older ones are removed
            once this run is complete and is the newest of the series. Without a number nothing is removed. A run with a
            file .keep in its folder stays. A night that is made up for, and that the next one would remove, is refused.
        keep_created: With keep: runs that were created within so many days stay, too, whichever day they stand for.
        latest: Once this run is complete, have the link `latest` beside it lead to the newest run of its series.
        concurrency_limit: A global concurrency limit of the Prefect server. The run waits for a slot before it mines.
        notify: A notification block, such as custom-webhook/on-call. It is told how the run ended, unless all went
            well.
        changes: Compare the run with the one before it in its series, once it is complete. What is gone and new comes
            into its folder, below changes/.
        notify_above: With changes: a share from 0 to 1. If more of all bicliques of the two runs are in one of them
            only, the run ends as Much has changed, of which `notify` is told.
        notify_unchanged_after: If input and options are those of the newest run of the series, nothing is mined and the
            run ends as Unchanged. `notify` is told once that run has been the newest for so many nights. Without a
            number it is never told.
        refuse_above: With changes: a share as of notify_above. A run that changed more, or that could not be compared,
            ends as Refused, of which `notify` is told. It is neither published nor linked as `latest`, and no later run
            is compared with it. To let it pass, start the flow again with its date, and without refuse_above.
        refuse_below: A run with fewer bicliques ends as Refused, too.
        alert_as: The type of the states Refused, Needs attention and Much has changed. Of type failed they are red, and
            count as failures on dashboards and in automations.
        publish: A folder or a URL, such as s3://lake/nights/{date}, where other programs get a copy of the run once it
            is complete. {date} and {time} are filled in, as in the output. A run that was published there is replaced.
            Nothing secret may be in it, because the worker has the credentials.
    """
    output = at_home(output)
    refuse_secrets("source", source)
    check_shares(changes, notify_above=notify_above, refuse_above=refuse_above)
    gates = {"refuse_above": refuse_above, "refuse_below": refuse_below}
    gate = next((name for name, bound in gates.items() if bound is not None), None)
    stored = check_beside(output, keep, latest, gate)
    series = recorded(source)
    if last_date is not None:
        return _nights(days_of(date, last_date, output), output, series, keep, keep_created)
    moment = moment_of(date)
    target = Target.of(publish, moment, lists=not result.count_only)
    named = driven(Path(fill_in(output, moment)))
    note(named)
    options = given(result, thresholds, limits, search, workers, reading)
    asked = Asked.of(fill_in(source, moment), options, mode="fingerprint" if result.count_only else "list")
    path = folder_for(named, asked.options, may_be_numbered=depends_on_moment(output) and not stored)
    today, nights = f"{moment:%Y-%m-%d}", None
    if path == named and not is_run(path) and depends_on_moment(output):
        path, nights = unchanged_in(path, asked.options, series, today) or (path, None)
    if path != named:
        quiet = nights is not None and (notify_unchanged_after is None or nights < notify_unchanged_after)
        note(path, name_of(fill_in(source, moment), str(path)), quiet)
    since = complete_since(path) if is_run(path) else None
    chosen = _options(path, asked, since)
    check_workers(asked.workers, engines.kind(chosen.engine).platform)
    keys = Keys.of(without_days(series), output)
    day = today if date or depends_on_moment(source) or depends_on_moment(output) else None
    if keep is not None and since is None:
        refuse_short_lived(path, without_days(series), day or day_in(path.name) or today, keep, keep_created)
    with asked.workers.limited():
        tasks.ingest(path, chosen, asked.limits, asked.call, series, day)
        if gate is not None and since is None:
            mark_refused(path, True)  # until it has passed, even if this process is killed once the run is complete
        tasks.build(path)
        tasks.plan(path)
        is_night = since is None and depends_on_moment(output) and not stored
        session, why_mined = tasks.mine(path, asked.workers, asked.limits, concurrency_limit, keys, is_night)
        if session.outcome == "complete":
            provers = WorkerOptions(workers=asked.workers.workers, scheduler=asked.workers.scheduler)
            worth_them = session.count > ROWS_WORTH_WORKERS
            tasks.prove(path, provers if worth_them else WorkerOptions(workers=0), keys)
    results = open_results(path)
    ending, found = Ending(), None
    if results.complete:
        found = compare(path, keys, ending.problems) if changes else None
        ending.refused = refusal(len(results), refuse_below, found, refuse_above, ending.problems)
        if nights is None:
            find_new_doubts(path, ending.problems)
        announce = partial(announce_complete, results, without_days(series), output, found, notify_above, target)
        finish(results, keys, asked.call.report, latest, (keep, keep_created), target, announce, ending)
    else:
        publish_run(results, keys)
    bounds = [bound for bound in (notify_above, refuse_above) if bound is not None]
    clause = much(found, min(bounds)) if bounds and (nights is None or ending.refused) else None
    alert = Failed if alert_as == "failed" else Completed
    state = _state(results, since, ending, clause, nights, why_mined, alert)
    context = FlowRunContext.get()
    if state.is_cancelled() and context is not None and context.flow_run is not None:
        tell(mine, context.flow_run, state)  # Prefect calls no hook for a state that a flow returns
    return state


def _options(path: Path, asked: Asked, since: str | None) -> RunOptions:
    """The options of the run in `path`. If there is none, the options that are asked for, with the engine chosen."""
    if not is_run(path):
        with run_logs():
            return with_engine(asked.options, asked.workers.scheduler)
    options, where = RunFolder(path).options(), store_at(path).shown()
    if since is None:
        say(f"going on with the run in {where}, engine {options.engine} as before")
    else:
        say(f"{where} is complete since {since}, from the same input with the same options; it is left alone")
    return options


def _nights(days: list[datetime.date], output: str, series: str, keep: int | None, keep_created: int) -> State[Any]:
    """Run the flow for each of these days, with all else as the current flow run has it. One that fails stops none."""
    if keep is not None:
        for day in days:
            path = Path(fill_in(output, moment_of(day)))
            refuse_short_lived(path, without_days(series), str(day), keep, keep_created, map(str, days))
    context = FlowRunContext.get()
    assert context is not None
    night, parameters = cast("Callable[..., State[Any]]", mine), context.parameters or {}
    ended: dict[datetime.date, State[Any]] = {}
    for day in days:
        ended[day] = night(**parameters | {"date": day, "last_date": None}, return_state=True)
        if ended[day].is_cancelled():
            break
    names = Counter(state.name for state in ended.values())
    message = f"{number(len(days), 'night')} from {days[0]} to {days[-1]}: "
    message += ", ".join(f"{n} {name}" for name, n in names.items())
    if ended[day].is_cancelled():
        return Cancelled(message=message)
    if failed := [f"{day} ({state.message})" for day, state in ended.items() if not state.is_completed()]:
        return Failed(message=shown(f"{message}; failed: {', '.join(failed)}"))
    return Completed(message=message, data=[state.result() for state in ended.values()])


def _state(
    results: Results,
    since: str | None,
    ending: Ending,
    much: str | None,
    nights: int | None,
    why_mined: str | None,
    alert: Callable[..., State[Any]],
) -> State[Any]:
    folder, outcome = results.path, results.outcome
    where = store_at(folder).shown()
    if outcome == "interrupted":
        return Cancelled(message=shown(f"stopped; run it again, or go on with: {written(how_to_resume(folder))}"))
    fingerprint = results.manifest.fingerprint if results.complete else None
    summary = {
        "folder": str(store_at(folder.absolute()).address),
        "count": len(results),
        "fingerprint": None if fingerprint is None else str(fingerprint),
        "outcome": outcome,
    }
    found = number(len(results), "biclique")
    if outcome != "complete":
        go_on = written(how_to_resume(folder, outcome))
        message = f"{found} in {where}, not all: {outcome}; go on with: {go_on}"
        return Completed(name="Limit reached", message=shown(message), data=summary)
    message = f"{found}, all of them, in {where}"
    message += f", complete since {since} and left alone" if since else ""
    if (parent := results.manifest.parent) is not None:
        message += f", refreshed from {parent.folder} by {parent.gone:,} gone and {parent.new:,} new"
    message += f", mined anew, because {spoken(why_mined)}" if why_mined else ""
    if ending.published is not None:
        message += f", published at {ending.published.url}"
        summary["published"] = ending.published.url
    message += f"; {much}" if much else ""
    message += "" if nights is None else f"; its input has not changed for {number(nights, 'night')}"
    message += f"; neither published nor linked, because {ending.refused}" if ending.refused else ""
    message += f"; but {'; '.join(ending.problems)}" if ending.problems else ""
    names = {
        "Refused": ending.refused,
        "Needs attention": ending.problems,
        "Unchanged": nights is not None,
        "Much has changed": much,
    }
    name = next((name for name, is_so in names.items() if is_so), None)
    make = Completed if name in (None, "Unchanged") else alert
    return make(name=name, message=shown(message), data=summary)
