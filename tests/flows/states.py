"""What the server knows of a flow run that ended."""

from __future__ import annotations

import time
from typing import Any

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId, LogFilter, LogFilterFlowRunId
from prefect.client.schemas.objects import State

__all__ = ["artifacts", "logged"]


def artifacts(state: State[Any]) -> dict[str, Any]:
    """Data by key."""
    assert state.state_details.flow_run_id
    wanted = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[state.state_details.flow_run_id]))
    with get_client(sync_client=True) as client:
        return {str(found.key): found.data for found in client.read_artifacts(artifact_filter=wanted)}


def logged(state: State[Any], start: str) -> bool:
    """Whether a line that starts so comes into the log of the flow run; Prefect sends them every two seconds."""
    assert state.state_details.flow_run_id
    wanted = LogFilter(flow_run_id=LogFilterFlowRunId(any_=[state.state_details.flow_run_id]))
    with get_client(sync_client=True) as client:
        for _ in range(100):
            if any(record.message.startswith(start) for record in client.read_logs(wanted)):
                return True
            time.sleep(0.2)
    return False
