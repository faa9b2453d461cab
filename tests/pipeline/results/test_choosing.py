"""Which bicliques are on the page: the largest, distinct ones behind them, and examples of every cell of the map."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.results.binning import Grid, cells_of
from bicliques.pipeline.results.report import listed
from bicliques.pipeline.results.report import listed as listing
from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.results.report.listed import Listed
from bicliques.pipeline.results.results import Results
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.tables import open_part
from bicliques.schemas.search import By
from tests.support.runs import QUIET, random_edges, write_edges


def mined(folder: Path, n_left: int, n_right: int, share: float, seed: int = 11, **options) -> Path:
    edges = random_edges(n_left, n_right, share, seed)
    source = write_edges(folder / f"{n_left}-{seed}.parquet", edges)
    run = bq.mine(source, folder / f"out-{n_left}-{seed}", **QUIET, **options).path
    return run


def listed_of(run: Path) -> Listed:
    found = content_of(Run.at(run)).listed
    assert found is not None
    return found


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    """Its largest by edges are nearly the same."""
    return mined(tmp_path_factory.mktemp("run"), 200, 14, 0.8)


def per_cell(run: Path, found: Listed) -> tuple[Grid, np.ndarray]:
    """The heat map of a run, and how many rows of each cell are listed."""
    cells = cells_of(bq.open_run(run).sizes())
    sizes = np.array([found.sizes(k) for k in range(len(found.rows))])
    counts = Counter(cells.cells(sizes[:, 0], sizes[:, 1]).tolist())
    return cells, np.array([counts[k] for k in range(cells.count.size)]).reshape(cells.count.shape)


@pytest.mark.parametrize("seed", [1, 2])
def test_every_cell_of_the_heat_map_has_a_row_and_a_cell_of_few_has_all(tmp_path, seed, monkeypatch):
    run = mined(tmp_path, 60, 40, 0.3, seed)
    cells, listed = per_cell(run, listed_of(run))
    assert np.array_equal(listed > 0, cells.count > 0)
    assert (listed <= cells.count).all()
    least = int(np.min(listed[listed < cells.count]))
    assert least > 1
    assert (listed >= np.minimum(cells.count, least)).all(), "no cell has more of them while another one has fewer"
    monkeypatch.setattr(listing, "_EXAMPLES", 0)
    cells, fewer = per_cell(run, listed_of(run))
    assert np.array_equal(fewer > 0, cells.count > 0)
    assert fewer.sum() < listed.sum(), "one of a cell is enough if there are many cells"


def test_a_small_run_is_on_the_page_as_a_whole(tmp_path):
    run = mined(tmp_path, 25, 15, 0.4)
    found, results = listed_of(run), bq.open_run(run)
    assert 300 < len(results) == len(found.rows)
    assert sorted(found.ids) == sorted(results.to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("n", [200, 300])
def test_so_is_one_whose_bicliques_have_all_the_same_sizes(tmp_path, n):
    edges = [(f"a{k}", f"b{k}") for k in range(n)]
    results = bq.mine(edges, tmp_path / "out", **QUIET)
    found = listed_of(results.path)
    assert sorted(found.ids) == sorted(results.to_arrow()["id"].to_pylist())
    assert len(found.ids) == n


#: The rows of a ranking, and the numbers of those that are kept.
Ranked = dict[By, tuple[list[Any], list[int]]]


@pytest.fixture(scope="module")
def ranked(dense):
    """By either ranking the 300 largest, and the numbers of those that share too little with all kept before."""
    results, found = bq.open_run(dense), Ranked()
    rankings = ("edges", "balance")
    for by in rankings:
        rows = results.top(300, by).to_pylist()
        edges = [{(a, b) for a in row["left"] for b in row["right"]} for row in rows]
        kept = []
        for k, own in enumerate(edges, 1):
            if all(len(own & edges[other - 1]) <= 0.8 * len(own) for other in kept):
                kept.append(k)
        found[by] = rows, kept
    return found


@pytest.mark.parametrize("wanted", [10, 48, 50, 65, 300])
@pytest.mark.first(3)
def test_distinct_ones_behind_the_largest_are_those_of_all_looked_at(dense, ranked, wanted, monkeypatch):
    monkeypatch.setattr(listing, "WANTED", wanted)
    found = listed_of(dense)
    for by, (rows, kept) in ranked.items():
        first = sum(k <= 100 for k in kept)
        assert 30 < first < len(kept) < 300
        kept = kept[: max(first, wanted)]
        numbers = found.numbers[by].tolist()
        assert numbers == [*range(1, 101), *(k for k in kept if k > 100)]
        assert found.numbers[by][found.repeats[by] < 0].tolist() == kept
        assert found.looked_at[by] == (300 if len(kept) < wanted else max(kept[-1], 100) if first < wanted else 100)
        assert found.rows.take(found.lists[by]).to_pylist() == [rows[number - 1] for number in numbers]


def test_labels_of_rows_that_are_not_listed_are_left_out():
    labels, rows = listing.only_used(["a", "b", "c", "d"], [np.array([1, 3]), np.array([], int), np.array([3])])
    assert (labels, [row.tolist() for row in rows]) == (["b", "d"], [[0, 1], [], [1]])


def test_no_more_is_read_behind_the_largest_than_has_room(dense, monkeypatch):
    rows = bq.open_run(dense).top(300, "edges").to_pylist()
    members = sum(row["n_left"] + row["n_right"] for row in rows[100:150])
    for room, looked_at in ((members, 150), (members - 1, 149), (0, 100)):
        monkeypatch.setattr(listing, "MOST_BEHIND", room)
        monkeypatch.setattr(listing, "WANTED", 300)
        assert listed_of(dense).looked_at["edges"] == looked_at


def test_a_run_of_few_has_no_more_than_these(tmp_path):
    few = listed_of(mined(tmp_path, 12, 9, 0.5))
    assert few.looked_at == dict.fromkeys(("surprise", "edges", "balance"), len(few.rows))
    assert 0 < sum(few.repeats["edges"] < 0) < len(few.rows) < 100


@pytest.fixture(scope="module")
def many(dense, tmp_path_factory):
    """The rows of the dense run in 102 parts with four row groups each."""
    [rows] = [pq.read_table(file) for file in Results(Run.at(dense)).files]
    folder = tmp_path_factory.mktemp("many")
    files = [folder / f"{k:03}.parquet" for k in range(len(rows) // 160)]
    for k, file in enumerate(files):
        pq.write_table(rows.slice(160 * k, 160), file, row_group_size=40)
    return files


def test_few_row_groups_are_read_of_a_run_of_many(dense, many, monkeypatch):
    """Row groups with large and with small rows are among those that are looked at."""
    parts, opened, looked = listed.Parts(Run.at(dense), many), list[Path](), list[tuple[int, int]]()
    sizes = parts.sizes
    monkeypatch.setattr(parts, "sizes", lambda *place: looked.append(place) or sizes(*place))
    monkeypatch.setattr(
        "bicliques.pipeline.results.edges.open_part", lambda file: opened.append(file) or open_part(file)
    )
    none = np.empty((0, 7), np.int64)
    places = listed.examples(parts, cells_of(bq.open_run(dense).sizes()), [none])
    assert (len(looked), len(set(opened))) == (64, 64)
    groups = parts.groups(sorted(many.index(file) for file in set(opened)))
    most = {(part, group): int(np.prod(largest)) for part, group, largest in groups if largest}
    assert {min(most, key=most.__getitem__), max(most, key=most.__getitem__)} <= set(looked)
    assert 1 < len({place[:2] for place in places}) <= 16
    assert len(set(places)) == len(places) >= 200


def test_the_row_groups_with_most_missing_cells_are_read_first(dense, many, monkeypatch):
    monkeypatch.setattr(listing, "_EXAMPLES", 0)
    parts, cells = listed.Parts(Run.at(dense), many), cells_of(bq.open_run(dense).sizes())
    there = {place: cells.cells(*parts.sizes(*place)) for place in listed._groups(parts)}
    (part, group), own = next(iter(there.items()))
    left, right = parts.sizes(part, group)
    rows = np.arange(len(left))
    ranks = np.column_stack([rows, left * right, left, rows, rows * 0 + part, rows * 0 + group, rows])
    places = listed.examples(parts, cells, [ranks])
    found = [int(there[place[:2]][place[2]]) for place in places]
    missing = set(np.concatenate(list(there.values())).tolist()) - set(own.tolist())
    assert len(set(found)) == len(found), "one of a cell"
    assert set(found) <= missing, "a cell of which one is listed needs no other"
    read = set[int]()
    for _ in range(16):
        read |= max((set(each.tolist()) & missing for each in there.values()), key=lambda new: len(new - read))
    assert set(found) == read, "no row group of those that are left would have added more"
    assert len(read) > len(missing & set(np.concatenate(list(there.values())[:16]).tolist()))
