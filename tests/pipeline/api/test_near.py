"""Near-bicliques of a run: rows, counts, resuming, verification, and what does not know of missing pairs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.proof.verification import Adjacency
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.search import Search
from tests.support.emulated import runnable
from tests.support.near import missing_of, near_pairs
from tests.support.oracles import random_edges
from tests.support.runs import OWN, QUIET, rewrite_record, write_edges

EDGES = random_edges(np.random.default_rng(42), 10, 10, 0.75)
QUESTIONS = [
    {"missing_pairs": 1, "min_left": 3, "min_right": 2},
    {"missing_pairs": 2, "min_left": 3, "min_right": 4, "max_left": 6},
    {"missing_each": 1, "min_left": 3, "min_right": 3},
    {"missing_left": 1, "missing_right": 2, "min_left": 5, "min_right": 3},
]


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_edges(tmp_path_factory.mktemp("near") / "g.parquet", EDGES, strings=False)


@pytest.fixture(scope="module")
def mined(source):
    one_slice = {"slice_seconds": 3600.0}  # and one part, however busy the machine is
    bq.mine(source, source.parent / "out", missing_pairs=2, min_left=4, min_right=3, **one_slice, **OWN)
    return source.parent / "out"


@pytest.mark.parametrize(
    ("asked", "engine"),
    [*((asked, "cpu") for asked in QUESTIONS), (QUESTIONS[0], "reference"), (QUESTIONS[2], "bitmatrix")],
)
def test_a_run_has_all_near_bicliques_and_what_they_miss(asked, engine, source, tmp_path):
    with runnable(engine):
        results = bq.mine(source, tmp_path / "out", engine=engine, ids="dense", **asked, **QUIET)
        counted = bq.count(source, fingerprint=True, sizes=True, engine=engine, **asked, **OWN)
    expected = near_pairs(EDGES, Search(**asked))
    pairs = [(tuple(left), tuple(right)) for left, right in results]
    assert {*pairs} == expected
    assert len(pairs) == len(expected) > 5
    assert results.to_arrow()["missing"].to_pylist() == [missing_of(EDGES, pair) for pair in pairs]
    assert (counted.count, counted.fingerprint) == (len(pairs), results.manifest.fingerprint)
    assert counted.sizes == results.sizes()
    assert bq.verify(tmp_path / "out").count == len(pairs)


GIVEN = [((0, 4), (1,)), ((2,), ()), ((), (3,)), ((1,), (2, 5))]


@pytest.mark.parametrize(
    ("asked", "given"), [*zip(QUESTIONS, GIVEN, strict=True)], ids=["pairs", "fewer", "each", "two"]
)
@pytest.mark.first(2)
def test_those_with_given_members_are_those_of_all_that_contain_them(asked, given, tmp_path):
    left, right = given
    members = {"containing_left": left, "containing_right": right}
    expected = {pair for pair in near_pairs(EDGES, Search(**asked)) if {*left} <= {*pair[0]} and {*right} <= {*pair[1]}}
    results = bq.mine(EDGES, tmp_path / "out", report=False, **members, **asked, **OWN)
    assert {(tuple(a), tuple(b)) for a, b in results} == expected
    assert len(results) == len(expected) > 3
    assert "every row contains the members that were asked for" in bq.verify(tmp_path / "out").proven
    counted = bq.count(EDGES, fingerprint=True, **members, **asked, **OWN)
    assert (counted.count, counted.fingerprint) == (len(results), results.manifest.fingerprint)
    dense = bq.mine(EDGES, tmp_path / "dense", report=False, **members, **asked, **OWN | {"slice_seconds": 0.001})
    assert dense.manifest.fingerprint == results.manifest.fingerprint


def test_given_members_that_miss_too_much_or_are_no_roots_are_told_of(tmp_path):
    edges, asked = EDGES[~((EDGES == (0, 0)) | (EDGES == (1, 0))).all(axis=1)], {"min_left": 3, "min_right": 3}
    members = {"containing_left": (0, 1), "containing_right": (0,)}
    nothing = bq.mine(edges, tmp_path / "out", missing_pairs=1, report=False, **members, **asked, **OWN)
    assert len(nothing) == 0
    assert nothing.manifest.graph["nothing"].startswith("2 pairs of the given members are no edges, which is more than")
    assert bq.count(edges, missing_pairs=1, containing_left=(0,), root_side="left", **asked, **OWN).count > 0
    with pytest.raises(InputError, match="given member, and these are left ones: give root_side='left', or leave"):
        bq.count(edges, missing_pairs=1, containing_left=(0,), root_side="right", **asked, **OWN)


@pytest.mark.parametrize("zero", [{"missing_pairs": 0}, {"missing_each": 0}, {"missing_left": 0, "missing_right": 0}])
def test_no_missing_pairs_is_the_search_for_bicliques(zero, source, tmp_path):
    plain = bq.mine(source, tmp_path / "out", **QUIET)
    again = bq.mine(source, tmp_path / "out", **zero, **QUIET)  # the same run, which is left as it is
    assert again.manifest == plain.manifest
    assert "missing" not in again.schema.names
    assert not again.has_holes


@pytest.mark.parametrize("zero", [{"missing_left": 2, "missing_right": 0}, {"missing_left": 0, "missing_right": 3}])
def test_a_side_that_may_miss_nothing_means_that_no_pair_may_be_missing(zero, source, tmp_path):
    plain = bq.count(source, fingerprint=True, **OWN)
    results = bq.mine(source, tmp_path / "out", **zero, **QUIET)
    assert (results.has_holes, results.manifest.count) == (False, plain.count)
    assert results.manifest.fingerprint == plain.fingerprint
    with pytest.raises(InputError, match=r"give both missing_left and missing_right$"):
        bq.count(source, **{name: k for name, k in zero.items() if k}, **OWN)
    wrong = {name: k and 17 for name, k in zero.items()}
    with pytest.raises(InputError, match="must be a whole number from 0 to 16, not 17"):
        bq.count(source, **wrong, **OWN)


def test_a_run_that_was_stopped_goes_on_to_the_same_rows(source, mined, tmp_path):
    asked = {"missing_pairs": 2, "min_left": 4, "min_right": 3}
    results = bq.mine(source, tmp_path / "out", max_results=3, **asked, **QUIET)
    for most in (4, 9, None):
        assert not results.complete
        results = bq.resume(tmp_path / "out", max_results=most, **QUIET)
    assert results.manifest.fingerprint == bq.open_run(mined).manifest.fingerprint


def changed(mined: Path, out: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """A copy of the run with one part, in which rows were changed, as a wrong engine would."""
    shutil.copytree(mined, out)
    (part,) = (out / "bicliques").iterdir()
    table = pq.read_table(part)
    rows = table.to_pylist()
    change(rows)
    pq.write_table(table.from_pylist(rows, table.schema), part)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["parts"][0] |= {"bytes": part.stat().st_size}
    (ledger,) = (out / "ledger").iterdir()
    rewrite_record(ledger, parts=manifest["parts"])
    rewrite_record(out / "manifest.json", **manifest)
    return out


def test_a_wrong_number_of_missing_pairs_is_refused(mined, tmp_path):
    def one_more(rows: list[dict[str, Any]]):
        rows[2]["missing"] += 1

    with pytest.raises(IncompleteError, match=r"states \d missing pairs, and the input has \d; delete the file"):
        bq.verify(changed(mined, tmp_path / "out", one_more))


@pytest.mark.parametrize(("asked", "says"), [({"missing_pairs": 1}, "more than its run allows")])
def test_more_missing_pairs_than_were_allowed_are_refused(asked, says, mined, tmp_path):
    shutil.copytree(mined, tmp_path / "out")
    options = json.loads((tmp_path / "out" / "options.json").read_text())
    options["options"]["search"] |= asked
    rewrite_record(tmp_path / "out" / "options.json", **options)
    with pytest.raises(IncompleteError, match=says):
        bq.verify(tmp_path / "out")


def test_rows_without_the_number_of_missing_pairs_are_refused(source, mined, tmp_path):
    def without(rows: list[dict[str, Any]]):
        pass

    out = changed(mined, tmp_path / "out", without)
    (part,) = (out / "bicliques").iterdir()
    table = pq.read_table(part)
    pq.write_table(table.drop_columns(["missing"]), part)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["parts"][0] |= {"bytes": part.stat().st_size}
    (ledger,) = (out / "ledger").iterdir()
    rewrite_record(ledger, parts=manifest["parts"])
    rewrite_record(out / "manifest.json", **manifest)
    with pytest.raises(IncompleteError, match="lacks the column missing"):
        bq.verify(out)


@pytest.mark.parametrize("asked", QUESTIONS, ids=str)
def test_exactly_the_groups_that_cannot_grow_have_no_objection(asked):
    """Every group that is allowed is looked at: it is maximal, or the sentence says that a vertex can be added."""
    search = Search(**asked | {"max_left": None})
    n_left, n_right = (EDGES.max(axis=0) + 1).tolist()
    adjacency, seen = Adjacency(*np.ascontiguousarray(EDGES.T), n_left, n_right), set()
    for pair in near_pairs(EDGES, search):
        left, right = (np.array(side, np.int32) for side in pair)
        assert adjacency.objection(left, right, search.near) is None
        for k in range(2):
            smaller = [left, right]
            smaller[k] = smaller[k][1:]
            reason = adjacency.objection(*smaller, search.near)
            seen.add(reason.partition(":")[2][3:])
    assert seen >= {"left vertex can be added", "right vertex can be added"}


@pytest.mark.parametrize("asked", [QUESTIONS[0], QUESTIONS[2]], ids=str)
def test_gone_and_new_between_near_runs_are_the_difference_of_sets(asked, tmp_path):
    fewer = np.delete(EDGES, [3, 17, 40], axis=0)
    found = []
    for name, edges in (("old", EDGES), ("new", fewer)):
        bq.mine(edges, tmp_path / name, report=False, **asked, **OWN)
        found.append(near_pairs(edges, Search(**asked)))
    changes = bq.diff(tmp_path / "old", tmp_path / "new", tmp_path / "changes", progress=False)
    assert repr(changes.new).startswith(f"<{len(changes.new):,} maximal near-bicliques in ")
    for rows, edges, expected in (
        (changes.gone, EDGES, found[0] - found[1]),
        (changes.new, fewer, found[1] - found[0]),
    ):
        pairs = [(tuple(left), tuple(right)) for left, right in rows]
        assert (len(pairs), {*pairs}) == (len(expected), expected)
        assert rows.to_arrow()["missing"].to_pylist() == [missing_of(edges, pair) for pair in pairs]
        assert pairs
    assert changes.unchanged == len(found[0] & found[1]) > 0


def test_runs_that_allow_other_missing_pairs_are_not_compared(mined, source, tmp_path):
    sizes = {"min_left": 4, "min_right": 3}
    for name, asked in (("plain", {}), ("fewer", {"missing_pairs": 1}), ("each", {"missing_each": 1})):
        bq.mine(source, tmp_path / name, report=False, **sizes, **asked, **OWN)
        with pytest.raises(InputError, match="do not allow the same missing pairs"):
            bq.diff(mined, tmp_path / name, tmp_path / "changes", progress=False)
    sentence = "near-bicliques, of which a few pairs are no edges, and this does not know of missing pairs yet"
    with pytest.raises(InputError, match=sentence):
        bq.diff(mined, EDGES[:30], tmp_path / "changes", progress=False)
    assert not (tmp_path / "changes").exists()


def test_what_reads_rows_knows_of_missing_pairs(mined, capsys):
    from bicliques.pipeline.cli.main import main

    results = bq.open_run(mined)
    assert results.has_holes
    assert repr(results).startswith(f"<{len(results)} maximal near-bicliques in ")
    assert results.top(3).column_names[-1] == results.sample(3).column_names[-1] == "missing"
    row = results[0]
    assert results.members(row.id) == row
    assert results.to_sparse("left").shape == (len(results), 10)
    assert "pairs" in results._repr_html_()
    assert results.describe().columns.tolist() == ["n_left", "n_right", "pairs"]
    assert results.filter(min_left=5).column_names == results.schema.names
    assert main(["show", str(mined), "-n", "2"]) == 0
    assert capsys.readouterr().out.split()[:5] == ["#", "left", "right", "pairs", "missing"]
    assert (mined / "report.html").exists()
    assert bq.status(mined).state == "complete"
