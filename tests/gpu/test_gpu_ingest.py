"""Reading on a real device: the tables, the label order and the sentences of the CPU's reader."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

import bicliques as bq
from bicliques.kernels.graph.pieces import PIECE_BYTES
from bicliques.kernels.graph.sorting import VERTEX_BYTES
from bicliques.pipeline.api import steps
from bicliques.pipeline.ingest.gpu import edge_table, reading
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.ingest.table import normalise
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.pipeline.workers.devices import pool_of
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import CallOptions, IngestOptions, RunLimits, RunOptions
from bicliques.schemas.search import Search
from tests.support.runs import random_edges, write_edges
from tests.support.texts import NOT_PLAIN, PLAIN, any_text

pytestmark = pytest.mark.gpu
pytest.importorskip("pylibcudf", reason="cuDF is not installed")

from bicliques.pipeline.ingest.gpu.cudf_arrays import CudfArrays  # noqa: E402 - after the skip


def outcome(source: Any, options: IngestOptions, folder: Path, on: Any) -> object:
    folder.mkdir()
    try:
        summary = ingest(source, options, folder, on)
    except InputError as error:
        return str(error)
    edges = pq.ParquetFile(folder / EDGES_FILE)
    labels = [(folder / file).read_bytes() for file in (LEFT_LABELS_FILE, RIGHT_LABELS_FILE)]
    return (
        replace(summary, seconds=0.0, tables_seconds=0.0, read_on="", pieces=1),
        labels,
        edges.schema_arrow,
        edges.read(),
    )


def same(source: Any, folder: Path, **options: Any) -> Any:
    host = outcome(source, IngestOptions(**options), folder / "host", "cpu")
    device = outcome(source, IngestOptions(**options), folder / "device", "gpu")
    assert device == host
    return host


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each text that cuDF was given was plain to it."""
    seen: list[bool] = []
    read = CudfArrays.read_csv

    def watch(self: CudfArrays, *arguments: Any) -> Any:
        columns = read(self, *arguments)
        seen.append(columns is not None)
        return columns

    monkeypatch.setattr(CudfArrays, "read_csv", watch)
    return seen


@pytest.mark.parametrize("name", PLAIN)
def test_plain_text_is_read_by_the_device(tmp_path: Path, parsed: list[bool], name: str) -> None:
    file, content, *options = PLAIN[name]
    (tmp_path / file).write_bytes(content.encode())
    assert isinstance(same(tmp_path / file, tmp_path, **(options[0] if options else {})), tuple)
    assert parsed == [True], "the host read it"


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_what_is_not_plain_ends_the_same(tmp_path: Path, name: str) -> None:
    file, content, *options = NOT_PLAIN[name]
    (tmp_path / file).write_bytes(content.encode())
    same(tmp_path / file, tmp_path, **(options[0] if options else {}))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_text('0123 ,\t"-+.ax#%\u00e9\U0001f600\r'))
@pytest.mark.timeout(300)
def test_any_text_ends_the_same(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[str, bytes, dict[str, Any]]
) -> None:
    file, content, options = case
    folder = tmp_path_factory.mktemp("any")
    (folder / file).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "PIECE_BYTES", 8)
        same(folder / file, folder, **options)


@pytest.mark.parametrize("kind", ["integers", "text"])
@pytest.mark.parametrize("capacity", [None, 30_000])
def test_many_edges_in_blocks_and_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, capacity: int | None
) -> None:
    rng = np.random.default_rng(3)
    left, right = (rng.pareto(1.2, 400_000) * 900).astype(int), rng.integers(0, 5000, 400_000)
    words = np.char.add("us\u00e9r ", left.astype(str)) if kind == "text" else left
    source = tmp_path / "x.csv"
    pd.DataFrame({"user": words, "item": right}).to_csv(source, index=False)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 1 << 20)
    monkeypatch.setattr(normalise, "SLICE", 50_000)
    monkeypatch.setattr(edge_table, "PIECE", 50_000)
    monkeypatch.setattr(edge_table, "SLICE", 1000)
    if capacity is not None:
        monkeypatch.setattr(CudfArrays, "free_bytes", lambda _: edge_table._EDGE_BYTES * capacity * 5 // 4)
    assert isinstance(same(source, tmp_path), tuple)
    (tmp_path / "again").mkdir()
    pieces = ingest(source, IngestOptions(), tmp_path / "again", "gpu").pieces
    assert (pieces > 1) == (capacity is not None)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (pa.array([3, 1, 3], pa.int16()), pa.array([7, 7, 7], pa.uint64())),
        (pa.array(["b", "a", "\u00e9"]), pa.array([1, 2, 3])),
        (pa.array(["b", "a", "b"]).dictionary_encode(), pa.array(["x", "y", "z"], pa.large_string())),
        (pa.array([1, None, 2]), pa.array([1, 2, 3])),
        (pa.array([1, -2, 2]), pa.array([1, 2, 3])),
        (pa.array([1, 2**63, 2], pa.uint64()), pa.array([1, 2, 3])),
        (pa.array(["a", "", "b"]), pa.array([1, 2, 3])),
        (pa.array([1.5, 2.5, 3.5]), pa.array([1, 2, 3])),
        (pa.array([b"a", b"b\xff", b"c"]).view(pa.string()), pa.array([1, 2, 3])),
        (pa.array(["Ann", "ann", "\u00e9"]), pa.array(["1.0", "2.0", "1.0"])),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_parquet(tmp_path: Path, left: pa.Array, right: pa.Array, skip: bool) -> None:
    pq.write_table(pa.table({"w": [0.5] * 3, "u": left, "v": right}), tmp_path / "x.parquet", row_group_size=2)
    same(tmp_path / "x.parquet", tmp_path, left="u", right="v", skip_bad_lines=skip)


@pytest.mark.parametrize("options", [{}, {"label_type": "string"}, {"skip_bad_lines": True}])
@pytest.mark.parametrize("bad", ["", "x,4\n"])
def test_a_folder_of_text(tmp_path: Path, parsed: list[bool], options: dict[str, Any], bad: str) -> None:
    (tmp_path / "in" / "day=1").mkdir(parents=True)
    for k, lines in enumerate(("7,2\n3,4\n", f"1,2\n{bad}", "7,2\n9,9")):
        (tmp_path / "in" / "day=1" / f"{k}.csv").write_text(f"user,item\n{lines}")
    same(tmp_path / "in", tmp_path, **options, where=("day=1",))
    assert any(parsed), "the device parsed none of them"


def test_a_folder_of_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    of_device = CudfArrays.read_parquet

    def watch(self: CudfArrays, path: Path, *others: Any) -> Any:
        read.append(path)
        return of_device(self, path, *others)

    monkeypatch.setattr(CudfArrays, "read_parquet", watch)
    (tmp_path / "in").mkdir()
    kinds = (pa.int32(), pa.int64(), pa.uint16())
    for k, kind in enumerate(kinds):
        table = pa.table({"u": pa.array([k, 7], kind), "v": ["x", f"y{k}"], "weight": [1.0, k]})
        pq.write_table(table, tmp_path / "in" / f"{k}.parquet")
    assert isinstance(same(tmp_path / "in", tmp_path), tuple)
    assert len(read) == len(kinds), "the device read all of them"
    weights = tmp_path / "weights"
    weights.mkdir()
    assert isinstance(same(tmp_path / "in", weights, min_weight=1), tuple)


def test_lists_are_read_by_the_host(tmp_path: Path) -> None:
    pq.write_table(pa.table({"u": [1, 2], "v": [["a", "b"], ["a"]]}), tmp_path / "x.parquet")
    assert isinstance(same(tmp_path / "x.parquet", tmp_path), tuple)


@pytest.mark.parametrize("least", [1, 15])
def test_the_graph_is_the_same_in_pieces_within_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """CuPy itself refuses more than the limit."""
    source, n = tmp_path / "g", 200_000
    bq.generate(source, n_left=n, n_right=n, edges=4_000_000, plant=[(30, 20)], part_edges=100_000)
    monkeypatch.setattr(edge_table, "SLICE", 50_000)
    options = RunOptions(source=str(source), search=Search(min_left=least, min_right=least))
    for on, limit in (("cpu", None), ("gpu", VERTEX_BYTES * n + PIECE_BYTES * 800_000)):
        with nullcontext() if limit is None else pool_of(limit):
            steps.start(source, tmp_path / on, options, RunLimits(), False, CallOptions(ingest_on=on))
            steps.build(tmp_path / on, False)
    host, device = (RunFolder(tmp_path / on) for on in ("cpu", "gpu"))
    assert device.need("ingest")["pieces"] > 4
    assert device.need("build")["built_on"] == "gpu"
    assert device.need("build")["pieces"] > 4
    for file in host.graph.iterdir():
        assert file.read_bytes() == (device.graph / file.name).read_bytes(), file.name


@pytest.mark.parametrize("strings", [False, True])
def test_the_graph_is_the_same_array_for_array(tmp_path: Path, strings: bool) -> None:
    source = write_edges(tmp_path / "g.parquet", random_edges(300, 200, 0.05, 9), strings)
    for on in ("cpu", "gpu"):
        steps.start(
            source, tmp_path / on, RunOptions(source=str(source)), RunLimits(), False, CallOptions(ingest_on=on)
        )
        steps.build(tmp_path / on, False)
    host, device = (RunFolder(tmp_path / on) for on in ("cpu", "gpu"))
    assert device.need("build")["built_on"] == "gpu"
    for file in host.graph.iterdir():
        assert file.read_bytes() == (device.graph / file.name).read_bytes(), file.name
