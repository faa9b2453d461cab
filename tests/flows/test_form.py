"""The form of a run in Prefect's page: every field is described, choices are choices, and prefect.yaml fits it."""

import subprocess
import sys
from typing import Any

import pytest
import yaml
from prefect import Flow
from prefect.exceptions import ParameterTypeError, SignatureMismatchError
from prefect.utilities.callables import parameter_schema

from bicliques.flows.mine import mine
from bicliques.flows.verify import verify
from bicliques.kernels import engines
from tests.support.runs import ROOT, environment


def fields_of(flow: Flow[..., Any]) -> dict[str, Any]:
    """Of the form, those in groups included."""
    schema = parameter_schema(flow)
    groups = {
        f"{name}.{key}": field for name, each in schema.definitions.items() for key, field in each["properties"].items()
    }
    return schema.properties | groups


@pytest.mark.parametrize("flow", [mine, verify])
def test_every_field_says_what_it_is(flow):
    fields = fields_of(flow)
    assert [name for name, field in fields.items() if not field.get("description")] == []
    assert all(field["description"].endswith(".") for field in fields.values())
    assert [name for name, field in fields.items() if "--" in field["description"]] == []


def test_units_and_defaults_are_said():
    fields = fields_of(mine)
    told = "Seconds of mining; reading the input does not count (default: no limit)."
    assert fields["Limits.time_limit"]["description"] == told
    assert fields["Result.sizes"]["description"].startswith("With count_only: also count")


def test_what_can_be_chosen_from_is_a_list():
    fields = fields_of(mine)
    assert fields["Search.engine"]["enum"] == sorted([engines.AUTO, *(kind.name for kind in engines.kinds())])
    assert fields["Search.engine"]["default"] == engines.AUTO
    assert fields["Workers.devices"]["anyOf"] == [{"items": {"type": "integer"}, "type": "array"}, {"type": "null"}]
    assert {"type": "string", "format": "date"} in fields["date"]["anyOf"]


@pytest.mark.parametrize(
    "given", [{"min_left": 3}, {"thresholds": {"min_lft": 3}}, {"search": {"engine": "gpu"}}], ids=str
)
def test_what_is_misspelt_is_refused_before_the_flow_runs(given):
    with pytest.raises((ParameterTypeError, SignatureMismatchError)):
        mine.validate_parameters({"source": "X"} | given)


def test_a_group_may_be_given_in_part():
    found = mine.validate_parameters({"source": "X", "thresholds": {"min_left": 3}})
    of_search = {"min_left": 3, "min_right": 1, "max_left": None, "max_right": None}
    members = {f"containing_{side}": () for side in ("left", "right")}
    files = {f"containing_{side}_from": None for side in ("left", "right")}
    missing = dict.fromkeys(("missing_pairs", "missing_each", "missing_left", "missing_right"))
    assert found["thresholds"].model_dump() == of_search | members | files | missing


def test_given_members_are_lists_of_text():
    fields = fields_of(mine)
    for side in ("left", "right"):
        assert fields[f"Thresholds.containing_{side}"]["items"] == {"type": "string"}
    given = mine.validate_parameters({"source": "X", "thresholds": {"containing_left": ["ann", "7"]}})
    assert given["thresholds"].containing_left == ("ann", "7")


def test_what_is_deployed_fits():
    deployments = yaml.safe_load((ROOT / "prefect.yaml").read_text())["deployments"]
    for deployment in deployments:
        flow = mine if deployment["entrypoint"] == "bicliques.flows.mine.mine" else verify
        given = {"output": "OUT"} | deployment.get("parameters", {})
        assert flow.validate_parameters(given)


@pytest.mark.exhaustive
def test_the_page_is_imported_when_there_is_one():
    """A run without a page draws nothing."""
    code = "import sys; from bicliques.flows import mine, verify; print(any('figures' in name for name in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
