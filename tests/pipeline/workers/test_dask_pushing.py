"""Results of Dask tasks come with the news that the task has ended, and are fetched if they did not come."""

import pickle
from collections.abc import Iterator
from typing import Any

import distributed
import pytest

from bicliques.pipeline.workers import dask_tasks
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.pipeline.workers.dask_tasks import DaskTasks


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    cluster = distributed.LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any] | None]:
    """What came, or None, for each task in the order in which they ended."""
    found, real = list[tuple[Any] | None](), dask_tasks.came

    def came(key: str) -> tuple[Any] | None:
        found.append(real(key))
        return found[-1]

    monkeypatch.setattr(dask_tasks, "came", came)
    return found


def results(tasks: DaskTasks, n: int) -> dict[int, Any]:
    found: dict[int, Any] = {}
    while len(found) < n:
        ended = tasks.wait(20)
        assert ended, "nothing has come for 20 s"
        found |= {result.tag: result.error or result.value for result in ended}
    return found


def tasks_of(client: distributed.Client) -> DaskTasks:
    return DaskTasks(client, frozenset(), str)


def letters(n: int) -> str:
    return "x" * n


def test_small_results_come_by_themselves(client: distributed.Client, asked: list[Any]) -> None:
    tasks = tasks_of(client)
    for tag in range(20):
        tasks.submit(tag, letters, tag)
    assert results(tasks, 20) == {tag: "x" * tag for tag in range(20)}
    assert sorted(asked) == [("x" * tag,) for tag in range(20)]


def test_large_results_are_fetched(client: distributed.Client, asked: list[Any]) -> None:
    tasks = tasks_of(client)
    tasks.submit(0, letters, dask_tasks.MOST_BYTES)
    assert results(tasks, 1) == {0: "x" * dask_tasks.MOST_BYTES}
    assert asked == [None]


def test_results_are_fetched_if_another_run_on_the_client_has_ended(client, asked):
    tasks = tasks_of(client)
    DaskPool.connect(client).close()
    tasks.submit(0, letters, 3)
    assert results(tasks, 1) == {0: "xxx"}
    assert asked == [None]


def test_a_result_that_came_of_a_task_that_dask_lost_does_not_count(client, monkeypatch):
    """A worker may die after it has sent its result, and before Dask knows that the task has ended."""
    monkeypatch.setattr(dask_tasks, "came", lambda key: ("what it sent",))
    tasks = tasks_of(client)
    tasks.submit(0, int, "no number")
    assert isinstance(results(tasks, 1)[0], ValueError)


def sent_before(n: int) -> str:
    """A large result of a task whose result had come before, from a worker that died."""
    worker = distributed.get_worker()
    worker.log_event(dask_tasks._TOPIC, {"key": worker.get_current_task(), "value": pickle.dumps("before")})
    return letters(n)


def test_a_result_that_came_before_does_not_stand_for_a_large_one(client: distributed.Client) -> None:
    tasks = tasks_of(client)
    tasks.submit(0, sent_before, dask_tasks.MOST_BYTES)
    assert results(tasks, 1) == {0: "x" * dask_tasks.MOST_BYTES}


def test_nothing_of_a_task_is_kept(client: distributed.Client) -> None:
    before = len(dask_tasks._came)
    tasks = tasks_of(client)
    for tag, text in enumerate(("1", "no number", "3")):
        tasks.submit(tag, int, text)
    results(tasks, 3)
    assert len(dask_tasks._came) == before


def test_a_client_that_is_closed_has_nothing_to_end() -> None:
    cluster = distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0")
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        tasks_of(client)
    dask_tasks.unlisten(client)
