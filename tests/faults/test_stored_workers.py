"""Runs in a store with processes of `dask worker` that have caches of their own. Workers and drivers are killed."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import distributed
import pytest

import bicliques as bq
from tests.support.bucket import Asked, Fault, Killer
from tests.support.dask_commands import dask_scheduler, start_worker
from tests.support.runs import ROOT, answer, environment
from tests.support.stored import EDGES, PREFIX, Machines, check_whole, source_in

#: Without workers of Dask: tests/faults/test_stored.py. Without kills: tests/pipeline/run/test_stored.py.
pytestmark = pytest.mark.exhaustive
#: Milliseconds, so that there is more than one slice for each worker.
SLICE_S = 0.002


class Cluster:
    """Two workers, each on a machine of its own."""

    def __init__(self, machines: Machines, address: str):
        self.address = address
        self.workers: list[subprocess.Popen[str]] = []
        for _ in range(2):
            machines.change()  # a worker has the environment of the test
            self.workers.append(start_worker(address, "--no-nanny"))
        machines.change()
        with distributed.Client(address, set_as_default=False) as client:
            client.wait_for_workers(2)


@pytest.fixture
def cluster(machines: Machines) -> Iterator[Cluster]:
    with dask_scheduler() as address:
        found = Cluster(machines, address)
        try:
            yield found
        finally:
            for worker in found.workers:
                worker.kill()
                worker.wait()


class KillerAt(Killer):
    """Kills a process at the n-th PUT of a kind, before it is carried out or after that."""

    def __init__(self, pid_file: Path, kind: str, at: int, before: bool):
        super().__init__(pid_file, at, before)
        self._kind = kind
        self._seen: set[str] = set()

    def __call__(self, asked: Asked) -> Fault | None:
        if asked.what != "put" or asked.key in self._seen or not asked.key.startswith(f"{PREFIX}/{self._kind}/"):
            return None
        self._seen.add(asked.key)
        return super().__call__(asked)


def mine(machines: Machines, source: Path, cluster: Cluster) -> bq.Results:
    return bq.mine(
        source,
        machines.url,
        scheduler=cluster.address,
        engine="cpu",
        slice_seconds=SLICE_S,
        progress=False,
        report=False,
    )


def check(machines: Machines) -> None:
    """A worker that was cut off may put a part so late that nobody removes it; it counts nowhere."""
    check_whole(machines, strays=True)
    machines.change()
    assert bq.verify(machines.url).fingerprint == answer(EDGES, strings=True)[1]


@pytest.mark.parametrize(("at", "before"), [(1, True), (2, False)])
def test_a_worker_is_killed_when_a_part_is_put(machines, tmp_path, cluster, at, before):
    """The other one does its work, or puts the part again. The driver puts no part."""
    source, killer = source_in(tmp_path), KillerAt(tmp_path / "pid", "bicliques", at, before)
    (tmp_path / "pid").write_text(str(cluster.workers[0].pid))
    machines.bucket.fault = killer
    assert mine(machines, source, cluster).complete
    machines.bucket.well()
    assert killer.changes >= at
    assert cluster.workers[0].wait() == -signal.SIGKILL
    check(machines)


@pytest.mark.parametrize(
    ("kind", "at", "before"),
    [("ledger", 2, True), ("bicliques", 2, False), ("sessions", 3, True), ("summary", 1, False)],
)
def test_the_driver_is_killed_while_workers_put_parts(machines, tmp_path, cluster, kind, at, before):
    """Another driver goes on with the same workers, and then nothing is missing and nothing there twice."""
    source = source_in(tmp_path)
    words = [sys.executable, "-m", "bicliques", "mine", str(source), "-o", machines.url, "--quiet", "--no-report"]
    words += ["--scheduler", cluster.address, "--engine", "cpu", "--slice-seconds", str(SLICE_S)]
    machines.bucket.fault = KillerAt(tmp_path / "pid", kind, at, before)
    shell = ["sh", "-c", 'echo $$ > "$0"; exec "$@"', str(tmp_path / "pid")]
    driver = subprocess.run([*shell, *words], cwd=ROOT, env=environment(), stderr=subprocess.PIPE, check=False)
    machines.bucket.well()
    assert driver.returncode == -signal.SIGKILL, driver.stderr
    machines.change()
    assert mine(machines, source, cluster).complete
    check(machines)
