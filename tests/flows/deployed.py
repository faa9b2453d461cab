"""A real Prefect server and a real worker, in processes of their own, in a home that is gone afterwards."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from prefect.client.base import PrefectHttpxSyncClient

from tests.support.runs import ROOT

_ENDED = {"COMPLETED", "FAILED", "CRASHED"}
#: Runs commands of Prefect, a JSON list of lists of words, one after the other. One interpreter does, because importing
#: Prefect takes longer than most of them.
_RUN_ALL = """
import json, runpy, sys
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    try:
        runpy.run_module("prefect", run_name="__main__")
    except SystemExit as ended:
        if ended.code:
            raise
"""


class Server:
    """The commands and the API of a running server.

    Parameters
    ----------
    home : Path
        Holds its database, unless that is elsewhere, and the logs.
    port : int
    """

    def __init__(self, home: Path, port: int):
        self.home = home
        self.url = f"http://127.0.0.1:{port}/api"
        own = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        self.environment = own | {
            "PREFECT_HOME": str(home),
            "PREFECT_API_URL": self.url,
            "PREFECT_WORKER_QUERY_SECONDS": "2",  # 10 by default
            "PWD": str(ROOT),  # prefect.yaml takes the folder of the project from it
        }
        # Prefect's own, because its server answers 503 while SQLite is locked and expects to be asked again
        self._client = PrefectHttpxSyncClient(base_url=f"{self.url}/", timeout=30, enable_csrf_support=False)

    def commands(self, *commands: str):
        """Run ``prefect ...`` in the project's folder, one after the other."""
        self.program(_RUN_ALL, json.dumps([shlex.split(words) for words in commands]))

    def program(self, code: str, *arguments: str):
        """Run a program that talks to the server, in the project's folder."""
        ended = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=300,
        )
        assert ended.returncode == 0, ended.stdout

    @contextmanager
    def process(self, name: str, words: str, cwd: Path = ROOT, **environment: str) -> Iterator[None]:
        """Run ``prefect ...`` during the block; what it prints is in the file ``name.log``."""
        with (self.home / f"{name}.log").open("wb") as log:
            process = psutil.Popen(
                [sys.executable, "-m", "prefect", *shlex.split(words)],
                cwd=cwd,
                env=self.environment | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            yield
        finally:
            children = process.children(recursive=True)
            process.send_signal(signal.SIGINT)
            psutil.wait_procs([process, *children], timeout=20)
            for left in [process, *children]:
                if left.is_running():
                    left.kill()
            process.wait()

    def is_healthy(self) -> bool:
        """Whether it answers."""
        try:
            return self._client.get("health").status_code == 200
        except httpx.TransportError:
            return False

    def log(self, name: str) -> str:
        """What a process has printed."""
        return (self.home / f"{name}.log").read_text(errors="replace")

    def post(self, path: str, **content):
        """The server's answer to a request."""
        return self._ask("POST", path, json=content).json()

    def patch(self, path: str, **content):
        """Change something of the server."""
        self._ask("PATCH", path, json=content)

    def get(self, path: str):
        """The server's answer to a question."""
        return self._ask("GET", path).json()

    def _ask(self, method: str, path: str, **content) -> httpx.Response:
        answer = self._client.request(method, path, **content)
        answer.raise_for_status()
        return answer

    def deployment(self, name: str) -> str:
        """Its id, by ``FLOW/NAME``."""
        return str(self.get(f"deployments/name/{name}")["id"])

    def ended(self, deployment: str) -> dict[str, Any] | None:
        """A flow run of a deployment that has ended, and not been cancelled."""
        found = self.post("flow_runs/filter", flow_runs={"deployment_id": {"any_": [deployment]}})
        return next((run for run in found if run["state"]["type"] in _ENDED), None)


@contextmanager
def server(home: Path, **environment: str) -> Iterator[Server]:
    """Started, and answering."""
    port = free_port()
    running = Server(home, port)
    words = f"server start --host 127.0.0.1 --port {port} --no-ui"
    with running.process("server", words, **environment), running._client:
        wait_for(running.is_healthy, 120, lambda: running.log("server"))
        yield running


def wait_for(condition, seconds: float, log):
    """What `condition` returns, once that is true; the end of `log` if it does not become so."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = condition()
        if found:
            return found
        time.sleep(0.3)
    raise AssertionError(f"not within {seconds} seconds:\n{log()[-4000:]}")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
