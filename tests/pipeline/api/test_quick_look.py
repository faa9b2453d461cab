"""A quick look: counts by size without listing, uniform samples, and places of rows in many files."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.proof.selection import Largest, largest, rows_at, sampled
from bicliques.pipeline.results.binning import edges_of_bins, grid, round_numbers
from bicliques.pipeline.results.run_status import status
from bicliques.schemas.bicliques import biclique_schema
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from bicliques.schemas.hashes import splitmix64
from bicliques.schemas.search import MEASURES, measure
from bicliques.schemas.sizes import SizeCounts, SizedRows
from tests.support.engines import registered, unable
from tests.support.examples import examples
from tests.support.runs import OWN, QUIET, random_edges, rewrite_record, write_edges

EDGES = random_edges(60, 40, 0.3, 11)
ALONE = ("--workers", "0", "--quiet")
SIDES = ("left", "right")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_edges(tmp_path_factory.mktemp("source") / "g.parquet", EDGES)


@pytest.fixture(scope="module")
def results(source, tmp_path_factory):
    return bq.mine(source, tmp_path_factory.mktemp("run") / "out", **QUIET)


def expected(results: bq.Results) -> SizeCounts:
    frame = results.to_pandas(columns=["n_left", "n_right"])
    return SizeCounts.of(frame.n_left.to_numpy(), frame.n_right.to_numpy())


def test_counts_by_size(source, results):
    assert results.sizes() == expected(results)
    counted = bq.count(source, sizes=True, **OWN)
    assert counted.sizes == expected(results)
    assert counted.fingerprint is None
    assert bq.count(source, **OWN).sizes is None


def test_counts_by_size_survive_a_stop_and_a_resume(source, results, tmp_path):
    out = tmp_path / "out"
    stopped = bq.mine(source, out, count_only=True, sizes=True, max_results=1000, **QUIET, slice_seconds=0.001)
    assert stopped.sizes().total == 1000
    for wanted in (2000, 3000):
        assert bq.resume(out, max_results=wanted, **QUIET).sizes().total == wanted
    newest = max((out / "ledger").iterdir(), key=lambda file: int(file.stem))
    newest.unlink()  # as if it had been lost
    resumed = bq.resume(out, max_results=None, **QUIET)
    assert resumed.sizes() == expected(results)
    assert resumed.manifest.fingerprint == results.manifest.fingerprint
    assert status(out).slices > 1


def test_counts_by_size_that_are_not_all_are_not_sealed_and_mined_again(source, tmp_path):
    out = tmp_path / "out"
    before = bq.mine(source, out, count_only=True, sizes=True, **QUIET).sizes()
    (out / "manifest.json").unlink()
    file = out / "ledger" / "0.json"
    sizes = json.loads(file.read_text())["sizes"]
    sizes["count"][0] += 1
    rewrite_record(file, sizes=sizes)
    with pytest.raises(IncompleteError, match=r"cannot be used \(it found \d+ bicliques, and \d+ by size\); delete"):
        steps.prove(out, progress=False)
    assert bq.resume(out, **QUIET).sizes() == before


def test_a_run_that_did_not_count_sizes_says_so(source, tmp_path):
    counted = bq.mine(source, tmp_path / "out", count_only=True, **QUIET)
    with pytest.raises(InputError, match="only counted, and not by size; mine it again"):
        counted.sizes()
    with pytest.raises(InputError, match="has them in its files"):
        bq.mine(source, tmp_path / "other", sizes=True)
    assert not (tmp_path / "other").exists()


def test_an_engine_that_cannot_count_sizes_is_passed_over(source):
    cannot = "engine bitmatrix cannot run here: it does not count bicliques by size"
    with registered(replace(unable("bitmatrix", None), counts_sizes=False)):
        with pytest.raises(ResourceError, match=cannot):
            bq.count(source, sizes=True, engine="bitmatrix", **OWN)
        counted = bq.count(source, sizes=True, **OWN)
    assert counted.sizes is not None


def test_the_commands(source, results, tmp_path, capsys):
    def read(*words: str | Path):
        assert main.main([*map(str, words), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    sizes = expected(results)
    assert SizeCounts.from_json(read("count", source, "--sizes", *ALONE)["sizes"]) == sizes
    assert SizeCounts.from_json(read("sizes", results.path)) == sizes
    read("mine", source, "-o", tmp_path / "out", "--count-only", "--sizes", *ALONE)
    assert SizeCounts.from_json(read("sizes", tmp_path / "out")) == sizes
    assert len(read("sample", results.path, "-n", "7", "--seed", "3")) == 7
    assert main.main(["sizes", str(results.path)]) == 0
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    numbers = [int(word.replace(",", "")) for row in table[1:] for word in row[1:] if word != "."]
    assert sum(numbers) == len(results)
    assert main.main(["sample", str(results.path), "-n", "2"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert main.main(["sample", str(results.path), "-n", "0"]) == 2


def test_a_sample_is_of_the_run_and_repeatable(results):
    rows = results.sample(50, seed=1)
    assert rows.schema.equals(results.schema)
    keys = [(tuple(sorted(r["left"])), tuple(sorted(r["right"]))) for r in rows.to_pylist()]
    assert len(set(keys)) == 50
    everything = {(tuple(sorted(r["left"])), tuple(sorted(r["right"]))) for r in results.to_arrow().to_pylist()}
    assert set(keys) <= everything
    assert rows.equals(results.sample(50, seed=1))
    assert not rows.equals(results.sample(50, seed=2))
    assert results.sample(10**6).num_rows == len(results)
    assert results.sample(50, seed=1)["left"].to_pylist()[:9] == results.sample(9, seed=1)["left"].to_pylist()
    with pytest.raises(InputError, match="at least 1, not 0"):
        results.sample(0)
    with pytest.raises(InputError, match="the seed must be at least 0"):
        results.sample(1, seed=-1)


def ids_of_roots(roots: np.ndarray) -> np.ndarray:
    """An id for each row, in no order."""
    return splitmix64(roots.astype(np.uint64)).view(np.int64)


def synthetic(folder: Path, files: list[list[int]]) -> tuple[list[Path], pa.Table]:
    """Parquet files with row groups of the given lengths; row i of all has root i, and sizes that repeat."""
    schema = biclique_schema(pa.int64(), pa.int64())
    rng = np.random.default_rng(3)
    paths, tables, first = [], [], 0
    for k, groups in enumerate(files):
        paths.append(folder / f"{k}.parquet")
        with pq.ParquetWriter(paths[-1], schema) as writer:
            for n in groups:
                left, right = rng.integers(1, 9, n), rng.integers(1, 9, n)
                roots = np.arange(first, first + n)
                lists = [list(range(a)) for a in left], [list(range(b)) for b in right]
                columns = [ids_of_roots(roots), *lists, left, right, roots]
                table = pa.table([*map(pa.array, columns)], names=schema.names).cast(schema)
                writer.write_table(table, row_group_size=max(n, 1))
                tables.append(table)
                first += n
    return paths, pa.concat_tables(tables)


FILES = [[5, 1, 30], [2], [64, 3]]


@pytest.mark.parametrize("batch", [1, 3, 1 << 13])
def test_rows_at_their_places(tmp_path, monkeypatch, batch):
    monkeypatch.setattr("bicliques.pipeline.proof.selection.BATCH", batch)
    files, table = synthetic(tmp_path, FILES)
    places = [(0, 0, 0), (0, 0, 4), (0, 1, 0), (0, 2, 0), (0, 2, 29), (1, 0, 0), (1, 0, 1), (2, 0, 0), (2, 1, 2)]
    roots = [0, 4, 5, 6, 35, 36, 37, 38, 104]
    assert rows_at(files, places, table.schema)["root"].to_pylist() == roots
    assert rows_at(files, places[::-1], table.schema)["root"].to_pylist() == roots[::-1]
    assert rows_at(files, [], table.schema).num_rows == 0


@pytest.mark.parametrize("dictionary", [True, False])
def test_rows_of_text_are_as_the_files_have_them(tmp_path, dictionary):
    """Also if each row group has a dictionary of its own, or none."""
    draw = np.random.default_rng(4)
    text = pa.list_(pa.field("element", pa.string(), nullable=False))
    schema = pa.schema([("id", pa.int64()), ("left", text), ("right", pa.list_(pa.int64()))])
    files, tables = [tmp_path / f"{k}.parquet" for k in range(2)], []
    for file in files:
        words = [[f"\u00fc {word}" for word in draw.integers(0, 60, draw.integers(1, 9))] for _ in range(50)]
        tables.append(pa.table([range(50), words, [[len(row)] for row in words]], schema=schema))
        pq.write_table(tables[-1], file, row_group_size=20, use_dictionary=dictionary)
    places = [(1, 2, 9), (0, 0, 3), (1, 0, 0), (0, 1, 19), (0, 0, 4)]
    wanted = pa.concat_tables(tables).take([99, 3, 50, 39, 4])
    found = rows_at(files, places, schema)
    assert found.schema.equals(schema)
    assert found.to_pylist() == wanted.to_pylist()


def test_rows_are_taken_from_the_row_groups_they_are_in(tmp_path, monkeypatch):
    files, table = synthetic(tmp_path, FILES)
    read = []
    in_batches = pq.ParquetFile.iter_batches

    def count(self: pq.ParquetFile, *args, row_groups: list[int], **options):
        read.extend(row_groups)
        return in_batches(self, *args, row_groups=row_groups, **options)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", count)
    rows_at(files, [(0, 2, 0), (0, 2, 1), (2, 1, 2), (0, 2, 2)], table.schema)
    assert sorted(read) == [1, 2], "each row group once, by whichever thread"


def test_a_sample_of_many_files_is_that_of_all_rows_by_hash(tmp_path):
    files, table = synthetic(tmp_path, FILES)
    for seed in range(5):
        mixed = splitmix64(table["id"].to_numpy().view(np.uint64) ^ splitmix64(np.uint64([seed])))
        for n in (1, 7, 104, 105, 200):
            places = sampled(files, n, seed)
            assert rows_at(files, places, table.schema)["root"].to_pylist() == np.argsort(mixed)[:n].tolist()


def test_every_row_is_as_likely_as_every_other(results, monkeypatch):
    monkeypatch.setattr("bicliques.pipeline.results.results.rows_at", lambda files, places, schema: places)
    rows = np.array([place[2] for seed in range(200) for place in results.sample(100, seed)])
    hits = np.bincount(rows * 20 // len(results), minlength=20)
    assert abs(hits - 1000).max() < 150, "five standard deviations"


OTHERWISE = [
    {"slice_seconds": 0.001},
    {"root_side": "left", "order": "two-hop"},
    {"root_side": "right", "order": "id", "ids": "dense"},
]


@pytest.mark.parametrize("options", OTHERWISE, ids=str)
def test_runs_that_found_the_same_answer_alike(source, results, tmp_path, options, monkeypatch):
    """However their rows came about: the same sample, and the same order of bicliques of equal size."""
    other = bq.mine(source, tmp_path / "out", **QUIET, **options)
    labels = {side: pq.read_table(tmp_path / "out" / "labels" / f"{side}.parquet")["label"] for side in SIDES}

    def rows(run: bq.Results, table: pa.Table) -> list[tuple[tuple[int, ...], ...]]:
        dense = run is other and options.get("ids") == "dense"
        sides = [[labels[s].take(pa.array(r)).to_pylist() if dense else r for r in table[s].to_pylist()] for s in SIDES]
        return [tuple(tuple(sorted(side)) for side in row) for row in zip(*sides, strict=True)]

    for seed in (0, 7):
        assert rows(results, results.sample(20, seed)) == rows(other, other.sample(20, seed))
    assert rows(results, results.sample(20)) == rows(results, results.sample(50))[:20]
    for by in MEASURES:
        expected = rows(results, results.top(60, by))
        assert (
            len(set(zip(*[[len(side) for side in column] for column in zip(*expected, strict=True)], strict=True))) < 30
        )
        assert rows(other, other.top(60, by)) == expected
        with monkeypatch.context() as patch:
            patch.setattr("bicliques.pipeline.results.results.read_largest", lambda *_: None)
            assert rows(other, other.top(60, by)) == expected, "from the rows"


@pytest.mark.parametrize("by", ["edges", "balance", "left", "right"])
@pytest.mark.parametrize("n", [1, 4, 40, 200])
def test_the_largest_of_many_equals(tmp_path, by, n):
    files, table = synthetic(tmp_path, FILES)
    frame = table.to_pandas()
    frame["edges"] = frame.n_left * frame.n_right
    frame["balance"] = frame[["n_left", "n_right"]].min(axis=1)
    frame = frame.drop(columns=["left", "right"]).rename(columns={"n_left": "left", "n_right": "right"})
    wanted = frame.sort_values([by, "edges", "left", "id"], ascending=False).root.head(n).tolist()
    assert rows_at(files, largest(files, n, by), table.schema)["root"].to_pylist() == wanted


@settings(max_examples=examples(200), deadline=None)
@given(
    groups=st.lists(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), max_size=12), max_size=6),
    n=st.integers(1, 9),
    by=st.sampled_from(MEASURES),
)
def test_the_largest_of_row_groups_in_any_order(groups, n, by):
    """Few sizes, so that most of them are those of many rows."""
    whole, halves = Largest(n, by), [Largest(n, by), Largest(n, by)]
    hashes = [splitmix64(np.arange(12, dtype=np.uint64) + np.uint64(100 * k)) for k in range(len(groups))]
    for k in range(len(groups))[::-1]:
        left, right = np.array(groups[k], np.int64).reshape(-1, 2).T
        for found in (whole, halves[k % 2]):
            found.add(SizedRows(left, right), hashes[k].copy, k // 3, k % 3)
    halves[0].merge(halves[1].best)
    key = partial(measure, by)
    rows = [
        (key(*sizes), sizes[0] * sizes[1], sizes[0], int(hashes[k][row].view(np.int64)), k // 3, k % 3, row)
        for k, group in enumerate(groups)
        for row, sizes in enumerate(group)
    ]
    wanted = [place[4:] for place in sorted(rows, reverse=True)[:n]]
    assert whole.places() == halves[0].places() == wanted


@pytest.mark.parametrize(
    ("ends", "numbers"),
    [
        ((1, 1), [1]),
        ((14, 24), list(range(14, 25))),
        ((1, 50), [1, 2, 5, 10, 20, 50]),
        ((1, 5000), [1, 10, 100, 1000]),
        ((61, 90), [65, 70, 75, 80, 85, 90]),
        ((150, 900), [200, 300, 400, 500, 600, 700, 800, 900]),
    ],
)
def test_numbers_at_an_axis(ends, numbers):
    assert round_numbers(*ends) == numbers


def test_bins_hold_every_size_once():
    for per_doubling in (1, 2, 8):
        edges = edges_of_bins(5000, per_doubling)
        assert edges[0] == 1
        assert (np.diff(edges) >= 1).all()
        assert edges[-2] <= 5000 < edges[-1]
    assert edges_of_bins(9, 8).tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert edges_of_bins(9, 1).tolist() == [1, 2, 4, 8, 16]
    sizes = SizeCounts.of(np.array([1, 40, 41]), np.array([7, 1, 1]), np.array([5, 6, 7]))
    table = grid(sizes)
    assert table.count.sum() == 18
    assert table.count[0, 6] == 5
    assert table.count[-1, 0] == 13
    assert grid(SizeCounts.empty()).count.sum() == 0
