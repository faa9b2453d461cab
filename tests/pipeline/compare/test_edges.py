"""What changed between two edge lists, against sets of Python, against two runs, and against another program."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bicliques as bq
from bicliques.pipeline.compare import two_graphs
from bicliques.schemas.errors import InputError
from bicliques.schemas.hashes import splitmix64
from tests.support.compared import QUIET, Biclique, Edges, maximal_bicliques, night, of_sizes, rows_of, two
from tests.support.examples import examples
from tests.support.runs import ROOT, random_edges

_TAGS = ROOT / "examples/debian12_package_tag.parquet"


def changes_of(old: Any, new: Any, place: Path, **options: Any) -> bq.Difference:
    return bq.diff(old, new, place, progress=False, **{"workers": 0} | options)


def check(found: bq.Difference, was: set[Biclique], now: set[Biclique]) -> None:
    """The rows are those of the sets, and the record and the tables of vertices count them."""
    assert rows_of(found.gone) == was - now
    assert rows_of(found.new) == now - was
    for rows, counted in ((found.gone, found.record.gone), (found.new, found.record.new)):
        ids = rows.to_arrow(columns=["id"])["id"].to_numpy().view(np.uint64)
        assert (counted.count, counted.fingerprint) == (len(rows), int(ids.sum()) % 2**64)
    for k, side in enumerate(("left", "right")):
        table = found.vertices[side]
        for name, changed in (("gone", was - now), ("new", now - was)):
            told = {label: n for label, n in zip(*table.select(["label", name]).to_pydict().values(), strict=True) if n}
            assert told == {x: sum(x in row[k] for row in changed) for row in changed for x in row[k]}


@pytest.mark.parametrize("engine", ["reference", "cpu"])
def test_pairs_of_random_edge_lists_one_by_one(tmp_path: Path, engine: str) -> None:
    rng = np.random.default_rng(43)
    for k in range(examples(25)):
        was, now = two(rng)
        if was and now:
            found = changes_of(sorted(was), sorted(now), tmp_path / str(k), engine=engine)
            check(found, maximal_bicliques(was), maximal_bicliques(now))


@pytest.mark.values
@pytest.mark.parametrize("least", [(1, 1), (2, 1), (1, 3), (2, 2)])
@pytest.mark.parametrize("text", [False, True])
def test_thousands_of_pairs_at_once_are_those_of_two_runs(tmp_path, monkeypatch, least, text):
    """The bicliques of a disjoint union are those of its graphs, so one comparison is one of every pair."""
    monkeypatch.setattr(two_graphs, "_ROWS", 100)
    rng, names = np.random.default_rng(44 + text), "user {}".format if text else int
    edges: list[Edges] = [set(), set()]
    rows: list[set[Biclique]] = [set(), set()]
    for k in range(examples(360)):
        for own, total, found in zip(two(rng), edges, rows, strict=True):
            named = {(names(10 * k + a), 10 * k + b) for a, b in own}
            total |= named
            found |= of_sizes(maximal_bicliques(named), least, (99, 99))
    thresholds = {"min_left": least[0], "min_right": least[1]}
    runs = [night(tmp_path / name, own, **thresholds) for name, own in zip(("old", "new"), edges, strict=True)]
    files = [run.with_suffix(".parquet") for run in runs]
    found = changes_of(*files, tmp_path / "edges", workers=None, slice_seconds=0.05, **thresholds)
    check(found, *rows)
    assert (found.unchanged, found.share, found.record.old_run.found) == (None, None, None)
    of_runs = changes_of(*runs, tmp_path / "runs")
    half = changes_of(runs[0], files[1], tmp_path / "half"), changes_of(files[0], runs[1], tmp_path / "other half")
    for other in (of_runs, *half):
        for one, same in ((found.gone, other.gone), (found.new, other.new)):
            assert one.schema.equals(same.schema)
            assert same_rows(one) == same_rows(same)
    for other in half:
        assert other.vertices == of_runs.vertices
        assert (other.unchanged, other.share) == (of_runs.unchanged, of_runs.share)
        for run in ("old_run", "new_run"):
            assert getattr(other.record, run).found == getattr(of_runs.record, run).found


def same_rows(rows: Any) -> list[Any]:
    """All columns of the rows but the root, which means nothing, sorted."""
    return rows.to_arrow(columns=["id", "left", "right", "n_left", "n_right"]).sort_by("id").to_pylist()


def test_sizes_above_the_filters_are_left_out_and_their_parts_are_not(tmp_path: Path) -> None:
    """A biclique that is too large may leave one that is not when it loses an edge."""
    was = {(u, v) for u in range(4) for v in range(4)}
    now = was - {(0, 0)}
    most = {"max_left": 3, "max_right": 4}
    found = changes_of(sorted(was), sorted(now), tmp_path / "out", **most)
    expected = [of_sizes(maximal_bicliques(own), (1, 1), (3, 4)) for own in (was, now)]
    assert (len(expected[0]), len(expected[1])) == (0, 1)
    check(found, *expected)


@pytest.mark.parametrize(
    "given", [{"containing_left": ["a1"]}, {"containing_left": ["a0"], "containing_right": ["b2"]}]
)
@pytest.mark.first(1)
def test_given_members_are_in_all_that_changed(tmp_path: Path, given: dict[str, list[str]]) -> None:
    rng, total = np.random.default_rng(3), 0
    for k in range(examples(15)):
        pairs = [{(f"a{u}", f"b{v}") for u, v in own} | {("a0", "b0")} for own in two(rng, 4)]
        expected = [
            {
                row
                for row in maximal_bicliques(own)
                if all({*labels} <= {*row[s == "containing_right"]} for s, labels in given.items())
            }
            for own in pairs
        ]
        known = [
            all(x in {e[s == "containing_right"] for e in own} for s, labels in given.items() for x in labels)
            for own in pairs
        ]
        if not any(known):
            with pytest.raises(InputError, match="has the label"):
                changes_of(*map(sorted, pairs), tmp_path / str(k), **given)
            continue
        found = changes_of(*map(sorted, pairs), tmp_path / str(k), **given)
        check(found, *expected)
        total += len(expected[0] ^ expected[1])
    assert total > 5


def test_nothing_or_everything_has_changed(tmp_path: Path) -> None:
    edges = random_edges(9, 9, 0.5, 4)
    was, now = ({(int(a), int(b)) for a, b in edges}, {(int(a) + 50, int(b) + 50) for a, b in edges})
    same = changes_of(sorted(was), sorted(was), tmp_path / "same")
    assert (len(same.gone), len(same.new), len(same.vertices["left"])) == (0, 0, 0)
    assert same.most_changed() == []
    check(changes_of(sorted(was), sorted(now), tmp_path / "all"), maximal_bicliques(was), maximal_bicliques(now))


def test_edges_that_come_and_go_take_the_place_of_the_new_list(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    for k in range(examples(10)):
        was, now = two(rng)
        if not was or not now:
            continue
        added, removed = now - was | {min(now)}, was - now | {(99, 99)}  # one is there already, and one is not there
        delta = {"added": sorted(added), "removed": sorted(removed)}
        found = changes_of(sorted(was), None, tmp_path / str(k), **delta)
        check(found, maximal_bicliques(was), maximal_bicliques(now))
    run = night(tmp_path / "run", {(0, 0), (0, 1), (1, 1)})
    found = changes_of(run, None, tmp_path / "of run", removed=[(0, 1)])
    check(found, *map(maximal_bicliques, ({(0, 0), (0, 1), (1, 1)}, {(0, 0), (1, 1)})))


@pytest.mark.parametrize(
    ("modulus", "gone", "new"),
    [
        (10_000, (459, 0x2D51252FD830238B), (490, 0x077FDCCBFB00EED4)),
        (1_000, (5_515, 0xDCC1D9CFB9B7B235), (5_363, 0x918E8472FEB82A9F)),
    ],
)
@pytest.mark.first(1)
def test_another_program_found_the_same_changes_of_debian_tags(tmp_path, modulus, gone, new):
    """Labels are positions among the sorted labels. Edges are left out of the two lists by their hashes."""
    columns = [
        np.unique(np.array(column.to_pylist()), return_inverse=True)[1] for column in pq.read_table(_TAGS).columns
    ]
    hashes = splitmix64(columns[0].astype(np.uint64) << np.uint64(32) | columns[1].astype(np.uint64))
    lists = [
        pa.table([column[hashes % np.uint64(modulus) != rest] for column in columns], names=["package", "tag"])
        for rest in (0, 1)
    ]
    found = changes_of(*lists, tmp_path / "out", workers=None)
    for counted, expected in ((found.record.gone, gone), (found.record.new, new)):
        assert (counted.count, counted.fingerprint) == expected


def test_what_cannot_be_compared_is_refused_in_a_sentence(tmp_path: Path) -> None:
    edges = [(1, 1), (1, 2)]
    bq.largest(edges, tmp_path / "largest", top=1, **QUIET)
    for arguments, options, sentence in (
        ((edges, edges), {"added": edges}, "name either the new edge list"),
        ((tmp_path / "largest", edges), {}, "holds only the largest bicliques"),
        ((edges, [("a", 1)]), {}, "the left labels are integers in .* and text in"),
    ):
        with pytest.raises(InputError, match=sentence):
            changes_of(*arguments, tmp_path / "out", **options)
        assert not (tmp_path / "out").exists()
