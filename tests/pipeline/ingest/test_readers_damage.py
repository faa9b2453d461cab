"""Damaged tables, in files and in memory, give a sentence or the right rows, and never end the process."""

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bicliques.pipeline.ingest.readers import open_source
from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.runs import ROOT, environment

ROWS = 60
WORDS = pa.array([f"us\u00e9r {k % 7}" for k in range(ROWS)])
HOLES = pc.if_else(pa.array([k % 5 == 0 for k in range(ROWS)]), pa.scalar(None, pa.string()), WORDS)
LAYOUTS = {
    "string": WORDS,
    "large_string": WORDS.cast(pa.large_string()),
    "string_view": pa.array([f"a user whose name is long {k % 7}" for k in range(ROWS)]).cast(pa.string_view()),
    "dictionary": WORDS.dictionary_encode(),
    "nulls": HOLES,
    "nulls behind a dictionary": HOLES.dictionary_encode(),
}


def write_arrow(path: Path, column: pa.Array, stream: bool, compression: str | None = None) -> None:
    """Two batches, and a column that is not read."""
    table = pa.table({"a": column, "b": range(ROWS), "c": [[k] for k in range(ROWS)]})
    new, how = pa.ipc.new_stream if stream else pa.ipc.new_file, pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, new(file, table.schema, options=how) as writer:
        writer.write_table(table, max_chunksize=ROWS // 2)


def write_deltas(path: Path) -> None:
    """A stream whose second batch adds to the dictionary of the first."""
    words = WORDS.unique()
    schema, how = pa.schema({"a": WORDS.dictionary_encode().type, "b": pa.int64()}), pa.ipc.IpcWriteOptions
    new = pa.ipc.new_stream
    with pa.OSFile(str(path), "wb") as file, new(file, schema, options=how(emit_dictionary_deltas=True)) as writer:
        for n in (4, 7):
            column = pa.DictionaryArray.from_arrays(pa.array([k % n for k in range(20)], pa.int32()), words[:n])
            writer.write_batch(pa.record_batch([column, pa.array(range(20))], names=["a", "b"]))


def rows_in(path: Path) -> list[dict]:
    """Read the rows, and check that every label is right."""
    rows = []
    for batch in open_source(path, IngestOptions(skip_bad_lines=True)).chunks():
        batch.validate(full=True)
        rows += batch.to_pylist()
    assert all(isinstance(row["left"], str) and row["left"] and row["right"] >= 0 for row in rows)
    return rows


def sweep(folder: str, flips: int) -> None:
    """Change one byte or four, read, and put them back. This runs in its own process, because it used to end it."""
    rng = random.Random(20)
    for file in sorted(Path(folder).iterdir()):
        good = file.read_bytes()
        expected = len(rows_in(file))
        for k in range(flips):
            changed = bytearray(good)
            for place in rng.sample(range(len(good)), rng.choice([1, 1, 4])):
                changed[place] = rng.choice([changed[place] ^ 1 << rng.randrange(8), 0xFF, rng.randrange(256)])
            sys.stdout.write(f"{file.name}, change {k}\n")
            sys.stdout.flush()
            file.write_bytes(changed)
            try:
                read, sentence = len(rows_in(file)), None
            except InputError as error:
                read, sentence = 0, str(error)
            assert read <= expected
            assert sentence is None or (str(file) in sentence and "\n" not in sentence)
        file.write_bytes(good)


def test_a_file_with_changed_bytes_gives_a_sentence_or_is_read(tmp_path: Path) -> None:
    for name, column in LAYOUTS.items():
        write_arrow(tmp_path / f"{name}.arrow", column, stream=len(name) % 2 == 0)
    write_arrow(tmp_path / "compressed.arrow", WORDS.dictionary_encode(), stream=False, compression="zstd")
    write_deltas(tmp_path / "deltas.arrow")
    table = pa.table({"a": WORDS, "b": range(ROWS)})
    pq.write_table(table, tmp_path / "dictionary.parquet", row_group_size=ROWS // 2, data_page_version="2.0")
    pq.write_table(table, tmp_path / "plain.parquet", row_group_size=ROWS // 2, use_dictionary=False)
    assert len(in_child(f"sweep({str(tmp_path)!r}, 100)")) == 100 * (len(LAYOUTS) + 4)


def in_child(call: str) -> list[str]:
    """The lines that a call of this module prints in a process of its own, which must end normally."""
    code = f"from tests.pipeline.ingest.test_readers_damage import *; {call}"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, f"{lines[-1:]}: {ended.returncode}, {ended.stderr[-2000:]}"
    return lines


def binary(values: list[bytes], kind: pa.DataType) -> pa.Array:
    """Bytes that a column claims to be text."""
    bytes_of = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    return pa.array(values, bytes_of[kind]).view(kind)


BYTES = [b"ann", "b\u00f6b".encode(), b"c\xff", b"ann"]
NOT_UTF8 = {str(kind): binary(BYTES, kind) for kind in (pa.string(), pa.large_string(), pa.string_view())}
NOT_UTF8["dictionary"] = pa.DictionaryArray.from_arrays(
    pa.array([0, 1, 2, 0], pa.int32()), binary(BYTES[:3], pa.string())
)


@pytest.mark.parametrize("layout", NOT_UTF8)
@pytest.mark.parametrize("store", ["parquet", "arrow", "memory"])
def test_text_that_is_not_utf8_is_a_bad_row(tmp_path: Path, layout: str, store: str) -> None:
    table = pa.table({"a": NOT_UTF8[layout], "b": [1, 2, 3, 4]})
    source: object = table
    if store == "parquet":
        pq.write_table(table, source := tmp_path / "x.parquet")
    elif store == "arrow":
        source = tmp_path / "x.arrow"
        with pa.OSFile(str(source), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    (tmp_path / "out").mkdir()
    sentence = r"row 3: byte 2 of the left label 'c\\xff' is not UTF-8; write it as UTF-8, or leave such lines out"
    with pytest.raises(InputError, match=sentence):
        ingest(source, IngestOptions(), tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    summary = ingest(source, IngestOptions(skip_bad_lines=True), tmp_path / "out")
    assert (summary.n_left, summary.n_right, summary.skipped_lines) == (2, 3, 1)


def damaged(kind: pa.DataType, buffers: list[bytes | None]) -> pa.Array:
    """Two values. pyarrow checks only the ends here, and they are right."""
    return pa.Array.from_buffers(kind, 2, [None if b is None else pa.py_buffer(b) for b in buffers])


def little(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little", signed=True) for number in numbers)


def index_of(number: int, values: pa.Array) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, number]), values, safe=False)


def damaged_columns() -> dict[str, pa.Array]:
    far = damaged(pa.string(), [None, little(0, 2**30, 2), b"ab"])
    return {
        "offset": far,
        "negative offset": damaged(pa.string(), [None, little(0, -(2**30), 2), b"ab"]),
        "view": damaged(pa.string_view(), [None, little(40, 0, 0, 0, 40, 0, 0, 2**20), b"a" * 50]),
        "index": index_of(2**20, pa.array(["a", "b"])),
        "negative index": index_of(-9, pa.array(["a", "b"])),
        "offset in a dictionary": index_of(1, far),
    }


def look_at_damaged_columns() -> None:
    """This runs in its own process, because it used to end it."""
    for name, column in damaged_columns().items():
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        with pytest.raises(InputError, match=r"^pyarrow\.Table cannot be read \(.*\); make it anew$"):
            list(open_source(pa.table({"a": column, "b": [1, 2]}), IngestOptions()).chunks())


def test_a_table_in_memory_with_bad_offsets_gives_a_sentence() -> None:
    assert in_child("look_at_damaged_columns()") == list(damaged_columns())


def test_a_column_name_that_is_not_utf8_gives_a_sentence(tmp_path: Path) -> None:
    write_arrow(tmp_path / "x.arrow", WORDS, stream=True)
    content = (tmp_path / "x.arrow").read_bytes()
    (tmp_path / "x.arrow").write_bytes(content.replace(b"\x01\x00\x00\x00a\x00", b"\x01\x00\x00\x00\xff\x00", 1))
    with pytest.raises(InputError, match="is not a whole arrow file"):
        open_source(tmp_path / "x.arrow", IngestOptions())
