"""Slices take turns on an engine, which shrinks when memory is short. A CPU engine stands for a GPU engine."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bicliques.kernels import engines
from bicliques.pipeline.api import steps
from bicliques.pipeline.mining import driver
from bicliques.pipeline.output import writers
from bicliques.pipeline.output.writers import ParallelWriter
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices import engine_turns, worker
from bicliques.pipeline.slices.left_over import Roots
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import DeviceMemoryError, ResourceError
from bicliques.schemas.graph import MiningGraph
from bicliques.schemas.options import RunLimits
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Slice, Subtrees
from tests.support.engines import TOY_GPU, FakeGpu, FakeGpuEngine, fake_gpu, registered
from tests.support.runs import answer, load_ledger, manifest_pair, mined_in_threads, prepared_run, random_edges

EDGES = random_edges(90, 60, 0.35, 8)


@pytest.fixture
def gpu() -> Iterator[FakeGpu]:
    with fake_gpu() as gpu:
        yield gpu


def prepared(tmp_path: Path, search: Search | None = None) -> RunFolder:
    return prepared_run(tmp_path, EDGES, search)


def test_slices_take_turns_on_one_engine_and_find_everything(tmp_path: Path, gpu: FakeGpu) -> None:
    folder = prepared(tmp_path)
    mined_in_threads(folder)
    assert manifest_pair(folder.path) == answer(EDGES)
    assert [what for what in gpu.log if what[0] == "made"] == [("made", 0)]
    assert gpu.log[-1] == ("released", 0)
    assert len(load_ledger(folder.path).entries) > 1


@pytest.mark.parametrize(("search", "platform"), [(Search("list"), "cuda"), (Search("fingerprint"), "cores")])
def test_a_gpu_writer_is_opened_before_the_first_slice_only_to_list(tmp_path, gpu, monkeypatch, search, platform):
    folder, opened, open_writer = prepared(tmp_path, search=search), [], worker.open_writer

    def watched(*arguments: Any) -> Any:
        opened.append((arguments[3].name, arguments[4]))
        return open_writer(*arguments)

    monkeypatch.setattr(worker, "open_writer", watched)
    worker.warm_up((str(folder.path), folder.run_id(), "cpu"))
    assert opened == [(platform, "cpu")]
    assert not folder.bicliques.exists() or list(folder.bicliques.iterdir()) == []
    mined_in_threads(folder)
    assert {where for where, _ in opened} == {platform}


def test_an_engine_warms_up_for_a_moment_however_much_is_below_the_first_root(tmp_path, gpu, monkeypatch):
    folder, times, mine = prepared(tmp_path), [], FakeGpuEngine.mine

    def watched(self: Any, graph: Any, subtrees: Any, search: Any, limits: Any, emit: Any) -> Any:
        times.append(limits.seconds)
        return mine(self, graph, subtrees, search, limits, emit)

    monkeypatch.setattr(FakeGpuEngine, "mine", watched)
    worker.warm_up((str(folder.path), folder.run_id(), "cpu"))
    [seconds] = times
    assert seconds is not None
    assert seconds < 0.1


def test_the_next_slice_is_searched_while_one_is_written(tmp_path, gpu, monkeypatch):
    """The test holds the writing of the first slice back until the search of another slice has begun."""
    folder = prepared(tmp_path)
    closing, searching = threading.Event(), threading.Event()
    in_time: list[bool] = []
    begun: list[int] = []
    whole: dict[int, float] = {}
    close, mine = ParallelWriter.close, worker.mine_alone

    def late_close(self: Any) -> Any:
        if not closing.is_set():
            closing.set()
            in_time.append(searching.wait(60))
            time.sleep(0.2)
        return close(self)

    def seen(engine: FakeGpuEngine, work: Subtrees) -> None:
        begun.append(len(work))
        if len(begun) > 2:  # neither a slice that warms up nor the first one
            closing.wait(60)
            searching.set()

    def timed(task: worker.SliceTask) -> worker.SliceResult:
        began = time.perf_counter()
        found = mine(task)
        whole[task.slice] = time.perf_counter() - began
        return found

    monkeypatch.setattr(ParallelWriter, "close", late_close)
    gpu.before_search = seen
    monkeypatch.setattr(driver, "mine_slice", timed)
    mined_in_threads(folder)
    assert in_time == [True]
    entries = load_ledger(folder.path).entries
    assert all(entry.result.stats.writing_seconds <= entry.result.seconds for entry in entries.values())
    held = max((entry.result for entry in entries.values()), key=lambda result: result.stats.closing_seconds)
    closed = held.stats.closing_seconds
    assert closed >= 0.2, "closing beside the next search is measured"
    assert held.seconds + closed <= whole[held.slice], "the time of a slice is that of its search, without closing"


def test_nodes_are_prepared_before_the_turn_of_their_slice_and_left_over_made_after_it(tmp_path, gpu, monkeypatch):
    """The test holds the first search until the next slice is prepared, and its left-over until that is searched."""
    folder, prepared_next, searched_next = prepared(tmp_path), threading.Event(), threading.Event()
    in_time, searched, given, mine = list[bool](), list[Subtrees](), list[Subtrees](), FakeGpuEngine.mine

    def prepare(graph: MiningGraph, nodes: Subtrees, search: Search) -> Subtrees:
        assert search == Search("list")
        given.append(replace(nodes))
        if len(given) == 2:
            prepared_next.set()
        return given[-1]

    def late(found: Slice) -> Subtrees:
        in_time.append(searched_next.wait(60))
        return found.left_over

    def watched(self: Any, graph: Any, subtrees: Any, search: Any, limits: Any, emit: Any) -> Slice:
        searched.append(subtrees)
        if len(searched) == 1:
            in_time.append(prepared_next.wait(60))
        else:
            searched_next.set()
        found = mine(self, graph, subtrees, search, limits, emit)
        return Slice(found.total, partial(late, found), found.stats) if len(searched) == 1 else found

    monkeypatch.setattr(FakeGpuEngine, "mine", watched)
    monkeypatch.setattr(driver, "warm_up", lambda task: None)
    with registered(replace(gpu.kind, prepare=prepare)):
        mined_in_threads(folder)
    assert in_time == [True, True]
    assert {id(nodes) for nodes in searched} == {id(nodes) for nodes in given}, "an engine gets what was prepared"
    assert manifest_pair(folder.path) == answer(EDGES)


def test_a_left_over_that_cannot_be_made_leaves_no_files(tmp_path, gpu, monkeypatch):
    folder, mine = prepared(tmp_path), FakeGpuEngine.mine

    def fail() -> Subtrees:
        raise MemoryError("as asked")

    def watched(self: Any, *words: Any) -> Slice:
        found = mine(self, *words)
        return Slice(found.total, fail, found.stats)

    monkeypatch.setattr(FakeGpuEngine, "mine", watched)
    with pytest.raises(ResourceError, match="as asked"):
        mined_in_threads(folder)
    assert list(folder.pending.iterdir()) == []


def test_a_gpu_without_memory_gets_a_smaller_engine_and_a_warning(tmp_path, gpu, monkeypatch, caplog):
    folder = prepared(tmp_path)

    def fail(engine: FakeGpuEngine, work: Subtrees) -> None:
        if engine.halvings < 2:  # the warm-up fails, too
            raise DeviceMemoryError("the toy has 3 MiB free, 4 MiB more are needed")

    gpu.before_search = fail
    mined_in_threads(folder)
    assert manifest_pair(folder.path) == answer(EDGES)
    assert [n for what, n in gpu.log if what == "made"] == [0, 1, 2]
    assert {n for what, n in gpu.log if what == "alive"} == {0}, (
        "an engine was made before the last one's memory was free"
    )
    assert caplog.text.count("goes on with half the device memory: the toy has 3 MiB free") == 2
    assert {entry.result.stats.halvings for entry in load_ledger(folder.path).entries.values()} == {2}


def test_a_slice_whose_last_chunks_do_not_fit_on_the_gpu_is_mined_again(tmp_path, gpu, monkeypatch, caplog):
    folder = prepared(tmp_path)
    close, failed = ParallelWriter.close, []

    def fail_twice(self: Any) -> Any:
        if len(failed) < 2:
            failed.append(self)
            raise DeviceMemoryError("there is no device memory left to write x")
        return close(self)

    monkeypatch.setattr(ParallelWriter, "close", fail_twice)
    mined_in_threads(folder)
    assert manifest_pair(folder.path) == answer(EDGES)
    assert caplog.text.count("goes on with half the device memory: there is no device memory left to write x") == 2
    assert [n for what, n in gpu.log if what == "made"] == [0, 1, 2]


def test_a_gpu_that_never_has_enough_memory_ends_the_run(tmp_path, gpu, monkeypatch):
    folder = prepared(tmp_path)

    def fail(engine: FakeGpuEngine, work: Subtrees) -> None:
        if len(work) > 1:
            raise DeviceMemoryError("the toy has 3 MiB free, 4 MiB more are needed")

    gpu.before_search = fail
    with pytest.raises(ResourceError, match="the toy has 3 MiB free"):
        mined_in_threads(folder)
    assert list(folder.bicliques.iterdir()) == []


@pytest.mark.parametrize("trouble", ["labels", "rows"])
def test_a_gpu_without_memory_to_write_leaves_writing_to_the_cores_and_says_so(tmp_path, monkeypatch, caplog, trouble):
    folder, opened = prepared(tmp_path), []

    class Full:
        threads = 1

        def __init__(self, tables: Any, provenance: Any) -> None:
            opened.append(self)
            if trouble == "labels":
                raise DeviceMemoryError("there is no device memory left to hold the labels")

        def pieces(self, found: Any, members: int) -> list[Any]:
            raise DeviceMemoryError("there is no device memory left to cut bicliques into chunks")

    monkeypatch.setattr(writers, "why_no_cudf", lambda: None)
    monkeypatch.setattr(writers, "CudfParquet", Full)
    with fake_gpu() as gpu:
        mined_in_threads(folder)
    assert manifest_pair(folder.path) == answer(EDGES)
    smaller = TOY_GPU.most_halvings
    assert [n for what, n in gpu.log if what == "made"] == list(range(smaller + 1))
    assert caplog.text.count("goes on with half the device memory") == smaller
    assert caplog.text.count("leaves writing to the CPU from now on: there is no device memory left to ") == 1
    # before the first slice, with each engine, and never after that
    assert len(opened) == (1 + smaller + 1 if trouble == "labels" else 1)
    assert len(load_ledger(folder.path).entries) > 1


def test_a_gpu_that_was_asked_to_write_and_has_no_memory_for_it_ends_the_run(tmp_path, monkeypatch, caplog):
    def full(tables: Any, provenance: Any) -> None:
        raise DeviceMemoryError("there is no device memory left to hold the labels")

    folder = prepared(tmp_path)
    monkeypatch.setattr(writers, "why_no_cudf", lambda: None)
    monkeypatch.setattr(writers, "CudfParquet", full)
    run = Run(folder)
    work = (Roots.of(np.arange(run.graph.n_roots, dtype=np.int32)),)
    with fake_gpu(), pytest.raises(ResourceError, match="to hold the labels"):
        worker.mine_alone(worker.SliceTask(str(folder.path), folder.run_id(), 0, 0, 0, work, Limits(), "gpu"))
    assert "leaves writing" not in caplog.text


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


def test_all_cores_read_back_the_rows_of_one_gpu(tmp_path: Path, gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    prove = proving.prove

    def watch(run: Any, pool: Any, report: Any, on_device: bool, reading: Any) -> Any:
        seen.append((pool.capacity().slots, on_device))
        return prove(run, pool, report, on_device, reading)

    monkeypatch.setattr(proving, "prove", watch)
    monkeypatch.setattr(steps.os, "sched_getaffinity", lambda process: range(5))
    folder = prepared(tmp_path)
    steps.run(folder.path, WorkerOptions(workers=0), RunLimits(), False)
    assert seen == [(5, False)]
    assert manifest_pair(folder.path) == answer(EDGES)
