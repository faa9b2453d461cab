"""Generated graphs on a real device: files and counts of the CPU. Counts also within a limit of its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pipeline
from pipeline.cli import main
from pipeline.ingest.gpu import edge_table
from pipeline.ingest.step import ingest
from pipeline.run.names import EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from schemas.options import IngestOptions

pytestmark = pytest.mark.gpu

OPTIONS: dict[str, dict[str, Any]] = {
    "chung-lu": {"left_exponent": 2.1, "right_exponent": 2.1, "max_left_degree": 60_000, "max_right_degree": 60_000},
    "rmat": {},
}


def content(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir()}


@pytest.mark.parametrize("labels", ["integers", "text"])
@pytest.mark.parametrize("model", OPTIONS)
def test_all_files_are_those_of_the_cpu(model: Any, labels: Any, tmp_path: Path) -> None:
    """With hubs, in whose rows many draws are repeats, and with rows that are left to the host."""
    shape = {"n_left": 200_000, "n_right": 150_000, "edges": 10**6, "plant": [(60, 60), (9, 400)], "noise": 0.1}
    for on in ("cpu", "gpu"):
        how: dict[str, Any] = {"model": model, "labels": labels, "generate_on": on, "part_edges": 150_000}
        pipeline.generate(tmp_path / on, **shape, **OPTIONS[model], **how, seed=8, progress=False)
    files = [content(tmp_path / on) for on in ("cpu", "gpu")]
    assert len(files[0]) > 7
    assert files[0] == files[1]


def test_a_dense_graph_is_that_of_the_cpu(tmp_path: Path) -> None:
    for on in ("cpu", "gpu"):
        pipeline.generate(
            tmp_path / on, n_left=3000, n_right=500, edges=1_200_000, model="rmat", generate_on=on, progress=False
        )
    assert content(tmp_path / "cpu") == content(tmp_path / "gpu")


def test_the_command_draws_on_the_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "generate --n-left 20000 --n-right 30000 --edges 300000 --plant 20x15 --generate-on gpu --quiet".split()
    assert main.main([*words, "--dry-run"]) == 0
    assert "drawn on: gpu: asked for\n" in capsys.readouterr().out
    assert main.main([*words, "--output", str(tmp_path / "gpu")]) == 0
    assert main.main([*words, "--generate-on", "cpu", "--output", str(tmp_path / "cpu")]) == 0
    assert content(tmp_path / "cpu") == content(tmp_path / "gpu")


LEAST = {"chung-lu": 20, "rmat": 60}


@pytest.mark.parametrize("model", LEAST)
def test_a_million_edges_count_the_same_on_gpu_and_cpu_from_both_sides(model: Any, tmp_path: Path) -> None:
    pipeline.generate(
        tmp_path / "g", n_left=200_000, n_right=150_000, edges=10**6, model=model, plant=[(60, 60)], seed=6
    )
    found = set()
    for engine, limit in (("cpu", None), ("bitmatrix", None), ("bitmatrix", "5GB")):
        for side in ("left", "right"):
            count = pipeline.count(
                tmp_path / "g",
                engine=engine,
                root_side=side,
                min_left=LEAST[model],
                min_right=LEAST[model],
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
    source = pipeline.generate(
        tmp_path / "g", n_left=200_000, n_right=150_000, edges=10**6, labels="text", part_edges=100_000
    ).path
    for on in ("cpu", "gpu"):
        (tmp_path / on).mkdir()
        assert ingest(source, IngestOptions(), tmp_path / on, on).read_on.startswith(on)  # type: ignore[arg-type]
    for file in (LEFT_LABELS_FILE, RIGHT_LABELS_FILE):
        assert (tmp_path / "cpu" / file).read_bytes() == (tmp_path / "gpu" / file).read_bytes()
    tables = [pq.read_table(tmp_path / on / EDGES_FILE) for on in ("cpu", "gpu")]
    assert tables[0].equals(tables[1])
