"""Threads of a worker share a slice. It has one result, one left-over and one entry, and nothing is lost or twice."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bicliques as bq
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.pipeline.dealing.schedule import Policy, Scheduler
from bicliques.pipeline.mining import driver
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.process.children import identity
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices import ending, shared_slice, thread_team, worker
from bicliques.pipeline.slices.left_over import unpacked
from bicliques.pipeline.slices.shared_slice import mine_slice
from bicliques.pipeline.slices.slice_search import SliceSearch
from bicliques.pipeline.slices.worker import SliceDone, SliceTask
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.manifest import PLAN
from bicliques.schemas.options import RunLimits
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.work import Subtrees
from tests.support.pools import FakePool, SharedInProcess
from tests.support.runs import answer, load_ledger, prepared_run, quiet, random_edges

EDGES = random_edges(120, 70, 0.35, 5)
FEWER = random_edges(90, 60, 0.35, 5)
THREADS = 3


@pytest.fixture(autouse=True)
def a_process_that_stays(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ending, "_leaving", threading.Event())
    yield
    worker.forget()
    assert not ending._searches, "a search that is over can still be ended"
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("team")], "threads are left"


def prepared(tmp_path: Path, search: Search | None = None, engine: str = "cpu", edges: np.ndarray = EDGES) -> RunFolder:
    return prepared_run(tmp_path, edges, search, engine)


def task_of(folder: RunFolder, limits: Limits, work: Subtrees | None = None) -> SliceTask:
    run = Run(folder)
    folder.pending.mkdir(exist_ok=True)
    nodes = Subtrees.of_roots(run.plan.roots) if work is None else work
    return SliceTask(str(folder.path), run.identity, 0, 0, 0, ((nodes.to_bytes(), 0, len(nodes)),), limits)


def mined(task: SliceTask, threads: int = THREADS) -> SliceDone:
    return thread_team.on_threads(threads, mine_slice, task)


def finds_the_rest(folder: RunFolder, done: SliceDone) -> bool:
    """Whether the slice and what it left over are all of the run, and each biclique is in one of them."""
    left = unpacked([(done.left_over.packed, 0, len(done.left_over))]) if len(done.left_over) else Subtrees.empty()
    rest = CpuEngine().mine(Run(folder).graph, left, Search("fingerprint"), Limits(), nowhere)
    count, fingerprint = done.result.total.seen + rest.count, done.result.total.fingerprint + rest.fingerprint
    return (count, fingerprint % 2**64) == answer(EDGES)


def test_the_time_of_writing_is_told_per_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads write at the same time, and the slice took no longer than one of them."""
    write = PartWriter.__call__

    def slow(writer: PartWriter, found: Any, /) -> None:
        time.sleep(0.2)
        write(writer, found)

    monkeypatch.setattr(PartWriter, "__call__", slow)
    result = mined(task_of(prepared(tmp_path), Limits(10.0))).result
    assert 0 < result.stats.writing_seconds <= result.seconds


def test_threads_that_share_slices_find_everything(tmp_path: Path) -> None:
    run, pool = Run(prepared(tmp_path)), SharedInProcess(THREADS)
    session = driver.mine_run(run, pool, RunLimits(), quiet, 0.01)
    assert session.outcome == "complete"
    manifest = proving.prove(run, FakePool(), quiet)
    assert (manifest.count, manifest.fingerprint) == answer(EDGES)
    entries = load_ledger(run.path).entries.values()
    assert {entry.result.stats.threads for entry in entries} == {THREADS}
    assert {entry.result.worker for entry in entries} == {identity()}
    assert bq.verify(run.path, progress=False).fingerprint == manifest.fingerprint


@pytest.mark.parametrize(
    "search",
    [
        Search(largest=4, by="edges"),
        Search(per_vertex=True),
        Search(mode="count", sizes=True),
        Search(min_left=3, min_right=4),
        Search(max_right=5),
    ],
    ids=["largest", "per vertex", "sizes", "thresholds", "filters"],
)
def test_every_question_has_the_answer_of_one_thread(tmp_path: Path, search: Search) -> None:
    totals = []
    for name, pool in {"one": FakePool(), "shared": SharedInProcess(THREADS)}.items():
        (tmp_path / name).mkdir()
        run = Run(prepared(tmp_path / name, search, edges=FEWER))
        assert driver.mine_run(run, pool, RunLimits(), quiet, 0.05).outcome == "complete"
        total = load_ledger(run.path).total.to_json()
        total.pop("seen", None)  # a search for the largest may pass others
        totals.append(total)
    assert totals[0] == totals[1]


@pytest.mark.parametrize("most", [1, 5000, 5001])
def test_threads_together_never_exceed_the_row_limit(tmp_path: Path, most: int) -> None:
    folder = prepared(tmp_path)
    done = mined(task_of(folder, Limits(rows=most)))
    assert done.result.total.count == sum(part.rows for part in done.result.parts) == most
    assert finds_the_rest(folder, done)


def test_a_slice_whose_time_is_up_leaves_the_rest_over(tmp_path: Path) -> None:
    folder = prepared(tmp_path, engine="reference")
    done = mined(task_of(folder, Limits(seconds=0.2)))
    assert done.result.n_left_over == len(done.left_over) > 0
    assert finds_the_rest(folder, done)


def test_a_slice_without_time_does_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a busy machine could deal the same nodes for ever."""
    monkeypatch.setattr(
        shared_slice, "_FIRST_S", 300.0
    )  # however long this machine stalls before the first piece begins
    monkeypatch.setattr(shared_slice, "SHORTEST_S", 300.0)
    folder = prepared(tmp_path)
    done = mined(task_of(folder, Limits(seconds=0.0)))
    assert done.result.total.seen > 0
    assert finds_the_rest(folder, done)


def test_a_worker_that_leaves_hands_its_shared_slice_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, all_of, pieces = prepared(tmp_path), SliceSearch.all_of, []

    def told(self: SliceSearch, work: Subtrees, n_probes: int) -> None:
        pieces.append(len(work))
        if len(pieces) == 2:
            ending.leave()
        all_of(self, work, n_probes)

    monkeypatch.setattr(SliceSearch, "all_of", told)
    done = mined(task_of(folder, Limits()))
    assert len(done.left_over) > 0
    assert finds_the_rest(folder, done)
    again = mined(task_of(folder, Limits()))
    assert (again.result.total.seen, len(again.left_over)) == (0, Run(folder).graph.n_roots)


@pytest.mark.parametrize("error", [ResourceError("the disk is full"), RuntimeError("a bug")], ids=["ours", "other"])
@pytest.mark.first(1)
def test_a_thread_that_fails_ends_the_slice_and_leaves_no_file(tmp_path, monkeypatch, error):
    """It fails when another thread has written a part. The slice is tried again, and nothing of it counts before."""
    folder, all_of, stretch = prepared(tmp_path), SliceSearch.all_of, PartWriter.write_stretch
    written, has_failed, failed = threading.Event(), threading.Event(), []

    def write_at_once(self: PartWriter, found: Any) -> None:
        self.stretch.add(found)
        stretch(self)
        written.set()

    def fail(self: SliceSearch, work: Subtrees, n_probes: int) -> None:
        if threading.current_thread().name.endswith("_1") and not failed:
            assert written.wait(300)
            failed.append(sorted(file.name for file in folder.pending.iterdir()))
            has_failed.set()
            raise error
        all_of(self, work, n_probes)
        assert has_failed.wait(300)

    monkeypatch.setattr(SliceSearch, "all_of", fail)
    monkeypatch.setattr(PartWriter, "__call__", write_at_once)
    task = task_of(folder, Limits())
    with pytest.raises(type(error), match=str(error)):
        mined(task)
    assert failed[0], "another thread has written nothing"
    assert list(folder.pending.iterdir()) == []
    assert finds_the_rest(folder, mined(task))


def test_a_writer_that_cannot_close_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, close = prepared(tmp_path), PartWriter.close
    closed = []

    def fail_at_second(self: PartWriter) -> Any:
        parts = close(self)
        closed.append(parts)
        if len(closed) == 2:
            raise ResourceError("the disk is full")
        return parts

    monkeypatch.setattr(PartWriter, "close", fail_at_second)
    with pytest.raises(ResourceError, match="the disk is full"):
        mined(task_of(folder, Limits()))
    assert sum(map(len, closed)) >= 1
    assert list(folder.pending.iterdir()) == []


def test_threads_that_have_nothing_to_do_ask_for_a_share_of_a_long_piece(tmp_path, monkeypatch):
    """The first piece has all of the work, and lasts until the rest of it is asked for. That rest is dealt."""
    folder, all_of, stop = prepared(tmp_path), SliceSearch.all_of, CpuEngine.stop
    recalled, pieces = threading.Event(), list[int]()

    def hold(self: SliceSearch, work: Subtrees, n_probes: int) -> None:
        pieces.append(len(work))
        if len(pieces) == 1:
            assert recalled.wait(300)
            self.again(Limits(rows=10))
        all_of(self, work, 0)

    def note(self: CpuEngine) -> None:
        recalled.set()
        stop(self)

    monkeypatch.setattr(SliceSearch, "all_of", hold)
    monkeypatch.setattr(CpuEngine, "stop", note)
    largest = Subtrees.of_roots(Run(folder).plan.roots[:1])
    done = mined(task_of(folder, Limits(), largest))
    assert len(pieces) > 1
    assert done.result.stats.pieces == len(pieces)
    expected = CpuEngine().mine(Run(folder).graph, largest, Search("fingerprint"), Limits(), nowhere)
    assert (done.result.total.seen, done.result.total.fingerprint) == (expected.count, expected.fingerprint)


def test_one_thread_mines_a_slice_as_it_always_did(tmp_path: Path) -> None:
    done = mined(task_of(prepared(tmp_path), Limits()), threads=1)
    assert (done.result.stats.threads, done.result.stats.pieces) == (1, 1)
    assert done.result.total.seen == answer(EDGES)[0]
    assert thread_team._kept is None


def test_idle_threads_do_not_count_as_busy(tmp_path: Path) -> None:
    """One root without a subtree keeps one of the threads busy, and that for a moment."""
    folder = prepared(tmp_path)
    result = mined(task_of(folder, Limits(), Subtrees.of_roots(Run(folder).plan.roots[-1:]))).result
    assert 0 <= result.busy_seconds < 0.7 * THREADS * result.seconds
    assert result.stats.idle_seconds > 0


def test_a_slice_of_another_run_waits_for_the_threads(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    run, other = Run(prepared(tmp_path)), Run(prepared(tmp_path / "other", edges=FEWER))
    has_them = threading.Event()

    def take() -> None:
        with thread_team.team_of(other, 2):
            has_them.set()

    waiting = threading.Thread(target=take)
    with thread_team.team_of(run, 2) as threads:
        waiting.start()
        assert not has_them.wait(0.1)
        threads.all_do(lambda: None)
    waiting.join(300)
    assert has_them.is_set()


def test_threads_are_not_ended_while_a_slice_is_about_to_use_them(tmp_path: Path) -> None:
    run = Run(prepared(tmp_path))
    ending_them = threading.Thread(target=thread_team.forget)
    with thread_team.team_of(run, 2) as threads:
        ending_them.start()
        time.sleep(0.05)
        assert ending_them.is_alive()
        threads.all_do(lambda: None)
    ending_them.join(300)
    assert not ending_them.is_alive()


def test_what_is_outstanding_is_all_that_is_not_done_and_not_running() -> None:
    machine = Scheduler(Policy(max_nodes=3), 7)
    machine.add_source(PLAN, np.ones(10), [(0, 4), (6, 10)], is_plan=True)
    first, second = machine.set_slots(2)
    dealt = [*first.took, *second.took]
    taken = {(source, node) for source, start, stop in dealt for node in range(start, stop)}

    def outstanding() -> set[tuple[int, int]]:
        return {(source, node) for source, start, stop in machine.outstanding for node in range(start, stop)}

    assert taken
    assert outstanding() == {(PLAN, node) for node in (*range(4), *range(6, 10))} - taken
    machine.stop("time_limit")
    machine.failed(first.slice, "it was unlucky")
    machine.returned(second.slice, 1.0, 0, np.ones(2))
    left = {(source, node) for source, start, stop in first.took for node in range(start, stop)}
    rest = {(PLAN, node) for node in (*range(4), *range(6, 10))} - taken
    assert outstanding() == left | rest | {(second.slice, 0), (second.slice, 1)}
