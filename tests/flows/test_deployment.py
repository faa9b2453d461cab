"""From ``prefect.yaml`` to Parquet, through a server, a schedule and a worker, as docs/operations.md says."""

import re
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml

from tests.flows.deployed import Server, server, wait_for
from tests.flows.receiver import receiver
from tests.support.runs import ROOT, answer, manifest_pair, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 1)
SMALL = {"workers": {"workers": 0}, "result": {"report": False}}
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def prefect_yaml(tmp_path: Path, source: Path) -> Path:
    """A copy in which the refresh is due every minute, reads a small graph, and is verified as the document shows."""
    content = yaml.safe_load((ROOT / "prefect.yaml").read_text())
    refresh, verify = (
        next(deployment for deployment in content["deployments"] if deployment["name"] == name)
        for name in ("refresh", "verify")
    )
    verify |= yaml.safe_load(documented("    triggers:"))
    assert refresh["schedules"][0]["cron"] == "0 3 * * *"
    refresh["schedules"][0]["cron"] = "* * * * *"
    refresh["parameters"] |= {"source": str(source), "output": f"{tmp_path}/runs/{{date}}", **SMALL}
    file = tmp_path / "prefect.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def documented(beginning: str) -> str:
    """The block of YAML in the document that begins so."""
    (found,) = re.findall(rf"(?ms)^```yaml\n({re.escape(beginning)}.*?)^```", OPERATIONS)
    return str(found)


POOL = "work-pool create bicliques --type process"
LIMIT = "gcl create mining --limit 1"
DEPLOY = "--no-prompt deploy --all"
WORKER = "worker start --pool bicliques"


@pytest.mark.exhaustive
@pytest.mark.timeout(1200)
def test_a_run_on_demand_and_one_by_the_schedule(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    expected = (answer(EDGES)[0], answer(EDGES))
    with server(tmp_path) as prefect:
        assert prefect.get("admin/settings")["server"]["analytics_enabled"] is False
        prefect.commands(POOL, LIMIT, f"{DEPLOY} --prefect-file {prefect_yaml(tmp_path, source)}")
        assert prefect.deployment("verify/verify")
        a_skipped_night_is_told(prefect)
        a_change_is_told(prefect)
        on_demand = prefect.deployment("mine/on-demand")
        asked = {"source": str(source), "output": str(tmp_path / "asked"), **SMALL}
        prefect.post(f"deployments/{on_demand}/create_flow_run", parameters=asked)
        with prefect.process("worker", WORKER, cwd=tmp_path):
            ended(prefect, on_demand)
            assert found(tmp_path / "asked") == expected
            scheduled = ended(prefect, prefect.deployment("mine/refresh"))
            assert scheduled["auto_scheduled"]
            day = tmp_path / "runs" / scheduled["expected_start_time"][:10]
            assert found(day) == found(tmp_path / "runs" / "latest") == expected
            assert (day / "_SUCCESS").exists()
            assert scheduled["name"] == f"g.parquet to {day}"
            verified = ended(prefect, prefect.deployment("verify/verify"))
            assert verified["parameters"] == {"output": str(day)}
            assert verified["name"] == f"verify {day}"


def a_skipped_night_is_told(prefect: Server):
    """By the server, as the document sets it up; no worker is there, nor would it begin the run."""
    with receiver() as (url, received):
        programs = re.findall(r"(?ms)^```python\n(from .*?)^```", OPERATIONS.partition("## Be told")[2])
        assert len(programs) == 2
        prefect.program("\n".join(programs).replace("http://127.0.0.1:8080/hooks/prefect", url))
        refresh = prefect.deployment("mine/refresh")
        last_night, tonight = (prefect.post(f"deployments/{refresh}/create_flow_run")["id"] for _ in range(2))
        states = [
            prefect.post(f"flow_runs/{night}/set_state", state={"type": "PENDING"})["state"]["type"]
            for night in (last_night, tonight)
        ]
        assert states == ["PENDING", "CANCELLED"]
        wait_for(lambda: received, 120, lambda: prefect.log("server"))
        assert received[0]["title"] == "bicliques: refresh Cancelled"
        assert f"/runs/flow-run/{tonight}" in received[0]["text"]
        prefect.post(f"flow_runs/{last_night}/set_state", state={"type": "CANCELLED"})  # gives its slot back


def a_change_is_told(prefect: Server):
    """By the automation of the document, with the block that was made before."""
    with receiver() as (url, received):
        (block,) = (found for found in prefect.post("block_documents/filter") if found["name"] == "on-call")
        prefect.patch(f"block_documents/{block['id']}", data={"url": url})
        automation = documented("name: what changed").replace("00000000-0000-0000-0000-000000000000", block["id"])
        (prefect.home / "changed.yaml").write_text(automation)
        prefect.commands(f"automation create --from-file {prefect.home / 'changed.yaml'}")
        payload = {"series": "in/{date}.csv", "gone": 3, "new": 2, "folder": "runs/2026-01-31"}
        resource = {"prefect.resource.id": "bicliques.run.1"}
        code = (
            f"from prefect.events import emit_event; emit_event('bicliques.run.changed', {resource}, payload={payload})"
        )
        prefect.program(code)
        message = {
            "title": "bicliques: in/{date}.csv has changed",
            "text": "3 are gone and 2 are new in runs/2026-01-31",
        }
        # the other automation tells of last night, too, which has just been cancelled
        wait_for(lambda: message in received, 120, lambda: f"{received}\n{prefect.log('server')}")


def test_these_commands_are_the_documented_ones():
    lines = OPERATIONS.splitlines()
    for command in (POOL, LIMIT, DEPLOY, WORKER):
        assert f"    prefect {command}" in lines


def found(folder: Path) -> tuple[int, tuple[int, int]]:
    """Rows in Parquet, and count and fingerprint in the manifest."""
    return ds.dataset(folder / "bicliques", format="parquet").count_rows(), manifest_pair(folder)


def ended(prefect: Server, deployment: str) -> dict[str, Any]:
    """A flow run of a deployment that has ended, well; later ones of the schedule may be cancelled meanwhile."""
    run = wait_for(lambda: prefect.ended(deployment), 400, lambda: prefect.log("server") + prefect.log("worker"))
    assert run["state"]["type"] == "COMPLETED", run["state"]["message"]
    return run
