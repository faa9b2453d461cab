"""What importing the flows settles before Prefect and Dask are imported, and that they take every option."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import bicliques as bq
from bicliques.flows.mine import mine
from bicliques.flows.verify import verify
from bicliques.pipeline.api.table import entries_of
from bicliques.schemas.option import GROUPS
from tests.support.runs import environment

CODE = """
import json, os
import bicliques.flows
from prefect._internal.analytics import is_telemetry_enabled
from prefect.settings import get_current_settings
server = get_current_settings().server
print(json.dumps([is_telemetry_enabled(), server.analytics_enabled, server.ephemeral.startup_timeout_seconds]))
"""


def settings(tmp_path: Path, **own: str) -> list[Any]:
    unset = {"CI", "DO_NOT_TRACK"}
    names = {name: value for name, value in environment().items() if name not in unset and "PREFECT_" not in name}
    words = [sys.executable, "-c", CODE]
    done = subprocess.run(
        words, cwd=tmp_path, env=names | {"PREFECT_HOME": str(tmp_path)} | own, capture_output=True, check=True
    )
    return list(json.loads(done.stdout))


def test_nobody_is_called(tmp_path):
    assert settings(tmp_path) == [False, False, 120]


@pytest.mark.exhaustive
def test_the_users_environment_goes_first(tmp_path):
    assert settings(tmp_path, PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="7") == [False, False, 7]


def test_the_flow_verify_takes_the_options_and_defaults_of_the_api():
    of_flow, of_api = (inspect.signature(each).parameters for each in (verify.fn, bq.verify))
    renamed = {"folder": "output"}
    expected = {renamed.get(name, name): p.default for name, p in of_api.items() if name != "progress"}
    assert {name: p.default for name, p in of_flow.items() if name != "notify"} == expected


def test_the_flow_mine_takes_the_options_of_the_table_in_its_groups():
    parameters = inspect.signature(mine.fn).parameters
    groups = {name: p.default for name, p in parameters.items() if isinstance(p.default, BaseModel)}
    assert list(groups) == list(GROUPS)
    for name, usual in groups.items():
        expected = {each.name: each.default_on("flow") for each in entries_of("flow") if each.told.group == name}
        assert usual.model_dump() == expected
    assert {name for name in parameters if name not in groups} == {
        *(
            "source",
            "output",
            "date",
            "last_date",
            "keep",
            "keep_created",
            "latest",
            "concurrency_limit",
            "notify",
            "changes",
            "notify_above",
            "notify_unchanged_after",
            "refuse_above",
            "refuse_below",
            "alert_as",
            "publish",
        )
    }
