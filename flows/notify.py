"""Telling somebody that a run failed, through a notification block of the Prefect server."""

from __future__ import annotations

from typing import Any

from prefect.blocks.core import Block
from prefect.client.schemas.objects import FlowRun, State
from prefect.flows import Flow
from prefect.logging.loggers import flow_run_logger

__all__ = ["notify_of_failure"]


def notify_of_failure(flow: Flow[Any, Any], flow_run: FlowRun, state: State[Any]) -> None:
    """A hook: send the name of the run, its state and its message to the block in the parameter ``notify``.

    Without that parameter nothing is sent. When sending fails, that is in the log of the run, which has failed
    already.
    """
    name = flow_run.parameters.get("notify")
    if name is None:
        return
    body = f"Flow run {flow_run.name} of {flow.name} ended as {state.name}: {state.message}"
    output = flow_run.parameters.get("output")
    body += f"\nOutput: {output}" if output else ""
    block: Any = Block.load(name)  # not awaitable here: a hook runs in a thread without an event loop
    with block.raise_on_failure():
        block.notify(body, subject=f"bicliques: {flow.name} {(state.name or '').lower()}")
    flow_run_logger(flow_run, flow).info("told %s", name)
