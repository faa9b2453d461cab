"""Large parts are read back piece by piece, and the pieces are the part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from pipeline import proof, sealing, writer
from pipeline.api import mine
from pipeline.folder import RunFolder
from pipeline.proof import ProofTask, in_pieces, prove_part
from pipeline.threads import InThreads
from schemas.errors import IncompleteError
from tests.runs import answer, load_ledger, manifest_pair, random_edges, write_edges


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[RunFolder, np.ndarray]:
    """A run of one part with many row groups, which are a piece each."""
    monkeypatch.setattr(writer, "GROUP_ROWS", 40)
    monkeypatch.setattr(proof, "_PIECE_BYTES", 1 << 10)
    edges = random_edges(30, 25, 0.4, 1)
    mine(write_edges(tmp_path / "g.parquet", edges), tmp_path / "out", workers=0, report=False, progress=False)
    return RunFolder(tmp_path / "out"), edges


def test_pieces_are_all_row_groups_once(run: tuple[RunFolder, np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, edges = run
    assert manifest_pair(folder.path) == answer(edges)
    parts = [part for entry in load_ledger(folder.path).entries.values() for part in entry.parts]
    part = max(parts, key=lambda part: part.rows)
    n_groups = pq.read_metadata(folder.bicliques / part.name).num_row_groups
    assert n_groups > 3
    for size, pieces in ((1, n_groups), (part.bytes // 3 + 1, 3), (part.bytes, 1)):
        monkeypatch.setattr(proof, "_PIECE_BYTES", size)
        tasks = in_pieces(ProofTask(str(folder.path), folder.run_id(), part))
        assert len(tasks) == pieces
        read = [group for task in tasks for group in range(*(task.groups or (0, n_groups)))]
        assert read == list(range(n_groups))
        proofs = [prove_part(task)[0] for task in tasks]
        assert sum(found.rows for found in proofs) == part.rows


def test_a_piece_that_lacks_rows_is_found(run: tuple[RunFolder, np.ndarray]) -> None:
    folder, _ = run
    folder.manifest_file.unlink()
    ledger = load_ledger(folder.path)
    name = max((part for entry in ledger.entries.values() for part in entry.parts), key=lambda part: part.rows).name
    table = pq.read_table(folder.bicliques / name)
    pq.write_table(table.slice(0, len(table) - 1), folder.bicliques / name, row_group_size=40)
    provers = InThreads(2)
    with pytest.raises(IncompleteError, match=f"{name} holds {len(table) - 1} rows instead of {len(table)}"):
        sealing.prove_parts(folder, ledger, provers, lambda progress: None)
    provers.close()
