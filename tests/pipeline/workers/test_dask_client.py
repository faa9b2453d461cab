"""A run connects to a scheduler: whom it refuses, and workers that die meanwhile."""

import logging
import os
import re
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import distributed
import pytest

from bicliques.pipeline import __version__
from bicliques.pipeline.workers import dask_tasks
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.schemas.errors import ResourceError


@pytest.fixture
def in_this_process() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster


def version_or_death(file: Path) -> str:
    """The first worker that is asked dies of it."""
    with suppress(FileExistsError):
        file.touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)
    return __version__


def test_a_worker_that_dies_while_a_run_connects_does_not_end_the_run(monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(dask_tasks.worker, "version", partial(version_or_death, tmp_path / "asked"))
    with distributed.LocalCluster(
        2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL
    ) as cluster:
        pool = DaskPool.connect(cluster)
        told = [record.getMessage() for record in caplog.records if getattr(record, "event", "") == "gone"]
        words = r"worker (tcp://\S+) has gone, because it does not answer \(.+\); the run goes on without it"
        names = [found and found[1] for text in told for found in [re.fullmatch(words, text)]]
        assert len(set(names)) == 1, told  # Dask may ask it once more before it hears that the worker has died
        assert names[0]
        assert pool.reasons(), "another worker is there"
        pool.close()


REFUSED = {
    "it dies meanwhile": (
        distributed.comm.CommClosedError("in <TCP>: Stream is closed"),
        r"^the Dask scheduler at \S+ has no workers; start some, then try again$",
    ),
    "it cannot import the package": (
        ModuleNotFoundError("No module named 'pipeline'"),
        r"^the workers of \S+ cannot import this package \(No module .*\); install it where they run$",
    ),
    "it has another version": (
        "9.9",
        rf"^worker \S+ of \S+ has version 9\.9 of this package instead of {re.escape(__version__)}; install the same",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_scheduler_whose_only_worker_cannot_run_tasks_is_refused(why, in_this_process, monkeypatch):
    answer, words = REFUSED[why]

    def version() -> str:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(dask_tasks.worker, "version", version)
    with pytest.raises(ResourceError, match=words):
        DaskPool.connect(in_this_process)


def test_the_error_of_a_scheduler_that_does_not_answer_names_its_address() -> None:
    with pytest.raises(ResourceError, match=r"scheduler at tcp://127\.0\.0\.1:1 does not answer"):
        DaskPool.connect("tcp://127.0.0.1:1", patience_s=0.3)
