"""`from_table` makes an edge of every cell that says so, and refuses a table that may be read in two ways."""

from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.schemas.errors import InputError

#: Visits of insects to plants: a count, or nothing.
VISITS = {"plant": ["sage", "mint", "leek"], "bee": [3, None, 1], "fly": [0, 2, None]}
EDGES = {("sage", "bee"), ("mint", "fly"), ("leek", "bee")}


def edges(table: pa.Table) -> set[tuple[Any, Any]]:
    assert table.column_names == ["left", "right"]
    found = list(zip(*table.to_pydict().values(), strict=True))
    assert len(set(found)) == len(found)
    return set(found)


def _by_index(columns: dict[str, list]) -> pd.DataFrame:
    return pd.DataFrame(columns).set_index("plant")


def _dask(columns: dict[str, list]):
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe needs pandas")
    return dd.from_pandas(_by_index(columns), npartitions=2)


MAKERS = {
    "pandas": pd.DataFrame,
    "named index": _by_index,
    "unnamed index": lambda columns: _by_index(columns).rename_axis(None),
    "nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "lazy": pl.LazyFrame,
    "dask": _dask,
    "arrow": pa.table,
    "arrow of a frame": lambda columns: pa.Table.from_pandas(_by_index(columns)),
    "batch": pa.RecordBatch.from_pydict,
    "array": lambda columns: pd.DataFrame(columns).to_numpy(),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_every_kind_of_table_gives_the_same_edges(maker):
    numbered = {"bee": 1, "fly": 2} if maker == "array" else {}
    wanted = {(left, numbered.get(right, right)) for left, right in EDGES}
    assert edges(bq.from_table(MAKERS[maker](VISITS))) == wanted


@pytest.mark.parametrize(
    "cells",
    [
        ["X", "", None],
        ["x", ".", "-"],
        ["Yes", "no", ""],
        ["y", "N", "n"],
        ["True", "False", "false"],
        [True, False, None],
        [True, False, False],
        [Decimal("0.5"), Decimal(0), None],
        ["3", "0", "0.0"],
        [2.5, 0.0, float("nan")],
        [1, -1, 0],
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, lambda columns: pd.DataFrame(columns).convert_dtypes()])
def test_marks_and_numbers_say_whether_there_is_an_edge(cells, make):
    frame = make({"who": ["ann", "bob", "cy"], "tea": cells, "rice": cells[::-1]})
    assert edges(bq.from_table(frame)) == {("ann", "tea"), ("cy", "rice")}


def test_a_categorical_column_has_marks():
    frame = pd.DataFrame({"who": ["ann", "bob"], "tea": pd.Categorical(["yes", "no"])})
    assert edges(bq.from_table(frame)) == {("ann", "tea")}


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, lambda columns: pd.DataFrame(columns).convert_dtypes()])
def test_numbers_up_to_the_limit_are_no_edges_and_true_is_one(make):
    columns = {"who": ["ann", "bob"], "tea": [1, 2], "rice": [True, False], "milk": [None, 1.5], "salt": ["1", "x"]}
    wanted = {("bob", "tea"), ("ann", "rice"), ("bob", "milk"), ("bob", "salt")}
    assert edges(bq.from_table(make(columns), above=1)) == wanted
    assert edges(bq.from_table(make(columns), above=np.int64(1))) == wanted


def test_large_integers_are_compared_exactly():
    frame = pd.DataFrame({"who": ["ann", "bob"], "tea": pd.array([2**53 + 1, None], "Int64")})
    assert edges(bq.from_table(frame, above=2**53)) == {("ann", "tea")}
    assert edges(bq.from_table(np.array([[2**64 - 1], [2**63]], np.uint64), above=2**63)) == {(0, 0)}


def test_names_that_are_integers_stay_integers():
    table = bq.from_table(pd.DataFrame({2019: [1, 0], 2020: [2, 1]}, index=["ann", "bob"]))
    assert edges(table) == {("ann", 2019), ("ann", 2020), ("bob", 2020)}
    assert table.schema.field("right").type == pa.int64()


COUNTS = np.array([[2, 0, 1], [1, 1, 0], [0, 3, 1]])
CELLS = {(int(u), int(v)) for u, v in np.argwhere(COUNTS)}


@pytest.mark.parametrize("dtype", [int, float, np.uint8, bool, object, str])
def test_an_array_has_cells_only(dtype):
    assert edges(bq.from_table(COUNTS.astype(dtype))) == CELLS


def test_labels_are_in_the_column_or_the_level_that_is_named():
    frame = pd.DataFrame({"n": [7, 8], "tea": [1, 0], "who": ["ann", "bob"]})
    named = {"ann": {("ann", "n"), ("bob", "n"), ("ann", "tea")}}
    assert edges(bq.from_table(frame, labels="who")) == named["ann"]
    assert edges(bq.from_table(frame, labels=2)) == named["ann"], "a position, because no name is 2"
    assert edges(bq.from_table(frame.set_index("who"), labels="who")) == named["ann"]
    assert edges(bq.from_table(frame.set_index(["n", "who"]), labels="n")) == {(7, "tea")}
    assert edges(bq.from_table(frame.set_index("who"), labels=False)) == {(0, "n"), (1, "n"), (0, "tea")}
    assert edges(bq.from_table(np.array([[5, 1], [6, 0]]), labels=0)) == {(5, 1)}
    assert edges(bq.from_table(frame[["n", "tea"]].set_axis([1, 0], axis=1), labels=1)) == {(7, 0)}, "a name"


def test_rows_are_numbered_if_no_column_can_have_labels():
    """Labels are all different, and integers from 0 on or text."""
    for first in ([1, 1, 0], [1, None, 2], [0.5, 1.5, 2.5], [-1, 0, 1], [True, False, True], ["x", "", "x"]):
        found = edges(bq.from_table(pl.DataFrame({"tea": first, "rice": [2, 0, 1]})))
        assert {left for left, right in found if right == "rice"} == {0, 2}
        assert ("tea" in {right for _, right in found}) == any(first)


@pytest.mark.parametrize(
    ("first", "others"),
    [
        ([2, 0, 1], [1, 0, 1]),
        ([1, 0], [0, 2]),
        ([1, 2], [1, 0]),
        ([1, 2, 3], [4, 0, 1]),
        (["y", "n"], ["y", "y"]),
        (["2", "0", "1"], ["1", "0", "1"]),
        (["x", "."], [1, 0]),
    ],
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_first_column_of_labels_or_cells_is_refused(first, others, make):
    frame = make({"a": first, "b": others})
    with pytest.raises(
        InputError, match=r"column 'a' may have the labels of the rows or cells, .*; say labels='a', or"
    ):
        bq.from_table(frame)
    assert {right for _, right in edges(bq.from_table(frame, labels="a"))} == {"b"}
    assert {left for left, _ in edges(bq.from_table(frame, labels=False))} <= set(range(len(first)))


def test_ascending_numbers_beside_flags_number_the_rows():
    assert edges(bq.from_table(pd.DataFrame({"who": [5, 7, 8], "tea": [1, 0, 1]}))) == {(5, "tea"), (8, "tea")}


FRAME = pd.DataFrame({"who": ["ann", "bob"], "tea": [1, 0]})


@pytest.mark.parametrize(
    ("frame", "given", "said"),
    [
        (FRAME.assign(tea=["x", "zz"]), {}, "column 'tea' has 'zz' in row 2, which is neither a number nor a mark"),
        (FRAME.assign(tea=[[1], [2]]), {}, r"column 'tea' has '\[1\]' in row 1, which is neither"),
        (FRAME.assign(tea=pd.Timestamp("2026-01-01")), {}, "column 'tea' has '2026-01-01 00:00:00' in row 1"),
        (FRAME.set_index("tea"), {"labels": False}, "column 'who' has 'ann' in row 1, .* with labels="),
        (FRAME.assign(who="ann"), {}, "the labels of the rows have 'ann' twice; rename one"),
        (FRAME.set_axis(["tea", "tea"], axis=1).set_axis(["a", "b"]), {}, "the names of the columns have 'tea' twice"),
        (FRAME.assign(who=["ann", None]), {}, "the labels of the rows has nan at place 2, which is no label"),
        (pl.DataFrame({"who": ["ann", None], "tea": [1, 1]}), {}, "the labels of the rows have none at place 2; fill"),
        (FRAME.set_axis([0.5, 1.5])[["tea"]], {}, r"the labels of the rows has a float at place 1 \('0.5'\)"),
        (FRAME.set_axis(["who", 1], axis=1).assign(b=1), {}, "the names of the columns mixes integers and strings"),
        (FRAME.set_index(["who", "tea"]).assign(n=1), {}, "the index has 2 levels; make one of them, or name one with"),
        (FRAME, {"labels": "whom"}, "no column 'whom'; the columns are 'who', 'tea'"),
        (FRAME, {"labels": 2}, "no column 2; positions go from 0 to 1"),
        (FRAME, {"labels": True}, "labels must be a column .*, not True"),
        (FRAME, {"labels": ["who"]}, r"labels must be a column .*, not \['who'\]"),
        (FRAME, {"above": "1"}, "above must be a number, not '1'"),
        (FRAME, {"above": None}, "above must be a number, not None"),
        (FRAME, {"above": True}, "above must be a number, not True"),
        (FRAME, {"above": float("nan")}, "above must be a number, not nan"),
        (FRAME.tea, {}, r"pandas.Series is one column and no table; give a frame \(series.unstack\(\)"),
        (pl.Series([1, 2]), {}, "polars.Series is no table; give a frame of pandas or Polars, an Arrow table, or an"),
        (np.array([1, 2]), {}, "numpy.ndarray is no table"),
        ([[1, 0]], {}, "builtins.list is no table"),
        ("x.csv", {}, "builtins.str is no table"),
    ],
)
def test_what_is_no_such_table_is_refused(frame, given, said):
    with pytest.raises(InputError, match=said) as refused:
        bq.from_table(frame, **given)
    assert len(str(refused.value).splitlines()) == 1


def test_columns_may_be_called_like_methods():
    frame = pd.DataFrame({"who": ["ann", "bob"], "compute": [1, 0], "collect": [0, 1]})
    assert edges(bq.from_table(frame)) == {("ann", "compute"), ("bob", "collect")}


@pytest.mark.parametrize("frame", [pd.DataFrame(), pl.DataFrame(), np.zeros((0, 3)), np.zeros((3, 3)), FRAME[:0]])
def test_a_table_without_edges_gives_none(frame):
    assert edges(bq.from_table(frame)) == set()


def test_the_edges_are_a_source():
    assert bq.count(bq.from_table(COUNTS), progress=False).count == 6
    assert bq.look(bq.from_table(COUNTS)).reading.doubts == ()


def test_cells_of_numbers_are_not_looked_at_one_by_one(monkeypatch):
    """Ten million cells take a second so, and not ten."""
    from bicliques.pipeline.api import cross_tables

    def refuse(cell: str, *_):
        assert cell in labels, "a cell was looked at"

    labels = ["ann", "bob", "cy"]
    monkeypatch.setattr(cross_tables, "has_edge", refuse)
    frame = pd.DataFrame({"who": labels, "tea": [1, 0, 2], "rice": [0.5, None, 0.0]})
    for make in (pd.DataFrame, lambda own: own.convert_dtypes(), pl.from_pandas, pa.Table.from_pandas):
        assert len(edges(bq.from_table(make(frame)))) == 3
