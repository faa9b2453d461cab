"""A scheduler that is given as a client or as a cluster: it is used, nothing of the user's is closed or lost."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import distributed
import pytest

import bicliques as bq
from bicliques.pipeline.slices import worker
from bicliques.pipeline.workers.opening import ask_workers
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.runs import answer, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 1)
#: A scheduler and a thread that works, in this process, which start at once.
SMALL: dict[str, Any] = {
    "n_workers": 1,
    "threads_per_worker": 2,
    "processes": False,
    "dashboard_address": "127.0.0.1:0",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(**SMALL) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: distributed.LocalCluster) -> Iterator[distributed.Client]:
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_edges(tmp_path / "g.parquet", EDGES)


def becomes_true(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def test_a_client_is_used_and_stays_open_with_all_that_is_in_it(tmp_path, source, client):
    before = client.submit(pow, 3, 4)
    results = bq.mine(source, tmp_path / "out", scheduler=client, progress=False, report=False)
    assert (results.manifest.count, results.manifest.fingerprint) == answer(EDGES)
    address = client.scheduler.address
    assert results.manifest.mining["sessions"][0]["workers"] == f"workers of {address}"
    assert client.status == "running"
    assert distributed.default_client() is client
    assert (before.result(), client.submit(pow, 2, 5).result()) == (81, 32)
    assert becomes_true(lambda: not [key for key in client.who_has() if str(key).startswith("bicliques-")])
    assert becomes_true(lambda: worker._opened.cache_info().currsize == 0), "the worker holds the run no more"


def test_every_call_takes_a_client(tmp_path: Path, source: Path, client: distributed.Client) -> None:
    quiet: dict[str, Any] = {"scheduler": client, "progress": False}
    count, fingerprint = answer(EDGES)
    assert bq.count(source, **quiet).count == count
    assert bq.dry_run(source, sample_time=0.2, **quiet).workers == 2
    stopped = bq.mine(source, tmp_path / "out", max_results=3, report=False, **quiet)
    assert (stopped.complete, len(stopped)) == (False, 3)
    resumed = bq.resume(tmp_path / "out", max_results=None, report=False, **quiet)
    assert resumed.manifest.fingerprint == fingerprint
    assert client.status == "running"


def test_a_cluster_is_used_and_left_running_and_our_client_goes(tmp_path, source, cluster, client):
    clients = set(cluster.scheduler.clients)
    results = bq.mine(source, tmp_path / "out", scheduler=cluster, progress=False, report=False)
    assert (results.manifest.count, results.manifest.fingerprint) == answer(EDGES)
    assert results.manifest.mining["sessions"][0]["workers"] == f"workers of {cluster.scheduler_address}"
    assert cluster.status == distributed.Status.running
    assert distributed.default_client() is client
    assert becomes_true(lambda: worker._opened.cache_info().currsize == 0), "the worker holds the run no more"
    assert becomes_true(lambda: set(cluster.scheduler.clients) - {"fire-and-forget"} == clients - {"fire-and-forget"})


def refusal(source: Path, scheduler: Any) -> str:
    """What mining says, before it makes a folder."""
    out = source.parent / "out"
    with pytest.raises(InputError) as error:
        bq.mine(source, out, engine="cpu", scheduler=scheduler, progress=False, report=False)
    assert not out.exists()
    return str(error.value)


def test_what_is_closed_is_refused(source: Path) -> None:
    with distributed.LocalCluster(**SMALL) as cluster, distributed.Client(cluster) as client:
        pass
    assert refusal(source, client) == "the client that is given as scheduler is closed; make a new one"
    assert refusal(source, cluster) == "the cluster that is given as scheduler is closed; make a new one"


def test_what_is_asynchronous_is_refused(source: Path) -> None:
    async def refused() -> tuple[str, str]:
        async with (
            distributed.LocalCluster(asynchronous=True, **SMALL) as cluster,
            distributed.Client(cluster, asynchronous=True) as client,
        ):
            return refusal(source, client), refusal(source, cluster)

    client, cluster = asyncio.run(refused())
    assert "is asynchronous, and a run waits for its workers; make the client without asynchronous=True" in client
    assert client.startswith("the client of inproc://")
    assert cluster.startswith("the cluster of inproc://")


@pytest.mark.parametrize("other", [7, ["tcp://10.0.0.1:8786"], Path("scheduler.json")], ids=str)
def test_what_is_no_scheduler_is_refused(source: Path, other: Any) -> None:
    words = f"the scheduler is a {type(other).__name__}; give an address, as tls://10.0.0.1:8786, an open "
    assert refusal(source, other) == f"{words}distributed.Client or a cluster of Dask"


def test_a_client_whose_workers_have_gone_is_refused_and_stays_open() -> None:
    with distributed.LocalCluster(**SMALL) as cluster, distributed.Client(cluster) as client:
        cluster.scale(0)
        assert becomes_true(lambda: not client.nthreads())
        with pytest.raises(ResourceError, match=r"scheduler at inproc://.* has no workers; start some, then try again"):
            ask_workers(client)
        assert client.status == "running"


def test_a_client_and_a_number_of_workers_are_not_given_together(source: Path, client: distributed.Client) -> None:
    with pytest.raises(InputError, match="give either workers or scheduler, not both"):
        bq.count(source, scheduler=client, workers=2, progress=False)
