"""Bounds on the memory for lines, transactions, labels and dictionaries. Longer ones are refused."""

import gzip
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.ingest.gpu import reading
from bicliques.pipeline.ingest.readers import blocks, columnar, fimi, look, open_source, sieve
from bicliques.pipeline.ingest.readers import text as text_reader
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.ingest.table import normalise, numbering
from bicliques.pipeline.ingest.table.normalise import EdgeTable, Labels
from bicliques.pipeline.run.names import LEFT_LABELS_FILE
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.options import IngestOptions
from tests.support.children import MEMORY, in_child
from tests.support.host_arrays import HostArrays


def batches_of(source: object, **options: object) -> list[pa.RecordBatch]:
    return list(open_source(source, IngestOptions(**options)).chunks())  # type: ignore[arg-type]


def pairs_in(batches: list[pa.RecordBatch]) -> list[tuple]:
    rows = [row for batch in batches for row in batch.to_pylist()]
    return [(row["left"], row["right"]) for row in rows]


# --- lines ---


def sentence_of(path: Path, folder: Path, on: str) -> str | None:
    folder.mkdir()
    try:
        ingest(path, IngestOptions(label_type="string", header=False), folder, on)  # type: ignore[arg-type]
    except InputError as error:
        return str(error)
    return None


@pytest.mark.parametrize("block", [50, 130, 1000])
@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.first(3)
def test_the_longest_line_is_read_and_a_longer_one_refused(tmp_path, monkeypatch, block, name):
    monkeypatch.setattr(blocks, "LINE_BYTES", 100)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block)
    monkeypatch.setattr(look, "HEAD_BYTES", 30)
    monkeypatch.setattr(blocks, "LOOK", 7)
    monkeypatch.setattr(reading, "BLOCK_BYTES", block)
    monkeypatch.setattr(reading, "DECOMPRESSED_BYTES", block)
    monkeypatch.setattr("bicliques.pipeline.output.cudf_parquet.why_no_cudf", lambda: None)
    monkeypatch.setattr("bicliques.pipeline.ingest.gpu.cudf_arrays.CudfArrays", HostArrays)
    for length, end in itertools.product((99, 100, 101, 102, 230), ("\n", "", "\nc,d\n")):
        content = "a,b\n" * 20 + "x" * (length - 2) + ",y" + end + "e,f\n" * 20 * bool(end)
        path = tmp_path / name
        path.write_bytes(compressed_for(name, content.encode()))
        for on in ("cpu", "gpu"):
            said = sentence_of(path, tmp_path / f"{length}{len(end)}{on}", on)
            if length <= 100:
                assert said is None
            else:
                assert said is not None
                assert said.startswith(f"{path}, line 21: the line is longer than")


def compressed_for(name: str, content: bytes) -> bytes:
    return gzip.compress(content) if name.endswith(".gz") else content


# --- transactions ---


def test_a_long_transaction_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fimi, "BLOCK_BYTES", 1000)
    lines = [range(1, 4), range(5000), (), range(7, 9), range(300, 2000)]
    edges = [(number, item) for number, items in enumerate(lines, 1) for item in items]
    for blank, end in itertools.product((" ", "\t", "  "), ("\n", "\r\n")):
        (tmp_path / "x.dat").write_bytes(end.join(blank.join(map(str, items)) for items in lines).encode())
        batches = batches_of(tmp_path / "x.dat")
        assert pairs_in(batches) == edges
        assert max(map(len, batches)) <= 1000, "more than 2,000 bytes were parsed together"


def test_a_transaction_that_is_read_in_parts_is_refused_for_one_bad_item(tmp_path, monkeypatch):
    """Its other parts are read already, or will be; leaving out a part alone would be wrong."""
    monkeypatch.setattr(fimi, "BLOCK_BYTES", 100)
    monkeypatch.setattr(text_reader, "_SLOW_BYTES", 8)
    items = " ".join(map(str, range(1000, 1100)))
    for line in (f"x {items}", f"{items} x {items}", f"{items} x"):
        (tmp_path / "x.dat").write_text(f"1 x\n{line}\n3 4\n")
        sentence = r"x\.dat, line 2: the right label 'x' is not a plain .*label_type='string'$"
        with pytest.raises(InputError, match=sentence):
            batches_of(tmp_path / "x.dat", skip_bad_lines=True)
    (tmp_path / "x.dat").write_text(f"1 x\n{items} x")
    with pytest.raises(InputError, match=sentence):
        batches_of(tmp_path / "x.dat", skip_bad_lines=True)
    (tmp_path / "x.dat").write_text(f"1 x\n{items}\nx\n3 4\n")
    assert pairs_in(batches_of(tmp_path / "x.dat", skip_bad_lines=True))[100:] == [(4, 3), (4, 4)]


def test_an_item_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fimi, "BLOCK_BYTES", 100)
    monkeypatch.setattr(blocks, "LINE_BYTES", 500)
    (tmp_path / "x.dat").write_text("1 2\n" + "9" * 2000)
    with pytest.raises(InputError, match=r"x\.dat, line 2: the line is longer than 0 MiB"):
        batches_of(tmp_path / "x.dat", label_type="string")


# --- long labels in tables ---


def long_labels(rows: int, length: int = 1 << 20) -> pa.Array:
    """Four labels that repeat."""
    return pa.array([chr(97 + k % 4) * length for k in range(rows)])


def test_repeated_long_labels_only_need_memory_once(tmp_path: Path) -> None:
    """The rows would be half a gigabyte; the labels are two megabytes."""
    (tmp_path / "small.csv").write_text("1,2\n")
    table = pa.table({"a": long_labels(2, 1 << 19).dictionary_encode(), "b": [1, 2]})
    rows = pa.table({"a": pa.DictionaryArray.from_arrays(np.arange(1000) % 2, table["a"].chunk(0).dictionary)})
    rows = rows.append_column("b", pa.array(range(1000)))
    pq.write_table(rows, tmp_path / "x.parquet", dictionary_pagesize_limit=1 << 24, store_schema=False)
    _, mebibytes = in_child(MEMORY, tmp_path, "x.parquet").split()
    assert int(mebibytes) < 150


@pytest.mark.parametrize("layout", ["dictionary", "string_view"])
def test_rows_that_share_text_still_share_it_after_reading(layout: str) -> None:
    if layout == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1] * 500), pa.array(["a" * 100_000, "unused", "b"][:2]))
    else:
        data = b"a" * 100_000
        view = len(data).to_bytes(4, "little") + data[:4] + bytes(8)
        column = pa.Array.from_buffers(pa.string_view(), 1000, [None, pa.py_buffer(view * 1000), pa.py_buffer(data)])
    (batch,) = batches_of(pa.table({"a": column, "b": range(1000)}))
    assert batch["left"].nbytes < 500_000
    assert set(batch["left"].to_pylist()) == set(column.to_pylist())


def test_unused_dictionary_values_are_no_labels(tmp_path: Path) -> None:
    values = pa.array(["unused", "good", "with a bad right side", "", None])
    column = pa.DictionaryArray.from_arrays(pa.array([1, 2, 3, 4, 1], pa.uint8()), values)
    table = pa.table({"a": column, "b": [1, -1, 1, 1, 2]})
    summary = ingest(table, IngestOptions(skip_bad_lines=True), tmp_path)
    assert (summary.n_left, summary.n_edges, summary.skipped_lines) == (1, 2, 3)
    assert pq.read_table(tmp_path / LEFT_LABELS_FILE)["label"].to_pylist() == ["good"]


def test_batches_of_parquet_are_cut_by_the_bytes_that_the_file_states(tmp_path, monkeypatch):
    monkeypatch.setattr(columnar, "BATCH_BYTES", 100_000)
    labels = [f"{k:>01000}" for k in range(600)]
    for k, how in enumerate(({}, {"use_dictionary": False}, {"row_group_size": 150})):
        path = tmp_path / f"{k}.parquet"
        pq.write_table(pa.table({"a": labels, "b": range(600)}), path, **how)
        batches = batches_of(path)
        assert [left for left, _ in pairs_in(batches)] == labels
        assert max(map(len, batches)) <= 100


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_text_that_is_stored_as_differences_is_read(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(columnar, "DIFFERENCE_ROWS", 7)
    table = pa.table({"a": [f"label {k % 9}" for k in range(50)], "b": range(50)})
    pq.write_table(table, tmp_path / "x.parquet", use_dictionary=False, column_encoding={"a": encoding})
    batches = batches_of(tmp_path / "x.parquet")
    assert [left for left, _ in pairs_in(batches)] == table["a"].to_pylist()
    assert (max(map(len, batches)) == 7) == (encoding == "DELTA_BYTE_ARRAY"), "these may be of any length"


def test_dictionaries_and_differences_in_one_column_are_read_as_text() -> None:
    """Some writers do this when a dictionary has become too large. pyarrow cannot write such a file."""
    assert columnar.can_stay_behind({"PLAIN", "RLE", "RLE_DICTIONARY"})
    assert columnar.can_stay_behind({"PLAIN_DICTIONARY"})
    assert not columnar.can_stay_behind({"RLE_DICTIONARY", "DELTA_BYTE_ARRAY"})
    assert not columnar.can_stay_behind({"RLE_DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY"})
    assert not columnar.can_stay_behind({"PLAIN", "RLE"})


def test_row_groups_may_be_stored_in_different_ways(tmp_path: Path) -> None:
    """A single writer has one way, but some files are put together from the row groups of others."""
    ways = [{}, {"use_dictionary": False}, {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}]
    tables = [pa.table({"a": [f"{k} {n % 3}" for n in range(20)], "b": range(20)}) for k in range(len(ways))]
    layouts = []
    for table, how in zip(tables, ways, strict=True):
        pq.write_table(table, tmp_path / "x.parquet", row_group_size=10, **how)
        stream = open_source(tmp_path / "x.parquet", IngestOptions())
        layouts.append([stream.layout_of(k) for k in (0, 1)])  # type: ignore[attr-defined]
        kinds = {batch["left"].type for batch in stream.chunks()}
        assert all(pa.types.is_dictionary(kind) for kind in kinds) == (how == {})
    assert [two[0] for two in layouts] == [two[1] for two in layouts]
    assert layouts == [[((0,), 1 << 20)] * 2, [((), 1 << 20)] * 2, [((), columnar.DIFFERENCE_ROWS)] * 2]


def test_a_column_of_parquet_whose_rows_are_very_wide_is_refused(tmp_path, monkeypatch):
    """A page of a column is decompressed as a whole, and may have a thousand rows."""
    monkeypatch.setattr(columnar, "WIDE_GROUP", 1 << 20)
    pq.write_table(pa.table({"a": long_labels(8), "b": range(8)}), tmp_path / "x.parquet", use_dictionary=False)
    with pytest.raises(
        InputError, match=r"x\.parquet: column 'a' holds 8,\d{3},\d{3} bytes in 8 rows .*shorter labels"
    ):
        open_source(tmp_path / "x.parquet", IngestOptions())
    pq.write_table(pa.table({"b": range(8), "c": range(8), "a": long_labels(8)}), tmp_path / "x.parquet")
    assert len(pairs_in(batches_of(tmp_path / "x.parquet"))) == 8, "a column that is not a label"
    pq.write_table(pa.table([range(8), range(8), long_labels(8)], names=["b", "b", "a"]), tmp_path / "x.parquet")
    assert len(pairs_in(batches_of(tmp_path / "x.parquet"))) == 8, "read, because names do not select columns"


def test_a_label_of_a_table_may_be_at_most_as_long_as_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sieve, "LINE_BYTES", 20)
    table = pa.table({"a": ["x" * 20, "y", "x" * 21], "b": [1, 2, 3]})
    for kind in (pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        source = table.set_column(0, "a", table["a"].cast(kind))
        with pytest.raises(
            InputError, match="row 3: the left label has 21 bytes, and 20 are the most; cut it, or leave"
        ):
            batches_of(source)
        assert pairs_in(batches_of(source, skip_bad_lines=True)) == [("x" * 20, 1), ("y", 2)]


# --- numbering ---


def test_labels_that_wait_to_be_numbered_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalise, "SLICE_BYTES", 10_000)
    table, most = EdgeTable((pa.int64(), pa.int64())), 0
    for k in range(300):
        labels = pa.array(["x" * 1000, f"{k % 3}" * 1000], pa.large_string())
        table.add(pa.record_batch([labels, pa.array([1, 2])], names=["left", "right"]))
        most = max(most, table._left.waiting_bytes)
    assert most < 15_000
    left, _, _ = table.finish()
    assert sorted(left.values.to_pylist()) == ["0" * 1000, "1" * 1000, "2" * 1000, "x" * 1000]


def test_a_label_table_is_written_in_slices_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalise, "SLICE_BYTES", 5000)
    texts = [f"{k:>0{width}}" for k, width in enumerate([10, 4000, 2000, 6000, 3, 4, 5])]
    order = np.array([6, 0, 1, 2, 3, 4, 5])
    labels = Labels(pa.array(texts, pa.large_string()), order, pa.int64())
    assert [slice.to_pylist() for slice in labels.slices()] == [
        [texts[k] for k in some] for some in ([6, 0, 1], [2], [3], [4, 5])
    ]
    labels.write(tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet")["label"].to_pylist() == [texts[k] for k in order]


@pytest.mark.parametrize("on", ["cpu", "gpu"])
def test_more_text_than_a_label_table_holds_is_refused(tmp_path, monkeypatch, on):
    monkeypatch.setattr(numbering, "MAX_TEXT", 11)
    monkeypatch.setattr("bicliques.pipeline.output.cudf_parquet.why_no_cudf", lambda: None)
    monkeypatch.setattr("bicliques.pipeline.ingest.gpu.cudf_arrays.CudfArrays", HostArrays)
    (tmp_path / "x.csv").write_text("abcdef,1\nghijkl,1\nabcdef,2\n")
    (tmp_path / "out").mkdir()
    with pytest.raises(ResourceError, match=r"the left labels have 12 bytes of text together, and 11 are the most; sh"):
        ingest(tmp_path / "x.csv", IngestOptions(header=False), tmp_path / "out", on)  # type: ignore[arg-type]
    monkeypatch.setattr(numbering, "MAX_TEXT", 12)
    assert ingest(tmp_path / "x.csv", IngestOptions(header=False), tmp_path / "out", on).n_left == 2  # type: ignore[arg-type]


def test_dictionary_text_is_decoded_in_pieces_for_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "TEXT_BYTES", 2500)
    sizes = []

    class Watching(HostArrays):
        def from_arrow(self, labels: pa.Array) -> object:
            sizes.append(labels.nbytes)
            return super().from_arrow(labels)

    column = pa.array([f"{k % 7}" * 1000 for k in range(40)]).dictionary_encode()
    stream = open_source(pa.table({"a": column, "b": range(40)}), IngestOptions())
    parts = list(reading.device_batches(stream, Watching()))
    assert [label for left, _ in parts for label in left.to_pylist()] == column.to_pylist()
    assert max(sizes) < 3000
