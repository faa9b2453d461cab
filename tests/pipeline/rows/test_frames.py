"""Frames whose lists pandas can group, drop, compare and write, of a run and of a comparison."""

import json
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.results.results import Results
from bicliques.schemas.errors import IncompleteError, InputError
from tests.support.notebook import HOSTILE
from tests.support.runs import QUIET, labels_of, random_edges, write_edges

EDGES = random_edges(30, 20, 0.3, 1)
COLUMNS = ["id", "left", "right"]


@pytest.fixture(scope="module", params=["integers", "text", "dense"])
def results(request, tmp_path_factory):
    """Labels of text hold commas, quotes, line breaks and formulas."""
    folder = tmp_path_factory.mktemp("frames")
    left, right = labels_of(EDGES[:, 0], EDGES[:, 1])
    if request.param == "text":
        words = [*HOSTILE, "a\nb", "['x']", " ", "NaN", "1"]
        left = pa.array([words[k] if k < len(words) else f"u{k}" for k in EDGES[:, 0].tolist()])
    ids = "dense" if request.param == "dense" else "labels"
    source = pa.table({"user": left, "item": right})
    return bq.mine(source, folder / "run", ids=ids, **QUIET)


def plain(results: Results) -> list[tuple[int, tuple[Any, ...], tuple[Any, ...]]]:
    return [(row.id, tuple(row.left), tuple(row.right)) for row in results]


def test_tuples_are_grouped_compared_and_dropped(results):
    frame = results.to_pandas(COLUMNS, lists="tuple")
    assert [tuple(row) for row in frame.itertuples(index=False)] == plain(results)
    assert type(frame["right"][0][0]) is int, "no number of NumPy, which would print as np.int64(7)"
    twice = pd.concat([frame, frame])
    assert len(twice.drop_duplicates()) == len(frame) > 50
    assert twice.groupby("left").size().tolist() == [2] * len(frame), "no two bicliques have the same left side"
    assert twice.groupby(["left", "right"])["id"].nunique().max() == 1
    assert frame["left"].isin([frame["left"][7]]).sum() == 1
    assert frame.merge(frame, on=["left", "right"]).shape[0] == len(frame)


def test_tuples_come_back_from_parquet_as_lists(results, tmp_path):
    results.to_pandas(lists="tuple").to_parquet(tmp_path / "frame.parquet")
    back = pd.read_parquet(tmp_path / "frame.parquet", columns=COLUMNS)
    found = [(id, tuple(left.tolist()), tuple(right.tolist())) for id, left, right in back.itertuples(index=False)]
    assert found == plain(results)


def test_json_comes_back_from_csv(results, tmp_path):
    frame = results.to_pandas(COLUMNS, lists="json")
    assert frame.groupby("left").size().max() == 1
    assert frame["left"].str.startswith("[").all(), "no cell is a formula of a spreadsheet"
    frame.to_csv(tmp_path / "frame.csv", index=False)
    back = pd.read_csv(tmp_path / "frame.csv")
    found = [
        (id, tuple(json.loads(left)), tuple(json.loads(right))) for id, left, right in back.itertuples(index=False)
    ]
    assert found == plain(results)


def test_arrays_are_what_comes_if_nothing_is_said(results):
    frame = results.to_pandas()
    assert frame.columns.tolist() == results.schema.names
    assert type(frame["left"][0]).__name__ == "ndarray"
    filtered = results.to_pandas(["left", "n_left"], pa.compute.field("n_left") > 3, lists="tuple")
    assert (filtered["left"].map(len) == filtered["n_left"]).all()
    with pytest.raises(InputError, match="array, tuple, json in a frame, not 'list'"):
        results.to_pandas(lists="list")


def test_any_table_of_rows_becomes_a_frame(results):
    best = results.top(9, by="surprise")
    for rows in (best, results[:9], results):
        frame = bq.to_pandas(rows)
        assert len(frame.drop_duplicates(["left", "right"])) == len(frame) == len(rows)
    assert bq.to_pandas(best).columns.tolist() == [*results.schema.names, "surprise"]
    lists = results.explain(best["id"][0].as_py(), missing=3).near["left"]
    assert bq.to_pandas(lists, "json")["missing"].map(json.loads).map(len).between(1, 3).all()
    with pytest.raises(InputError, match="'top' is no table of rows; take results"):
        bq.to_pandas("top")


def test_no_rows_are_a_frame_too(tmp_path):
    none = bq.mine(write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "none", min_left=30, **QUIET)
    for lists in ("array", "tuple", "json"):
        frame = none.to_pandas(COLUMNS, lists=lists)
        assert (len(frame), len(frame.drop_duplicates("id")), frame.groupby("left").ngroups) == (0, 0, 0)


def test_what_changed_is_a_collection_as_results_are(tmp_path):
    paths = []
    for name, edges in (("old", EDGES), ("new", EDGES[:-5])):
        source = write_edges(tmp_path / f"{name}.parquet", edges)
        paths.append(bq.mine(source, tmp_path / name, **QUIET).path)
    gone = bq.diff(*paths, tmp_path / "changes", progress=False).gone
    assert len(gone) > 20
    assert plain(gone) == [tuple(row) for row in gone.to_pandas(COLUMNS, lists="tuple").itertuples(index=False)]
    assert gone[-1] == list(gone)[-1]
    assert gone[2:4].num_rows == len(gone.head(2)) == 2
    assert pa.table(gone).equals(gone.to_arrow())
    assert gone.names == ("user", "item")
    assert f"<b>{len(gone):,} maximal bicliques</b><br>in {gone.path}" in gone._repr_html_()
    gone.path.write_bytes(gone.path.read_bytes()[:-9])
    with pytest.raises(IncompleteError, match="compare the two runs again"):
        _ = gone[0]


@pytest.mark.parametrize("lists", ["tuple", "json", "array"])
def test_a_frame_of_polars_is_as_the_rows_that_it_was_made_of(results, lists):
    """Polars holds text and lists in types of their own."""
    best = results.top(20).select(COLUMNS)
    found = bq.to_pandas(pl.DataFrame(best), lists)
    expected = bq.to_pandas(best, lists)
    if lists == "array":
        for frame in (found, expected):
            frame[["left", "right"]] = frame[["left", "right"]].map(list)
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("kind", [pl.List(pl.String), pl.Array(pl.String, 2), pl.List(pl.Int64)], ids=str)
def test_columns_of_polars_beside_those_of_bicliques_come_too(kind):
    members = [[1, 2], None, [3, 4]] if kind == pl.List(pl.Int64) else [["a", "ü"], None, ["", "b"]]
    more = {
        "name": ["x", None, "y"],
        "bytes": [b"1", b"2", None],
        "kind": pl.Series(["p", "q", "p"], dtype=pl.Categorical),
    }
    frame = bq.to_pandas(pl.DataFrame({"members": pl.Series(members, dtype=kind), **more}))
    assert [frame["members"][k] for k in (0, 2)] == [tuple(members[0]), tuple(members[2])]
    assert frame["members"].isna().tolist() == [False, True, False]
    assert frame["name"].dropna().tolist() == ["x", "y"]
    assert frame["bytes"][0] == b"1"
    assert frame["kind"].tolist() == ["p", "q", "p"]
