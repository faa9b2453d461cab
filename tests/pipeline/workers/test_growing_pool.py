"""A growing pool begins in this process, and workers take over when they have started. Dask takes no part."""

from __future__ import annotations

import threading
import time

import pytest

from bicliques.pipeline.workers.all_cores import Growing
from bicliques.schemas.errors import ResourceError
from tests.support.pools import FakePool


def test_tasks_given_before_the_workers_come_stay_in_this_process() -> None:
    started, said = threading.Event(), []

    def start() -> FakePool:
        started.wait(60)
        return FakePool(3)

    growing = Growing(start)
    growing.everywhere(said.append, "hello")
    growing.submit(0, len, "a")
    growing.grow()
    assert (growing.capacity().slots, growing.longest_task_s()) == (1, 0.5)
    started.set()
    while growing.capacity().slots == 1:
        time.sleep(0.01)
    assert (growing.longest_task_s(), said) == (None, ["hello", "hello"])
    growing.submit(1, len, "ab")
    assert [(r.tag, r.value) for _ in range(3) for r in growing.wait(0)] == [(0, 1), (1, 2)]
    growing.close()


@pytest.mark.parametrize("when", ["while they start", "while they get ready"])
def test_the_end_does_not_wait_for_workers_that_are_not_needed(when: str) -> None:
    started, ready, prepared_for = threading.Event(), threading.Event(), []

    class Workers(FakePool):
        def everywhere(self, function: object, argument: object) -> None:
            prepared_for.append(argument)
            assert ready.wait(60)

        def close(self) -> None:
            super().close()
            ready.set()

    workers = Workers()

    def start() -> Workers:
        assert started.wait(60)
        return workers

    growing = Growing(start)
    growing.everywhere(len, "a")
    growing.grow()
    if when == "while they start":
        threading.Timer(0.1, started.set).start()
    else:
        started.set()
        while not prepared_for:
            time.sleep(0.01)
    growing.close()
    assert workers.is_closed
    assert len(prepared_for) == (when == "while they get ready")


def test_workers_that_cannot_start_fail_the_run() -> None:
    def fail() -> None:
        raise ResourceError("no workers today")

    def wait() -> None:
        while True:  # until the thread that starts the workers has failed
            growing.wait(0)

    growing = Growing(fail)
    growing.grow()
    with pytest.raises(ResourceError, match="no workers today"):
        wait()
    growing.close()
