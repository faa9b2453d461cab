"""A file whose row groups are encoded on threads is the one that a single writer would have written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.output.row_groups import write_row_groups
from bicliques.pipeline.output.thrift import read_struct, written
from bicliques.schemas.edges import EDGES, label_schema

PLAIN = {"compression": "zstd", "use_dictionary": False}


def batches(schema: pa.Schema, lengths: list[int]) -> list[pa.RecordBatch]:
    """Rows with different numbers in every row group."""
    rng = np.random.default_rng(len(lengths))
    columns = [[pa.array(np.sort(rng.integers(0, 1 << 20, n))).cast(field.type) for field in schema] for n in lengths]
    return [pa.RecordBatch.from_arrays(some, schema=schema) for some in columns]


def footer(path: Path) -> memoryview:
    data = memoryview(path.read_bytes())
    return data[len(data) - 8 - int.from_bytes(data[-8:-4], "little") : -8]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("schema", "lengths", "options"),
    [
        (EDGES, [3000], PLAIN),
        (EDGES, [3000] * 15, PLAIN),  # the length of a longer list is written in another way
        (EDGES, [5, 0, 7] * 20, PLAIN),
        (EDGES, [100] * 40, {"compression": "none", "write_page_checksum": True, "write_page_index": False}),
        (label_schema(pa.int64()), [70_000, 3], {"compression": "zstd"}),  # with dictionaries
        (label_schema(pa.string()), [900] * 5, {"compression": "zstd"}),
    ],
)
def test_the_file_is_the_same_byte_for_byte(
    tmp_path: Path, schema: pa.Schema, lengths: list[int], options: dict[str, Any], threads: int
) -> None:
    parts = batches(schema, lengths)
    with pq.ParquetWriter(tmp_path / "one", schema, **options) as writer:
        for part in parts:
            writer.write_batch(part)
    write_row_groups(tmp_path / "many", schema, parts.__getitem__, range(len(parts)), threads, **options)
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()
    assert pq.read_table(tmp_path / "many").equals(pa.Table.from_batches(parts))


def test_a_footer_is_written_as_it_was_read(tmp_path: Path) -> None:
    types: list[pa.DataType] = [pa.float64(), pa.bool_(), pa.timestamp("us", "UTC"), pa.list_(pa.int8()), pa.uint16()]
    table = pa.table({f"column {k}": pa.array([None], kind) for k, kind in enumerate(types)})
    pq.write_table(table, tmp_path / "x", sorting_columns=[pq.SortingColumn(1, descending=True)])
    assert written(read_struct(footer(tmp_path / "x"))) == footer(tmp_path / "x")


def test_what_no_footer_has_is_refused() -> None:
    fields = bytes([1 << 4 | 11, 0, 0])  # an empty map
    with pytest.raises(ValueError, match="type 11"):
        read_struct(memoryview(fields))


def test_an_error_of_a_batch_is_raised(tmp_path: Path) -> None:
    def fail(item: int) -> pa.RecordBatch:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        write_row_groups(tmp_path / "x", EDGES, fail, range(3), 2)
