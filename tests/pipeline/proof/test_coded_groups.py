"""Row groups are summed up from their pages as Arrow's arrays of members are, and a damaged page is noticed."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bicliques.kernels.compiled import parquet_pages, searching
from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.output.part_writer import PartWriter
from bicliques.pipeline.proof import coded_groups
from bicliques.pipeline.proof.coded_groups import CodedGroups
from bicliques.pipeline.proof.read_back import ProofTask, prove_part, read_part
from bicliques.pipeline.proof.summary import Summary
from bicliques.pipeline.run.labels import Tables
from bicliques.schemas.bicliques import Bicliques, row_hashes
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.hashes import hashes_of_ids
from tests.support.runs import load_ledger, mined_in_threads, prepared_run, random_edges


def random_rows(rng: np.random.Generator, lengths: np.ndarray, n_left: int, n_right: int) -> Bicliques:
    """Rows with at most so many members on the left, and up to three on the right."""
    left = [np.unique(rng.integers(0, n_left, n)).tolist() for n in lengths]
    right = [np.unique(rng.integers(0, n_right, rng.integers(1, 4))).tolist() for _ in lengths]
    return Bicliques.from_pairs(list(zip(left, right, strict=True)))


def written(folder: Path, rows: Bicliques, tables: Tables) -> Path:
    writer = PartWriter(folder, 0, tables)
    writer(rows)
    (part,) = writer.close()
    return folder / part.name


def labels_of(n: int, kind: str) -> pa.Array | None:
    if kind == "dense":
        return None
    numbers = np.arange(n) if kind == "range" else np.sort(np.random.default_rng(1).choice(9 * n, n, replace=False))
    return pa.array(numbers + 5, pa.int64() if kind == "wide" else pa.int32())


def summed(path: Path, tables: Tables, hashes: tuple[np.ndarray, np.ndarray]) -> tuple[Summary, list[np.ndarray]]:
    """By `CodedGroups`, which has to take all row groups."""
    metadata, total, found = pq.read_metadata(path), Summary(*map(len, hashes)), []
    with CodedGroups(path, metadata, tables, hashes) as coded:
        for group in range(metadata.num_row_groups):
            own = coded.read(group)
            assert own is not None
            found.append(total.add_coded(own, 0, group))
    return total, found


@pytest.mark.values
@pytest.mark.parametrize("kind", ["dense", "range", "gaps", "wide"])
@pytest.mark.parametrize("n_left", [1, 2, 200, 70_000])
@pytest.mark.parametrize("page_bytes", [1 << 20, 1 << 10])
def test_sums_are_those_of_arrays(tmp_path, monkeypatch, kind, n_left, page_bytes):
    """Codes of 0 to 17 bits; rows of one member, rows over several pages, and runs of one code."""
    monkeypatch.setitem(part_writer.LAYOUT, "data_page_size", page_bytes)
    monkeypatch.setattr(stretch, "GROUP_ROWS", 1500)
    rng = np.random.default_rng(n_left)
    lengths = np.concatenate([rng.integers(1, 40, 3000), [90_000, 1, 30_000], rng.integers(1, 3, 500)])
    rows = random_rows(rng, lengths, n_left, 9)
    rows = Bicliques.concat([rows, Bicliques.from_pairs([([0], [k % 9]) for k in range(700)])])
    tables = None if kind == "dense" else (labels_of(n_left, kind), labels_of(9, kind))
    hashes = hashes_of_ids(n_left, 9)
    path = written(tmp_path, rows, tables)
    total = Summary(*map(len, hashes))
    arrays = [total.add(batch, hashes, 0, group) for group, batch in enumerate(read_part(path, tables))]
    found, own = summed(path, tables, hashes)
    assert len(own) == len(arrays) > 1
    assert all(np.array_equal(*pair) for pair in zip(own, arrays, strict=True))
    assert np.array_equal(np.sort(np.concatenate(own)), np.sort(row_hashes(rows, hashes)))
    assert Summary.of([found.compact()], n_left, 9) == total


@pytest.mark.parametrize(
    "how",
    [
        {"compression": "snappy", "compression_level": None},
        {"write_page_checksum": False},
        {"use_dictionary": False},
        {"dictionary_pagesize_limit": 100},
        {"data_page_version": "2.0"},
    ],
)
def test_what_is_written_in_another_way_is_left_to_arrow(tmp_path, monkeypatch, how):
    rows = random_rows(np.random.default_rng(1), np.full(3000, 5), 200, 9)
    tables, hashes = (labels_of(200, "wide"), labels_of(9, "wide")), hashes_of_ids(200, 9)
    for name, value in how.items():
        monkeypatch.setitem(part_writer.LAYOUT, name, value)
    path = written(tmp_path, rows, tables)
    with CodedGroups(path, pq.read_metadata(path), tables, hashes) as coded:
        assert coded.read(0) is None


def test_text_is_left_to_arrow(tmp_path):
    rows = random_rows(np.random.default_rng(1), np.full(30, 5), 3, 9)
    tables = (pa.array(["a", "b", "c"]), labels_of(9, "wide"))
    path = written(tmp_path, rows, tables)
    with CodedGroups(path, pq.read_metadata(path), tables, hashes_of_ids(3, 9)) as coded:
        assert coded.read(0) is None


def test_a_label_that_the_input_does_not_have_is_named(tmp_path):
    rows = random_rows(np.random.default_rng(1), np.full(30, 5), 200, 9)
    path = written(tmp_path, rows, (labels_of(200, "range"), labels_of(9, "wide")))
    tables = (labels_of(20, "range"), labels_of(9, "wide"))
    with (
        CodedGroups(path, pq.read_metadata(path), tables, hashes_of_ids(20, 9)) as coded,
        pytest.raises(IncompleteError, match="is not the label of a vertex"),
    ):
        coded.read(0)
    dense = written(tmp_path, rows, None)
    with (
        CodedGroups(dense, pq.read_metadata(dense), None, hashes_of_ids(20, 9)) as coded,
        pytest.raises(ValueError, match="an id that no vertex has"),
    ):
        coded.read(0)


@pytest.mark.parametrize("turn", [0, *(pytest.param(k, marks=pytest.mark.exhaustive) for k in (1, 2, 3))])
def test_every_changed_bit_is_noticed_or_changes_nothing(tmp_path, monkeypatch, turn):
    """Every 149th bit of a part, in turns. Most that do not matter are statistics of pages, which nobody reads."""
    monkeypatch.setattr(stretch, "GROUP_ROWS", 60)
    folder = prepared_run(tmp_path, random_edges(18, 15, 0.4, 2), engine="cpu")
    mined_in_threads(folder)
    part = max(load_ledger(folder.path).parts, key=lambda part: part.rows)
    path, task = folder.bicliques / part.name, ProofTask(str(folder.path), folder.run_id(), part)
    content = path.read_bytes()
    proof, summary = prove_part(task)
    noticed = 0
    bits = range(5 + 37 * turn, 8 * len(content), 149)
    for bit in bits:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            found, of_rows = prove_part(task)
        except IncompleteError:
            noticed += 1
        else:
            assert (found.rows, found.fingerprint) == (proof.rows, proof.fingerprint), bit
            assert of_rows == summary, bit
            assert all(map(np.array_equal, of_rows.ids or (), summary.ids or ())), bit
    assert noticed > 0.7 * len(bits)


def test_a_row_without_members_is_not_proven(tmp_path, monkeypatch):
    folder = prepared_run(tmp_path, random_edges(16, 14, 0.4, 2), engine="cpu")
    mined_in_threads(folder)
    part = max(load_ledger(folder.path).parts, key=lambda part: part.rows)
    path = folder.bicliques / part.name
    table = pq.read_table(path)
    lists = table["left"].to_pylist()
    lists[3:5] = [[], [*lists[3], *lists[4]]]
    changed = table.set_column(1, table.schema.field(1), pa.array(lists, table.schema.field(1).type))
    pq.write_table(changed, path, **part_writer.LAYOUT)
    for read, says in (
        (CodedGroups.read, "a row has no members"),
        (lambda *_: None, "is not the length of column left"),
    ):
        monkeypatch.setattr(CodedGroups, "read", read)
        with pytest.raises(IncompleteError, match=says):
            prove_part(ProofTask(str(folder.path), folder.run_id(), part))


@pytest.fixture
def slow(monkeypatch):
    """The functions of pages as Python, which notices an index beyond the end of an array."""

    class Checked(np.ndarray):
        def __getitem__(self, index):
            assert not isinstance(index, (int, np.integer)) or 0 <= index < len(self), index
            return super().__getitem__(index)

        def __setitem__(self, index, value):
            assert not isinstance(index, (int, np.integer)) or 0 <= index < len(self), index
            super().__setitem__(index, value)

    for name in ("_varint", "_bits_at", "mixed"):
        monkeypatch.setattr(parquet_pages, name, getattr(parquet_pages, name).function)
    monkeypatch.setattr(searching, "splitmix64", searching.splitmix64.function)
    monkeypatch.setattr(parquet_pages, "checked", lambda array: array.view(Checked), raising=False)


@pytest.mark.usefixtures("slow")
def test_nothing_outside_a_buffer_is_read_or_written():
    rng, checked = np.random.default_rng(0), parquet_pages.checked
    ended = {"header": 0, "starts": 0, "ones": 0, "codes": 0}
    for _ in range(3000):
        raw = rng.integers(0, 256, rng.integers(1, 30)).astype(np.uint8)
        raw[rng.random(len(raw)) < 0.5] &= 0x1D  # numbers of one byte, so that something comes behind them
        buffer, values, rows = checked(raw), int(rng.integers(1, 60)), int(rng.integers(1, 20))
        at = int(rng.integers(0, len(raw)))
        header = checked(np.empty(2 * parquet_pages.HEADER_FIELDS, np.int64))
        ended["header"] += parquet_pages.page_header.function(buffer, at, header) >= 0
        starts = checked(np.full(rows + 1, 1 << 40))
        found = parquet_pages.row_starts.function(buffer, at, len(raw), values, 0, starts, 0)
        ended["starts"] += found >= 0
        assert found <= rows
        ended["ones"] += bool(parquet_pages.all_ones.function(buffer, at, len(raw), values))
        begins = np.sort(rng.choice(80, rows, replace=False))
        if rng.random() < 0.5:  # rows of one member, which ascend whatever it is
            begins, values = np.arange(rows), min(values, rows)
        starts = checked(np.concatenate([begins, [1 << 40]]))
        hashes, counts = checked(np.arange(5, dtype=np.uint64)), checked(np.zeros(5, np.int64))
        ids, previous = checked(np.arange(5, dtype=np.int32)), checked(np.zeros(1, np.int64))
        sums, width = checked(np.zeros(rows, np.uint64)), int(rng.integers(0, 33))
        with np.errstate(over="ignore"):
            words = checked(raw[: len(raw) & ~7].view(np.uint64))
            codes = parquet_pages.sum_codes.function(
                (words, buffer), (at, width, values, 0), (starts, -1), (ids, hashes), previous, counts, sums
            )
        ended["codes"] += codes >= 0
    assert min(ended.values()) > 5, ended


def test_headers_are_those_that_arrow_writes():
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(1000) % 7}), sink, compression="zstd", write_page_checksum=True)
    content = np.frombuffer(sink.getvalue(), np.uint8)
    column = pq.ParquetFile(sink).metadata.row_group(0).column(0)
    header = np.empty(2 * parquet_pages.HEADER_FIELDS, np.int64)
    begin = parquet_pages.page_header(content, column.dictionary_page_offset, header)
    assert header[0] == 2
    assert header[4] == 7
    assert begin + header[2] == column.data_page_offset
    begin = parquet_pages.page_header(content, column.data_page_offset, header)
    assert header[0] == 0
    assert header[4] == 1000
    assert begin + header[2] == column.dictionary_page_offset + column.total_compressed_size
    odd = np.array([0x15, 0, 0x45, 14, 0], np.uint8)  # a number in the place of the facts of a page
    assert parquet_pages.page_header(odd, 0, header) == len(odd)
    assert header[:5].tolist() == [0, -1, -1, -1, -1]


def pages_of(codes: list[int], length: int, starts: list[int], ids: list[int]) -> tuple[int, list[int], list[int]]:
    """The sums of pages of so many codes, each a run of one. The hash of vertex v is 10 to the power v."""
    words, first, row = np.empty(0, np.uint64), 0, -1
    known, begins = np.array(ids, np.int32), np.array([*starts, 1 << 40])
    hashes, counts = np.array([10**v for v in ids], np.uint64), np.zeros(len(ids), np.int64)
    sums, previous = np.zeros(len(starts), np.uint64), np.zeros(1, np.int64)
    for first in range(0, len(codes), length):
        own = codes[first : first + length]
        page = np.array([byte for code in own for byte in (1 << 1, code)], np.uint8)
        row = parquet_pages.sum_codes(
            (words, page), (0, 3, len(own), first), (begins, row), (known, hashes), previous, counts, sums
        )
        if row < 0:
            break
    return row, sums.tolist(), counts.tolist()


@pytest.mark.parametrize("length", [1, 2, 3, 20])
def test_a_row_may_end_several_pages_later(length):
    """Vertices ascend within a row, also where it goes on in another page, whatever their codes are."""
    ids, row = [3, 0, 2, 1, 4], [1, 3, 2, 0, 4]
    assert pages_of([*row, 0, *row], length, [0, 5, 6], ids) == (2, [11111, 1000, 11111], [3, 2, 2, 2, 2])
    for k in range(4):
        wrong = row.copy()
        wrong[k], wrong[k + 1] = wrong[k + 1], wrong[k]
        assert pages_of([*row, 0, *wrong], length, [0, 5, 6], ids)[0] == parquet_pages.UNSORTED - 2
        twice = [*row[:k], row[k], *row[k:]]
        assert pages_of([*twice, 0], length, [0, 6], ids)[0] == parquet_pages.UNSORTED


def test_a_run_of_one_code_in_a_row_is_no_set():
    known, counts, previous = np.zeros(1, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64)
    page, words, one = np.array([3 << 1, 0], np.uint8), np.empty(0, np.uint64), np.ones(1, np.uint64)
    for starts, expected in (([0, 1, 2], 2), ([0, 1, 9], parquet_pages.UNSORTED - 1)):
        rows, sums = (np.array([*starts, 99]), -1), np.zeros(3, np.uint64)
        found = parquet_pages.sum_codes((words, page), (0, 1, 3, 0), rows, (known, one), previous, counts, sums)
        assert found == expected


def test_a_row_group_of_other_rows_than_its_file_says_is_refused(tmp_path):
    rows = Bicliques.from_pairs([([k % 16, *range(16, 20)], [0]) for k in range(30)])
    path = written(tmp_path, rows, None)
    column, known = pq.read_metadata(path).row_group(0).column(1), hashes_of_ids(20, 9)
    content = path.read_bytes()[column.dictionary_page_offset :][: column.total_compressed_size]
    side = coded_groups._Side("left", 1, None, known[0])
    read = side.sum(content, 150, 30, 0)
    assert np.diff(read.starts).tolist() == [5] * 30
    for values, n in ((150, 31), (150, 29), (149, 30)):
        with pytest.raises(ValueError, match=r"a row group holds|the levels of a page are damaged"):
            side.sum(content, values, n, 0)
