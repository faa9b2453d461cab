"""Somebody is told how a run ended, unless all went well: which run, where, how many bicliques, and where to look."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Cancelled, Cancelling, Completed, Running, Scheduled

import bicliques as bq
from bicliques.flows.events import tell
from bicliques.flows.mine import mine
from bicliques.pipeline.results.results import Results
from tests.flows.grouped import grouped
from tests.flows.receiver import BLOCK
from tests.flows.states import read
from tests.support.runs import QUIET, answer, random_edges

pytestmark = pytest.mark.usefixtures("prefect_server")

EDGES = random_edges(14, 11, 0.4, 2)


def run(source: Path, output: Path | str, **options) -> State[Any]:
    given = grouped(workers=0, report=False, notify=BLOCK, **options)
    return mine(str(source), str(output), **given, return_state=True)


def test_a_failure(tmp_path, told):
    state = run(tmp_path / "{date}.csv", f"{tmp_path}/runs/{{date}}", date="2026-01-31")
    assert state.is_failed()
    [message] = told
    assert message["title"] == "bicliques: mine failed"
    lines = message["text"].splitlines()
    assert lines[0].startswith(f"Flow run 2026-01-31.csv to {tmp_path}/runs/2026-01-31 of mine ended as Failed: ")
    assert "2026-01-31.csv" in lines[0]
    assert lines[1] == f"Due: {datetime.now(UTC):%Y-%m-%d}{lines[1][15:]}"
    assert lines[2] == f"Folder: {tmp_path}/runs/2026-01-31"
    assert lines[3] == "Bicliques: none, because no run has begun there"


def test_no_name_makes_a_line_of_its_own(tmp_path, told):
    assert run(tmp_path / "no\nLink: here.csv", tmp_path / "out\nLink: there").is_failed()
    [message] = told
    assert not [line for line in message["text"].splitlines() if line.startswith("Link: ")]
    assert "out\\nLink: there" in message["text"]


def test_a_limit_is_told_and_a_run_without_one_is_not(tmp_path, source, told):
    state = run(source, tmp_path / "out", max_results=5)
    [message] = told
    assert message["title"] == "bicliques: mine limit reached"
    lines = message["text"].splitlines()
    assert f"Folder: {tmp_path / 'out'}" in lines
    assert "Bicliques: 5 so far, not all" in lines
    assert [line for line in lines if line.endswith(f"/runs/flow-run/{read(state).id}")]
    assert run(source, tmp_path / "out").name == "Completed"
    assert len(told) == 1


def test_one_that_was_stopped_in_a_terminal(tmp_path, source, told, monkeypatch):
    monkeypatch.setattr(Results, "outcome", "interrupted")
    assert run(source, tmp_path / "out", max_results=5).is_cancelled()
    [message] = told
    assert message["title"] == "bicliques: mine cancelled"
    assert "go on with: bicliques resume" in message["text"]


def test_one_that_a_worker_cancelled(tmp_path, source, told):
    """The hook is called in another process, which knows only what the server does."""
    bq.mine(source, tmp_path / "out", **QUIET)
    with get_client(sync_client=True) as client:
        flow_run = client.create_flow_run(mine, parameters={"source": "g", "notify": BLOCK}, state=Running())
        client.update_flow_run_labels(flow_run.id, {"folder": str(tmp_path / "out")})
        client.set_flow_run_name(flow_run.id, "tonight")
    tell(mine, flow_run, Cancelling(message="by Ann"))
    assert told[0]["title"] == "bicliques: mine cancelled"
    assert told[0]["text"].startswith("Flow run tonight of mine ended as Cancelled: by Ann\nDue: ")
    assert f"Bicliques: {answer(EDGES)[0]}, all of them" in told[0]["text"]


def test_those_that_were_skipped_because_a_run_took_so_long(told):
    """No worker begins them, so no hook of theirs is called; the run that had the slot tells of them."""
    begun = datetime(2026, 1, 31, 3, 0, tzinfo=UTC)

    def scheduled(client, deployment, day: int) -> FlowRun:
        due = begun + timedelta(days=day)
        parameters = {"source": "g", "notify": BLOCK}
        made = client.create_flow_run_from_deployment(
            deployment, parameters=parameters, state=Scheduled(scheduled_time=due)
        )
        assert made.expected_start_time == due
        return made

    with get_client(sync_client=True) as client:
        deployment = client.create_deployment(client.create_flow(mine), "nightly")
        before, long, skipped, run_well, waiting = (scheduled(client, deployment, day) for day in range(-1, 4))
        client.set_flow_run_state(before.id, Cancelled(), force=True)
        client.set_flow_run_state(long.id, Running(), force=True)
        client.set_flow_run_state(skipped.id, Cancelled(message="Deployment concurrency limit reached."), force=True)
        client.set_flow_run_state(run_well.id, Running(), force=True)
        client.set_flow_run_state(run_well.id, Cancelled(), force=True)
        tell(mine, client.read_flow_run(long.id), Completed(message="12 bicliques"))
        assert waiting.deployment_id == deployment
    [message] = told
    assert message["title"] == "bicliques: mine completed"
    last = message["text"].splitlines()[-1]
    assert last == "Cancelled before they began, while this run was under way: those due 2026-02-01 03:00 UTC"
