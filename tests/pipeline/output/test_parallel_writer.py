"""Parts written on several threads hold what one thread would have written, in bounded memory, or nothing."""

import threading
from pathlib import Path

import pytest

from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.output.writers import ParallelWriter
from bicliques.pipeline.proof.read_back import read_part
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.manifest import Part
from tests.support.batches import LABELS, some


def pairs_of(folder: Path, parts: list[Part], tables: part_writer.Tables) -> list[object]:
    return sorted(pair for p in parts for batch in read_part(folder / p.name, tables) for pair in batch.to_pairs())


@pytest.mark.parametrize("tables", [None, LABELS], ids=["dense", "labels"])
@pytest.mark.parametrize("threads", [1, 3])
def test_all_rows_are_written_though_their_arrays_change_later(tmp_path, monkeypatch, threads, tables):
    monkeypatch.setattr(stretch, "GROUP_MEMBERS", 40)
    monkeypatch.setattr(stretch, "STRETCH_MEMBERS", 120)
    monkeypatch.setattr(part_writer, "PART_BYTES", 4000)
    out = ParallelWriter(tmp_path, 3, tables, threads)
    batches = [some(n, seed) for seed, n in enumerate([0, 90, 1, 200, 33])]
    wanted = sorted(pair for batch in batches for pair in batch.to_pairs())
    for batch in batches:
        out(batch)
        for array in batch.arrays.values():
            array.fill(0)
    parts = out.close()
    assert {path.name for path in tmp_path.iterdir()} == {p.name for p in parts}
    assert all(p.name.startswith("part-000003-") and (tmp_path / p.name).stat().st_size == p.bytes for p in parts)
    assert sum(p.rows for p in parts) == 324
    assert pairs_of(tmp_path, parts, tables) == wanted


def test_few_rows_make_one_part_and_none_make_none(tmp_path):
    out = ParallelWriter(tmp_path, 0, LABELS, 4)
    out(some(20))
    assert [part.rows for part in out.close()] == [20]
    assert ParallelWriter(tmp_path, 1, LABELS, 4).close() == []


def test_stretches_are_written_in_parallel_at_most_one_per_thread(tmp_path, monkeypatch):
    together = threading.Barrier(2)
    running = []
    most = 0
    write = PartWriter.write_stretch

    def slow(self: PartWriter):
        nonlocal most
        running.append(1)
        most = max(most, len(running))
        together.wait(60)  # only a second thread lets the first one go on
        write(self)
        running.pop()

    monkeypatch.setattr(PartWriter, "write_stretch", slow)
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 10)
    out = ParallelWriter(tmp_path, 0, LABELS, 2)
    for seed in range(8):
        out(some(10, seed))
    assert sum(part.rows for part in out.close()) == 80
    assert most == 2


def test_a_full_disk_gives_a_sentence_and_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr(stretch, "GROUP_MEMBERS", 40)
    monkeypatch.setattr(stretch, "STRETCH_MEMBERS", 40)
    monkeypatch.setattr(part_writer, "PART_BYTES", 1)  # every group makes a part
    write = PartWriter.write_stretch
    fifth = threading.Semaphore(4)

    def full(self: PartWriter):
        if not fifth.acquire(blocking=False):
            raise ResourceError("cannot write x (No space left on device); make room")
        write(self)

    monkeypatch.setattr(PartWriter, "write_stretch", full)
    out = ParallelWriter(tmp_path, 0, LABELS, 2)
    with pytest.raises(ResourceError, match="make room"):
        out(some(500))
    assert list(tmp_path.iterdir())
    out.discard()
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_last_group_comes_out_of_close(tmp_path, monkeypatch):
    def full(self: PartWriter):
        raise ResourceError("cannot write x (No space left on device); make room")

    monkeypatch.setattr(PartWriter, "write_stretch", full)
    out = ParallelWriter(tmp_path, 0, LABELS, 2)
    out(Bicliques.from_pairs([([0], [0])], [0]))
    with pytest.raises(ResourceError, match="make room"):
        out.close()
    out.discard()
