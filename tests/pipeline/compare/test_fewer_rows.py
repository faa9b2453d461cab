"""A part that is written again by its pages has the rows that Arrow keeps, and nothing of the others."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.compare.fewer_rows import write_without
from bicliques.pipeline.compare.rows_file import part_file
from bicliques.pipeline.compare.thrift import read_struct, write_struct
from bicliques.pipeline.output.part_writer import LAYOUT, part_schema
from bicliques.pipeline.run.tables import open_bytes


def labels_of(kind: str, n: int) -> pa.Array:
    numbers = np.arange(n)
    if kind == "text":
        return pa.array([f"a vertex {k}" for k in numbers])
    return pa.array(numbers * 7 - 3, pa.int64() if kind == "int64" else pa.int32())


def lists(rng: np.random.Generator, n: int, labels: pa.Array) -> tuple[pa.ListArray, np.ndarray]:
    """Ascending members. Some rows have one label only, so that runs of one code come up."""
    sizes = rng.integers(1, rng.choice([2, 5, 30]), n)
    ids = [np.sort(rng.choice(len(labels), min(size, len(labels)), replace=False)) for size in sizes]
    if rng.random() < 0.5:
        ids[: n // 2] = [np.zeros(1, int)] * (n // 2)
    sizes = np.array([len(own) for own in ids])
    members = labels.take(pa.array(np.concatenate(ids)))
    return pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32), members), sizes


def written(path: Path, rng: np.random.Generator, kind: str, groups: list[int], **layout: Any) -> pa.Table:
    labels = [labels_of(kind, int(n)) for n in rng.choice([1, 2, 40, 300], 2)]
    schema = part_schema(None if kind == "dense" else (labels[0], labels[1]))
    tables = []
    for n in groups:
        left, right = (lists(rng, n, own) for own in labels)
        ids = rng.integers(-(2**63), 2**63 - 1, n)
        sizes = [own[1].astype(np.int32) for own in (left, right)]
        columns = [pa.array(ids), left[0], right[0], *map(pa.array, sizes), pa.array(np.minimum(sizes[0], 3))]
        tables.append(
            pa.Table.from_arrays(
                [column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
            )
        )
    if layout:
        with pq.ParquetWriter(path, schema, **LAYOUT | layout) as writer:
            for table in tables:
                writer.write_table(table)
    else:
        with path.open("wb") as file, part_file(file, schema) as writer:
            for table in tables:
                writer.write_table(table)
    return pa.concat_tables(tables)


def rewritten(path: Path, stays: np.ndarray, now: tuple[np.ndarray, np.ndarray] | None = None) -> bytes | None:
    """The new part. None if it cannot be written by its pages."""
    ids = pq.read_table(path, columns=["id"])["id"].to_numpy().view(np.uint64)
    out, (stored, n_bytes) = io.BytesIO(), open_bytes(path)
    with stored:
        return out.getvalue() if write_without(stored, n_bytes, out, ids, stays, now) else None


def read(part: bytes | None, **options: Any) -> pq.ParquetFile:
    assert part is not None
    return pq.ParquetFile(pa.BufferReader(part), page_checksum_verification=True, **options)


@pytest.mark.parametrize("kind", ["int32", "int64", "text", "dense"])
def test_the_rows_that_stay_are_those_that_arrow_keeps(tmp_path: Path, kind: str) -> None:
    rng, shrunk = np.random.default_rng(43), 0
    for case in range(9):
        groups = rng.integers(1, 400, rng.integers(1, 5)).tolist()
        small = {"data_page_size": 64, "write_batch_size": 16} if case % 2 else {}
        table = written(tmp_path / "part", rng, kind, groups, **small)
        stays = rng.random(len(table)) < rng.choice([0.02, 0.5, 0.99])
        stays[int(rng.integers(len(table)))] = True
        if case % 3 == 0:
            stays[: groups[0]] = True  # a row group that is copied as it is
        elif case % 3 == 1:
            groups.append(9)
            table = written(tmp_path / "part", rng, kind, groups, **small)
            stays = np.append(np.zeros(len(table) - 9, np.bool_), rng.random(9) < 2)  # others go as a whole
        file = read(rewritten(tmp_path / "part", stays))
        kept = table.filter(pa.array(stays))
        assert file.read().equals(kept)
        assert file.schema_arrow.metadata == pq.read_schema(tmp_path / "part").metadata
        for k in range(file.num_row_groups):
            own, told = file.read_row_group(k), file.metadata.row_group(k)
            assert told.num_rows == len(own)
            for column in (3, 4, 5):
                bounds = told.column(column).statistics
                assert (bounds.min, bounds.max) == (min(own[column].to_pylist()), max(own[column].to_pylist()))
        shrunk += file.num_row_groups < len(groups)
    assert shrunk, "no row group was left out"


def test_other_dense_ids_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = written(tmp_path / "part", rng, "dense", [300, 200])
    stays = rng.random(len(table)) < 0.7
    now = np.arange(10_000, dtype=np.int32) * 2
    file = read(rewritten(tmp_path / "part", stays, (now, now)))
    kept = table.filter(pa.array(stays)).to_pylist()
    assert [row["left"] for row in file.read().to_pylist()] == [now[row["left"]].tolist() for row in kept]


def test_no_label_stays_in_a_file_that_no_row_has_any_more(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    table = written(tmp_path / "part", rng, "text", [500])
    gone = table["left"][0].as_py()[0]
    stays = np.array([gone not in row for row in table["left"].to_pylist()])
    stays[-1] |= not stays.any()
    column = read(rewritten(tmp_path / "part", stays), read_dictionary=["left.list.element"]).read()["left"]
    used = {label for row in column.to_pylist() for label in row}
    assert {label for chunk in column.chunks for label in chunk.values.dictionary.to_pylist()} == used
    assert gone not in used


@pytest.mark.parametrize(
    "layout",
    [{"use_dictionary": False}, {"compression": "snappy", "compression_level": None}, {"write_page_checksum": False}],
)
def test_a_part_of_another_layout_is_left_to_arrow(tmp_path: Path, layout: dict[str, Any]) -> None:
    table = written(tmp_path / "part", np.random.default_rng(2), "int32", [50], **layout)
    assert rewritten(tmp_path / "part", np.arange(len(table)) > 0) is None


def test_structs_are_written_as_they_were_read() -> None:
    fields = {1: (5, -70_000), 2: (8, b"text"), 3: (1, None), 20: (12, {4: (4, 3)}), 21: (9, (6, [*range(20)]))}
    struct = fields | {22: (7, b"8 bytes!"), 40: (2, None), 41: (3, b"x"), 42: (9, (8, [b""]))}
    stored = write_struct(struct)
    found, end = read_struct(stored + b"more")
    assert (end, write_struct(found)) == (len(stored), stored)
    assert {number: value for number, (kind, value) in found.items() if kind > 2} == {
        number: value for number, (kind, value) in struct.items() if kind > 2
    }
    with pytest.raises(ValueError, match="kind 13"):
        read_struct(b"\x1d")
