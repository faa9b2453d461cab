"""Columns of integers, whose row groups are decoded on threads."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.run import tables
from bicliques.pipeline.run.bucket import Bucket
from bicliques.pipeline.run.store import is_known
from bicliques.pipeline.run.tables import open_part, read_integers, read_table
from bicliques.schemas.edges import EDGES
from bicliques.schemas.errors import IncompleteError, ResourceError
from tests.support.odd_files import with_rows


@pytest.mark.parametrize("threads", [1, 2, 9])
@pytest.mark.parametrize("rows", [1, 7, 100])
def test_columns_are_whole_on_any_number_of_threads(tmp_path: Path, rows: int, threads: int) -> None:
    left = np.arange(100, dtype=np.int32)
    table = pa.table([left, left[::-1] * 7], schema=EDGES)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=rows)
    found = read_integers([tmp_path / "x.parquet"], threads, {"left": 100, "right": 99 * 7 + 1})
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
        read_integers([tmp_path / "x.parquet"], 2, {"left": 9000, "right": 9000})


@pytest.mark.parametrize("threads", [1, 3])
def test_an_id_that_no_vertex_has_is_refused(tmp_path: Path, threads: int) -> None:
    table = pa.table([np.arange(100, dtype=np.int32)] * 2, schema=EDGES)
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=10)
    for sizes in ({"left": 99, "right": 100}, {"left": 100, "right": 99}):
        with pytest.raises(
            IncompleteError, match=r"x\.parquet cannot be read \(it has the vertices 90 to 99, and the run"
        ):
            read_integers([tmp_path / "x.parquet"], threads, sizes)


#: As Arrow says it.
NO_ANSWER = (
    "When reading information for key 'a' in bucket 'b': AWS Error NETWORK_CONNECTION during HeadObject operation"
)


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(NO_ANSWER), ResourceError, r"\(When reading .*\); check the connection and the credentials"),
        (FileNotFoundError("gone"), IncompleteError, r"\(it is missing\); mend it with: bicliques\.resume"),
        (pa.ArrowInvalid("bad magic bytes"), IncompleteError, r"\(bad magic bytes\); .* remove it from the store"),
        (OSError("could not verify page"), IncompleteError, r"\(could not verify page\); .* remove it from the store"),
    ],
    ids=["no answer", "missing", "no Parquet", "damaged"],
)
def test_a_store_that_does_not_answer_is_no_damage(tmp_path, monkeypatch, error, kind, words):
    def found_at(path: Path) -> dict[str, object]:
        raise error

    monkeypatch.setattr(tables, "found_at", found_at)
    is_known(Bucket("s3://lake/night", tmp_path))
    part = tmp_path / "run" / "bicliques" / "part-0.parquet"
    with pytest.raises(kind, match=r"^s3://lake/night/.*part-0\.parquet cannot be read " + words), open_part(part):
        pass


@pytest.mark.parametrize("most", [10**12, 2**62, 2**31 - 1, 2**26 + 1])
@pytest.mark.parametrize("kind", [pa.int32(), pa.list_(pa.int64()), pa.list_(pa.string())], ids=str)
def test_rows_that_a_footer_promises_ask_for_no_memory(tmp_path: Path, most: int, kind: pa.DataType) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": pa.array([0 if kind == pa.int32() else []] * 9, kind)}), path)
    path.write_bytes(with_rows(path.read_bytes(), 9, most))
    with pytest.raises(IncompleteError, match=r"cannot be read \(it promises [\d,]+ rows, and"):
        read_table(path)
