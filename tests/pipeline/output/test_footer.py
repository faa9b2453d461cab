"""What is added to the footer of a file is read by pyarrow, and the rest of the file stays as it was."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.output.footer import amend

TABLE = pa.table({"id": [5, 6, 7], "left": [[1, 2], [3], [4]], "n_left": [2, 1, 1], "n_right": [1, 9, 3]})


@pytest.mark.parametrize("pairs", [{}, {"run": "x"}, {f"key {k}": "wert ü" * k for k in range(20)}])
@pytest.mark.parametrize("known", [None, {"side": "user"}])
def test_metadata_is_added(tmp_path: Path, pairs: dict[str, str], known: dict[str, str] | None) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE.replace_schema_metadata(known), path, row_group_size=2, write_page_index=True)
    before, size = pq.read_metadata(path), path.stat().st_size
    amend(path, pairs)
    after = pq.read_metadata(path)
    expected = (before.metadata or {}) | {key.encode(): value.encode() for key, value in pairs.items()}
    assert after.metadata == expected
    for group in range(2):
        assert [after.row_group(group).column(k).to_dict() for k in range(4)] == [
            before.row_group(group).column(k).to_dict() for k in range(4)
        ]
    assert pq.read_table(path).equals(TABLE)
    assert (path.stat().st_size > size) == bool(pairs)


def test_metadata_is_added_twice(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(TABLE, path)
    amend(path, {"a": "b"})
    amend(path, {"c": "d"})
    assert {b"a": b"b", b"c": b"d"}.items() <= pq.read_metadata(path).metadata.items()
