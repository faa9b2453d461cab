"""A biclique keeps its id, whatever else is in the graph and whoever finds it."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.schemas.errors import BicliqueError
from tests.support.runs import QUIET, random_edges, rewrite_record

SOME = random_edges(18, 14, 0.4, 5)
Members = tuple[tuple[Any, ...], tuple[Any, ...]]
#: Labels of a vertex, by its number.
KINDS = {
    "numbers": lambda k: 3 * k + 2,
    "far numbers": lambda k: k * 2**58 + 3,
    "words": lambda k: (
        ["0", "a", "ü", "🎬 film", "x" * 300, "\tq'\"\n", "=1+1"][k % 7] + (str(k // 7) if k > 6 else "")
    ),
}


def table_of(edges: np.ndarray, kind: str) -> pa.Table:
    label = KINDS[kind]
    return pa.table({"user": [label(int(k)) for k in edges[:, 0]], "film": [label(int(k)) for k in edges[:, 1]]})


def ids_of(source, folder: Path, **options) -> dict[Members, int]:
    """The id of every row, by its members."""
    results = bq.mine(source, folder, **QUIET, **options)
    rows = results.to_arrow().to_pylist()
    found = {(tuple(row["left"]), tuple(row["right"])): row["id"] for row in rows}
    assert len(found) == len(rows) == len(set(found.values()))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.first(1)
def test_ids_do_not_depend_on_how_a_run_found_them(tmp_path, kind):
    usual = ids_of(table_of(SOME, kind), tmp_path / "usual")
    assert all(list(side) == sorted(side) for row in usual for side in row), "members are sorted by label"
    mixed = np.random.default_rng(1).permutation(SOME)
    hows = [
        {"engine": "reference"},
        {"root_side": "left"},
        {"root_side": "right", "order": "id"},
        {"slice_seconds": 0.001},
    ]
    for number, how in enumerate(hows):
        assert ids_of(table_of(mixed, kind), tmp_path / str(number), **how) == usual, how


@pytest.mark.parametrize("kind", KINDS)
def test_a_biclique_that_is_still_there_keeps_its_id(tmp_path, kind):
    """Vertices and edges are added before, between and behind those that were there, and some edges go."""
    rng = np.random.default_rng(3)
    before = ids_of(table_of(SOME, kind), tmp_path / "before")
    more = np.stack([rng.integers(0, 30, 60), rng.integers(0, 30, 60)], axis=1)
    grown = np.unique(np.concatenate([SOME[SOME[:, 0] != 4], more]), axis=0)
    after = ids_of(table_of(grown, kind), tmp_path / "after")
    kept = before.keys() & after.keys()
    assert len(kept) > 10
    assert {row: before[row] for row in kept} == {row: after[row] for row in kept}
    assert not {before[row] for row in before.keys() - kept} & set(after.values())
    gone, new = (sum(one[row] for row in one.keys() - kept) for one in (before, after))
    fingerprints = [bq.open_run(tmp_path / name).manifest.fingerprint for name in ("before", "after")]
    assert (fingerprints[0] - gone + new - fingerprints[1]) % 2**64 == 0


def test_rows_of_dense_ids_have_the_ids_of_their_labels(tmp_path):
    labels = ids_of(table_of(SOME, "words"), tmp_path / "labels")
    dense = ids_of(table_of(SOME, "words"), tmp_path / "dense", ids="dense")
    assert sorted(labels.values()) == sorted(dense.values())


def test_each_side_has_hashes_of_its_own(tmp_path):
    """The same biclique with its sides exchanged is another one."""
    one = ids_of(table_of(SOME, "numbers"), tmp_path / "one")
    other = ids_of(table_of(SOME[:, ::-1], "numbers"), tmp_path / "other")
    assert {row[::-1] for row in other} == one.keys()
    assert not set(one.values()) & set(other.values())


READERS = ["pandas", "pyarrow", "polars", "duckdb"]


def read(reader: str, folder: Path) -> list[tuple[Any, ...]]:
    """All rows but their roots, by a library."""
    columns = ["id", "left", "right", "n_left", "n_right"]
    if reader == "pandas":
        frame = pytest.importorskip("pandas").read_parquet(folder)[columns]
        return [tuple(v.tolist() if hasattr(v, "tolist") else v for v in row) for row in frame.itertuples(index=False)]
    if reader == "pyarrow":
        rows = pytest.importorskip("pyarrow.dataset").dataset(folder).to_table(columns=columns).to_pylist()
        return [tuple(row.values()) for row in rows]
    if reader == "polars":
        rows = pytest.importorskip("polars").scan_parquet(folder / "*.parquet").select(columns).collect().rows()
        return [tuple(row) for row in rows]
    sql = f'SELECT id, "left", "right", n_left, n_right FROM read_parquet(\'{folder}/*.parquet\')'
    return list(pytest.importorskip("duckdb").sql(sql).fetchall())


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_reader_reads_the_rows(tmp_path, reader, kind):
    known = ids_of(table_of(SOME, kind), tmp_path / "out")
    rows = read(reader, tmp_path / "out" / "bicliques")
    assert {(tuple(row[1]), tuple(row[2])): row[0] for row in rows} == known
    assert len(rows) == len(known)
    assert all((len(row[1]), len(row[2])) == row[3:] for row in rows)


@pytest.mark.parametrize("how", [{}, {"largest": 30}], ids=["all", "largest"])
def test_the_largest_and_their_ties_are_the_same_by_any_engine(tmp_path, how):
    source = table_of(SOME, "words")
    sides, engines = ("left", "right"), ("cpu", "reference")
    found = []
    for number, (side, engine) in enumerate(itertools.product(sides, engines)):
        out = tmp_path / str(number)
        mine = bq.largest if how else bq.mine
        options = {"top": 30} if how else {}
        results = mine(source, output=out, root_side=side, engine=engine, **QUIET, **options)
        found.append(results.top(30)["id"].to_pylist())
        bq.verify(out, progress=False)
    assert len(found[0]) == 30
    assert found == [found[0]] * 4


def test_a_run_of_schema_1_is_refused_in_a_sentence(tmp_path):
    ids_of(table_of(SOME, "numbers"), tmp_path / "out")
    rewrite_record(tmp_path / "out" / "options.json", schema_version=1)
    with pytest.raises(BicliqueError, match=r"schema version 1, .* mine again") as told:
        bq.open_run(tmp_path / "out")
    assert "\n" not in str(told.value)
