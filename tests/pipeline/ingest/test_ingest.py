"""The results of ingest, which are three tables and a summary, and the memory that it needs."""

import bz2
import gzip
import itertools
import json
import lzma
import sys
import tracemalloc
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from blake3 import blake3

import bicliques as bq
from bicliques.pipeline.ingest.step import ingest
from bicliques.pipeline.ingest.table import normalise
from bicliques.pipeline.run.names import EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE
from bicliques.schemas.edges import EDGES, label_schema
from bicliques.schemas.options import IngestOptions
from tests.support.children import MEMORY, in_child
from tests.support.inputs import read_edges, write
from tests.support.runs import random_edges, write_edges


@pytest.fixture
def run(tmp_path):
    """Ingest a source (or text under a file name) into a fresh folder: the summary and the three tables."""

    def ingest_into_fresh_folder(source, content: str | None = None, **options):
        if content is not None:
            source = tmp_path / source
            source.write_text(content)
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        summary = ingest(source, IngestOptions(**options), folder)
        return summary, [pq.read_table(folder / name) for name in (EDGES_FILE, LEFT_LABELS_FILE, RIGHT_LABELS_FILE)]

    return ingest_into_fresh_folder


def test_files_and_schemas(run, tmp_path):
    _, (edges, left, right) = run("x.csv", "a,b\n10,x\n9,y\n10,x\n9,x\n")
    assert edges.schema.equals(EDGES)
    assert left.schema.equals(label_schema(pa.int64()))
    assert right.schema.equals(label_schema(pa.string()))
    assert edges.to_pydict() == {"left": [0, 0, 1], "right": [0, 1, 0]}
    assert (left["label"].to_pylist(), right["label"].to_pylist()) == ([9, 10], ["x", "y"])
    folder = max(tmp_path.glob("run*"))
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "edges/edges.parquet",
        "labels/left.parquet",
        "labels/right.parquet",
    }
    codecs = {pq.ParquetFile(path).metadata.row_group(0).column(0).compression for path in folder.rglob("*.parquet")}
    assert codecs == {"ZSTD"}


def test_the_summary(run, tmp_path):
    summary, _ = run("x.csv", "a,b\n10,x\n9,y\n10,x\nz,x\n", skip_bad_lines=True)
    told = json.loads(json.dumps(asdict(summary)))
    assert told.pop("seconds") >= told.pop("tables_seconds") > 0
    path = tmp_path / "x.csv"
    assert told == {
        "n_left": 2,
        "n_right": 2,
        "n_edges": 2,
        "duplicates": 1,
        "skipped_lines": 1,
        "pieces": 1,
        "light_rows": 0,
        "format": "csv",
        "source": str(path),
        "digest": blake3(path.read_bytes()).hexdigest(),
        "left_label": "int64",
        "right_label": "string",
        "left_name": "a",
        "right_name": "b",
        "left_variants": 0,
        "right_variants": 0,
        "notes": [],
        "undirected": False,
        "reading": json.loads(json.dumps(asdict(replace(summary.reading, columns=("a", "b"), doubts=())))),
        "read_on": "cpu: the input is no file of 256 MiB or more, for which a GPU pays",
    }


def test_integers_are_as_wide_as_their_column(run):
    columns = [np.array([9, 2**31 - 1, 9]), np.array([3, 3, 2**31 - 1])]
    digests = []
    for left_type, right_type in itertools.product(["int32", "int64"], repeat=2):
        frame = pd.DataFrame({"u": columns[0].astype(left_type), "v": columns[1].astype(right_type)})
        summary, (edges, left, right) = run(frame)
        assert left.schema.equals(label_schema(pa.type_for_alias(left_type)))
        assert right.schema.equals(label_schema(pa.type_for_alias(right_type)))
        assert (summary.left_label, summary.right_label) == (left_type, right_type)
        assert (left["label"].to_pylist(), right["label"].to_pylist()) == ([9, 2**31 - 1], [3, 2**31 - 1])
        assert edges.to_pydict() == {"left": [0, 0, 1], "right": [0, 1, 0]}
        digests.append(summary.digest)
    assert len(set(digests)) == 1, "the same graph, however wide its labels are"


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst", "parquet", "arrow"])
def test_the_digest_is_of_the_stored_bytes(run, suffix):
    name = f"tiny.csv.{suffix}" if suffix in ("gz", "bz2", "xz", "zst") else f"tiny.{suffix}"
    path = Path(__file__).parents[2] / "data" / "formats" / name
    assert run(path)[0].digest == blake3(path.read_bytes()).hexdigest()


def test_the_digest_is_of_all_stored_bytes_even_those_behind_the_stream(run, tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n") + bytes(3 << 20))
    assert run(path)[0].digest == blake3(path.read_bytes()).hexdigest()


COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda t: pa.compress(t, "zstd", True),
}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_streams_one_after_the_other_are_one_file(run, tmp_path, suffix):
    streams = [COMPRESS[suffix](f"{k},{k + 1}\n".encode() * 2000) for k in range(3)]
    path = tmp_path / f"x.csv.{suffix}"
    path.write_bytes(b"".join(streams) + (bytes(8) if suffix in ("gz", "xz") else b""))
    assert run(path)[0].n_edges == 3


def test_the_digest_of_an_object_is_of_its_edges(run):
    frame = pd.DataFrame({"l": ["a", "b", "b"], "r": [1, 2, 1]})
    first = run(frame)[0].digest
    assert len(first) == 64
    assert run(pl.from_pandas(frame.iloc[[2, 0, 1, 1]]))[0].digest == first
    for other in (frame.replace("a", "c"), frame.replace(2, 3), frame.iloc[:2], frame.assign(r=frame.r.astype(str))):
        assert run(other)[0].digest != first
    # "ab" + "c" is not "a" + "bc"
    split = [run(pd.DataFrame({"l": labels, "r": [1, 2]}))[0].digest for labels in (["ab", "c"], ["a", "bc"])]
    assert split[0] != split[1]


def test_labels_sort_by_value_or_by_utf8_bytes(run):
    integers = [10, 9, 2**63 - 1, 0, 100]
    texts = ["b", "B", "a b", "\U0001f600", "\uffee", "z", "\u00e9", "10", "9", "aa", "a"]
    _, (_, left, right) = run(pd.DataFrame({"l": (integers * 3)[:11], "r": texts}))
    assert left["label"].to_pylist() == sorted(integers)
    assert right["label"].to_pylist() == sorted(texts, key=lambda text: text.encode())


def test_the_object_is_not_modified(run):
    frame = pd.DataFrame({"l": [3, 1, 3], "r": ["b", "a", "b"]}, index=[5, 6, 7])
    before = frame.copy(deep=True)
    run(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_a_second_run_replaces_the_files(tmp_path):
    for labels in ([1, 2], [3]):
        ingest(pd.DataFrame({"l": labels, "r": labels}), IngestOptions(), tmp_path)
        assert pq.read_table(tmp_path / LEFT_LABELS_FILE)["label"].to_pylist() == labels
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges", "labels"]


def test_files_of_edges_that_a_killed_writer_has_left_are_no_edges(tmp_path):
    (tmp_path / "out" / "edges").mkdir(parents=True)
    for name in ("edges.parquet", "edges-1.parquet", "edges-12.parquet"):
        pq.write_table(pa.table({"left": [0], "right": [0]}, EDGES), tmp_path / "out" / "edges" / name)
    ingest(write(tmp_path / "x.csv", "a,b\n10,x\n9,y\n"), IngestOptions(), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out" / "edges").iterdir()] == ["edges.parquet"]
    assert len(pq.read_table(tmp_path / "out" / EDGES_FILE)) == 2


def test_many_edges_are_in_several_files_and_mean_the_same(tmp_path, monkeypatch):
    def told(results, name):
        results.export("adj", tmp_path / f"{name}.adj")
        return (tmp_path / f"{name}.adj").read_text(), results.top(5, by="surprise"), results.manifest.fingerprint

    pairs = random_edges(60, 40, 0.3, 3)
    source = write_edges(tmp_path / "g.parquet", pairs, strings=True)
    usual = bq.mine(source, tmp_path / "usual", progress=False, report=False, workers=0)
    monkeypatch.setattr(normalise, "SLICE", 60)
    monkeypatch.setattr(normalise, "FILE_ROWS", 60)
    results = bq.mine(source, tmp_path / "out", progress=False, report=False, workers=0)
    files = [tmp_path / "out" / "edges" / f"edges{(k and f'-{k}') or ''}.parquet" for k in range(-(-len(pairs) // 60))]
    assert sorted((tmp_path / "out" / "edges").iterdir()) == sorted(files)
    assert len(files) > 10, "so that their numbers do not sort as text"
    together = pa.concat_tables([pq.read_table(file) for file in files])
    assert together.equals(pq.read_table(tmp_path / "usual" / EDGES_FILE))
    for each in (results, bq.mine(tmp_path / "out", tmp_path / "again", progress=False, report=False, workers=0)):
        assert told(each, "each") == told(usual, "usual")
        assert bq.verify(each.path).fingerprint == usual.manifest.fingerprint
    files[3].write_bytes(b"")
    assert bq.resume(tmp_path / "out", progress=False, report=False).manifest.fingerprint == usual.manifest.fingerprint
    monkeypatch.undo()
    bq.mine(source, tmp_path / "out", progress=False, report=False, workers=0, overwrite=True)
    assert list((tmp_path / "out" / "edges").iterdir()) == files[:1]


@pytest.mark.parametrize("size", [1, 5, 64])
@pytest.mark.parametrize("kind", ["integers", "text"])
def test_many_small_slices_give_the_same_tables(run, monkeypatch, size, kind):
    """Labels are numbered in several rounds, edges grow and are written in pieces."""
    rng = np.random.default_rng(7)
    left, right = rng.integers(0, 60, 500), np.sort(rng.integers(0, 90, 500))
    table = pa.table({"l": left if kind == "integers" else left.astype(str), "r": right})
    pieces = pa.Table.from_batches(table.to_batches(max_chunksize=37))
    want = run(table)
    monkeypatch.setattr(normalise, "SLICE", size)
    got = run(pieces)
    assert got[1] == want[1]
    assert (got[0].duplicates, got[0].digest) == (want[0].duplicates, want[0].digest)


def test_no_library_is_imported_for_a_file_or_an_unknown_object(tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n")
    code = """
import sys, pathlib
from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
ingest("x.csv", IngestOptions(), pathlib.Path("."))
try:
    ingest(object(), IngestOptions(), pathlib.Path("."))
except InputError as error:
    assert "builtins.object is not a graph" in str(error)
print([name for name in ("polars", "scipy", "networkx", "numba", "dask") if name in sys.modules])
"""
    assert in_child(code, tmp_path) == "[]"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.exhaustive
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_memory_does_not_grow_with_the_text(tmp_path, suffix):
    """160 MB of text with 0.8 million edges need 6 MiB for edges, 20 MiB to load machine code, and a few blocks."""
    text = "".join(f"{3 * k},{k % 97},{'abcdefghi ' * 20}\n" for k in range(1000)).encode()
    (tmp_path / "small.csv").write_bytes(text)
    # A gzip file may have many members.
    (tmp_path / f"big.{suffix}").write_bytes((gzip.compress(text, 1) if suffix == "csv.gz" else text) * 800)
    in_child(MEMORY, tmp_path, f"big.{suffix}")  # compiles what is not compiled yet, which takes more memory
    duplicates, mebibytes = in_child(MEMORY, tmp_path, f"big.{suffix}").split()
    assert int(duplicates) == 799_000
    assert int(mebibytes) < 100


def test_an_edge_needs_eight_bytes():
    """There is an eighth more while the buffer grows, and a few blocks, but no labels and no copy for sorting."""
    labels = pa.array(np.arange(1 << 18) % 1000)
    batch, n_batches = pa.record_batch({"left": labels, "right": labels}), 40
    table = normalise.EdgeTable((pa.int64(), pa.int64()))
    tracemalloc.start()
    for _ in range(n_batches):
        table.add(batch)
    _, _, duplicates = table.finish()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert duplicates == n_batches * len(labels) - 1000
    assert peak < 9 * n_batches * len(labels) + 24 * normalise.SLICE


LINES = [("x.adj", "1 1 1 1 1\n"), ("x.adj", "1\n1 1 1 1\n"), ("x.dat", "0 0 0 0 0\n")]


@pytest.mark.parametrize(("file", "content"), LINES)
@pytest.mark.parametrize("folders", [False, True])
def test_numbers_of_lines_are_no_column_of_a_table(tmp_path: Path, file: str, content: str, folders: bool) -> None:
    """An edge may be there several times, and the lines have numbers 0 and 1 whatever is in them."""
    (tmp_path / "in").mkdir()
    source = write(tmp_path / "in" / file, content)
    found, summary = read_edges(tmp_path / "in" if folders else source, tmp_path / "out")
    first = int(file == "x.dat")
    wanted = [(k, int(v)) for k, line in enumerate(content.splitlines(), first) for v in line.split()]
    assert (found, summary.duplicates) == (sorted(set(wanted)), len(wanted) - len(set(wanted)))
