"""Parts that cuDF writes hold what the host would have written, in the same schema, for every reader."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.output import device_writer
from bicliques.pipeline.output.cudf_parquet import CudfParquet
from bicliques.pipeline.output.device_writer import DeviceWriter
from bicliques.pipeline.output.part_writer import part_schema
from bicliques.pipeline.proof.read_back import read_part
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas import bicliques
from bicliques.schemas.bicliques import Bicliques, Provenance
from tests.support.runs import random_edges, write_edges

pytestmark = pytest.mark.gpu
pytest.importorskip("pylibcudf", reason="cuDF is not installed")

TEXT = pa.array([f"t\u00e9xt {k}" * (k % 5 + 1) for k in range(4000)])
LABELS: dict[str, Tables] = {
    "dense": None,
    "integers": (pa.array(np.arange(4000) * 1_000_003), pa.array(np.arange(4000) + 7)),
    "text": (TEXT, pa.array(np.arange(4000), pa.int32())),
}


def some(n: int, seed: int) -> Bicliques:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 30, (2, n))
    indptr = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(sizes, axis=1)], axis=1)
    members = [_ascending(rng, indptr[k]) for k in (0, 1)]
    ids = rng.integers(-(2**63), 2**63, n, np.int64)
    return Bicliques(indptr[0], members[0], indptr[1], members[1], rng.integers(0, 99, n).astype(np.int32), ids)


def _ascending(rng: np.random.Generator, indptr: np.ndarray) -> np.ndarray:
    """Ids below 4000, ascending in every row of at most 29."""
    summed = np.cumsum(rng.integers(1, 130, indptr[-1]))
    before = np.concatenate([[0], summed])[indptr[:-1]]
    return (summed - np.repeat(before, np.diff(indptr))).astype(np.int32)


def rows_of(batch: Bicliques) -> list[tuple[Any, ...]]:
    return list(zip(batch.to_pairs(), batch.ids.tolist(), batch.root.tolist(), strict=True))


def on_device(batch: Bicliques) -> Bicliques:
    import cupy

    return Bicliques(**{name: cupy.asarray(array) for name, array in batch.arrays.items()})


@pytest.mark.parametrize("compression", ["zstd", "snappy"])
@pytest.mark.parametrize("labels", list(LABELS))
@pytest.mark.parametrize("place", ["device", "host"])
def test_all_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: str, compression: str, place: str
) -> None:
    monkeypatch.setattr(device_writer, "CHUNK_MEMBERS", 40_000)
    monkeypatch.setattr(device_writer, "PART_BYTES", 200_000)
    tables, provenance = LABELS[labels], Provenance("user", "item", "a run", "a digest")
    out = DeviceWriter(tmp_path, 1, CudfParquet(tables, compression, provenance))
    batches = [some(n, seed) for seed, n in enumerate([5000, 1, 20_000])]
    for batch in batches:
        out(on_device(batch) if place == "device" else batch)
    parts = out.close()
    assert len(parts) > 1
    assert {path.name for path in tmp_path.iterdir()} == {part.name for part in parts}
    back = [row for part in parts for group in read_part(tmp_path / part.name, tables) for row in rows_of(group)]
    assert sorted(back) == sorted(row for batch in batches for row in rows_of(batch))
    for part in parts:
        file = pq.ParquetFile(tmp_path / part.name)
        assert file.schema_arrow.remove_metadata().equals(part_schema(tables).remove_metadata())
        assert part_schema(tables, provenance).metadata.items() <= file.metadata.metadata.items()
        assert file.metadata.num_rows == part.rows
        columns = [file.metadata.row_group(0).column(k) for k in range(file.metadata.num_columns)]
        # cuDF leaves alone what does not become smaller
        assert columns[1].compression in (compression.upper(), "UNCOMPRESSED")
        assert (columns[0].compression, columns[0].has_dictionary_page) == ("UNCOMPRESSED", False)
        assert all(column.has_offset_index for column in columns)
        assert all(column.has_column_index and column.is_stats_set for column in columns[3:])
        encodings = {column.path_in_schema: column.encodings for column in columns}
        assert all("DELTA_BINARY_PACKED" in encodings[name] for name in ("n_left", "n_right", "root"))
        table = file.read()
        assert table["n_left"].to_pylist() == [len(members) for members in table["left"].to_pylist()]
        fingerprint = int(np.add.reduce(table["id"].to_numpy().view(np.uint64), dtype=np.uint64))
        assert part.fingerprint == str(fingerprint)


@pytest.mark.parametrize("place", ["device", "host"])
@pytest.mark.parametrize("labels", list(LABELS))
def test_the_first_row_groups_have_the_largest_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, labels: str, place: str
) -> None:
    """Inside a row group the rows keep their order. Rows of the device are in this order already."""
    monkeypatch.setattr(bicliques, "BLOCK_ROWS", 5000)
    batch = some(23_000, 1)
    sizes = list(zip(np.diff(batch.left_indptr).tolist(), np.diff(batch.right_indptr).tolist(), strict=True))
    place = {own: k for k, own in enumerate(batch.ids.tolist())}
    out = DeviceWriter(tmp_path, 0, CudfParquet(LABELS[labels]))
    if place == "device":
        keys = np.diff(batch.left_indptr) << 32 | np.diff(batch.right_indptr)
        out(on_device(batch.pick(bicliques.block_order(keys, len(batch)))))
    else:
        out(batch)
    [part] = out.close()
    file = pq.ParquetFile(tmp_path / part.name)
    groups = [file.read_row_group(k, columns=["id"])["id"].to_pylist() for k in range(file.num_row_groups)]
    assert list(map(len, groups)) == [5000] * 4 + [3000]
    for ids, later in itertools.pairwise(groups):
        assert [place[own] for own in ids] == sorted(place[own] for own in ids)
        assert min(sizes[place[own]] for own in ids) >= max(sizes[place[own]] for own in later)


def test_no_rows_make_no_part(tmp_path: Path) -> None:
    out = DeviceWriter(tmp_path, 0, CudfParquet(None))
    out(some(0, 0))
    assert out.close() == []


@pytest.mark.parametrize("write_on", ["cpu", "gpu"])
@pytest.mark.parametrize("ids", ["labels", "dense"])
def test_a_run_is_proven_whoever_writes(tmp_path: Path, write_on: Any, ids: Any) -> None:
    source = write_edges(tmp_path / "g.parquet", random_edges(150, 80, 0.35, 5), strings=True)
    host = bq.mine(source, tmp_path / "host", engine="cpu", workers=0, count_only=True, progress=False, report=False)
    results = bq.mine(
        source,
        tmp_path / "out",
        engine="bitmatrix",
        workers=0,
        write_on=write_on,
        ids=ids,
        progress=False,
        report=False,
    )
    assert (len(results), results.manifest.fingerprint) == (host.manifest.count, host.manifest.fingerprint)
    assert bq.verify(tmp_path / "out", progress=False).fingerprint == results.manifest.fingerprint


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what cuDF imports
def test_readers_of_all_kinds_read_it(tmp_path: Path) -> None:
    import pandas as pd

    source = write_edges(tmp_path / "g.parquet", random_edges(60, 40, 0.3, 5), strings=True)
    results = bq.mine(
        source, tmp_path / "out", engine="bitmatrix", workers=0, write_on="gpu", progress=False, report=False
    )
    folder = tmp_path / "out" / "bicliques"
    frame = pd.read_parquet(folder, columns=["left", "right", "n_left"])
    assert len(frame) == len(results)
    assert (frame["left"].map(len) == frame["n_left"]).all()
    import cudf

    device = cudf.read_parquet([str(path) for path in folder.iterdir()])
    assert int(device["left"].list.len().sum()) == int(frame["n_left"].sum())
    for library in ("polars", "duckdb"):
        try:
            module = __import__(library)
        except ImportError:
            continue
        pattern = str(folder / "*.parquet")
        n = len(module.read_parquet(pattern)) if library == "polars" else module.read_parquet(pattern).shape[0]
        assert n == len(results)


def test_large_bicliques_of_a_run_are_in_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine hands its rows out in blocks, and chunks end with blocks."""
    monkeypatch.setattr(bicliques, "BLOCK_ROWS", 5000)
    source = write_edges(tmp_path / "g.parquet", random_edges(150, 80, 0.35, 5), strings=True)
    results = bq.mine(
        source, tmp_path / "out", engine="bitmatrix", workers=0, write_on="gpu", progress=False, report=False
    )
    parts = sorted((tmp_path / "out" / "bicliques").iterdir())
    sizes = [
        file.read_row_group(k, ["n_left"])["n_left"].to_numpy()
        for file in map(pq.ParquetFile, parts)
        for k in range(file.num_row_groups)
    ]
    assert len(results) > 10 * 5000
    rises = sum(int(later.max() > before.min()) for before, later in itertools.pairwise(sizes))
    batches = rises + 1
    assert batches < len(sizes) / 2
