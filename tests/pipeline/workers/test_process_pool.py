"""Processes that read parts back: answers come back, dead ones are replaced, and none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from operator import floordiv
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.proof.reading import Reading
from bicliques.pipeline.slices import first_use
from bicliques.pipeline.workers import all_cores
from bicliques.pipeline.workers.pool import Result, WorkerLostError
from bicliques.pipeline.workers.process_pool import InProcesses


def nothing() -> None:
    pass


@pytest.fixture(scope="module")
def pool() -> Iterator[InProcesses]:
    processes = InProcesses(2, nothing)
    yield processes
    processes.close()


def results(pool: InProcesses, n: int) -> dict[int, Result]:
    found: dict[int, Result] = {}
    end = time.monotonic() + 60
    while len(found) < n:
        assert time.monotonic() < end
        found |= {result.tag: result for result in pool.wait(1)}
    return found


def test_values_and_errors_come_back_by_tag(pool: InProcesses) -> None:
    for tag, divisor in ((1, 3), (2, 0), (-5, 7)):
        pool.submit(tag, partial(floordiv, 21), divisor)
    found = results(pool, 3)
    assert (found[1].value, found[-5].value) == (7, 3)
    assert isinstance(found[2].error, ZeroDivisionError)


def test_processes_do_not_see_ctrl_c(pool: InProcesses) -> None:
    pool.submit(0, partial(signal.pthread_sigmask, signal.SIG_BLOCK), [])
    assert signal.SIGINT in results(pool, 1)[0].value


def test_a_process_that_dies_loses_its_task_and_others_go_on(pool: InProcesses) -> None:
    pool.submit(0, os._exit, 3)
    assert isinstance(results(pool, 1)[0].error, WorkerLostError)
    pool.submit(1, abs, -1)
    assert results(pool, 1)[1].value == 1


def test_no_process_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "without_a_guard.py"
    script.write_text(
        "import os, signal\n"
        "from bicliques.pipeline.workers.process_pool import InProcesses\n"
        "pool = InProcesses(2, os.getpid)\n"
        "print(*pool._processes._processes, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    processes = list(map(int, ended.stdout.split()))
    assert (ended.returncode, len(processes)) == (-signal.SIGKILL, 2), ended.stderr
    end = time.monotonic() + 30
    while any(Path(f"/proc/{process}/cmdline").exists() for process in processes):
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.exhaustive
def test_a_run_that_processes_prove_has_the_same_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def facts(results: bq.Results) -> tuple[object, ...]:
        told = results.manifest
        return told.count, told.fingerprint, told.proven_rows, results.sizes()

    asked: list[int] = []

    class Spy(InProcesses):
        def submit(self, tag: int, function: Callable[[Any], Any], argument: Any) -> None:
            asked.append(tag)
            super().submit(tag, function, argument)

    source = "examples/debian12_package_tag.parquet"
    usual = bq.mine(source, tmp_path / "usual", engine="cpu")
    monkeypatch.setattr(all_cores, "_are_worth_processes", lambda n: True)
    monkeypatch.setattr(steps, "on_all_cores", lambda n: Spy(2, first_use.before_proving))
    monkeypatch.setattr(Reading, "go_on", lambda *arguments: None)  # nothing is read while it is mined
    by_processes = bq.mine(source, tmp_path / "processes", engine="cpu")
    assert asked
    assert facts(by_processes) == facts(usual)


@pytest.mark.parametrize(
    ("cores", "vertices", "words"), [(3, 10, "this process, 3 threads"), (4, 1 << 22, "this process, 4 threads")]
)
def test_few_cores_and_many_vertices_are_left_to_threads(
    cores: int, vertices: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_cores, "count_cores", lambda: cores)
    pool = all_cores.on_all_cores(vertices)
    pool.grow()
    assert pool.describe() == words
    pool.close()


def test_many_cores_get_processes_once_there_are_enough_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(all_cores, "count_cores", lambda: 4)
    pool = all_cores.on_all_cores(10)
    assert pool.describe() == "this process, 4 threads"
    pool.grow()
    end = time.monotonic() + 60
    while pool.describe() != "4 processes":
        assert time.monotonic() < end
        time.sleep(0.05)
    pool.close()
