"""Text that is parsed on threads: the same edges, counts and errors as on one thread, in the same order."""

import gzip
import itertools
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from blake3 import blake3
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bicliques.pipeline.ingest.readers import blocks, fimi, open_source, opening, text
from bicliques.pipeline.ingest.readers.text import TextStream, plain_integers
from bicliques.pipeline.process.in_order import in_order
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.examples import examples
from tests.support.text_files import SEPARATORS, files, outcome

TOGETHER = 120


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from(sorted(SEPARATORS)), st.sampled_from([1, 8, 40]), st.data())
def test_the_number_of_threads_does_not_matter(format: str, size: int, data: Any) -> None:
    """Blocks may have one line each. Then bad lines are in different blocks, and the first one must be named."""
    content = "".join(data.draw(files(SEPARATORS[format])) for _ in range(data.draw(st.integers(1, 4))))
    if format == "matrix-market":
        content = "%%MatrixMarket matrix coordinate real symmetric\n20 20 3\n" + content
    options = IngestOptions(
        format=format,
        header=data.draw(st.booleans()) if format in ("csv", "tsv") else None,
        label_type="auto" if format == "matrix-market" else data.draw(st.sampled_from(["auto", "string"])),
        skip_bad_lines=data.draw(st.booleans()),
    )
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path = Path(folder) / "x"
        path.write_bytes(content.encode())
        patch.setattr(blocks, "BLOCK_BYTES", size)
        patch.setattr(fimi, "BLOCK_BYTES", size)
        found = []
        for threads in (1, 2, 7):
            patch.setattr(text, "count_cores", lambda threads=threads: threads)
            patch.setattr(text, "LARGE_BYTES", 0 if threads == 7 else 1 << 40)
            found.append(outcome(path, options))
        assert found[0] == found[1] == found[2]


def test_a_bad_line_comes_before_damage_further_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream is read ahead of the parsers, and must not tell of its damage first."""
    lines = gzip.compress("".join(f"{k} {k}\n" for k in range(1, 5000)).replace("77 77\n", "77 x\n", 1).encode())
    (tmp_path / "x.el.gz").write_bytes(lines[:-9])
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 1 << 10)
    for threads in (1, 3, 100):
        monkeypatch.setattr(text, "count_cores", lambda threads=threads: threads)
        monkeypatch.setattr(TextStream, "most_threads", 100)
        with pytest.raises(InputError, match=r"line 77: the right label 'x'"):
            list(open_source(tmp_path / "x.el.gz", IngestOptions()).chunks())
        with pytest.raises(InputError, match="truncated"):
            list(open_source(tmp_path / "x.el.gz", IngestOptions(skip_bad_lines=True)).chunks())


@pytest.mark.parametrize("threads", [1, 2])
def test_the_digest_is_that_of_the_file_however_it_is_read(tmp_path, monkeypatch, threads):
    """Long reads are hashed on a thread, and short ones at once. They alternate here."""
    monkeypatch.setattr(text, "count_cores", lambda: threads)
    monkeypatch.setattr(opening, "_CHUNK", 1000)
    content = "".join(f"{k} {k}\n" for k in range(1, 5000)).encode()
    (tmp_path / "x.el").write_bytes(content)
    sizes = itertools.cycle([1500, 400, 1000, 999])
    read = opening.FileHash.read
    monkeypatch.setattr(opening.FileHash, "read", lambda self, size=-1: read(self, next(sizes)))
    stream = open_source(tmp_path / "x.el", IngestOptions())
    assert sum(map(len, stream.chunks())) == 4999
    assert stream.digest() == blake3(content).hexdigest()


@pytest.mark.parametrize(("labels", "is_encoded"), [(7, True), (400, True), (4000, False)])
def test_text_is_encoded_where_it_repeats(tmp_path: Path, labels: int, is_encoded: bool) -> None:
    lines = [f"u{k * 7919 % labels} v{k * 7919 % labels}\n" for k in range(4000)]
    (tmp_path / "x.el").write_text("".join(lines))
    (batch,) = open_source(tmp_path / "x.el", IngestOptions(label_type="string")).chunks()
    for name in ("left", "right"):
        assert pa.types.is_dictionary(batch[name].type) == is_encoded
        assert [f"u{label[1:]}" for label in batch[name].to_pylist()] == [line.split()[0] for line in lines]


def test_blocks_are_parsed_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every parser waits for another one."""
    (tmp_path / "x.el").write_text("".join(f"{k} {k}\n" for k in range(1, 401)))
    meeting, real = threading.Barrier(2), TextStream.batches_of

    def batches_of(self: TextStream, block: blocks.Block) -> Any:
        meeting.wait(TOGETHER)
        return real(self, block)

    monkeypatch.setattr(TextStream, "batches_of", batches_of)
    monkeypatch.setattr(text, "count_cores", lambda: 2)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 800)
    batches = list(open_source(tmp_path / "x.el", IngestOptions()).chunks())
    assert len(batches) == 4
    assert [k for batch in batches for k in batch["left"].to_pylist()] == list(range(1, 401))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_few_items_are_taken_before_their_turn(threads: int) -> None:
    """A block is memory, so blocks must not pile up before a slow consumer."""
    taken: list[int] = []
    results = in_order(lambda k: -k, (taken.append(k) or k for k in range(50)), threads)  # type: ignore[func-returns-value]
    for k, result in enumerate(results):
        assert result == -k
        assert len(taken) <= k + 1 + threads
    assert taken == list(range(50))


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_an_error_comes_in_its_turn_and_ends_the_work(threads: int) -> None:
    running = threading.active_count()

    def work(k: int) -> int:
        if k == 5:
            raise ValueError("the fifth")
        return k

    def items() -> Any:
        yield from range(7)
        raise OSError("the items")

    found = []
    with pytest.raises(ValueError, match="the fifth"):
        found.extend(in_order(work, items(), threads))
    assert found == [0, 1, 2, 3, 4]
    with pytest.raises(OSError, match="the items"):
        found.extend(in_order(abs, items(), threads))
    assert found == [0, 1, 2, 3, 4, *range(7)]
    assert threading.active_count() == running


FIELDS = st.one_of(
    st.integers(0, 30), st.integers(0, 10**16 - 1), st.sampled_from([0, 9, 10, 10**8 - 1, 10**8, 10**16 - 1])
)


@settings(max_examples=examples(300), deadline=None)
@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.tuples(*[FIELDS] * n), min_size=1, max_size=9)))
@example([(0, 12345678), (123456789, 1)])
def test_plain_integers_are_read_as_they_are(rows: list[tuple[int, ...]]) -> None:
    data = "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    columns = range(len(rows[0]))
    found = plain_integers(data, " ", columns, len(rows[0]))
    assert found is not None
    assert [column.tolist() for column in found] == [[row[k] for row in rows] for k in columns]


@pytest.mark.parametrize(
    "data",
    [
        *("", "1\n", "1 2\n3\n", "1 2 3\n", "1\n2 3 4\n", "1  2\n", " 1 2\n", "1 2 \n", "\n1 2\n", "1 2\n\n", "1\t2\n"),
        *("01 2\n", "1 00\n", "1 12345678901234567\n", "1 -2\n", "+1 2\n", "1 x\n", "1 0x7\n", "1 2.0\n", "1 2\n: 3\n"),
    ],
)
def test_other_text_is_not_plain(data: str) -> None:
    assert plain_integers(data.encode(), " ", (0, 1), 2) is None


@settings(max_examples=examples(300))
@given(st.text("0123456789 \n,", max_size=40), st.sampled_from([(0, 1), (1, 0), (2, 0), (1,)]))
def test_compiled_code_reads_plain_text_and_no_other(data: str, columns: tuple[int, ...]) -> None:
    rows = [line.split(" ") for line in data.split("\n")]
    digits = all(len(row) == 3 and all(map(str.isdecimal, row)) for row in rows)
    plain = digits and all(str(int(row[k])) == row[k] and len(row[k]) <= 16 for row in rows for k in columns)
    found = plain_integers(f"{data}\n".encode(), " ", columns, 3)
    assert (found is not None) == plain
    if found is not None:
        assert [column.tolist() for column in found] == [[int(row[k]) for row in rows] for k in columns]


@pytest.mark.parametrize("line", [b"\t3\n", b"3\t\n", b"\t\n"])
def test_an_empty_field_is_no_plain_integer(line: bytes) -> None:
    assert plain_integers(b"1\t2\n" + line, "\t", (0, 1), 2) is None
