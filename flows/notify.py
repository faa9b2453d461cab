"""Tells somebody how a run ended, through a notification block of the Prefect server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect.blocks.core import Block
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.sorting import FlowRunSort
from prefect.flows import Flow
from prefect.logging.loggers import flow_run_logger
from prefect.runtime import flow_run as this_run
from prefect.utilities.urls import url_for

from bicliques.pipeline.results.listing import shown
from bicliques.pipeline.results.results import open_results
from bicliques.pipeline.run.names import url_of
from bicliques.pipeline.run.store import store_at
from bicliques.pipeline.series.runs import is_run
from bicliques.schemas.errors import BicliqueError

#: The label of a flow run that names its folder. A worker reads the label when it tells of a run that was killed.
_FOLDER = "folder"
#: The label of a flow run whose state Unchanged is told to nobody yet.
_QUIET = "quiet"


def note(folder: Path, name: str | None = None, quiet: bool = False) -> None:
    """Label the current flow run with its folder, and give it another name if there is one. Nothing outside a flow.

    With `quiet`, nobody is told if the run ends as Unchanged.
    """
    if this_run.id is None:
        return
    with get_client(sync_client=True) as client:
        client.update_flow_run_labels(this_run.id, {_FOLDER: str(store_at(folder.absolute()).address), _QUIET: quiet})
        if name is not None:
            client.set_flow_run_name(this_run.id, name)


def tell(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """A hook that tells the block in the parameter ``notify`` how the run ended, and which runs had to be left out.

    Nothing is sent without that parameter. Nothing is sent either if no run was left out, and the state is called
    Completed, or Unchanged for fewer nights than are to be told. If sending fails, the log of the run says so.
    """
    block_name = flow_run.parameters.get("notify")
    if block_name is None:
        return
    with get_client(sync_client=True) as client:
        flow_run = client.read_flow_run(flow_run.id)  # with the name and the label that it got since it began
        skipped = _skipped_meanwhile(client, flow_run)
    is_well = state.name == "Completed" or (state.name == "Unchanged" and flow_run.labels.get(_QUIET))
    if state.is_completed() and is_well and not skipped:
        return
    ended = "Cancelled" if state.is_cancelling() else state.name or ""
    block: Any = Block.load(block_name)  # not awaitable here: a hook runs in a thread without an event loop
    with block.raise_on_failure():
        block.notify(_body(flow, flow_run, state, ended, skipped), subject=f"bicliques: {flow.name} {ended.lower()}")
    flow_run_logger(flow_run, flow).info("told %s", block_name)


def _body(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any], ended: str, skipped: list[str]) -> str:
    lines = [f"Flow run {shown(flow_run.name)} of {flow.name} ended as {ended}: {shown(state.message)}"]
    if flow_run.expected_start_time:
        lines.append(f"Due: {_minute(flow_run.expected_start_time)}")
    folder = flow_run.labels.get(_FOLDER)
    if folder is not None:
        lines += [f"Folder: {shown(folder)}", f"Bicliques: {shown(_count(Path(str(folder))))}"]
    address = url_for(flow_run)
    if address:
        lines.append(f"Flow run: {address}")
    if skipped:
        lines.append(f"Cancelled before they began, while this run was under way: those due {', '.join(skipped)}")
    return "\n".join(lines)


def _count(folder: Path) -> str:
    if url_of(folder) is None and not is_run(folder):
        return "none, because no run has begun there"
    try:
        results = open_results(folder)
    except BicliqueError as error:
        return f"none ({error})"
    return f"{len(results):,}, all of them" if results.complete else f"{len(results):,} so far, not all"


def _skipped_meanwhile(client: Any, flow_run: FlowRun) -> list[str]:
    """When the runs of the same deployment were due that the server cancelled because this run had the slot.

    A worker never begins such runs, so none of their hooks is called.
    """
    if flow_run.deployment_id is None or flow_run.start_time is None:
        return []
    wanted = FlowRunFilter(
        deployment_id=FlowRunFilterDeploymentId(any_=[flow_run.deployment_id]),
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.CANCELLED])),
    )
    found = client.read_flow_runs(flow_run_filter=wanted, sort=FlowRunSort.EXPECTED_START_TIME_DESC)
    since = flow_run.start_time
    return sorted(
        _minute(run.expected_start_time)
        for run in found
        if run.run_count == 0 and run.expected_start_time and run.state and run.state.timestamp >= since
    )


def _minute(moment: Any) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"
