"""One Prefect server for all tests that call flows, with a home and a database that are gone afterwards."""

import atexit
import os
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import certifi
import pytest

from tests.support.disk import folder_in_memory


def one_authority(folder: Path) -> Path:
    """A file with the first of all certificates of authorities.

    Every client of Prefect loads all of them, which takes 34 ms, and a flow run has four clients. Those of tests speak
    to a server of this machine without TLS.
    """
    first, end, _ = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----\n")
    (folder / "authority.pem").write_text(first + end)
    return folder / "authority.pem"


# the server answers a call once SQLite has written to the disk, which others may keep busy
HOME = tempfile.mkdtemp(prefix="prefect-home-", dir=folder_in_memory())
os.environ["PREFECT_HOME"] = HOME  # before the test modules import Prefect
os.environ["PREFECT_API_SSL_CERT_FILE"] = str(one_authority(Path(HOME)))
os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "ERROR"  # the server has all lines; drawing them takes time
os.environ["PREFECT_LOGGING_TO_API_BATCH_INTERVAL"] = "0.2"  # 2 s by default, and tests wait for what is logged
# 5 by default; a server that could not write to SQLite so often in a row drops the events that it has in hand
os.environ["PREFECT_SERVER_SERVICES_EVENT_PERSISTER_MAX_FLUSH_RETRIES"] = "1000"
os.environ["PREFECT_SERVER_SERVICES_EVENT_PERSISTER_FLUSH_INTERVAL"] = "0.2"  # 5 s by default, and tests wait for them
# every state of a task alone by default, for each of which SQLAlchemy compiles a statement; Prefect takes whole seconds
os.environ["PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE"] = "1000"
os.environ["PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL"] = "1"
for service in (
    "CANCELLATION_CLEANUP",
    "FOREMAN",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "REPOSSESSOR",
    "SCHEDULER",
    "TRIGGERS",
):
    # of deployments, workers and automations, which are tested with servers of their own: tests/flows/deployed.py
    os.environ[f"PREFECT_SERVER_SERVICES_{service}_ENABLED"] = "false"
atexit.register(shutil.rmtree, HOME, ignore_errors=True)


@pytest.fixture(scope="session")
def prefect_server():
    from prefect.settings import PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings
    from prefect.testing.utilities import prefect_test_harness

    with ExitStack() as stack:
        # with this in its name the database has one connection. Two could wait for each other, for a minute: one sleeps
        # in SQLite until the other is through, and keeps the lock of the interpreter meanwhile
        place = Path(HOME) / ":memory:"
        place.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tempfile, "tempdir", str(place))
            stack.enter_context(prefect_test_harness(server_startup_timeout=300))
        # without a heartbeat, for whose thread the end of each flow run waits, up to a second
        stack.enter_context(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
        yield


@pytest.fixture(scope="session")
def received(prefect_server):
    from tests.flows.receiver import notified

    with notified() as messages:
        yield messages


@pytest.fixture
def told(received):
    """The messages that this test has sent by the block `tests.flows.receiver.BLOCK`."""
    received.clear()
    return received
