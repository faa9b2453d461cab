"""Tasks that wait to be sent to Dask, without a cluster."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import distributed

from bicliques.pipeline.workers.dask_tasks import DaskTasks
from bicliques.pipeline.workers.thread_pool import WorkerLostError


class BusyClient:
    """A client whose loop has no time yet: what is to be done waits until `catch_up`."""

    def __init__(self) -> None:
        self.loop = self
        self.waiting: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.sent: list[Any] = []
        self.cancelled: list[Any] = []

    def add_callback(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.waiting.append((function, arguments))

    def subscribe_topic(self, topic: str, handler: object) -> None:
        pass

    def sync(self, function: Callable[[], Any]) -> Any:
        return asyncio.run(function())

    def map(self, function: Any, arguments: list[Any], **how: Any) -> list[Any]:
        self.sent += arguments
        return [SimpleNamespace(key=key) for key in how["key"]]

    async def cancel(self, futures: list[Any]) -> None:
        self.cancelled += futures

    def catch_up(self) -> None:
        waiting, self.waiting = self.waiting, []
        for function, arguments in waiting:
            function(*arguments)


def tasks_of(client: BusyClient) -> DaskTasks:
    return DaskTasks(cast(distributed.Client, client), frozenset(), str)


def test_tasks_that_gather_while_the_loop_is_busy_are_sent_in_one_message() -> None:
    client = BusyClient()
    tasks = tasks_of(client)
    for tag in range(3):
        tasks.submit(tag, abs, -tag)
    assert (client.sent, len(client.waiting)) == ([], 1)
    client.catch_up()
    assert client.sent == [0, -1, -2]


def test_what_is_cancelled_before_it_was_sent_is_never_sent() -> None:
    """A run may end by a second Ctrl-C while tasks wait, and the client of a user stays open after it."""
    client = BusyClient()
    tasks = tasks_of(client)
    tasks.submit(0, abs, -7)
    tasks.cancel()
    client.catch_up()
    assert client.sent == []
    tasks.submit(1, abs, -8)
    client.catch_up()
    assert client.sent == [-8], "a task that comes later waits without end"


def test_a_task_that_dask_gave_up_is_lost_and_not_failed() -> None:
    """A slice whose worker was lost is mined again, and one that failed ends the run."""
    tasks = tasks_of(BusyClient())
    tasks._ended.put((3, None, distributed.client.FutureCancelledError("key", "scheduler-restart")))
    [result] = tasks.wait(0)
    assert (result.tag, type(result.error)) == (3, WorkerLostError)
    assert "Dask gave it up (scheduler-restart)" in str(result.error)
