"""The GPU's writer with a backend on the CPU: chunks, parts, one chunk per thread, errors, no half-written files."""

import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.output import device_writer
from bicliques.pipeline.output.device_writer import DeviceWriter
from bicliques.pipeline.proof.read_back import read_part
from bicliques.schemas.bicliques import Bicliques
from bicliques.schemas.errors import DeviceMemoryError, ResourceError
from tests.support.batches import LABELS, some
from tests.support.host_backend import Host, HostFile


def test_all_rows_that_go_into_the_writer_are_in_its_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(device_writer, "CHUNK_MEMBERS", 50)
    monkeypatch.setattr(device_writer, "PART_BYTES", 3000)
    host = Host()
    out = DeviceWriter(tmp_path, 7, host)
    batches = [some(n, seed) for seed, n in enumerate([0, 90, 1, 200])]
    wanted = [pair for batch in batches for pair in batch.to_pairs()]
    for batch in batches:
        out(batch)
    parts = out.close()
    assert len(parts) > 2
    assert {path.name for path in tmp_path.iterdir()} == {part.name for part in parts}
    assert all(p.name.startswith("part-000007-") and (tmp_path / p.name).stat().st_size == p.bytes for p in parts)
    assert [pq.ParquetFile(tmp_path / p.name).metadata.num_rows for p in parts] == [p.rows for p in parts]
    found = [pair for p in parts for b in read_part(tmp_path / p.name, LABELS) for pair in b.to_pairs()]
    assert sorted(found) == sorted(wanted)
    assert all(len(piece) == 1 or len(piece.left) + len(piece.right) <= 50 for piece in host.written)


def test_one_biclique_larger_than_a_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(device_writer, "CHUNK_MEMBERS", 3)
    out = DeviceWriter(tmp_path, 0, Host())
    out(Bicliques.from_pairs([([0, 1, 2, 3], [0, 1, 2]), ([0], [0])], [0, 1]))
    assert sum(part.rows for part in out.close()) == 2


def test_no_rows_make_no_part(tmp_path):
    out = DeviceWriter(tmp_path, 0, Host())
    out(some(0))
    assert out.close() == []
    assert list(tmp_path.iterdir()) == []


def test_the_engine_waits_only_when_a_batch_finds_no_free_thread(tmp_path):
    host = Host(threads=2)
    host.go.clear()
    out = DeviceWriter(tmp_path, 0, host)
    added = threading.Event()

    def engine():
        for seed in range(3):
            out(some(10, seed))
        added.set()

    thread = threading.Thread(target=engine)
    thread.start()
    assert not added.wait(0.3)
    assert host.most == 2
    host.go.set()
    assert added.wait(60)
    thread.join()
    assert sum(part.rows for part in out.close()) == 30
    assert host.most <= 2


def test_a_file_is_open_before_it_is_needed(tmp_path):
    host = Host()
    host.go.clear()
    out = DeviceWriter(tmp_path, 0, host)
    assert host.opened == 0
    for n in (1, 2, 3):
        out(some(10, n))
        while len(host.written) < n or host.opened < n + 1:
            time.sleep(0.01)
    host.go.set()
    assert len(out.close()) == 3
    assert host.opened == 4
    assert len(list(tmp_path.iterdir())) == 3


def test_an_unneeded_next_file_may_fail_to_open(tmp_path, monkeypatch):
    host, begin = Host(), HostFile.__init__

    def fail(self: HostFile, host: Host, path: Path):
        begin(self, host, path)
        if host.opened > 1:
            raise OSError(28, "no space")

    monkeypatch.setattr(HostFile, "__init__", fail)
    out = DeviceWriter(tmp_path, 0, host)
    out(some(10))
    assert [part.rows for part in out.close()] == [10]
    assert host.opened == 2
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("error", [OSError(5, "cuDF cannot write: no space"), DeviceMemoryError("no memory")])
def test_an_error_is_raised_and_no_file_stays(tmp_path, monkeypatch, error):
    monkeypatch.setattr(device_writer, "PART_BYTES", 1)
    out = DeviceWriter(tmp_path, 0, Host())
    out(some(5))
    while not out.parts:  # a part is there already
        time.sleep(0.01)

    def fail(self, *rows):
        raise error

    monkeypatch.setattr(HostFile, "write", fail)
    out(some(5))
    with pytest.raises(ResourceError):
        out.close()
    out.discard()
    assert list(tmp_path.iterdir()) == []
