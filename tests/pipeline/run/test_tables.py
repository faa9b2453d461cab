"""Columns of integers, whose row groups are decoded on threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.run.tables import read_integers
from schemas.edges import EDGES
from schemas.errors import IncompleteError


@pytest.mark.parametrize("threads", [1, 2, 9])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_columns_are_whole_on_any_number_of_threads(tmp_path: Path, rows: int, threads: int) -> None:
    left = np.arange(100, dtype=np.int32)
    table = pa.table([left, left[::-1] * 7], schema=EDGES)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=rows)
    found = read_integers(tmp_path / "x.parquet", threads)
    assert list(found) == ["left", "right"]
    for name, column in found.items():
        assert column.dtype == np.int32
        assert not column.flags.writeable
        assert column.tolist() == table[name].to_pylist()


def test_a_damaged_row_group_is_refused(tmp_path: Path) -> None:
    table = pa.table([np.arange(9000, dtype=np.int32)] * 2, schema=EDGES)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=1000, compression="zstd")
    data = bytearray((tmp_path / "x.parquet").read_bytes())
    group = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(7).column(1)
    data[group.data_page_offset : group.data_page_offset + group.total_compressed_size] = bytes(
        group.total_compressed_size
    )
    (tmp_path / "x.parquet").write_bytes(data)
    with pytest.raises(IncompleteError, match=r"x\.parquet cannot be read"):
        read_integers(tmp_path / "x.parquet", 2)
