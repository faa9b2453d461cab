"""Slices on a GPU that is not there: turns, two slices in hand, too little memory; the engine is the CPU's."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernels import engines
from kernels.cpu.engine import CpuEngine
from pipeline.api import steps
from pipeline.mining import driver
from pipeline.output.parallel_writer import ParallelWriter
from pipeline.proof import proving
from pipeline.run.folder import RunFolder
from pipeline.slices import engine_turns, worker
from pipeline.workers.options import WorkerOptions
from pipeline.workers.thread_pool import InThreads
from schemas.errors import DeviceMemoryError, ResourceError
from schemas.options import RunLimits, RunOptions
from schemas.work import Emit, Limits, Search, Slice, Subtrees
from tests.support.runs import answer, load_ledger, manifest_pair, random_edges, write_edges

EDGES = random_edges(90, 60, 0.35, 8)


class FakeGpu:
    """An engine that says when two search at a time, and can be made to fail."""

    name = "bitmatrix"
    searching = threading.Lock()
    log: list[tuple[str, int]]
    others: list[weakref.ref[FakeGpu]]
    fail: Callable[[FakeGpu, Subtrees], None] = staticmethod(lambda engine, work: None)

    def __init__(self, halvings: int):
        self.halvings = halvings
        self.engine = CpuEngine()
        self.log.append(("made", halvings))
        self.log.append(("alive", sum(other() is not None for other in self.others)))
        self.others.append(weakref.ref(self))

    def mine(self, graph: Any, subtrees: Subtrees, search: Search, limits: Limits, emit: Emit) -> Slice:
        assert self.searching.acquire(blocking=False), "two slices search on one GPU"
        try:
            self.log.append(("searched", len(subtrees)))
            self.fail(self, subtrees)
            return self.engine.mine(graph, subtrees, search, limits, emit)
        finally:
            self.searching.release()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[FakeGpu]]:
    kind = engines.kind("bitmatrix")
    log: list[tuple[str, int]] = []
    monkeypatch.setattr(FakeGpu, "log", log, raising=False)
    monkeypatch.setattr(FakeGpu, "others", [], raising=False)
    fake = replace(kind, make=FakeGpu, why_not=lambda: None, release=lambda: log.append(("released", 0)))
    monkeypatch.setitem(engines._KINDS, "bitmatrix", fake)
    monkeypatch.setattr(worker, "_gpu_meter", lambda: None)
    yield FakeGpu
    worker.forget()


def prepared(tmp_path: Path, edges: np.ndarray = EDGES, search: Search | None = None) -> RunFolder:
    source = write_edges(tmp_path / "g.parquet", edges)
    options = RunOptions(source=str(source), search=search or Search(), engine="bitmatrix")
    steps.start(source, tmp_path / "out", options, RunLimits(), False)
    steps.prepare(tmp_path / "out", False)
    return RunFolder(tmp_path / "out")


def quiet(progress: object) -> None:
    pass


def mined(folder: RunFolder, slice_seconds: float = 0.01) -> None:
    pool = InThreads()
    try:
        assert driver.mine_run(folder, pool, RunLimits(), quiet, slice_seconds).outcome == "complete"
        proving.prove(folder, pool, quiet)
    finally:
        pool.close()


def test_slices_take_turns_on_one_engine_and_find_everything(tmp_path: Path, gpu: type[FakeGpu]) -> None:
    folder = prepared(tmp_path)
    mined(folder)
    assert manifest_pair(folder.path) == answer(EDGES)
    assert [what for what in gpu.log if what[0] == "made"] == [("made", 0)]
    assert gpu.log[-1] == ("released", 0)
    assert len(load_ledger(folder.path).entries) > 1


@pytest.mark.parametrize(("search", "place"), [(Search("list"), "gpu"), (Search("fingerprint"), "core")])
def test_a_gpu_writer_is_opened_before_the_first_slice_only_to_list(
    tmp_path: Path, gpu: type[FakeGpu], monkeypatch: pytest.MonkeyPatch, search: Search, place: str
) -> None:
    folder, opened, open_writer = prepared(tmp_path, search=search), [], worker.open_writer

    def watched(*arguments: Any) -> Any:
        opened.append((arguments[3], arguments[4]))
        return open_writer(*arguments)

    monkeypatch.setattr(worker, "open_writer", watched)
    worker.warm_up((str(folder.path), folder.run_id(), "cpu"))
    assert opened == [(place, "cpu")]
    assert not folder.bicliques.exists() or list(folder.bicliques.iterdir()) == []
    mined(folder)
    assert {where for where, _ in opened} == {place}


def test_the_next_slice_is_searched_while_one_is_written(
    tmp_path: Path, gpu: type[FakeGpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first slice is not written before the search of another one has begun."""
    folder = prepared(tmp_path)
    closing, searching = threading.Event(), threading.Event()
    in_time: list[bool] = []
    whole: dict[int, float] = {}
    close, search, mine = ParallelWriter.close, FakeGpu.mine, worker.mine_slice

    def late_close(self: Any) -> Any:
        if not closing.is_set():
            closing.set()
            in_time.append(searching.wait(60))
            time.sleep(0.2)
        return close(self)

    def seen(self: Any, *arguments: Any) -> Slice:
        if closing.is_set():
            searching.set()
        return search(self, *arguments)

    def timed(task: worker.SliceTask) -> worker.SliceResult:
        began = time.perf_counter()
        found = mine(task)
        whole[task.slice] = time.perf_counter() - began
        return found

    monkeypatch.setattr(ParallelWriter, "close", late_close)
    monkeypatch.setattr(FakeGpu, "mine", seen)
    monkeypatch.setattr(driver, "mine_slice", timed)
    mined(folder)
    assert in_time == [True]
    entries = load_ledger(folder.path).entries
    assert all(entry.result.stats.writing_seconds <= entry.result.seconds for entry in entries.values())
    closed = entries[0].result.stats.closing_seconds
    assert closed >= 0.2, "beside the next search"
    assert entries[0].result.seconds + closed <= whole[0], "the time of a slice is that of its search"


def test_a_gpu_without_memory_gets_a_smaller_engine_and_a_warning(
    tmp_path: Path, gpu: type[FakeGpu], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = prepared(tmp_path)

    def fail(engine: FakeGpu, work: Subtrees) -> None:
        if engine.halvings < 2:  # at the warm-up, too
            raise DeviceMemoryError("the toy has 3 MiB free, 4 MiB more are needed")

    monkeypatch.setattr(gpu, "fail", staticmethod(fail))
    mined(folder)
    assert manifest_pair(folder.path) == answer(EDGES)
    assert [n for what, n in gpu.log if what == "made"] == [0, 1, 2]
    assert {n for what, n in gpu.log if what == "alive"} == {0}, (
        "an engine was made before the last one's memory was free"
    )
    assert caplog.text.count("goes on with half the device memory: the toy has 3 MiB free") == 2
    assert {entry.result.stats.halvings for entry in load_ledger(folder.path).entries.values()} == {2}


def test_a_slice_whose_last_chunks_do_not_fit_on_the_gpu_is_mined_again(
    tmp_path: Path, gpu: type[FakeGpu], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = prepared(tmp_path)
    close, failed = ParallelWriter.close, []

    def fail_twice(self: Any) -> Any:
        if len(failed) < 2:
            failed.append(self)
            raise DeviceMemoryError("there is no device memory left to write x")
        return close(self)

    monkeypatch.setattr(ParallelWriter, "close", fail_twice)
    mined(folder)
    assert manifest_pair(folder.path) == answer(EDGES)
    assert caplog.text.count("goes on with half the device memory: there is no device memory left to write x") == 2
    assert [n for what, n in gpu.log if what == "made"] == [0, 1, 2]


def test_a_gpu_that_never_has_enough_memory_ends_the_run(
    tmp_path: Path, gpu: type[FakeGpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = prepared(tmp_path)

    def fail(engine: FakeGpu, work: Subtrees) -> None:
        if len(work) > 1:
            raise DeviceMemoryError("the toy has 3 MiB free, 4 MiB more are needed")

    monkeypatch.setattr(gpu, "fail", staticmethod(fail))
    with pytest.raises(ResourceError, match="the toy has 3 MiB free"):
        mined(folder)
    assert list(folder.bicliques.iterdir()) == []


def test_each_thread_on_cores_has_an_engine() -> None:
    kind = engines.kind("reference")
    with engine_turns.turn(kind, "run") as first, engine_turns.turn(kind, "run") as again:
        assert first is again
        assert not first.make_smaller()
    seen = []

    def other() -> None:
        with engine_turns.turn(kind, "run") as server:
            seen.append(server)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[0] is not first
    with engine_turns.turn(kind, "another run") as server:
        assert server is not first
    engine_turns.forget()


def test_all_cores_read_back_the_rows_of_one_gpu(
    tmp_path: Path, gpu: type[FakeGpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    prove = proving.prove

    def watch(folder: RunFolder, pool: Any, report: Any) -> Any:
        seen.append(pool.slots())
        return prove(folder, pool, report)

    monkeypatch.setattr(proving, "prove", watch)
    monkeypatch.setattr(steps.os, "sched_getaffinity", lambda process: range(5))
    folder = prepared(tmp_path)
    steps.run(folder.path, WorkerOptions(workers=0), RunLimits(), False)
    assert seen == [5]
    assert manifest_pair(folder.path) == answer(EDGES)
