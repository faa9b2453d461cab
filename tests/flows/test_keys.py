"""Keys of artifacts: one deployment does not write over those of another, and has a history of its own."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey
from prefect.flow_engine import run_flow

from bicliques.flows import names
from bicliques.flows.mine import mine
from bicliques.flows.names import Keys
from tests.flows.grouped import grouped
from tests.flows.states import artifacts
from tests.support.runs import random_edges, write_edges

#: The keys of a flow run, by the arguments of `Keys.of` and by the deployment and the flow.
Of = Callable[..., str]


@pytest.fixture
def of(monkeypatch):
    def begin(series: str | None, output: str = "out", deployed: str | None = None, flow: str = "mine") -> str:
        monkeypatch.setattr(names, "deployment", SimpleNamespace(name=deployed))
        monkeypatch.setattr(names, "flow_run", SimpleNamespace(flow_name=flow))
        key = Keys.of(series, output).key("largest")
        assert ArtifactCreate(key=key).key == key, "Prefect takes it"
        return key

    return begin


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"series": "/in/purchases.csv.gz", "deployed": "refresh"}, "refresh-purchases"),
        ({"series": "/in/{date}.csv", "deployed": "Every Night!"}, "every-night-in"),
        ({"series": "s3://lake/ratings/", "output": "runs/{date}"}, "mine-runs-ratings"),
        (
            {"series": "/in/purchases.csv", "output": "/srv/asked/{date}T{time}", "flow": "verify"},
            "verify-asked-purchases",
        ),
        ({"series": None, "output": "OUT/"}, "mine-out-memory"),
        ({"series": "/資料.csv", "deployed": "夜"}, None),
        ({"series": "/" + 200 * "long-" + ".csv", "deployed": "refresh"}, f"refresh-{10 * 'long-'}lo"),
    ],
    ids=str,
)
def test_keys_are_readable(of, given, words):
    what, _, rest = of(**given).partition("-in-")
    *end, digest = rest.split("-")
    assert (what, "-".join(end), len(digest)) == ("largest", words or "", 6)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("nightly", "weekly"),
        ("nightly a", "nightly-a"),
        ("Nightly", "nightly"),
        ("夜", "昼"),
        (80 * "n" + "1", 80 * "n" + "2"),
        ("mine out", None),
    ],
    ids=str,
)
def test_two_deployments_of_one_input_have_no_key_together(of, one, other):
    assert of("/in/g.csv", deployed=one) != of("/in/g.csv", deployed=other)


def test_a_deployment_keeps_its_keys_wherever_its_nights_go(of):
    night = of("/in/{date}.csv", "runs/2026-01-31", "refresh")
    assert night == of("/in/{date}.csv", "/elsewhere/{date}", "refresh")
    assert night != of("/in/other.csv", "runs/2026-01-31", "refresh")
    assert night != of("/in/{date}.csv", "runs/2026-01-31", "refresh", flow="verify")


def test_without_a_deployment_the_folder_tells_runs_apart(of, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    night = of("/in/g.csv", "runs/{date}")
    assert night == of("/in/g.csv", "runs/2026-01-31") == of("/in/g.csv", f"{tmp_path}/runs/2026-02-01/")
    assert night != of("/in/g.csv", "others/runs/{date}")
    assert night != of("/in/g.csv", "runs/{date}", flow="verify")
    assert of("/in/g.csv", "a") != of("/in/g.csv", "b")
    assert of("/in/g.csv", "a/x") != of("/in/g.csv", "b/x")
    assert of("/in/a/g.csv", "x") != of("/in/b/g.csv", "x")


@pytest.mark.usefixtures("prefect_server")
@pytest.mark.exhaustive
def test_every_deployment_has_a_history_of_its_own(tmp_path):
    """Through a server, which keeps the artifacts of one key as its history."""
    source = write_edges(tmp_path / "g.parquet", random_edges(12, 9, 0.4, 1))

    def night(deployed: str, day: str) -> str:
        options = grouped(workers=0, report=False, date=day)
        given = {"source": str(source), "output": f"{tmp_path}/{deployed}/{{date}}"} | options
        with get_client(sync_client=True) as client:
            deployment = client.create_deployment(client.create_flow(mine), deployed)
            flow_run = client.create_flow_run_from_deployment(deployment, parameters=given)
        state = run_flow(mine, flow_run, parameters=flow_run.parameters, return_type="state")
        assert state.is_completed(), state.message
        return str(artifacts(state)[""])

    nightly, weekly = night("nightly", "2026-01-01"), night("weekly", "2026-01-01")
    assert nightly.startswith("nightly-g-")
    assert weekly.startswith("weekly-g-")
    assert night("nightly", "2026-01-02") == nightly
    assert (n_versions(f"run-card-in-{nightly}"), n_versions(f"run-card-in-{weekly}")) == (2, 1)


def n_versions(key: str) -> int:
    """How many artifacts the server has of a key."""
    with get_client(sync_client=True) as client:
        return len(client.read_artifacts(artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[key]))))
