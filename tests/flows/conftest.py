"""One Prefect server for all tests that call flows, with a home and a database that are gone afterwards."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

os.environ["PREFECT_HOME"] = tempfile.mkdtemp(prefix="prefect-home-")  # before Prefect is imported

import pytest
from prefect.testing.utilities import prefect_test_harness


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[None]:
    with prefect_test_harness(server_startup_timeout=120):
        yield
