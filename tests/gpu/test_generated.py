"""Generated graphs on a real device: counts of the CPU, also within a limit of its memory."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.ingest.gpu import edge_table
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.run.names import EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.schemas.options import IngestOptions

pytestmark = pytest.mark.gpu


def test_a_million_edges_count_the_same_on_gpu_and_cpu_from_both_sides(tmp_path: Path) -> None:
    bq.generate(tmp_path / "g", n_left=200_000, n_right=150_000, edges=10**6, plant=[(60, 60)], seed=6)
    found = set()
    for engine, limit in (("cpu", None), ("bitmatrix", None), ("bitmatrix", "5GB")):
        for side in ("left", "right"):
            count = bq.count(
                tmp_path / "g",
                engine=engine,
                root_side=side,
                min_left=20,
                min_right=20,
                device_memory=limit,
                fingerprint=True,
                progress=False,
            )
            found.add((count.count, count.fingerprint))
    [(count, fingerprint)] = found
    assert count >= 1
    assert fingerprint is not None


@pytest.mark.parametrize("most", [2**31 - 1, 3_000_000])
def test_text_of_twenty_bytes_is_read_as_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    pytest.importorskip("pylibcudf", reason="cuDF is not installed")
    monkeypatch.setattr(edge_table, "TEXT_BYTES", most)
    source = bq.generate(
        tmp_path / "g", n_left=200_000, n_right=150_000, edges=10**6, labels="text", part_edges=100_000
    ).path
    for on in ("cpu", "gpu"):
        (tmp_path / on).mkdir()
        assert ingest(source, IngestOptions(), tmp_path / on, on).read_on.startswith(on)  # type: ignore[arg-type]
    for file in (LEFT_LABELS_FILE, RIGHT_LABELS_FILE):
        assert (tmp_path / "cpu" / file).read_bytes() == (tmp_path / "gpu" / file).read_bytes()
    tables = [pq.read_table(tmp_path / on / EDGES_FILE) for on in ("cpu", "gpu")]
    assert tables[0].equals(tables[1])
