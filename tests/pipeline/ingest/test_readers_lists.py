"""Columns of lists give an edge per item, wherever they come from."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bicliques.pipeline.ingest.readers import columnar, open_source, sieve, tables
from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from tests.support.examples import examples
from tests.support.inputs import read_edges, write

LAYOUTS = {
    "list": pa.list_,
    "large": pa.large_list,
    "view": pa.list_view,
    "large view": pa.large_list_view,
    "fixed": lambda kind: pa.list_(kind, 2),
}
BASKETS = st.lists(
    st.tuples(st.integers(0, 5), st.none() | st.lists(st.sampled_from(["a", "b", "x y", "7"]), max_size=4)),
    min_size=1,
    max_size=12,
).filter(lambda rows: any(items for _, items in rows))


def read(source: object, **options: object) -> list[tuple[object, object]]:
    found: list[tuple[object, object]] = []
    for batch in open_source(source, IngestOptions(**options)).chunks():  # type: ignore[arg-type]
        found += zip(batch["left"].to_pylist(), batch["right"].to_pylist(), strict=True)
    return found


@settings(max_examples=examples(40), deadline=None)
@given(BASKETS, st.sampled_from(list(LAYOUTS)), st.sampled_from([1, 2, 5, 1000]), st.booleans(), st.booleans())
def test_every_item_is_an_edge(tmp_path_factory, rows, layout, most, encoded, is_left):
    place = tmp_path_factory.mktemp("lists")
    if layout == "fixed":
        rows = [(k, None if items is None else (["a", *items, "b"])[:2]) for k, items in rows]
    wanted = [(k, item) for k, items in rows for item in items or ()]
    items = pa.array([["c", "d"], *(items for _, items in rows)], LAYOUTS[layout](pa.string()))[
        1:
    ]  # not from the first offset
    ids = pa.array([k for k, _ in rows], pa.int16())
    if encoded and layout in ("list", "large"):
        flat = items.flatten().dictionary_encode()
        lengths = [0 if held is None else len(held) for _, held in rows]
        items = type(items).from_arrays(pa.array(np.cumsum([0, *lengths]), items.offsets.type), flat)
        ids = pa.array([str(k) for k, _ in rows])
        wanted = [(str(k), item) for k, item in wanted]
    table = pa.table({"items": items, "id": ids}) if is_left else pa.table({"id": ids, "items": items})
    wanted = [(item, k) for k, item in wanted] if is_left else wanted
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "ROWS", most)
        assert read(table) == wanted
        if "view" not in layout:
            pq.write_table(table, place / "x.parquet", row_group_size=3)
            assert read(place / "x.parquet") == wanted
        assert read(write(place / "x.arrow", table)) == wanted


def test_a_version_of_arrow_that_cannot_read_missing_fixed_lists_is_named(tmp_path, monkeypatch):
    def iter_batches(*_: object, **__: object) -> object:
        raise pa.ArrowInvalid("Expected all lists to be of size=2 but index 1 had size=0")

    pq.write_table(pa.table({"id": [1], "items": [["a", "b"]]}), tmp_path / "x.parquet")
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", iter_batches)
    words = rf"lists of a fixed length of which one is missing, which PyArrow {pa.__version__} cannot read; install"
    with pytest.raises(InputError, match=words):
        read(tmp_path / "x.parquet")


def test_lists_in_frames(tmp_path: Path) -> None:
    columns = {"who": ["ann", "bob", "cy"], "n": [1.5, 2, 3], "what": [["x", "y"], [], ["y"]]}
    wanted = [("ann", "x"), ("ann", "y"), ("cy", "y")]
    named = {"left": "who", "right": "what"}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns), pl.LazyFrame(columns), pa.table(columns)):
        assert read(frame, **named) == wanted
    sets = pd.DataFrame({"who": [1, 2], "what": [{3}, {4, 5}]})
    assert sorted(read(sets)) == [(1, 3), (2, 4), (2, 5)]
    assert read_edges(pl.DataFrame(columns).select("who", "what"), tmp_path / "out")[1].right_label == "string"


def test_only_the_two_columns_of_a_parquet_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(pa.table({"id": [1], "items": [["a"]], "text": ["x"]}), tmp_path / "x.parquet")
    stream = open_source(tmp_path / "x.parquet", IngestOptions())
    assert isinstance(stream, columnar.ParquetTable)
    assert stream.is_exact
    assert [batch.schema.names for batch in stream.batches] == [["id", "items"]]


def test_a_bad_item_is_told_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": [1, 2, 3, 4], "items": [["a", "b"], [], ["c", None, "d"], [""]]})
    for most in (1, 3, 100):
        monkeypatch.setattr(tables, "ROWS", most)
        with pytest.raises(InputError, match=r"pyarrow.Table, row 3: the right label is null; fill it in"):
            read(table)
    stream = open_source(table, IngestOptions(skip_bad_lines=True))
    found = [pair for batch in stream.chunks() for pair in batch.to_pylist()]
    assert [(pair["left"], pair["right"]) for pair in found] == [(1, "a"), (1, "b"), (3, "c"), (3, "d")]
    assert stream.skipped == 2


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"a": [["x"]], "b": [["y"]]}, "both columns hold lists; one of the two needs a label per row"),
        ({"a": [["x"]]}, r"column 'a' holds lists, but there is no column of labels beside it; .*reset_index"),
        (
            {"a": [1], "b": [[[1]]]},
            r"the right column is list<.*> but labels are integers or strings|the right column is",
        ),
        ({"a": [1], "b": [[1.5]]}, "the right column is double, but labels are integers or strings"),
    ],
)
def test_lists_that_are_no_edges_are_refused(columns: dict, said: str, tmp_path: Path) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    for source in (pa.table(columns), pd.DataFrame(columns), pl.DataFrame(columns), tmp_path / "x.parquet"):
        with pytest.raises(InputError, match=said):
            ingest(source, IngestOptions(), tmp_path)


def test_damaged_offsets_are_refused_before_they_are_used() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 1, 3], np.int32))
    broken = pa.Array.from_buffers(pa.list_(pa.int64()), 3, [None, offsets], children=[pa.array([1, 2, 3])])
    texts = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 2, 1, 2], np.int32)), pa.py_buffer(b"ab")]
    )
    inside = pa.ListArray.from_arrays(pa.array([0, 3], pa.int32()), texts)
    for column in (broken, inside):
        with pytest.raises(InputError, match=r"pyarrow.Table cannot be read \(.*; make it anew"):
            read(pa.table({"a": pa.array(range(len(column))), "b": column}))


def test_text_that_is_not_utf8_is_a_bad_item() -> None:
    texts = pa.array([b"a", b"b\xff"]).view(pa.string())
    table = pa.table({"a": [1, 2], "b": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), texts)})
    with pytest.raises(InputError, match=r"pyarrow.Table, row 2: byte 2 of the right label .* is not UTF-8"):
        read(table)


def test_a_long_list_is_one_slice_and_short_ones_share_it() -> None:
    column = pa.array([[1], [2, 3], list(range(9)), [], [4]])
    found = [(part.start, part.stop, len(part.right)) for part in sieve.slices("x", pa.array(range(5)), column, 3)]
    assert found == [(0, 2, 3), (2, 3, 9), (3, 5, 1)]
