"""Processes that read parts back: answers come back, dead ones are replaced, and none outlives its parent."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.process.children import identity
from bicliques.pipeline.proof.reading import Reading
from bicliques.pipeline.slices import first_use
from bicliques.pipeline.workers import opening
from bicliques.pipeline.workers.processes import Processes
from bicliques.pipeline.workers.thread_pool import WorkerLostError
from bicliques.schemas.platform import CORES
from tests.support.engines import nothing
from tests.support.pools import results, until


def one_after_the_other(folder: Path) -> None:
    """The first process is ready at once, and others are once there is a file ``go``."""
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        until((folder / "go").exists)


@contextmanager
def processes(n: int, get_ready: Callable[[], None] = nothing) -> Iterator[Processes]:
    pool = Processes([None] * n, CORES, "meanwhile", at_once=False, get_ready=get_ready)
    try:
        yield pool
    finally:
        pool.close()


@pytest.fixture(scope="module")
def pool() -> Iterator[Processes]:
    with processes(2) as pool:
        pool.grow()
        until(lambda: pool.describe() == "2 processes")
        yield pool


def test_processes_do_not_see_ctrl_c_and_have_a_core_each(pool: Processes) -> None:
    pool.submit(0, partial(signal.pthread_sigmask, signal.SIG_BLOCK), [])
    assert signal.SIGINT in results(pool, 1)[0].value
    assert pool.capacity() == (2, 2, None)


def test_a_process_that_dies_loses_its_task_and_others_go_on(pool: Processes) -> None:
    pool.submit(0, os._exit, 3)
    assert isinstance(results(pool, 1)[0].error, WorkerLostError)
    pool.submit(1, abs, -1)
    assert results(pool, 1)[1].value == 1


def test_this_process_does_the_tasks_until_all_others_are_there() -> None:
    with processes(2) as pool:
        pool.submit(0, identity, None)
        assert (pool.capacity(), pool.describe()) == ((2, 2, None), "this process, 2 threads")
        assert results(pool, 1)[0].value == identity()
        pool.grow()
        until(lambda: pool.describe() == "2 processes")
        for tag in (1, 2):
            pool.submit(tag, identity, None)
        assert identity() not in {result.value for result in results(pool, 2).values()}


def test_processes_work_while_others_are_on_their_way(tmp_path: Path) -> None:
    with processes(2, partial(one_after_the_other, tmp_path)) as pool:
        pool.grow()
        until(lambda: pool.capacity() == (3, 3, None))
        for tag in (0, 1, 2):
            pool.submit(tag, identity, None)
        found = results(pool, 3)
        is_here = [found[tag].value == identity() for tag in (0, 1, 2)]
        assert is_here == [True, False, True], "each takes one that is free, for what it may have at a time"
        (tmp_path / "go").touch()
        until(lambda: pool.capacity() == (2, 2, None))


@pytest.mark.exhaustive
def test_a_run_that_processes_prove_has_the_same_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def facts(results: bq.Results) -> tuple[object, ...]:
        told = results.manifest
        return told.count, told.fingerprint, told.proven_rows, results.sizes()

    asked: list[int] = []

    class Spy(Processes):
        def submit(self, tag: int, function: Callable[[Any], Any], argument: Any, on_all_threads: bool = False) -> None:
            asked.append(tag)
            super().submit(tag, function, argument)

    source = "examples/debian12_package_tag.parquet"
    usual = bq.mine(source, tmp_path / "usual", engine="cpu")
    monkeypatch.setattr(opening, "_are_worth_processes", lambda n: True)
    monkeypatch.setattr(
        steps, "on_all_cores", lambda n: Spy([None] * 2, CORES, "never", True, first_use.before_proving)
    )
    monkeypatch.setattr(Reading, "go_on", lambda *arguments: None)  # nothing is read while it is mined
    by_processes = bq.mine(source, tmp_path / "processes", engine="cpu")
    assert asked
    assert facts(by_processes) == facts(usual)


@pytest.mark.parametrize(
    ("cores", "vertices", "words"), [(3, 10, "this process, 3 threads"), (4, 1 << 22, "this process, 4 threads")]
)
def test_few_cores_and_many_vertices_are_left_to_threads(cores, vertices, words, monkeypatch):
    monkeypatch.setattr(opening, "count_cores", lambda: cores)
    pool = opening.on_all_cores(vertices)
    pool.grow()
    assert pool.describe() == words
    pool.close()


def test_many_cores_get_processes_once_there_are_enough_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "count_cores", lambda: 4)
    with closing(opening.on_all_cores(10)) as pool:
        assert isinstance(pool, Processes)
        assert (pool.describe(), pool.capacity().slots) == ("this process, 4 threads", 4)
        begun, start = list[object](), pool._start
        monkeypatch.setattr(pool, "_start", lambda devices: (begun.extend(devices), start(devices[:1])))
        pool.grow()
        until(lambda: pool.capacity().slots == 5)  # one of them is enough for this test
        assert begun == [None] * 4
