"""Several GPUs of a machine that has none: the CPU engine stands for theirs, here and in processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import floordiv
from pathlib import Path
from typing import Any, Literal

import pytest

import bicliques as bq
from bicliques.kernels import engines
from bicliques.pipeline.mining import driver
from bicliques.pipeline.process.cores import processes_that_share
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import Progress
from bicliques.pipeline.slices import ending
from bicliques.pipeline.workers.opening import LOCAL_WORKERS, LocalWorkers, begun, open_pool
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.processes import Processes
from bicliques.pipeline.workers.thread_pool import WorkerLostError
from bicliques.schemas.errors import IncompleteError, ResourceError
from bicliques.schemas.options import RunLimits
from tests.support.engines import TOY_GPU, registered, toy_kind
from tests.support.pools import FakePool, results, until
from tests.support.runs import (
    FOR_KILLS,
    FOR_TWO,
    answer,
    check_two_find_everything,
    load_ledger,
    manifest_pair,
    prepared_run,
    quiet,
    write_edges,
)

PATIENCE_S = 60
Here = Literal["first", "meanwhile", "never"]


def pretend() -> None:
    """In a process of a GPU: the CPU engine is that of the GPU."""
    engines.register(toy_kind())


@contextmanager
def opened(
    devices: str = "01", here: Here = "first", at_once: bool = True, get_ready: Callable[[], None] = pretend
) -> Iterator[Processes]:
    with registered(toy_kind()):
        pool = Processes(devices, TOY_GPU, here, at_once, get_ready)
        try:
            yield pool
        finally:
            pool.close()


@pytest.fixture(scope="module")
def two() -> Iterator[Processes]:
    with opened() as pool:
        until(lambda: pool.capacity().workers == 2)
        yield pool


def pid_and_devices(argument: object) -> tuple[int, str | None]:
    return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")


def of_both(pool: Processes) -> dict[int, tuple[int, str | None]]:
    """What each of two GPUs says, by tag. Each of them gets two tasks."""
    for tag in range(4):
        pool.submit(tag, pid_and_devices, None)
    return {tag: result.value for tag, result in results(pool, 4).items()}


def fail(argument: object) -> None:
    raise IncompleteError("as asked")


class UnpicklableError(Exception):
    def __init__(self, one: object, two: object) -> None:
        super().__init__(f"{one} and {two}")


def fail_badly(argument: object) -> None:
    raise UnpicklableError("this", "that")


def fail_as_cuda_does(argument: object) -> None:
    raise type("CUDARuntimeError", (RuntimeError,), {})("cudaErrorIllegalAddress")


def hold(argument: str) -> None:
    Path(argument, str(os.getpid())).touch()
    until(lambda: Path(argument, "go").exists())


def test_this_process_has_the_first_gpu_and_a_process_the_second(two: Processes) -> None:
    assert (two.capacity(), two.describe(), two.longest_task_s()) == ((4, 2, None), "2 local GPUs", None)
    said = set(of_both(two).values())
    assert (os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")) in said
    ((pid, device),) = said - {(os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES"))}
    assert (pid != os.getpid(), device) == (True, "1")  # no other, because each that it sees takes time to start


def test_processes_that_see_one_gpu_each_share_the_cores(two: Processes) -> None:
    for tag in range(4):
        two.submit(tag, shares, None)
    said = {result.value for result in results(two, 4).values()}
    assert {(1, processes_that_share()), (2, 2)} == {(2 if pid != os.getpid() else 1, n) for pid, n in said}


def shares(argument: object) -> tuple[int, int]:
    return os.getpid(), processes_that_share()


def test_values_and_errors_come_back_by_tag(two: Processes) -> None:
    for tag in range(4):  # two for each GPU
        two.submit(tag, partial(floordiv, 21), tag % 2)
    found = results(two, 4)
    assert all(isinstance(found[tag].error, ZeroDivisionError) for tag in (0, 2))
    assert [found[tag].value for tag in (1, 3)] == [21, 21]
    for function, error, words in ((fail, IncompleteError, "as asked"), (fail_badly, Exception, "this and that")):
        for tag in range(4):
            two.submit(tag, function, None)
        for result in results(two, 4).values():
            assert isinstance(result.error, error)
            assert words in str(result.error)


def test_a_task_that_cannot_be_sent_ends_with_the_reason(two: Processes) -> None:
    for tag in range(4):
        two.submit(tag, str, threading.Lock())
    errors = [result.error for result in results(two, 4).values() if result.error is not None]
    assert len(errors) == 2  # this process needs to send nothing
    assert all("pickle" in str(error) for error in errors)


def test_two_gpus_have_four_slices_at_a_time_and_find_everything(tmp_path, two, monkeypatch):
    def all_there(
        function: Callable[[Any], Any], argument: Any
    ) -> None:  # else one could find all before two are there
        Processes.everywhere(two, function, argument)
        until(lambda: two.capacity().workers == 2)

    monkeypatch.setattr(two, "everywhere", all_there)
    check_two_find_everything(tmp_path, two)


def test_it_is_known_who_has_a_task(tmp_path: Path, two: Processes) -> None:
    for tag in range(2):
        two.submit(tag, hold, str(tmp_path))
    until(lambda: len(list(tmp_path.iterdir())) == 2)
    assert {two.who(tag).rpartition(":")[2] for tag in range(2)} == {path.name for path in tmp_path.iterdir()}
    (tmp_path / "go").touch()
    results(two, 2)
    assert two.who(0) == ""


def test_a_killed_process_loses_nothing(tmp_path: Path, two: Processes) -> None:
    folder = prepared_run(tmp_path, FOR_KILLS)
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if progress.running and not killed:
            until(lambda: two.capacity().workers == 2)
        busy = [process for process in two._processes if two._in_hand(process)]
        if not killed and progress.bicliques and busy:
            killed.append(busy[0].pid)
            os.kill(busy[0].pid, signal.SIGSTOP)  # what it has in hand stays there
            os.kill(busy[0].pid, signal.SIGKILL)

    session = driver.mine_run(Run(folder), two, RunLimits(), kill_one, 0.05)
    assert killed
    proving.prove(Run(folder), two, quiet)
    assert manifest_pair(folder.path) == answer(FOR_KILLS)
    assert list(load_ledger(folder.path).orphans()) == []
    assert session.outcome == "complete"
    until(lambda: two.capacity().workers == 2)
    assert killed[0] not in {pid for pid, _ in of_both(two).values()}


def test_a_process_whose_gpu_fails_is_replaced_and_its_tasks_are_lost(two: Processes) -> None:
    until(lambda: two.capacity().workers == 2)
    (process,) = two._processes
    task = process.submit(fail_as_cuda_does, None)
    assert isinstance(task.exception(PATIENCE_S), WorkerLostError)
    until(lambda: two._processes and two._processes[0] is not process and two.capacity().workers == 2)
    assert process.exit_code == 70


def test_if_the_gpu_of_this_process_fails_another_process_uses_it() -> None:
    with opened("01") as pool:
        until(lambda: pool.capacity().workers == 2)
        for tag in range(2):
            pool.submit(tag, fail_as_cuda_does, None)
        found = results(pool, 2)
        assert {type(result.error).__name__ for result in found.values()} == {"CUDARuntimeError", "WorkerLostError"}
        until(lambda: pool.capacity().workers == 2)
        said = set(of_both(pool).values())
        assert {device for _, device in said} == {"0", "1"}
        assert os.getpid() not in {pid for pid, _ in said}


def test_processes_start_when_they_are_asked_for_and_prepare_themselves_first(tmp_path: Path) -> None:
    with opened(at_once=False) as pool:
        assert (pool.capacity().workers, pool.describe(), pool.longest_task_s()) == (1, "this process, one GPU", None)
        pool.everywhere(note, str(tmp_path))
        assert len(list(tmp_path.iterdir())) == 1
        pool.grow()
        assert pool.longest_task_s() == 0.25 or pool.capacity().workers == 2
        until(lambda: pool.capacity().workers == 2)
        assert len(list(tmp_path.iterdir())) == 2
        assert pool.describe() == "2 local GPUs"


def note(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()


def test_without_a_gpu_of_its_own_this_process_waits_for_the_first_of_the_others(tmp_path: Path) -> None:
    with opened("45", here="never") as pool:
        pool.everywhere(note, str(tmp_path))
        assert pool.capacity().workers >= 1
        until(lambda: pool.capacity().workers == 2)
        assert str(os.getpid()) not in {path.name for path in tmp_path.iterdir()}
        assert {device for _, device in of_both(pool).values()} == {"4", "5"}


def start_once_told(folder: Path) -> None:
    until(lambda: (folder / "go").exists())
    pretend()


def test_tasks_wait_while_the_only_process_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    with opened("4", here="never", get_ready=partial(start_once_told, tmp_path)) as pool:
        until(lambda: pool.capacity().workers == 1)
        (tmp_path / "go").unlink()
        os.kill(pool._processes[0].pid, signal.SIGKILL)
        until(lambda: pool.capacity().workers == 0)
        pool.submit(0, pid_and_devices, None)
        assert pool.wait(0.01) == []
        (tmp_path / "go").touch()
        assert results(pool, 1)[0].value[1] == "4"


def test_a_process_that_cannot_get_ready_fails_the_run_in_a_sentence() -> None:
    with opened("01", get_ready=partial(os._exit, 3)) as pool, pytest.raises(ResourceError) as raised:
        until(lambda: pool.wait(0.01))
    assert "of GPU 1 ended while it got ready, with exit code 3; try workers=0" in str(raised.value)


def test_the_end_does_not_wait_for_slices_nor_for_processes_on_their_way(tmp_path: Path) -> None:
    began, ended = threading.Event(), threading.Event()

    def search(argument: object) -> None:
        with ending.may_end(ended.set):
            began.set()
            assert ended.wait(PATIENCE_S)

    with opened(get_ready=partial(time.sleep, 600)) as pool:
        pool.submit(0, search, None)
        assert began.wait(PATIENCE_S)
    assert ended.is_set()
    assert not any(process._process.is_alive() for process in pool._processes)
    with ending.may_end(lambda: pytest.fail("slices of later runs are ended, too")):
        pass


def test_no_process_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "without_a_guard.py"
    script.write_text(
        "import os, signal, time\n"
        "from tests.pipeline.workers.test_processes import TOY_GPU, Processes, pretend\n"
        "pool = Processes('12', TOY_GPU, 'never', True, pretend)\n"
        "while pool.capacity().workers < 2:\n    time.sleep(0.05)\n"
        "print(*(process.pid for process in pool._processes), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment: Any = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, env=environment)
    processes = list(map(int, ended.stdout.split()))
    assert (ended.returncode, len(processes)) == (-signal.SIGKILL, 2), ended.stderr
    until(lambda: not any(Path(f"/proc/{process}/cmdline").exists() for process in processes))


@pytest.mark.parametrize("how", [{"workers": 2}, {"devices": "0,1"}])
@pytest.mark.first(1)
def test_a_run_whose_gpus_are_asked_for_starts_their_processes_before_it_reads(tmp_path, monkeypatch, how):
    made: list[Processes] = []
    before: list[bool] = []

    def make(*words: Any, **more: Any) -> Processes:
        made.append(Processes(*words, **more, get_ready=pretend))
        return made[-1]

    def report(progress: Progress) -> None:
        if progress.step == "ingest":
            before.append(bool(made and made[0]._starting))

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    monkeypatch.setattr("bicliques.pipeline.workers.processes.Processes", make)
    source = write_edges(tmp_path / "g.parquet", FOR_TWO)
    with registered(toy_kind()):
        results = bq.mine(source, tmp_path / "out", engine="bitmatrix", progress=report, **how)
    assert (len(results), results.manifest.fingerprint) == answer(FOR_TWO)
    assert before
    assert all(before)
    assert [(pool._is_closing, pool.capacity().workers) for pool in made] == [(True, made[0].capacity().workers)]
    assert not any(process._process.is_alive() for process in made[0]._processes)


def test_workers_that_were_begun_are_taken_once_and_only_by_those_who_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[FakePool] = []

    def make(options: WorkerOptions) -> FakePool:
        made.append(FakePool())
        return made[-1]

    workers = LocalWorkers(lambda options: None, make, "toy worker", lambda options: bool(options.workers))
    monkeypatch.setitem(LOCAL_WORKERS, TOY_GPU.name, workers)
    options = WorkerOptions(workers=2)
    with begun(options, TOY_GPU):
        assert len(made) == 1
        with open_pool(WorkerOptions(workers=2), TOY_GPU) as other:
            assert other is made[1]
        for expected in (0, 2):
            with open_pool(options, TOY_GPU) as pool:
                assert pool is made[expected]
            assert made[expected].is_closed
    with pytest.raises(ResourceError), begun(options, TOY_GPU):
        raise ResourceError("reading failed")
    assert (len(made), made[3].is_closed) == (4, True)
    with begun(WorkerOptions(), TOY_GPU):
        assert len(made) == 4
