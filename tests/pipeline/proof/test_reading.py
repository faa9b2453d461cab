"""Parts are read back while a run is mined. Each is summed up once, and only as the file that is sealed."""

import itertools
import os
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.api import steps
from bicliques.pipeline.api.runs import verify
from bicliques.pipeline.mining import driver
from bicliques.pipeline.output import stretch
from bicliques.pipeline.proof import proving, read_back, reading
from bicliques.pipeline.proof.read_back import ProofTask, prove_part
from bicliques.pipeline.proof.reading import Reading
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.pipeline.workers.thread_pool import InThreads, Pool, Result, WorkerLostError
from bicliques.schemas.errors import IncompleteError, ResourceError
from bicliques.schemas.options import RunLimits
from tests.support.pools import FakePool
from tests.support.runs import answer, load_ledger, manifest_pair, prepared_run, quiet, random_edges

EDGES = random_edges(20, 17, 0.45, 3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A planned run of a slow engine. Its parts will have many row groups, and each of these is a task."""
    monkeypatch.setattr(stretch, "GROUP_ROWS", 20)
    monkeypatch.setattr(read_back, "PIECE_BYTES", 1 << 10)
    return prepared_run(tmp_path, EDGES, engine="reference")


@pytest.fixture
def added(monkeypatch):
    """Every task whose rows were summed up, and by which reading."""
    found = []
    whole = Reading._add_up

    def watch(self: Reading, task: ProofTask, *read):
        found.append((self, task))
        whole(self, task, *read)

    monkeypatch.setattr(Reading, "_add_up", watch)
    return found


@pytest.fixture
def readers():
    """Workers that only read."""
    pool = InThreads(2)
    yield pool
    pool.close()


def mine_and_read(folder: RunFolder, readers: Pool) -> tuple[Run, Reading]:
    """Mine a run in slices of a hundredth of a second, and read all parts meanwhile."""
    run = Run(folder)
    read = Reading(run, readers=readers)
    pool = FakePool()
    assert driver.mine_run(run, pool, RunLimits(), quiet, 0.01, beside=read).outcome == "complete"
    while read._unopened or read._waiting or read._running:
        read.go_on(pool, 0)
    return run, read


def once(added: list[tuple[Reading, ProofTask]], folder: RunFolder):
    """Check that the last reading has summed up every row group of the run once, and that nothing else is sealed."""
    last = added[-1][0]
    counts = Counter[tuple[str, int]]()
    for read, task in added:
        if read is last:
            n = pq.read_metadata(folder.bicliques / task.part.name).num_row_groups
            counts.update((task.part.name, group) for group in range(*(task.groups or (0, n))))
    parts = load_ledger(folder.path).parts
    groups = [
        (part.name, k) for part in parts for k in range(pq.read_metadata(folder.bicliques / part.name).num_row_groups)
    ]
    assert counts == Counter(groups)
    assert manifest_pair(folder.path) == answer(EDGES)
    verify(folder.path, progress=False)  # compares the summary with the rows


def test_parts_are_read_while_the_run_is_mined(folder, readers, added, monkeypatch):
    monkeypatch.setattr(stretch, "GROUP_ROWS", 2)  # a slow machine finds few rows in a slice
    run, read = mine_and_read(folder, readers)
    before = len(added)
    assert before > len(load_ledger(folder.path).parts) > 1
    proving.prove(run, readers, quiet, reading=read)
    assert len(added) == before
    once(added, folder)


@pytest.mark.parametrize(
    ("workers", "end"),
    [
        *((workers, end) for workers in (0, None) for end in ("interrupted", "error")),
        *((workers, end) for workers, end in ((0, "max_results"), (None, "time_limit"))),
        *(
            pytest.param(workers, end, marks=pytest.mark.exhaustive)
            for workers, end in ((0, "time_limit"), (None, "max_results"), (2, "interrupted"))
        ),
    ],
)
@pytest.mark.first(3)
def test_every_row_is_summed_up_once_however_mining_ended_before(folder, added, workers, end):
    options, stop = WorkerOptions(workers=workers, slice_seconds=0.03), threading.Event()

    def end_it(progress):
        if progress.step == "mine" and progress.bicliques > 100:
            if end == "error":
                raise RuntimeError("the driver breaks")
            stop.set()

    if end == "error":
        with pytest.raises(RuntimeError, match="breaks"):
            steps.run(folder.path, options, RunLimits(), end_it)
    else:
        limits = {"max_results": RunLimits(max_results=150), "time_limit": RunLimits(time_limit_s=0.02)}
        session = steps.run(
            folder.path, options, limits.get(end, RunLimits()), end_it if end == "interrupted" else False, stop
        )
        assert session.outcome in (end, "complete")
    added.clear()
    if not folder.manifest_file.exists():
        steps.run(folder.path, options, RunLimits(), False)
        once(added, folder)


def test_slots_without_a_slice_read(folder):
    """As many tasks as there are free slots, and none where every slot has a slice."""

    class Slots(FakePool):
        given = 0

        def submit(self, *task):
            self.given += 1
            super().submit(*task)

    run, slots, pool = Run(folder), Slots(), FakePool()
    driver.mine_run(run, pool, RunLimits(), quiet, 0.01)
    read = Reading(run)
    read.begin(load_ledger(folder.path).parts)
    for free, given in ((-1, 0), (0, 0), (2, 2), (2, 2), (1, 2), (3, 3)):
        read.go_on(slots, free)
        assert slots.given == given
    for result in slots.wait(0):
        read.take(result)
    read.go_on(slots, 3)
    assert slots.given == 4
    proving.prove(run, slots, quiet, reading=read)
    assert manifest_pair(folder.path) == answer(EDGES)


def test_a_part_that_was_written_again_is_read_again(folder, readers, added):
    run, read = mine_and_read(folder, readers)
    once_read = len(added)
    path = folder.bicliques / load_ledger(folder.path).parts[0].name
    path.write_bytes(path.read_bytes())
    proving.prove(run, readers, quiet, reading=read)
    assert len(added) == 2 * once_read
    del added[:once_read]
    once(added, folder)


@pytest.mark.parametrize("keep_times", [False, True])
def test_a_byte_that_changes_after_it_was_read_is_noticed(folder, readers, keep_times):
    """Also if the time of the last change is set back, because the time of the last change of the inode remains."""
    run, read = mine_and_read(folder, readers)
    path = folder.bicliques / load_ledger(folder.path).parts[-1].name
    before = path.stat()
    column, content = pq.read_metadata(path).row_group(0).column(1), bytearray(path.read_bytes())
    content[column.dictionary_page_offset + column.total_compressed_size - 1] ^= 4
    path.write_bytes(content)
    if keep_times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(IncompleteError, match=rf"{path.name} cannot be read|the Parquet rows of slice \d+"):
        proving.prove(run, readers, quiet, reading=read)
    assert not folder.manifest_file.exists()


def test_a_slice_that_is_mined_again_is_read_again(folder, readers, added):
    run, read = mine_and_read(folder, readers)
    ledger = load_ledger(folder.path)
    # with it go those that took its left-over, and theirs: else the ledger itself would be refused
    gone = {max(number for number, entry in ledger.entries.items() if entry.result.parts)}
    for _ in ledger.entries:
        gone |= {number for number, entry in ledger.entries.items() if gone & {source for source, *_ in entry.took}}
    for number in gone:
        ledger.file(number).unlink()
    with pytest.raises(IncompleteError, match="not mined yet"):
        proving.prove(run, readers, quiet, reading=read)
    again, pool = Run(folder), FakePool()
    driver.mine_run(again, pool, RunLimits(), quiet, beside=read)
    added.clear()
    proving.prove(again, readers, quiet, reading=read)
    assert {part.name for part in load_ledger(folder.path).parts} != {part.name for part in ledger.parts}
    once(added, folder)


def test_parts_that_change_all_the_time_are_not_proven(folder, readers, monkeypatch):
    run, read = mine_and_read(folder, readers)
    name = load_ledger(folder.path).parts[0].name

    def read_and_change(task: ProofTask):
        found = prove_part(task)
        if task.part.name == name:
            os.utime(folder.bicliques / name, ns=(0, next(times)))
        return found

    times = itertools.count(1)
    monkeypatch.setattr(reading, "prove_part", read_and_change)
    (folder.bicliques / name).touch()
    with pytest.raises(IncompleteError, match=f"{name} has changed again and again while the run was proven"):
        proving.prove(run, readers, quiet, reading=read)
    assert not folder.manifest_file.exists()


def test_the_order_of_reading_does_not_matter(folder, readers):
    run, _ = mine_and_read(folder, readers)
    parts = load_ledger(folder.path).parts
    backwards = Reading(run)
    backwards.committed(reversed(parts))
    found, _, summary = backwards.finish(parts, readers, quiet)
    again, _, usual = Reading(run).finish(parts, readers, quiet)
    assert summary == usual
    assert {name: (read.rows, read.fingerprint) for name, read in found.items()} == {
        name: (read.rows, read.fingerprint) for name, read in again.items()
    }
    files = [run.folder.bicliques / part.name for part in parts]
    assert summary == Summary.of(_one_by_one(run, files), run.input["n_left"], run.input["n_right"])


def _one_by_one(run: Run, files: list[Path]) -> Iterator[Any]:
    for number, file in enumerate(files):
        for part in load_ledger(run.path).parts:
            if part.name == file.name:
                yield prove_part(ProofTask(str(run.path), run.identity, part, number))[1]


def test_rows_are_compared_if_few_enough_are_there_at_the_end(folder, readers, monkeypatch):
    run, read = mine_and_read(folder, readers)
    parts = load_ledger(folder.path).parts
    rows = sum(part.rows for part in parts)
    for most, compared in ((rows, rows), (rows - 1, None)):
        monkeypatch.setattr(reading, "COMPARED_ROWS", most)
        read = Reading(run)
        read.committed(parts[:1])
        _, hashes, _ = read.finish(parts, readers, quiet)
        assert (None if hashes is None else len(hashes)) == compared


class Dying(FakePool):
    """Workers that die with each task, so many times each."""

    def __init__(self, deaths: int):
        super().__init__()
        self.deaths, self.died = deaths, Counter[Any]()

    def wait(self, seconds: float) -> list[Result]:
        if self._tasks and self.died[task := self._tasks[0][2]] < self.deaths:
            self.died[task] += 1
            return [Result(self._tasks.popleft()[0], error=WorkerLostError("worker h:1 died"))]
        return super().wait(seconds)


def test_what_a_dead_worker_read_is_read_by_another(folder, readers):
    run, _ = mine_and_read(folder, readers)
    parts = load_ledger(folder.path).parts
    beside = Dying(1)
    read = Reading(run)
    read.committed(parts)
    read.go_on(beside, 3)
    for result in [*beside.wait(0), *beside.wait(0)]:
        read.take(result)
    read.finish(parts, Dying(1), quiet)
    with pytest.raises(ResourceError, match="a task failed 3 times: worker h:1 died"):
        Reading(run).finish(parts, Dying(3), quiet)


def test_an_error_beside_mining_is_one_when_the_run_is_proven(folder, readers):
    """Mining goes on, because the proof names the part and the remedy."""
    run, _ = mine_and_read(folder, readers)
    parts = load_ledger(folder.path).parts
    path = folder.bicliques / parts[0].name
    path.write_bytes(b"nothing")
    read = Reading(run, readers=readers)
    read.begin(parts)
    while read._unopened or read._running:
        read.go_on(readers, 0)
    with pytest.raises(IncompleteError, match=f"{path.name} cannot be read"):
        read.finish(parts, readers, quiet)
