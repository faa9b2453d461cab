"""Parts have the rows that were found, in bounded row groups, and are never half written."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bicliques as bq
from bicliques.pipeline.output import part_writer, stretch, writers
from bicliques.pipeline.output.part_writer import PartWriter, to_batch, writer_bytes
from bicliques.pipeline.output.writers import ParallelWriter
from bicliques.pipeline.proof.read_back import read_part
from bicliques.schemas.bicliques import Bicliques, Provenance
from bicliques.schemas.errors import IncompleteError, ResourceError
from tests.support.batches import LABELS, some
from tests.support.examples import examples
from tests.support.runs import QUIET, random_edges, write_edges


def test_labels_take_the_place_of_ids():
    batch = to_batch(Bicliques.from_pairs([([0, 2], [1]), ([3], [2, 0])], [5, 6], np.array([7, -8])), LABELS)
    assert batch.to_pylist() == [
        {"id": 7, "left": [10, 30], "right": ["b"], "n_left": 2, "n_right": 1, "root": 5},
        {"id": -8, "left": [40], "right": ["a", "c"], "n_left": 1, "n_right": 2, "root": 6},
    ]


@pytest.mark.parametrize("tables", [None, LABELS], ids=["dense", "labels"])
def test_a_batch_does_not_refer_to_the_engines_arrays(tables):
    found = some(50)
    batch = to_batch(found, tables)
    before = batch.to_pylist()
    for array in found.arrays.values():
        array.fill(0)
    assert batch.to_pylist() == before


def by_size(pairs: list[Any]) -> list[Any]:
    """The largest left side first, and among equal ones the largest right side, as they came."""
    return sorted(pairs, key=lambda pair: (-len(pair[0]), -len(pair[1])))


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    sizes=st.lists(st.integers(0, 60), max_size=8),
    members=st.integers(1, 200),
    rows=st.integers(1, 60),
    part=st.integers(1, 8000),
    dense=st.booleans(),
)
def test_all_rows_are_written(tmp_path_factory, sizes, members, rows, part, dense):
    folder, tables = tmp_path_factory.mktemp("parts"), None if dense else LABELS
    batches = [some(n, seed) for seed, n in enumerate(sizes)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretch, "GROUP_MEMBERS", members)
        patch.setattr(stretch, "GROUP_ROWS", rows)
        patch.setattr(part_writer, "PART_BYTES", part)
        out = PartWriter(folder, 3, tables)
        for batch in batches:
            out(batch)
        parts = out.close()
    assert {path.name for path in folder.iterdir()} == {p.name for p in parts}
    assert all((folder / p.name).stat().st_size == p.bytes for p in parts)
    assert all(p.name.startswith("part-000003-") for p in parts)
    back = [pair for p in parts for batch in read_part(folder / p.name, tables) for pair in batch.to_pairs()]
    assert back == by_size([pair for batch in batches for pair in batch.to_pairs()])
    assert sum(p.rows for p in parts) == sum(sizes)
    for p in parts:
        file = pq.ParquetFile(folder / p.name)
        for group in range(file.num_row_groups):
            table = file.read_row_group(group)
            held = sum(table["n_left"].to_pylist()) + sum(table["n_right"].to_pylist())
            assert held < 2 * members + 14
            assert len(table) <= rows
        file.close()


def test_one_biclique_larger_than_a_row_group(tmp_path, monkeypatch):
    monkeypatch.setattr(stretch, "GROUP_MEMBERS", 3)
    out = PartWriter(tmp_path, 0, LABELS)
    out(Bicliques.from_pairs([([0, 1, 2, 3], [0, 1, 2]), ([0], [0])], [0, 1]))
    (part,) = out.close()
    assert pq.read_table(tmp_path / part.name)["n_left"].to_pylist() == [4, 1]


def test_no_rows_make_no_part(tmp_path):
    assert PartWriter(tmp_path, 0, LABELS).close() == []
    assert list(tmp_path.iterdir()) == []


def test_discard_removes_the_parts_of_a_slice(tmp_path, monkeypatch):
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 10)
    monkeypatch.setattr(part_writer, "PART_BYTES", 500)
    out = PartWriter(tmp_path, 0, LABELS)
    out(some(95))
    assert list(tmp_path.iterdir())
    out.discard()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_gives_a_sentence(tmp_path, monkeypatch):
    out = PartWriter(tmp_path, 0, LABELS)
    out(some(5))

    def full(*arguments, **options):
        raise OSError(28, "Error writing bytes to file")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(ResourceError, match=r"cannot write .* \(No space left on device\); make room"):
        out.close()
    out.discard()
    assert list(tmp_path.iterdir()) == []


def test_the_memory_bound_depends_on_the_labels():
    assert writer_bytes(None) < writer_bytes(LABELS) < writer_bytes((pa.array(["x" * 1000]), LABELS[1]))


def test_a_slice_makes_as_many_parts_as_it_needs(tmp_path, monkeypatch):
    """Each can be read by itself, none is much larger than it should be, and their rows are those that went in."""
    monkeypatch.setattr(stretch, "GROUP_MEMBERS", 40)
    monkeypatch.setattr(part_writer, "PART_BYTES", 3000)
    out = PartWriter(tmp_path, 0, LABELS)
    batches = [some(n, seed) for seed, n in enumerate((95, 1, 44, 200))]
    for batch in batches:
        out(batch)
    parts = out.close()
    assert len(parts) > 3
    assert [part.rows for part in parts] == [pq.read_metadata(tmp_path / part.name).num_rows for part in parts]
    assert [part.bytes for part in parts] == [(tmp_path / part.name).stat().st_size for part in parts]
    largest_group = max(
        pq.read_metadata(tmp_path / part.name).row_group(k).total_byte_size
        for part in parts
        for k in range(pq.read_metadata(tmp_path / part.name).num_row_groups)
    )
    footer = 8000
    assert max(part.bytes for part in parts) < 3000 + largest_group + footer
    back = [pair for part in parts for batch in read_part(tmp_path / part.name, LABELS) for pair in batch.to_pairs()]
    assert back == by_size([pair for batch in batches for pair in batch.to_pairs()])


LONG = (pa.array([10, 20, 30, 40]), pa.array(["a" * 300, "b" * 700, "c"]))


@pytest.mark.parametrize("kind", ["one", "parallel"])
def test_row_groups_are_limited_in_bytes_of_labels(tmp_path, monkeypatch, kind):
    """2 Mi members with long labels have more text than 32-bit offsets of a column can address."""
    monkeypatch.setattr(stretch, "GROUP_BYTES", 5000)
    batches = [some(n, seed) for seed, n in enumerate((60, 3, 40))]
    out = PartWriter(tmp_path, 0, LONG) if kind == "one" else ParallelWriter(tmp_path, 0, LONG, 2)
    for batch in batches:
        out(batch)
    parts = out.close()
    groups = [rows for part in parts for rows in read_part(tmp_path / part.name, LONG)]
    assert len(groups) > 10
    lengths = np.array([len(label) for label in LONG[1].to_pylist()])
    sizes = [int(lengths[rows.right].sum()) for rows in groups]
    assert max(sizes) <= 5000
    assert sum(sizes) > 10 * 2500, "groups are no smaller than they have to be"
    rows = sorted(pair for group in groups for pair in group.to_pairs())
    assert rows == sorted(pair for batch in batches for pair in batch.to_pairs())


def test_only_long_labels_limit_the_bytes_of_a_row_group(tmp_path):
    for tables in (None, LABELS):
        assert PartWriter(tmp_path, 0, tables).room.until(some(5)) is None


@pytest.mark.parametrize("kind", ["one", "parallel"])
def test_a_biclique_whose_labels_are_too_long_for_a_row_is_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(stretch, "GROUP_BYTES", 500)
    monkeypatch.setattr(stretch, "MOST_BYTES", 1000)
    out = PartWriter(tmp_path, 0, LONG) if kind == "one" else ParallelWriter(tmp_path, 0, LONG, 2)
    out(Bicliques.from_pairs([([0], [0, 1]), ([0, 1], [1])], [0, 1]))
    out(Bicliques.from_pairs([([0], [1]), ([0], [0, 1, 2])], [2, 3]))
    with pytest.raises(
        ResourceError, match=r"has 3 right members whose labels take 1,001 bytes.*mine with ids='dense'"
    ):
        out.close()
    out.discard()
    assert list(tmp_path.iterdir()) == []


class DroppingWriter(PartWriter):
    """A writer that loses the last row of every batch."""

    def __call__(self, found: Bicliques, /):
        super().__call__(found.rows(0, len(found) - 1))


def test_a_slice_whose_writer_loses_a_row_does_not_count(tmp_path, monkeypatch):
    """Nothing of it is left, not even the rows that were written."""
    monkeypatch.setattr(writers, "PartWriter", DroppingWriter)
    source = write_edges(tmp_path / "g.parquet", random_edges(20, 15, 0.4, 2))
    with pytest.raises(IncompleteError, match=r"slice 0 found \d+ bicliques, but \d+ were written"):
        bq.mine(source, tmp_path / "out", **QUIET)
    assert list((tmp_path / "out" / "bicliques").iterdir()) == []
    assert list((tmp_path / "out" / "ledger").iterdir()) == []


@pytest.mark.parametrize("tables", [None, LABELS], ids=["dense", "labels"])
def test_a_reader_of_large_bicliques_needs_few_row_groups(tmp_path, monkeypatch, tables):
    """They are in the first row groups of a stretch, which are small, and the statistics of the others say so."""
    monkeypatch.setattr(stretch, "STRETCH_ROWS", 1000)
    monkeypatch.setattr(stretch, "_LEAST_MEMBERS", 40)
    out = PartWriter(tmp_path, 0, tables, Provenance("user", "film", "abc", "123"))
    for seed in range(4):
        out(some(1000, seed))
    (part,) = out.close()
    metadata = pq.read_metadata(tmp_path / part.name)
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    sizes = np.array([group.num_rows for group in groups]).reshape(4, -1)
    assert (sizes[:, 0] < 1000 / 20).all()
    assert (np.diff(sizes[:, 1:-1]) > 0).all(), "row groups grow"
    assert (sizes[:, -1] > 100).all(), "no row group has the few rows that remain"
    most, least = (np.array([getattr(group.column(3).statistics, own) for group in groups]) for own in ("max", "min"))
    assert (np.diff(most.reshape(4, -1)) <= 0).all()
    assert (most.reshape(4, -1)[:, 1:] <= least.reshape(4, -1)[:, :-1]).all()
    assert not any(group.column(k).is_stats_set for group in groups for k in (0, 1, 2)), "none of ids and lists"
    assert all(
        group.column(k).has_offset_index and group.column(k).has_column_index for group in groups for k in (3, 4)
    )
    order = tuple((one.column_index, one.descending) for one in groups[0].sorting_columns)
    assert order == ((3, True), (4, True))
    assert {group.column(0).compression for group in groups} == {"UNCOMPRESSED"}
    assert not any(group.column(0).has_dictionary_page for group in groups)
    total = sum(pq.read_table(tmp_path / part.name)["id"].to_pylist()) % 2**64
    said = {key.decode(): value.decode() for key, value in metadata.metadata.items() if key != b"ARROW:schema"}
    assert said == {
        "bicliques.schema": "3",
        "bicliques.left": "user",
        "bicliques.right": "film",
        "bicliques.run": "abc",
        "bicliques.input": "123",
    }
    assert (part.rows, part.fingerprint) == (4000, str(total))


def test_sizes_that_do_not_fit_into_words_are_sorted_by_keys(monkeypatch):
    rows = some(500)
    orders = []
    for bits in (20, 1):
        monkeypatch.setattr(stretch, "_SIZE_BITS", bits)
        own = stretch.Stretch()
        own.add(rows)
        orders.append(own.take().to_pairs())
    assert orders[0] == orders[1] == by_size(rows.to_pairs())
