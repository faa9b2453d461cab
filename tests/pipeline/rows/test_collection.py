"""Results are a collection: gone through, asked by number, read by other libraries, shown in a notebook."""

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import bicliques as bq
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.rows.collection import Biclique
from bicliques.schemas.errors import InputError
from tests.support.notebook import HOSTILE, Cells
from tests.support.runs import QUIET, random_edges, write_edges


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    source = write_edges(folder / "g.parquet", random_edges(40, 30, 0.3, 1))
    return bq.mine(source, folder / "run", **QUIET)


def sides(rows) -> list[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    return [(tuple(left), tuple(right)) for left, right in rows]


def test_going_through_gives_every_row_in_the_order_of_the_files(results):
    table = results.to_arrow()
    wanted = list(zip(table["left"].to_pylist(), table["right"].to_pylist(), strict=True))
    assert len(wanted) > 100
    assert [tuple(each) for each in results] == wanted
    first = next(iter(results))
    assert isinstance(first, Biclique)
    left, right = first
    assert (left, right) == (first.left, first.right)
    assert [each.id for each in results] == table["id"].to_pylist()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda results: results.to_arrow(columns=["lef"]),
        lambda results: results.to_arrow(filter=ds.field("n_left") > "x"),
        lambda results: results.batches(["lef"]),
    ],
)
def test_a_column_or_a_filter_that_is_wrong_shows_before_rows_are_read(results, monkeypatch, wrong):
    monkeypatch.setattr(Results, "_opened", lambda self, file: pytest.fail(f"{file} is read"))
    with pytest.raises((InputError, pa.ArrowException)):
        wrong(results)


def test_a_row_is_found_by_its_number(results):
    every = list(results)
    for number in (0, 1, len(every) // 2, len(every) - 1, -1, -len(every)):
        assert results[number] == every[number]
        assert results[number].id == every[number].id
    for number in (len(every), -len(every) - 1):
        with pytest.raises(IndexError, match=f"there is no row {number}; .* has {len(every):,}"):
            _ = results[number]


def test_a_column_is_no_row_and_a_text_is_no_list_of_columns(results):
    with pytest.raises(
        TypeError, match="rows have numbers and slices, not 'left'; to_arrow and to_pandas take columns"
    ):
        results["left"]
    with pytest.raises(InputError, match=r"columns is a list of names, as \['left'\], not a text"):
        results.to_pandas(columns="left")
    with pytest.raises(InputError, match=r"which is a slice of the rows, as slice\(0, 1\) for the first one, not 3"):
        results.to_networkx(3)


def test_a_row_is_written_with_a_few_members_on_one_line():
    row = Biclique(["a\n", *(f"u{k}" for k in range(9999))], [7, 2**63 - 1], id=-5)
    assert repr(row) == (
        "Biclique(left=['a\\n', 'u0', 'u1', 'u2', 'u3', 'u4', ...], right=[7, 9223372036854775807], "
        "n_left=10000, n_right=2, id=-5)"
    )
    assert len(repr(Biclique(["x" * 10**6], ["y"], id=1))) < 200


@pytest.mark.parametrize("which", [slice(3, 9), slice(None, None, 37), slice(-4, None), slice(9, 3), slice(8, 2, -2)])
def test_a_slice_is_a_table(results, which):
    every = results.to_arrow()
    assert results[which].equals(every.take(pa.array(range(len(every))[which], pa.int64())))


def test_rows_of_several_files_and_row_groups_are_found(results, tmp_path):
    """The same rows in three files with small row groups."""
    table, files = results.to_arrow(), []
    for k in range(3):
        files.append(tmp_path / f"{k}.parquet")
        pa.parquet.write_table(table[k * 50 : (k + 1) * 50], files[-1], row_group_size=7)

    class Elsewhere(Results):
        def __init__(self):
            super().__init__(results._mined)
            self._count = 150

        @property
        def files(self) -> list[Path]:
            return files

    numbers = [0, 6, 7, 49, 50, 56, 57, 99, 100, 149, 7]
    assert Elsewhere()._taken(numbers).equals(table.take(numbers))
    assert sides([Elsewhere()[-1]]) == sides([list(results)[149]])


def test_head_is_a_frame_that_pandas_can_group_and_drop_from(results):
    frame = results.head(7)
    assert isinstance(frame, pd.DataFrame)
    assert sides(zip(frame["left"], frame["right"], strict=True)) == sides(list(results)[:7])
    assert len(frame.drop_duplicates()) == 7
    assert frame.groupby("left").size().sum() == 7
    assert len(results.head()) == 5
    assert len(results.head(0)) == 0


def test_other_libraries_read_them_as_they_are(results):
    table = results.to_arrow()
    assert pa.table(results).equals(table)
    assert pl.DataFrame(results)["left"].to_list() == table["left"].to_pylist()
    assert duckdb.sql("SELECT sum(n_left * n_right) FROM results").fetchall() == [
        (sum(len(left) * len(right) for left, right in results),)
    ]
    assert pd.DataFrame.from_arrow(results).shape == (len(results), table.num_columns)
    assert pa.RecordBatchReader.from_stream(results).schema == table.schema


def test_a_notebook_shows_the_largest_and_no_label_is_code(tmp_path):
    edges = pa.table({"<b>user</b>": [*HOSTILE, "c"], "film": ["<i>1</i>"] * len(HOSTILE) + ["2"]})
    results = bq.mine(edges, tmp_path / "<u>run", **QUIET)
    shown = Cells(results._repr_html_())
    assert shown.tags == {"div", "p", "b", "br", "table", "tr", "th", "td"}
    assert shown.texts[0] == "2 maximal bicliques"
    assert f"complete, in {tmp_path / '<u>run'}" in shown.texts
    assert {"<b>user</b>", "film", "14 x 1", "14", "1 x 2"} <= set(shown.texts)
    (members,) = [text for text in shown.texts if "more" in text]
    assert members.endswith(" and 6 more")
    assert all(len(label) <= 40 for label in members.split(", "))


def test_what_has_no_rows_is_shown_without_and_cannot_be_gone_through(tmp_path):
    source = write_edges(tmp_path / "g.parquet", random_edges(12, 9, 0.4, 1))
    counted = bq.mine(source, tmp_path / "counted", count_only=True, **QUIET)
    assert Cells(counted._repr_html_()).tags == {"div", "p", "b", "br"}
    for ask in (iter, lambda results: results[0], lambda results: results.head(), pa.table):
        with pytest.raises(InputError, match="holds no bicliques"):
            ask(counted)
    none = bq.mine(source, tmp_path / "none", min_left=12, **QUIET)
    assert (list(none), len(none.head()), pa.table(none).num_rows) == ([], 0, 0)
    assert "not complete" not in none._repr_html_()
    with pytest.raises(IndexError, match="there is no row 0"):
        _ = none[0]
    part = bq.mine(source, tmp_path / "part", max_results=3, **QUIET)
    assert len(list(part)) == len(part.head()) == 3
    assert "not complete: max_results" in part._repr_html_()
