"""Reading on a device gives the files that reading on the host gives, byte for byte, or the same sentence."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from bicliques.pipeline.ingest import step as ingesting
from bicliques.pipeline.ingest.gpu import edge_table, reading
from bicliques.pipeline.ingest.gpu import ingest_on as gpu_ingest
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.ingest.table import normalise
from bicliques.pipeline.run.names import EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.options import IngestOptions
from tests.support.examples import examples
from tests.support.host_arrays import HostArrays
from tests.support.texts import NOT_PLAIN, PLAIN, any_text


def outcome(source: Any, options: IngestOptions, folder: Path, on: str) -> object:
    """The summary, the label files and the edges, or the sentence."""
    folder.mkdir()
    try:
        summary = ingest(source, options, folder, on)  # type: ignore[arg-type]
    except InputError as error:
        assert list(folder.iterdir()) == []
        return str(error)
    labels = [(folder / file).read_bytes() for file in (LEFT_LABELS_FILE, RIGHT_LABELS_FILE)]
    return (
        replace(summary, seconds=0.0, tables_seconds=0.0, read_on="", pieces=1),
        labels,
        pq.read_table(folder / EDGES_FILE),
    )


@pytest.fixture
def arrays(monkeypatch: pytest.MonkeyPatch) -> HostArrays:
    made = HostArrays()
    monkeypatch.setattr("bicliques.pipeline.output.cudf_parquet.why_no_cudf", lambda: None)
    monkeypatch.setattr("bicliques.pipeline.ingest.gpu.cudf_arrays.CudfArrays", lambda: made)
    return made


def same(source: Any, folder: Path, **options: Any) -> Any:
    """Check that both ways agree. Returns the result."""
    host = outcome(source, IngestOptions(**options), folder / "host", "cpu")
    device = outcome(source, IngestOptions(**options), folder / "device", "gpu")
    assert device == host
    return host


@pytest.mark.parametrize("name", PLAIN)
def test_plain_text_is_read_by_the_device(tmp_path: Path, arrays: HostArrays, name: str) -> None:
    file, content, *options = PLAIN[name]
    (tmp_path / file).write_bytes(content.encode())
    assert isinstance(same(tmp_path / file, tmp_path, **(options[0] if options else {})), tuple)
    assert arrays.parsed == 1, "the host read it"


@pytest.mark.parametrize("name", NOT_PLAIN)
def test_text_that_is_not_plain_is_read_by_the_host_with_equal_tables(tmp_path, arrays, name):
    file, content, *options = NOT_PLAIN[name]
    (tmp_path / file).write_bytes(content.encode())
    same(tmp_path / file, tmp_path, **(options[0] if options else {}))


@pytest.mark.parametrize("content", ["u,i\nann,x\nu,i\nbob,u\nu,is\n", "u,i\n1,2\nu,i\n3,2\n", "0,1\n5,6\n0,1\n7,8\n"])
def test_a_header_that_is_repeated_is_no_edge_on_a_device(tmp_path: Path, arrays: HostArrays, content: str) -> None:
    (tmp_path / "x.csv").write_text(content)
    assert isinstance(same(tmp_path / "x.csv", tmp_path, header=True), tuple)


@pytest.mark.parametrize("content", [b"", b"% bip\n", b"\xff\xfe1\x00", b"a,\xff\n", b"1,2\n3,\xc3\n"])
def test_device_and_host_refuse_bad_input_with_the_same_sentence(tmp_path, arrays, content):
    for file in ("out.x", "x.csv"):
        folder = tmp_path / file.replace(".", "")
        folder.mkdir()
        (folder / file).write_bytes(content)
        assert isinstance(same(folder / file, folder, label_type="string"), str)


def room_for(capacity: int) -> int:
    """Free memory of a device whose chunks have so many edges."""
    return edge_table._EDGE_BYTES * -(-capacity * 5 // 4)


@pytest.mark.parametrize(
    ("capacity", "pieces"), [(1 << 20, {1}), (899, {1}), (450, {2}), (129, {6, 7}), (64, {12, 13, 15})]
)
@pytest.mark.parametrize("kind", ["text", "parquet"])
def test_a_large_file_is_read_in_blocks_and_sorted_in_chunks(
    tmp_path: Path,
    arrays: HostArrays,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capacity: int,
    pieces: set[int],
    kind: str,
) -> None:
    rng = np.random.default_rng(1)
    pairs = np.delete(rng.integers(0, 60, (900, 2)), 300, axis=0)
    if kind == "text":
        lines = [f"{u} {v}" for u, v in pairs]
        source = tmp_path / "x.el"
        source.write_text("\n".join([*lines[:300], "# in between", *lines[300:]]))
    else:
        source = tmp_path / "x.parquet"
        pq.write_table(pa.table({"u": pairs[:, 0], "v": pairs[:, 1]}), source, row_group_size=16)
    monkeypatch.setattr(reading, "BLOCK_BYTES", 700)
    monkeypatch.setattr(reading, "PIECE_BYTES", 60)
    monkeypatch.setattr(reading, "LOOK", 16)
    monkeypatch.setattr(normalise, "SLICE", 64)
    monkeypatch.setattr(edge_table, "SLICE", 64)
    monkeypatch.setattr(edge_table, "PIECE", 64)
    monkeypatch.setattr(reading, "ROWS", 150)
    arrays.free = room_for(capacity)
    summary, *_ = same(source, tmp_path)
    assert summary.n_edges == len({tuple(pair) for pair in pairs.tolist()})
    assert arrays.parsed > 5
    (tmp_path / "again").mkdir()
    told = ingest(source, IngestOptions(), tmp_path / "again", "gpu").pieces
    assert told in pieces
    assert arrays.longest <= max(1.25 * capacity, 64)
    text_of_log = f"the GPU has no room for all 899 edges at once: they are sorted in {told} pieces"
    assert (text_of_log in caplog.text) == (told > 1)


@pytest.mark.parametrize(
    ("capacity", "most", "of_an_edge"),
    [(1 << 20, 1000, 10), (450, 1000, 10), (450, 1 << 31, 2)],
    ids=["offsets", "chunks", "memory"],
)
def test_text_is_numbered_before_a_column_has_too_many_bytes(tmp_path, arrays, monkeypatch, capacity, most, of_an_edge):
    """A column of libcudf may have offsets of 32 bits, or a device little memory. Words wait all the same."""
    rng = np.random.default_rng(2)
    left, right = (
        pa.array([f"{side}-{k:0{width}}" for k in rng.integers(0, 50, 900)]) for side, width in (("a", 18), ("b", 5))
    )
    pq.write_table(pa.table({"u": left, "v": right}), tmp_path / "x.parquet", row_group_size=16)
    monkeypatch.setattr(edge_table, "TEXT_BYTES", most)
    monkeypatch.setattr(edge_table, "_TEXT_OF_AN_EDGE", of_an_edge)
    monkeypatch.setattr(edge_table, "SLICE", 64)
    monkeypatch.setattr(reading, "ROWS", 16)
    longest: list[int] = []
    joined = arrays.concat

    def concat(columns: list[Any]) -> Any:
        if isinstance(columns[0], pa.Array):
            longest.append(sum(int(arrays.lengths(column).sum()) for column in columns))
        return joined(columns)

    monkeypatch.setattr(arrays, "concat", concat)
    arrays.free = room_for(capacity)
    same(tmp_path / "x.parquet", tmp_path)
    known = 50 * 20  # which are joined with the new ones to be sorted
    assert 500 < max(longest) <= 1000 + known
    assert len(longest) > 20
    (tmp_path / "again").mkdir()
    assert ingest(tmp_path / "x.parquet", IngestOptions(), tmp_path / "again", "gpu").pieces == (
        1 if capacity > 900 else 2
    )


def test_an_edge_that_is_there_a_thousand_times_takes_the_room_of_one_per_chunk(tmp_path, arrays, monkeypatch):
    monkeypatch.setattr(edge_table, "SLICE", 10)
    arrays.free = room_for(100)
    ones = np.ones(5000, np.int64)
    pq.write_table(pa.table({"u": [*ones, 2], "v": [*ones, 3]}), tmp_path / "x.parquet", row_group_size=20)
    summary, *_ = same(tmp_path / "x.parquet", tmp_path)
    assert (summary.n_edges, summary.duplicates) == (2, 4999)
    (tmp_path / "again").mkdir()
    kept: list[Any] = []
    ingest(tmp_path / "x.parquet", IngestOptions(), tmp_path / "again", "gpu", kept.append)
    assert kept == [None], "they are in main memory"
    assert arrays.longest <= 125


def test_a_row_group_that_is_too_large_for_the_device_is_read_by_the_host(tmp_path, arrays, monkeypatch, caplog):
    monkeypatch.setattr(edge_table, "SLICE", 10)
    arrays.free = room_for(100)
    columns = {"u": np.arange(90), "v": np.arange(90) % 7}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet", row_group_size=30)
    same(tmp_path / "x.parquet", tmp_path)
    assert arrays.parsed == 0
    assert "the CPU reads row group 2 of " in caplog.text


def test_compressed_text_and_formats_without_a_device_reader(tmp_path: Path, arrays: HostArrays) -> None:
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"1,2\n3,4\n"))
    (tmp_path / "x.dat").write_text("1 2 3\n\n2 3\n")
    for name in ("x.csv.gz", "x.dat"):
        folder = tmp_path / name.replace(".", "")
        folder.mkdir()
        same(tmp_path / name, folder, **({"header": False} if "csv" in name else {}))
    frame = pd.DataFrame({"u": ["b", "a", "b"], "v": [3, 3, 3]})
    same(frame, tmp_path)


@pytest.mark.parametrize(
    ("left", "right", "plain"),
    [
        (pa.array([3, 1, 3], pa.int16()), pa.array([7, 7, 7], pa.uint64()), True),
        (pa.array(["b", "a", "\u00e9"]), pa.array([1, 2, 3]), True),
        (pa.array(["b", "a", "b"]).dictionary_encode(), pa.array(["x", "y", "z"], pa.large_string()), True),
        (pa.array([1, None, 2]), pa.array([1, 2, 3]), False),
        (pa.array([1, -2, 2]), pa.array([1, 2, 3]), False),
        (pa.array([1, 2**63, 2], pa.uint64()), pa.array([1, 2, 3]), False),
        (pa.array(["a", "", "b"]), pa.array([1, 2, 3]), False),
        (pa.array([1.5, 2.5, 3.5]), pa.array([1, 2, 3]), False),
        (pa.array([b"a", b"b\xff", b"c"]).view(pa.string()), pa.array([1, 2, 3]), False),
    ],
)
@pytest.mark.parametrize("skip", [False, True])
def test_parquet(tmp_path, arrays, monkeypatch, left, right, plain, skip):
    monkeypatch.setattr(reading, "ROWS", 2)
    pq.write_table(pa.table({"w": [0.5] * 3, "u": left, "v": right}), tmp_path / "x.parquet", row_group_size=1)
    same(tmp_path / "x.parquet", tmp_path, left="u", right="v", skip_bad_lines=skip)
    assert (arrays.parsed > 0 and arrays.refused == 0) == plain or not plain


@pytest.mark.parametrize("label_type", ["int", "string"])
def test_parquet_labels_read_as_another_type(tmp_path: Path, arrays: HostArrays, label_type: str) -> None:
    pq.write_table(pa.table({"u": ["10", "9", "10"], "v": [1, 2, 2]}), tmp_path / "x.parquet")
    same(tmp_path / "x.parquet", tmp_path, label_type=label_type)


@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(any_text('0123 ,\t"-+.ax#%\u00e9\r'))
def test_device_and_host_read_any_text_alike(tmp_path_factory, case):
    file, content, options = case
    folder = tmp_path_factory.mktemp("any")
    (folder / file).write_bytes(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bicliques.pipeline.output.cudf_parquet.why_no_cudf", lambda: None)
        patch.setattr("bicliques.pipeline.ingest.gpu.cudf_arrays.CudfArrays", HostArrays)
        patch.setattr(reading, "PIECE_BYTES", 8)
        same(folder / file, folder, **options)


def test_a_gpu_reads_large_files_if_there_is_one(tmp_path, arrays, monkeypatch):
    source = tmp_path / "x.el"
    source.write_text("1 2\n")
    choose = gpu_ingest.choose_reader
    assert choose("cpu", 4) == (None, "cpu: asked for")
    assert choose("auto", 4)[1].startswith("cpu: the input is no file of 256 MiB")
    assert choose("auto", 0)[0] is None
    assert choose("gpu", 4) == (arrays, "gpu")
    monkeypatch.setattr(gpu_ingest, "WORTH_BYTES", 3)
    assert choose("auto", 4) == (arrays, "gpu")
    monkeypatch.setattr("bicliques.pipeline.output.cudf_parquet.why_no_cudf", lambda: "no CUDA device answers")
    assert choose("auto", 4) == (None, "cpu: no CUDA device answers")
    with pytest.raises(ResourceError, match=r"cannot be read on a GPU: no CUDA device answers; choose ingest_on='cpu'"):
        choose("gpu", 4)
    with pytest.raises(InputError, match="auto, cpu or gpu"):
        choose("tpu", 4)  # type: ignore[arg-type]
    assert ingesting.ingest(source, IngestOptions(), tmp_path).read_on == "cpu: no CUDA device answers"


def test_one_very_long_line_is_no_plain_text_and_ends_in_a_sentence(tmp_path, arrays, monkeypatch):
    monkeypatch.setattr(reading, "PIECE_BYTES", 60)
    (tmp_path / "x.el").write_bytes(b"1 2\n" + b"x" * 5000 + b"\n")
    assert "line 2" in same(tmp_path / "x.el", tmp_path)


def test_a_device_without_memory_for_the_edges_gives_a_sentence(tmp_path, arrays, monkeypatch):
    def none_left(*_: object) -> None:
        raise MemoryError("std::bad_alloc")

    (tmp_path / "x.el").write_bytes(b"1 2\n3 4\n")
    for method in ("unique", "write_edges"):
        folder = tmp_path / method
        folder.mkdir()
        with monkeypatch.context() as patch:
            patch.setattr(HostArrays, method, none_left)
            with pytest.raises(ResourceError, match=r"too little memory to read .*x.el.*choose ingest_on='cpu'"):
                ingest(tmp_path / "x.el", IngestOptions(), folder, "gpu")
        assert list(folder.iterdir()) == []


@pytest.mark.parametrize("method", ["unique", "write_edges"])
def test_without_memory_on_a_device_that_nobody_asked_for_the_host_reads_and_says_so(
    tmp_path: Path, arrays: HostArrays, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    """A bad line is counted once, although the text is read twice."""
    tried, released, kept = [], [], []

    def full(*_: object) -> None:
        tried.append(method)
        raise MemoryError("std::bad_alloc")

    (tmp_path / "x.el").write_bytes(b"1 2\n3 4\nbad\n5 6\n" * 3)
    options = IngestOptions(skip_bad_lines=True)
    host = outcome(tmp_path / "x.el", options, tmp_path / "host", "cpu")
    monkeypatch.setattr(gpu_ingest, "WORTH_BYTES", 3)
    monkeypatch.setattr(HostArrays, method, full)
    monkeypatch.setattr("bicliques.kernels.gpu.device.release_memory", lambda: released.append(1))
    assert outcome(tmp_path / "x.el", options, tmp_path / "auto", "auto") == host
    assert (len(tried), len(released)) == (1, 1)
    (tmp_path / "again").mkdir()
    summary = ingest(tmp_path / "x.el", options, tmp_path / "again", "auto", kept.append)
    assert summary.read_on == "cpu: the GPU had too little memory"
    assert kept == []  # no edges are on the device
    assert "the input is read again, on the CPU: the GPU has too little memory to read " in caplog.text


def test_a_block_that_cannot_be_hashed_is_no_digest(arrays, tmp_path, monkeypatch):
    class Full:
        def update(self, _: memoryview) -> None:
            raise MemoryError("no room for threads")

        def hexdigest(self) -> str:
            return "0" * 64

    monkeypatch.setattr(reading, "digest_on_all_cores", Full)
    (tmp_path / "x.el").write_text("1 2\n3 4\n")
    (tmp_path / "out").mkdir()
    with pytest.raises(MemoryError, match="no room for threads"):
        ingest(tmp_path / "x.el", IngestOptions(), tmp_path / "out", "gpu")


FOLDERS = {
    "plain": ({"a.csv": "u,v\n1,2\n3,2\n", "b.csv": "u,v\n1,2\n4,5\n"}, {}),
    "one of them not plain": ({"a.el": "1 2\n", "b.el": "# c\n3  4\n1 2\n"}, {}),
    "a bad line": ({"a.el": "1 2\n", "b.el": "3 4\nx 2\n"}, {}),
    "bad lines left out": ({"a.el": "1 2\ny 3\n", "b.el": "3 4\nx 2\n"}, {"skip_bad_lines": True}),
    "text": ({"a.tsv": "ann\tx y\n", "b.tsv": "7\t8\n"}, {"header": False}),
    "weights": ({"a.el": "1 2 3\n2 2 1\n", "b.el": "3 4 1\n3 2 9\n"}, {"min_weight": 2}),
    "transactions": ({"a.dat": "1 2\n\n", "b.dat": "2 3\n"}, {}),
    "other columns": ({"a.csv": "u,v\n1,2\n", "b.csv": "v,u\n1,2\n"}, {}),
}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_gives_the_same_on_a_device(tmp_path: Path, arrays: HostArrays, name: str) -> None:
    contents, options = FOLDERS[name]
    (tmp_path / "in").mkdir()
    for file, text_of_it in contents.items():
        (tmp_path / "in" / file).write_text(text_of_it)
    outcome = same(tmp_path / "in", tmp_path, **options)
    assert isinstance(outcome, str) == (name in ("a bad line", "other columns"))


def test_a_folder_of_parquet_gives_the_same_on_a_device(tmp_path: Path, arrays: HostArrays) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"u": pa.array([1, 2], pa.int32()), "v": ["x", "y"]}), tmp_path / "in/a.parquet")
    pq.write_table(pa.table({"u": pa.array([9], pa.int64()), "v": ["x"]}), tmp_path / "in/b.parquet")
    assert not isinstance(same(tmp_path / "in", tmp_path), str)
