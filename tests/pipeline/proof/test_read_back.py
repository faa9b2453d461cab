"""Large parts are read back in pieces, and the pieces together are the part."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.api import steps
from bicliques.pipeline.api.runs import mine, resume, verify
from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.proof import proving, read_back, reading
from bicliques.pipeline.proof.read_back import ProofTask, proof_tasks, prove_part
from bicliques.pipeline.proof.selection import places_of, rows_at
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers.thread_pool import InThreads
from bicliques.schemas.errors import IncompleteError
from tests.support.runs import OWN, QUIET, answer, load_ledger, manifest_pair, random_edges, rewrite_record, write_edges


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of one part with many row groups. Each is a piece."""
    monkeypatch.setattr(stretch, "GROUP_ROWS", 40)
    monkeypatch.setattr(read_back, "PIECE_BYTES", 1 << 10)
    edges = random_edges(30, 25, 0.4, 1)
    mine(write_edges(tmp_path / "g.parquet", edges), tmp_path / "out", **QUIET)
    return RunFolder(tmp_path / "out"), edges


@pytest.mark.parametrize("at_once", [1, 7, 40, 41])
@pytest.mark.first(2)
def test_rows_that_are_decoded_together_do_not_change_what_is_read(run, at_once):
    opened = Run(run[0])
    for path in run[0].bicliques.glob("*.parquet"):
        whole, some = (list(read_back.read_part(path, opened.tables, None, n)) for n in (1 << 31, at_once))
        assert len(whole) == len(some) > 1
        for one, other in zip(whole, some, strict=True):
            assert one.to_pairs() == other.to_pairs()
            assert one.ids.tolist() == other.ids.tolist()


def test_pieces_are_all_row_groups_once(run, monkeypatch):
    folder, edges = run
    assert manifest_pair(folder.path) == answer(edges)
    parts = [part for entry in load_ledger(folder.path).entries.values() for part in entry.result.parts]
    part = max(parts, key=lambda part: part.rows)
    n_groups = pq.read_metadata(folder.bicliques / part.name).num_row_groups
    assert n_groups > 3
    for size, pieces in ((1, n_groups), (part.bytes // 3 + 1, 3), (part.bytes, 1)):
        monkeypatch.setattr(read_back, "PIECE_BYTES", size)
        tasks = proof_tasks(ProofTask(str(folder.path), folder.run_id(), part))
        assert len(tasks) == pieces
        read = [group for task in tasks for group in range(*(task.groups or (0, n_groups)))]
        assert read == list(range(n_groups))
        proofs = [prove_part(task)[0] for task in tasks]
        assert sum(found.rows for found in proofs) == part.rows


def test_a_piece_with_missing_rows_is_noticed(run):
    folder, _ = run
    folder.manifest_file.unlink()
    ledger = load_ledger(folder.path)
    name = max(
        (part for entry in ledger.entries.values() for part in entry.result.parts), key=lambda part: part.rows
    ).name
    table = pq.read_table(folder.bicliques / name)
    pq.write_table(table.slice(0, len(table) - 1), folder.bicliques / name, row_group_size=40)
    provers = InThreads(2)
    with pytest.raises(IncompleteError, match=f"{name} holds {len(table) - 1} rows instead of {len(table)}"):
        proving.prove_parts(Run(folder), ledger, ledger.parts, provers, lambda progress: None)
    provers.close()


def test_the_pieces_of_a_part_sum_up_to_the_part(run, monkeypatch):
    folder, edges = run
    part = max(
        (p for e in load_ledger(folder.path).entries.values() for p in e.result.parts), key=lambda part: part.rows
    )
    task = ProofTask(str(folder.path), folder.run_id(), part, 3, keep_hashes=True)
    monkeypatch.setattr(read_back, "PIECE_BYTES", 1)
    pieces = proof_tasks(task)
    assert len(pieces) > 3
    sides = [int(edges[:, k].max()) + 1 for k in (0, 1)]
    whole, *of_pieces = (prove_part(each) for each in (task, *pieces))
    summed, alone = Summary.of([found[1] for found in of_pieces], *sides), Summary.of([whole[1]], *sides)
    assert summed == alone
    rows = pq.read_table(folder.bicliques / part.name)
    for by, best in summed.largest.items():
        assert np.array_equal(best, alone.largest[by])
        places = places_of(best)
        assert {file for file, _, _ in places} == {3}
        sizes = rows_at([folder.bicliques / part.name] * 4, places, rows.schema)
        assert sizes["n_left"].to_pylist() == best[:, 2].tolist(), by
    hashes = np.concatenate([found[0].hashes for found in of_pieces])
    assert np.array_equal(hashes, whole[0].hashes)
    assert int(np.add.reduce(hashes, dtype=np.uint64)) == whole[0].fingerprint


def test_proving_removes_stray_parts(run):
    """The part was written after mining ended, as by a worker that was believed dead."""
    folder, edges = run
    folder.manifest_file.unlink()
    part = next(path for path in folder.bicliques.iterdir())
    stray = folder.bicliques / "part-000099-deadbeef0000-0.parquet"
    stray.write_bytes(part.read_bytes())
    folder.pending.mkdir()
    (folder.pending / ".part-000099-deadbeef0000-1.tmp").write_bytes(b"half")
    steps.prove(folder.path, progress=False)
    assert manifest_pair(folder.path) == answer(edges)
    assert list(folder.bicliques.iterdir()) == [part]
    assert not folder.pending.exists()


def twice(folder: RunFolder, groups: int) -> int:
    """Change the run as if the engine had found the first row twice. Everything but the rows agrees."""
    folder.manifest_file.unlink()
    ledger = load_ledger(folder.path)
    (entry,) = (entry for entry in ledger.entries.values() if entry.result.parts)
    part = folder.bicliques / entry.result.parts[0].name
    table = pq.read_table(part)
    first = table.slice(0, 1)
    pq.write_table(pa.concat_tables([table, first]), part, row_group_size=groups)
    assert entry.result.total.fingerprint is not None
    total = (entry.result.total.fingerprint + first["id"][0].as_py()) % 2**64
    rewrite_record(
        ledger.file(entry.result.slice),
        parts=[{"name": part.name, "rows": len(table) + 1, "bytes": part.stat().st_size}],
        count=entry.result.total.count + 1,
        fingerprint=str(total),
    )
    return len(table) + 1


def rewritten(folder: RunFolder, change: Callable[[pa.Table], pa.Table], fingerprint: str = "") -> Path:
    """The only part of the run, with other rows or another fingerprint in the ledger, which knows its size."""
    folder.manifest_file.unlink()
    ledger = load_ledger(folder.path)
    (entry,) = (entry for entry in ledger.entries.values() if entry.result.parts)
    part = folder.bicliques / entry.result.parts[0].name
    table = change(pq.read_table(part))
    pq.write_table(table.replace_schema_metadata(pq.read_schema(part).metadata), part, **part_writer.LAYOUT)
    rewrite_record(
        ledger.file(entry.result.slice),
        parts=[{"name": part.name, "rows": len(table), "bytes": part.stat().st_size, "fingerprint": fingerprint}],
    )
    return part


@pytest.mark.parametrize("labels", ["numbers", "words"])
def test_a_row_with_the_id_of_another_one_is_not_proven(tmp_path, labels):
    """Count, sizes and fingerprint are right. Pages of numbers are read here, and words by Arrow."""
    source = write_edges(tmp_path / "g.parquet", random_edges(30, 25, 0.4, 1), labels == "words")
    folder = RunFolder(mine(source, tmp_path / "out", **QUIET).path)
    assert pq.read_metadata(rewritten(folder, lambda rows: rows)).num_rows > 100
    steps.prove(folder.path, progress=False)

    def confused(rows: pa.Table) -> pa.Table:
        ids = rows["id"].to_numpy().copy()
        ids[[7, 9]] = ids[[9, 7]]
        return rows.set_column(0, rows.schema.field(0), pa.array(ids))

    part = rewritten(folder, confused)
    with pytest.raises(IncompleteError, match=rf"{part.name}: row 7 of row group 0 has the id -?\d+, and its members"):
        steps.prove(folder.path, progress=False)


@pytest.mark.parametrize("labels", ["numbers", "words", "dense"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.first(2)
def test_a_row_whose_members_do_not_ascend_is_not_proven(tmp_path, labels, side):
    source = write_edges(tmp_path / "g.parquet", random_edges(30, 25, 0.4, 1), labels == "words")
    ids = "dense" if labels == "dense" else "labels"
    folder = RunFolder(mine(source, tmp_path / "out", ids=ids, **QUIET).path)

    def unsorted(rows: pa.Table) -> pa.Table:
        lists, k = rows[side].to_pylist(), rows.schema.get_field_index(side)
        row = next(row for row in range(5, len(lists)) if len(lists[row]) > 1)
        lists[row] = lists[row][::-1]
        return rows.set_column(k, rows.schema.field(k), pa.array(lists, rows.schema.field(k).type))

    part = rewritten(folder, unsorted)
    with pytest.raises(IncompleteError, match=rf"{part.name}.*row \d+ of row group 0: its {side} members do not as"):
        steps.prove(folder.path, progress=False)


def test_an_entry_that_states_something_else_is_not_proven(run):
    folder, _ = run
    part = rewritten(folder, lambda rows: rows, "5")
    with pytest.raises(
        IncompleteError, match=rf"{part.name} has rows with fingerprint .* its ledger entry says 5; delete"
    ):
        steps.prove(folder.path, progress=False)


@pytest.mark.parametrize("groups", [40, 10_000])
def test_two_equal_rows_are_not_proven(run, groups):
    folder, _ = run
    twice(folder, groups)
    with pytest.raises(IncompleteError, match=r"a row of part-.* is also in part-.*parquet, .* into another folder"):
        steps.prove(folder.path, progress=False)
    assert not folder.manifest_file.exists()


def test_more_rows_than_are_compared_are_left_to_verify(run, monkeypatch):
    folder, _ = run
    manifest = folder.manifest()
    assert manifest.compared_rows == manifest.count
    rows = twice(folder, 40)
    monkeypatch.setattr(reading, "COMPARED_ROWS", rows - 1)
    manifest = steps.prove(folder.path, progress=False)
    assert (manifest.compared_rows, manifest.count) == (0, rows)
    with pytest.raises(IncompleteError, match="is also in"):
        verify(folder.path, progress=False)


def test_rows_that_share_a_hash_and_differ_are_proven(run, monkeypatch):
    """Rows with equal hashes may be different."""
    folder, edges = run
    folder.manifest_file.unlink()
    compared = []
    whole = proving.refuse_equal_rows
    monkeypatch.setattr(proving, "refuse_equal_rows", lambda *a: compared.append(len(a[-1])) or whole(*a))
    clash = proving.check_repeats
    monkeypatch.setattr(
        proving, "check_repeats", lambda f, p, hashes: clash(f, p, np.concatenate([hashes[:7], hashes]))
    )
    steps.prove(folder.path, progress=False)
    assert compared == [7]
    assert manifest_pair(folder.path) == answer(edges)


def test_a_forged_range_is_not_proven(run):
    """The entry has one node less than the slice took. That node is mined again, so its rows are there twice."""
    folder, _ = run
    folder.manifest_file.unlink()
    ledger = load_ledger(folder.path)
    entry = ledger.entries[0]
    source, start, stop = entry.took[0]
    rewrite_record(ledger.file(0), took=[[source, start, stop - 1], *entry.took[1:]])
    with pytest.raises(IncompleteError, match=r"a row of part-.* is also in part-"):
        resume(folder.path, **OWN)
    assert not folder.manifest_file.exists()
