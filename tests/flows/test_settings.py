"""What importing the flows settles before Prefect and Dask are imported, and that they take every option."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pipeline
from flows.mine import mine
from flows.verify import verify
from tests.runs import environment

CODE = """
import flows, json, os
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


def test_nobody_is_called(tmp_path: Path) -> None:
    assert settings(tmp_path) == [False, False, 120]


def test_the_users_environment_goes_first(tmp_path: Path) -> None:
    assert settings(tmp_path, PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="7") == [False, False, 7]


def test_the_flows_take_the_options_of_the_api_with_the_same_defaults() -> None:
    for flow, function, only_flow in (
        (mine, pipeline.mine, {"date", "keep", "latest", "concurrency_limit", "notify"}),
        (verify, pipeline.verify, {"notify"}),
    ):
        of_flow, of_api = (inspect.signature(each).parameters for each in (flow.fn, function))
        renamed = {"folder": "output"} if flow is verify else {}
        expected = {
            renamed.get(name, name): p.default for name, p in of_api.items() if name not in ("progress", "stop")
        }
        found = {name: p.default for name, p in of_flow.items() if name not in only_flow}
        if flow is mine:
            assert found.pop("output") == "runs/{date}"
            assert expected.pop("output") is inspect.Parameter.empty
        assert found == expected
