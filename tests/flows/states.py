"""What the server knows of a flow run that ended."""

import re
import time
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    FlowRunFilter,
    FlowRunFilterId,
    LogFilter,
    LogFilterFlowRunId,
)
from prefect.client.schemas.objects import Artifact, FlowRun, State, TaskRun
from prefect.events.filters import EventFilter, EventRelatedFilter


def artifacts(state: State[Any]) -> dict[str, Any]:
    """Data by what the artifact is of; the end of the keys, which all of a run share, is under ""."""
    found = {str(one.key): one.data for one in _artifacts(state)}
    (end,) = {part[2] for part in map(_parts, found) if part}
    return {part[1]: found[key] for key in found if (part := _parts(key))} | {"": end}


def descriptions(state: State[Any]) -> dict[str, str]:
    """Descriptions by what the artifact is of."""
    return {part[1]: one.description or "" for one in _artifacts(state) if (part := _parts(str(one.key)))}


def _parts(key: str) -> re.Match[str] | None:
    return re.fullmatch(r"([a-z-]+?)-in-(.*[0-9a-f]{6})", key)


def _artifacts(state: State[Any]) -> list[Artifact]:
    assert state.state_details.flow_run_id
    wanted = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[state.state_details.flow_run_id]))
    with get_client(sync_client=True) as client:
        return client.read_artifacts(artifact_filter=wanted)


def read(state: State[Any]) -> FlowRun:
    """The flow run as the server has it."""
    assert state.state_details.flow_run_id
    with get_client(sync_client=True) as client:
        return client.read_flow_run(state.state_details.flow_run_id)


def everything(state: State[Any]) -> str:
    """All that the server shows of a flow run: itself, its tasks, their states, artifacts, events and lines of log."""
    found = state.state_details.flow_run_id
    assert found
    its_events = EventFilter(related=EventRelatedFilter(id=[f"prefect.flow-run.{found}"]))
    with get_client(sync_client=True) as client:
        things = [
            *task_runs(state),  # first, because it waits for the end
            client.read_flow_run(found),
            *client.read_artifacts(artifact_filter=ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[found]))),
            *client.read_logs(_logs(state)),
            *client.read_events(its_events, limit=50).events,
        ]
    return "\n".join(thing.model_dump_json() for thing in things)


def task_runs(state: State[Any]) -> list[TaskRun]:
    """The tasks of a flow run, once all that its log names have ended; the server writes them behind."""
    assert logged(state, "Finished in state", of_flow=True), "it is the last line, and Prefect sends lines now and then"
    of_it = FlowRunFilter(id=FlowRunFilterId(any_=[read(state).id]))
    with get_client(sync_client=True) as client:
        named = {record.task_run_id for record in client.read_logs(_logs(state))} - {None}
        for _ in range(600):
            found = client.read_task_runs(flow_run_filter=of_it)
            if named <= {run.id for run in found if run.state is not None and run.state.is_final()}:
                return found
            time.sleep(0.1)
    raise AssertionError(f"of the tasks {named} some have not ended: {found}")


def tries(state: State[Any]) -> set[int]:
    """How often the tasks of the flow run have been run."""
    return {run.run_count for run in task_runs(state)}


def _logs(state: State[Any]) -> LogFilter:
    assert state.state_details.flow_run_id
    return LogFilter(flow_run_id=LogFilterFlowRunId(any_=[state.state_details.flow_run_id]))


def logged(state: State[Any], start: str, of_flow: bool = False) -> bool:
    """Whether a line that starts so comes into the log of the flow run or a task; Prefect sends lines now and then."""
    with get_client(sync_client=True) as client:
        for _ in range(600):
            for record in client.read_logs(_logs(state)):
                if record.message.startswith(start) and not (of_flow and record.task_run_id):
                    return True
            time.sleep(0.1)
    return False
