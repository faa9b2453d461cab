"""Parts that a GPU reads back are proven as those that the host reads, by a device that is emulated."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.kernels.gpu.row_hashes import Lists
from bicliques.pipeline.api import steps
from bicliques.pipeline.api.runs import mine
from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.proof import on_device, proving
from bicliques.pipeline.proof.on_device import Columns, why_not
from bicliques.pipeline.proof.read_back import ProofTask, proof_tasks, prove_part
from bicliques.pipeline.proof.reading import Reading
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.labels import Tables
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.slices import worker
from bicliques.pipeline.workers.thread_pool import InThreads, Pool
from bicliques.schemas.bicliques import Bicliques, Provenance
from bicliques.schemas.errors import DeviceMemoryError, IncompleteError
from bicliques.schemas.manifest import Part
from bicliques.schemas.platform import CORES
from bicliques.schemas.search import MEASURES
from tests.emulation.device import EmulatedDevice
from tests.emulation.device import why_not as why_not_emulated
from tests.support.engines import TOY_GPU, registered, toy_kind
from tests.support.runs import QUIET, answer, load_ledger, manifest_pair, random_edges, write_edges

pytestmark = pytest.mark.skipif(why_not_emulated() is not None, reason=str(why_not_emulated()))

EDGES = random_edges(30, 25, 0.4, 1)


class HostReader:
    """The `pipeline.proof.on_device.Reader` of a device that is emulated: Arrow reads."""

    made = 0
    #: The row groups of each call.
    read: ClassVar[list[list[int]]] = []
    #: Bytes that are free, and whether reading fails for want of memory.
    free, is_full = 1 << 33, False

    def __init__(self):
        type(self).made += 1
        self.device = EmulatedDevice(2)
        self.device.free_bytes = lambda: self.free
        type(self).read = []

    def columns(self, path: Path, groups: list[int]) -> Columns:
        if self.is_full:
            raise DeviceMemoryError("the toy has no memory")
        self.read.append(groups)
        table = pq.ParquetFile(path).read_row_groups(groups)
        sides = [self._lists(table, side) for side in ("left", "right")]
        return Columns(*sides, table["root"].to_numpy(), table["id"].to_numpy(), len(table))

    def host(self, array) -> np.ndarray:
        return np.asarray(array)

    def _lists(self, table: pa.Table, side: str) -> Lists:
        lists = table[side].combine_chunks()
        return Lists(
            lists.values.to_numpy().copy(), lists.offsets.to_numpy().astype(np.int32), table[f"n_{side}"].to_numpy()
        )


@pytest.fixture(autouse=True)
def reader(monkeypatch):
    class Fresh(HostReader):
        pass

    monkeypatch.setattr(on_device, "CudfReader", Fresh)
    monkeypatch.setattr(on_device, "why_no_cudf", lambda: None)
    yield Fresh
    worker.forget()


@pytest.fixture(params=["labels", "dense"])
def run(request, tmp_path, monkeypatch):
    """A run of one part with many row groups, whose labels have gaps, or which holds dense ids."""
    monkeypatch.setattr(stretch, "GROUP_ROWS", 40)
    source = write_edges(tmp_path / "g.parquet", EDGES * 3)
    mine(source, tmp_path / "out", **QUIET, ids=request.param)
    return RunFolder(tmp_path / "out")


def parts_of(folder: RunFolder) -> list[Part]:
    return [part for entry in load_ledger(folder.path).entries.values() for part in entry.result.parts]


@pytest.mark.parametrize("free", [1 << 33, 1])
@pytest.mark.first(2)
def test_the_proof_of_a_part_is_that_of_the_host(run, reader, free):
    """Also where the device holds only one row group at a time."""
    reader.free = free
    for part in parts_of(run):
        task = ProofTask(str(run.path), run.run_id(), part, 5, keep_hashes=True)
        proof, summary = prove_part(task)
        own, found = prove_part(replace(task, on_device=True))
        assert (own.rows, own.fingerprint) == (proof.rows, proof.fingerprint)
        assert np.array_equal(own.hashes, proof.hashes)
        n_left, n_right = (int(EDGES[:, k].max()) + 1 for k in (0, 1))
        assert Summary.of([found], n_left, n_right) == Summary.of([summary], n_left, n_right)
        assert set(found.largest) == set(MEASURES)
    assert reader.made == 1


def test_row_groups_are_read_together_as_far_as_memory_goes(run, reader):
    part = max(parts_of(run), key=lambda part: part.rows)
    metadata = pq.read_metadata(run.bicliques / part.name)
    assert metadata.num_row_groups > 3
    task = ProofTask(str(run.path), run.run_id(), part, on_device=True)
    assert proof_tasks(task) == [task]
    everything = list(range(metadata.num_row_groups))
    for free, expected in ((1 << 33, [everything]), (1, [[group] for group in everything])):
        reader.free = free
        worker.forget()
        prove_part(task)
        assert reader.read == expected


def test_a_device_without_memory_leaves_the_part_to_the_host(run, reader, caplog):
    reader.is_full = True
    part = parts_of(run)[0]
    with caplog.at_level(logging.WARNING):
        proof, _ = prove_part(ProofTask(str(run.path), run.run_id(), part, on_device=True))
    assert proof.rows == part.rows
    assert f"the CPU reads {run.bicliques / part.name} back: the toy has no memory" in caplog.text


@pytest.mark.parametrize("column", ["id", "left", "right", "n_left", "n_right", "root"])
@pytest.mark.first(6)
def test_a_part_with_a_changed_value_is_refused(run, column):
    """Whether the value is one that no vertex has, or another vertex's."""
    run.manifest_file.unlink()
    part = max(parts_of(run), key=lambda part: part.rows)
    path = run.bicliques / part.name
    whole = pq.read_table(path)
    for other in (1, 999_999):
        at = whole.schema.get_field_index(column)
        if pa.types.is_list(whole.schema.field(at).type):
            values = whole[column].to_pylist()
            another = next(v for v in range(0, 18, 3) if v not in values[7])
            values[7] = [*values[7][:-1], another if other == 1 else other]
        else:
            values = whole[column].to_pylist()
            values[7] += other
        changed = whole.set_column(at, whole.schema.field(at), pa.array(values, whole.schema.field(at).type))
        pq.write_table(changed, path, row_group_size=40, compression="zstd")
        worker.forget()
        with pytest.raises(IncompleteError, match=rf"{part.name}|the Parquet rows of slice \d+"):
            prove(run)
        assert not run.manifest_file.exists()


def prove(folder: RunFolder):
    """Prove a run as if a GPU had mined it."""
    pool, opened = InThreads(2), Run(folder)
    try:
        proving.prove(opened, pool, lambda progress: None, on_device=True)
    finally:
        pool.close()


def test_four_threads_read_onto_the_device_of_this_process(tmp_path, reader, monkeypatch):
    seen = []
    prove = proving.prove

    def watch(run: Run, pool: Pool, report, on_device: bool, reading):
        seen.append((pool.capacity().slots, on_device, reading._readers is pool))
        return prove(run, pool, report, on_device, reading)

    monkeypatch.setattr(proving, "prove", watch)
    monkeypatch.setattr("bicliques.pipeline.output.writers.why_no_cudf", lambda: "the toy cannot write")
    with registered(toy_kind()):
        source = write_edges(tmp_path / "g.parquet", EDGES)
        mine(source, tmp_path / "out", engine="bitmatrix", **QUIET)
    assert seen == [(on_device.READERS, True, True)]
    assert on_device.READERS == 4
    assert manifest_pair(tmp_path / "out") == answer(EDGES)


def test_a_run_that_a_gpu_mined_is_proven_on_it_without_the_hosts_reader(tmp_path, reader, monkeypatch):
    def never(*_):
        raise AssertionError("the host reads")

    monkeypatch.setattr("bicliques.pipeline.proof.read_back.read_part", never)
    with registered(toy_kind()):
        source = write_edges(tmp_path / "g.parquet", EDGES)
        monkeypatch.setattr("bicliques.pipeline.output.writers.why_no_cudf", lambda: "the toy cannot write")
        mine(source, tmp_path / "out", engine="bitmatrix", **QUIET)
        assert manifest_pair(tmp_path / "out") == answer(EDGES)
        (tmp_path / "out" / "manifest.json").unlink()
        steps.prove(tmp_path / "out", progress=False)
    assert manifest_pair(tmp_path / "out") == answer(EDGES)
    assert reader.made >= 1


def test_the_host_reads_where_a_device_cannot():
    numbers, text = pa.array([1, 2]), pa.array(["a", "b"])
    assert why_not(TOY_GPU, (numbers, numbers), "auto") is None
    assert why_not(TOY_GPU, None, "gpu") is None
    assert why_not(TOY_GPU, (numbers, text), "auto") == "the labels are text"
    assert why_not(TOY_GPU, None, "cpu") == "the CPU is asked to write"
    assert why_not(CORES, None, "auto") == "cuDF does not work with cores"


class HostWriter:
    """The same as `pipeline.output.cudf_parquet.CudfParquet`, by Arrow."""

    threads = 1

    def __init__(self, tables: Tables, provenance: Provenance):
        self.tables = tables

    def pieces(self, found: Bicliques, members: int) -> list[Bicliques]:
        return [found]

    def open(self, path: Path) -> HostFile:
        return HostFile(self.tables, path)


class HostFile:
    def __init__(self, tables: Tables, path: Path):
        self.tables, self.file = tables, pq.ParquetWriter(path, part_writer.part_schema(tables))

    def write(self, piece: Bicliques):
        self.file.write_table(pa.Table.from_batches([part_writer.to_batch(piece, self.tables)]))

    def close(self):
        self.file.close()


def test_the_decoder_is_used_before_the_first_part(run, reader, monkeypatch, caplog):
    """Nothing of it is in the folder of the run, and nothing that fails there ends the run."""
    hashed = []
    rows = on_device.RowHasher.rows
    monkeypatch.setattr(on_device.RowHasher, "rows", lambda *them: hashed.append(them[-1]) or rows(*them))
    monkeypatch.setattr(on_device, "CudfParquet", HostWriter)
    before, readers = sorted(run.path.rglob("*")), InThreads(1)
    reading = Reading(Run(run), on_device=True, readers=readers)
    reading.begin([])
    readers._threads.submit(lambda: None).result()
    assert hashed == [on_device._WARM_UP]
    assert reader.read == [[0]]
    assert sorted(run.path.rglob("*")) == before
    reader.is_full = True
    with caplog.at_level(logging.INFO):
        reading.begin([])
        readers._threads.submit(lambda: None).result()
    assert "the device was not used before the first part: the toy has no memory" in caplog.text
    reader.is_full = False
    proving.prove_parts(
        Run(run), load_ledger(run.path), load_ledger(run.path).parts, readers, print, on_device=True, reading=reading
    )
    readers.close()
