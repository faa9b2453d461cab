"""The form of a run in Prefect's page: every field is described, choices are choices, and prefect.yaml fits it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import yaml
from prefect import Flow
from prefect.utilities.callables import parameter_schema

from flows.mine import mine
from flows.verify import verify
from pipeline import engines
from tests.runs import ROOT, environment


@pytest.mark.parametrize("flow", [mine, verify])
def test_every_field_says_what_it_is(flow: Flow[..., Any]) -> None:
    fields = parameter_schema(flow).properties
    assert [name for name, field in fields.items() if not field.get("description")] == []
    assert all(field["description"].endswith(".") for field in fields.values())


def test_engines_are_to_be_chosen_from() -> None:
    fields = parameter_schema(mine).properties
    assert fields["engine"]["enum"] == sorted([engines.AUTO, *(kind.name for kind in engines.kinds())])
    assert fields["engine"]["default"] == engines.AUTO
    assert {"type": "string", "format": "date"} in fields["date"]["anyOf"]


def test_what_is_deployed_fits() -> None:
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    for deployment in deployments:
        flow = mine if deployment["entrypoint"] == "flows.mine.mine" else verify
        given = {"output": "OUT"} | deployment.get("parameters", {})
        assert flow.validate_parameters(given)


def test_pictures_are_imported_when_there_are_some() -> None:
    """Each costs a run seconds, and a run without a page draws none."""
    code = "import sys, flows.mine, flows.verify; print(sorted({'matplotlib', 'bokeh'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
