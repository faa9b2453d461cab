"""Runs made from the run before are what mining gives, and a kill or damage leaves nothing that is taken for one."""

import itertools
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bicliques as bq
from bicliques.pipeline.api import refreshing
from bicliques.pipeline.compare import diffing
from bicliques.pipeline.compare import refreshed as by_parts
from bicliques.pipeline.compare.refreshed import Ids
from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.process import startup
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.manifest import Parent
from tests.support.compared import QUIET, Edges, maximal_bicliques, night, of_sizes, rows_of, two
from tests.support.examples import examples
from tests.support.runs import ROOT, environment

#: Edges of several parts, and the same without a few and with others.
WAS: Edges = {(f"a{u}", v) for u in range(9) for v in range(9) if (u * v + u + v) % 5}
NOW: Edges = WAS - {("a1", 3), ("a8", 7)} | {("new", 1), ("new", 3), ("a0", 77)}


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refresh however small the graph is, and however much has changed."""
    for name, value in (("LEAST_S", 0), ("BUILDS", 0), ("EDGES", 0), ("SHARE", 1e9), ("BYTE_S", 0)):
        monkeypatch.setattr(refreshing, name, value)


def refreshed(run: Path, edges: Any, place: Path, **options: Any) -> bq.Results:
    return bq.refresh(run, sorted(edges) if isinstance(edges, set) else edges, place, **QUIET | options)


def check(found: bq.Results, mined: bq.Results) -> Parent:
    """It was refreshed, and has the rows, ids, count and fingerprint of a run that was mined. Every file is proven."""
    columns = ["id", "left", "right", "n_left", "n_right"]
    one, other = (results.to_arrow(columns=columns).sort_by("id") for results in (found, mined))
    assert one.equals(other)
    assert found.complete
    assert (found.manifest.count, found.manifest.fingerprint) == (mined.manifest.count, mined.manifest.fingerprint)
    assert bq.verify(found.path, sample=50, progress=False).count == len(mined)
    assert found.manifest.parent is not None
    return found.manifest.parent


def in_small_parts(patch: pytest.MonkeyPatch) -> None:
    """Row groups of a few rows, and parts of a row group."""
    patch.setattr(part_writer, "PART_BYTES", 1)
    for name, value in (("GROUP_ROWS", 4), ("GROUP_MEMBERS", 30), ("_LEAST_MEMBERS", 8)):
        patch.setattr(stretch, name, value)


@pytest.mark.usefixtures("always")
def test_pairs_of_random_graphs_one_by_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    for k in range(examples(12)):
        was, now = two(rng)
        if was and now:
            night(tmp_path / f"{k}", was)
            found = refreshed(tmp_path / f"{k}", now, tmp_path / f"{k} now")
            assert rows_of(found) == maximal_bicliques(now)
            check(found, bq.mine(sorted(now), tmp_path / f"{k} mined", **QUIET))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("ids", "text", "asked"),
    [
        ("labels", False, {}),
        ("labels", True, {"min_left": 2, "min_right": 1}),
        ("dense", True, {"min_left": 1, "min_right": 3}),
        ("dense", False, {"min_left": 2, "min_right": 2, "max_left": 4}),
    ],
)
def test_thousands_of_pairs_at_once_are_what_mining_gives(tmp_path, monkeypatch, ids, text, asked):
    """The bicliques of a disjoint union are those of its graphs, so one refresh is one of every pair."""
    in_small_parts(monkeypatch)
    for name, value in (("GROUP_ROWS", 40), ("GROUP_MEMBERS", 300), ("_LEAST_MEMBERS", 80)):
        monkeypatch.setattr(stretch, name, value)
    rng, names = np.random.default_rng(44 + text), "user {}".format if text else int
    edges, expected = [set[Any](), set[Any]()], set()
    for k in range(examples(800)):
        pair = two(rng)
        if rng.random() < 0.8:  # so that some parts have no row that is gone
            pair = (pair[1], pair[1])
        for own, total in zip(pair, edges, strict=True):
            total |= {(names(10 * k + a), 10 * k + b) for a, b in own}
        named = {(names(10 * k + a), 10 * k + b) for a, b in pair[1]}
        least, most = (asked.get("min_left", 1), asked.get("min_right", 1)), (asked.get("max_left", 99), 99)
        expected |= of_sizes(maximal_bicliques(named), least, most)
    before, mined = (night(tmp_path / name, own, ids=ids, **asked) for name, own in zip("ab", edges, strict=True))
    found = refreshed(before, mined.with_suffix(".parquet"), tmp_path / "now", workers=None)
    parent = check(found, bq.open_run(mined))
    if ids == "labels":
        assert rows_of(found) == expected
        links = [path.stat().st_nlink for path in (found.path / "bicliques").iterdir()]
        assert 0 < links.count(2) < len(links), "parts without a row that is gone are shared"
    assert (parent.count, parent.folder) == (len(bq.open_run(before)), str(before))
    assert parent.count - parent.gone + parent.new == len(found)
    assert parent.gone > 20


@pytest.mark.usefixtures("always")
def test_eight_nights_are_what_mining_the_last_day_gives(tmp_path: Path) -> None:
    """Vertices and edges come and go, each night needs the one before only, and in the end no other is there."""
    rng = np.random.default_rng(20)
    edges: Edges = {(f"a{u}", f"b{v}") for u, v in np.argwhere(rng.random((12, 12)) < 0.4).tolist()}
    last = night(tmp_path / "0", edges, min_right=2)
    for day in range(1, 9):
        flipped = {(f"a{u}", f"b{v}") for u, v in rng.integers(0, 12 + day // 3, (4, 2)).tolist()}
        edges = (edges ^ flipped) - {edge for edge in edges if edge[0] == f"a{day % 12}" and day % 4 == 0}
        found = refreshed(last, edges, tmp_path / str(day))
        assert rows_of(found) == of_sizes(maximal_bicliques(edges), (1, 2), (99, 99))
        shutil.rmtree(last)
        last = found.path
    parent = check(found, bq.mine(sorted(edges), tmp_path / "mined", min_right=2, **QUIET))
    assert parent.folder == str(tmp_path / "7")
    assert parent.mined_seconds < 1e3


@pytest.mark.usefixtures("always")
def test_nothing_and_everything_changed(tmp_path: Path) -> None:
    was = night(tmp_path / "was", WAS)
    same = check(refreshed(was, WAS, tmp_path / "same"), bq.open_run(was))
    assert (same.gone, same.new) == (0, 0)
    other = {(f"c{u}", v + 100) for u, v in itertools.product(range(3), range(3)) if u != v}
    mined = night(tmp_path / "other", other)
    every = check(refreshed(was, other, tmp_path / "every"), bq.open_run(mined))
    assert (every.gone, every.new) == (every.count, len(bq.open_run(mined)))
    back = check(refreshed(tmp_path / "every", WAS, tmp_path / "back"), bq.open_run(was))
    assert (back.gone, back.new) == (len(bq.open_run(mined)), every.count)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("most", [{"max_left": 3}, {"containing_left": ["a3"]}])
def test_filters_and_members_of_the_run_before_hold(tmp_path: Path, most: dict[str, Any]) -> None:
    was, mined = night(tmp_path / "was", WAS, **most), night(tmp_path / "mined", NOW, **most)
    parent = check(refreshed(was, NOW, tmp_path / "now"), bq.open_run(mined))
    assert parent.gone + parent.new > 0


def test_mining_anew_where_that_is_cheaper_is_said(tmp_path, monkeypatch, caplog):
    was, reasons = night(tmp_path / "was", WAS), []
    monkeypatch.setattr(refreshing, "LEAST_S", 1e9)  # also where a machine stalls
    caplog.set_level("INFO", "bicliques")

    def mined(name: str) -> None:
        notes: list[str] = []
        found = refreshed(was, NOW, tmp_path / name, progress=lambda at: notes.append(at.note))
        assert (found.complete, found.manifest.parent) == (True, None)
        assert rows_of(found) == maximal_bicliques(NOW)
        reasons.extend(note for note in notes if note.startswith("mining anew"))

    mined("small")
    monkeypatch.setattr(refreshing, "LEAST_S", 0)
    monkeypatch.setattr(refreshing, "BUILDS", 0)
    mined("much")
    monkeypatch.setattr(refreshing, "EDGES", 0)
    monkeypatch.setattr(refreshing, "SHARE", 0)
    monkeypatch.setattr(refreshing, "SURE", -1)
    mined("long")
    monkeypatch.setattr(refreshing, "SHARE", 1e9)
    monkeypatch.setattr(refreshing, "BYTE_S", 1.0)
    mined("written")
    assert [re.sub(r"[\d.]+ s\b", "N s", reason) for reason in reasons] == [
        "mining anew, because that takes some N s",
        f"mining anew, because 5 edges have changed, of {len(NOW)}",
        "mining anew, because what changed was not found in N s, 0% of the time that it takes",
        "mining anew, because writing what stays takes some N s, and mining N s",
    ]
    assert [each for each in caplog.messages if each.startswith("mining anew")] == reasons


@pytest.mark.parametrize(("looked_at", "is_found"), [(60, True), (20, False), (0, False)])
def test_what_is_nearly_found_in_time_is_found(monkeypatch: pytest.MonkeyPatch, looked_at: int, is_found: bool) -> None:
    """Mining took 100 s, and writing would take 20 s. A tenth has passed; what is left is foreseen by what is done."""
    clock = SimpleNamespace(now=1.0)
    monkeypatch.setattr(refreshing, "time", SimpleNamespace(monotonic=lambda: clock.now))
    two = SimpleNamespace(looked_at=looked_at, n_with_own_edge=100)
    batches = refreshing._Pace(two, 10.0, 60.0 - 20.0).keep([1, 2, 3])  # type: ignore[arg-type, list-item]
    assert next(batches) == 1
    clock.now = 11.0
    with nullcontext() if is_found else pytest.raises(refreshing._TooLongError):
        assert list(batches) == [2, 3]


@pytest.mark.usefixtures("always")
def test_the_start_of_the_command_is_told_in_the_run_that_stays(tmp_path, monkeypatch):
    was, known = night(tmp_path / "was", WAS), []
    own = refreshing.fill
    monkeypatch.setattr(refreshing, "fill", lambda *given: (startup._clock.give(1e6), known.append(own(*given)))[1])
    assert refreshed(was, NOW, tmp_path / "now").manifest.seconds["startup"] >= 1e6
    assert known == [None]


@pytest.mark.usefixtures("always")
def test_a_run_that_is_there_goes_on_or_is_left_alone(tmp_path: Path) -> None:
    was, mined = night(tmp_path / "was", WAS), night(tmp_path / "mined", NOW)
    source = mined.with_suffix(".parquet")
    stopped = bq.mine(source, tmp_path / "now", max_results=3, **QUIET)
    assert not stopped.complete
    found = refreshed(was, source, tmp_path / "now")
    assert (found.complete, found.manifest.parent) == (True, None)
    before = sorted((path, path.stat().st_mtime_ns) for path in found.path.rglob("*"))
    assert refreshed(was, source, tmp_path / "now").complete
    assert sorted((path, path.stat().st_mtime_ns) for path in found.path.rglob("*")) == before
    with pytest.raises(InputError, match="holds a run"):
        refreshed(was, source, was)


def damaged(path: Path) -> None:
    max((path / "bicliques").iterdir()).unlink()


def without_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def another_label(path: Path) -> None:
    file = path / "labels" / "left.parquet"
    bits = bytearray(file.read_bytes())
    bits[len(bits) // 2] ^= 1
    file.write_bytes(bits)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    ("made", "harm", "words"),
    [
        ({}, damaged, "has no bytes, but the manifest says"),
        ({}, without_manifest, "is not complete; continue with: bicliques.resume("),
        ({}, another_label, "left.parquet is missing or damaged"),
        ({"count_only": True}, None, "is not a run that lists all bicliques"),
        ({"per_vertex": True}, None, "is not a run that lists all bicliques"),
        ({"max_results": 3}, None, "is not complete; continue with: bicliques.resume("),
        ({"top": 2}, None, "is not a run that lists all bicliques"),
    ],
)
def test_runs_that_cannot_be_refreshed_are_refused_in_a_sentence(tmp_path, made, harm, words):
    run = tmp_path / "run"
    if "top" in made:
        bq.largest(sorted(WAS), run, **QUIET | made)
    else:
        bq.mine(sorted(WAS), run, **QUIET | made)
    if harm is not None:
        harm(run)
    with pytest.raises(InputError) as refused:
        refreshed(run, NOW, tmp_path / "now")
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(tmp_path.iterdir()) == [run]


def test_other_thresholds_and_other_places_are_refused(tmp_path: Path) -> None:
    run = night(tmp_path / "run", WAS, min_left=2)
    for options, words in (
        ({"min_left": 3}, "is a run, whose options hold; leave min_left out"),
        ({"containing_right": [3]}, "is a run, whose options hold; leave containing_right out"),
    ):
        with pytest.raises(InputError, match=words):
            refreshed(run, NOW, tmp_path / "now", **options)
    with pytest.raises(InputError, match="does not exist"):
        refreshed(tmp_path / "nowhere", NOW, tmp_path / "now")
    with pytest.raises(InputError, match="is kept in a store, and rows are taken over from folders"):
        refreshed(Path("s3://lake/runs/1"), NOW, tmp_path / "now")
    with pytest.raises(InputError, match="a run in a store is not made from another one"):
        refreshed(run, NOW, Path("s3://lake/runs/1"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.parquet"]


@pytest.mark.usefixtures("always")
def test_labels_of_another_type_are_mined_anew(tmp_path: Path) -> None:
    was = night(tmp_path / "was", {(1, 2), (3, 4)})
    found = refreshed(was, [("x", 2), ("y", 4)], tmp_path / "now")
    assert (found.complete, found.manifest.parent) == (True, None)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("gone", [True, False])
def test_a_part_that_was_changed_is_not_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: bool) -> None:
    """Its size is right, so only reading it shows the damage. The new run is not complete, and resuming mends it."""
    in_small_parts(monkeypatch)
    was = night(tmp_path / "was", WAS)
    for part in (was / "bicliques").iterdir():
        bits = bytearray(part.read_bytes())
        bits[len(bits) // 3] ^= 4
        part.write_bytes(bits)
    with pytest.raises(IncompleteError, match=r"(cannot be read|has the id|do not ascend|with fingerprint)"):
        refreshed(was, NOW if gone else WAS, tmp_path / "now")
    left = tmp_path / "now"
    assert not (left / "manifest.json").exists()
    for part in (left / "bicliques").glob("*"):
        part.unlink()
    assert rows_of(bq.resume(left, **QUIET)) == maximal_bicliques(NOW if gone else WAS)


@pytest.mark.usefixtures("always")
def test_a_run_that_lacks_a_biclique_is_not_the_base_of_another(tmp_path, monkeypatch):
    was = night(tmp_path / "was", WAS)
    monkeypatch.setattr(Ids, "have", lambda self, ids: np.zeros(len(ids), np.bool_))
    with pytest.raises(IncompleteError, match=r"has 0 of the [\d,]+ bicliques that are gone, so it did not have all"):
        refreshed(was, NOW, tmp_path / "now")
    assert not list((tmp_path / "now" / "ledger").iterdir())


@pytest.mark.usefixtures("always")
def test_verify_looks_for_rows_that_a_chain_of_refreshed_runs_has_lost(tmp_path, monkeypatch):
    """If the search for what changed had missed a biclique, every run after it would lack it, and be proven."""
    was, middle = night(tmp_path / "was", WAS), tmp_path / "middle"
    take = refreshing.take_over
    with monkeypatch.context() as patch:
        patch.setattr(
            refreshing, "take_over", lambda *a: take(*a[:4], (each.rows(1, len(each)) for each in a[4]), *a[5:])
        )
        assert len(refreshed(was, NOW, middle)) < len(maximal_bicliques(NOW))
    last = refreshed(middle, NOW | {("b", 5)}, tmp_path / "last").path
    bq.verify(last, progress=False)
    with pytest.raises(IncompleteError, match=r"lacks|missing"):
        bq.verify(last, complete=(1, 1), sample=300, progress=False)
    assert bq.verify(was, complete=(1, 1), sample=100, progress=False).count == len(bq.open_run(was))
    again = refreshed(was, NOW, tmp_path / "again").path
    assert bq.verify(again, complete=(1, 1), sample=100, progress=False).count == len(maximal_bicliques(NOW))


#: The command line, killed at the n-th call of a function.
KILLED = """
import os, sys
from importlib import import_module
from bicliques.pipeline.api import refreshing
from bicliques.pipeline.output import part_writer
place, name, n = sys.argv.pop(1).split()
refreshing.LEAST_S = refreshing.BUILDS = refreshing.EDGES = 0
refreshing.BYTE_S, refreshing.SHARE = 0, 1e9
part_writer.PART_BYTES = 1
module = import_module(f"bicliques.pipeline.{place}")
if "." in name:
    owner, name = name.split(".")
    module = getattr(module, owner)
own, calls = getattr(module, name), []
def killed(*given, **how):
    calls.append(0)
    if len(calls) == int(n):
        os._exit(9)
    return own(*given, **how)
setattr(module, name, killed)
from bicliques.pipeline.cli.main import program
program()
"""


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with yesterday's run, of small parts, and today's edges."""
    place = tmp_path_factory.mktemp("nights")
    with pytest.MonkeyPatch.context() as patch:
        in_small_parts(patch)
        night(place / "was", WAS)
    night(place / "mined", NOW)
    return place


@pytest.mark.parametrize(
    ("step", "can_resume"),
    [
        ("api.preparing ingest_source 1", False),
        pytest.param("api.steps complete_run 2", True, marks=pytest.mark.exhaustive),
        ("compare.taking_over _take 2", True),
        pytest.param("compare.taking_over replace_file 1", True, marks=pytest.mark.exhaustive),
        pytest.param("run.store Store.admit 1", True, marks=pytest.mark.exhaustive),
        pytest.param("compare.taking_over remember 1", True, marks=pytest.mark.exhaustive),
        pytest.param("proof.proving write_json 1", True, marks=pytest.mark.exhaustive),
    ],
)
def test_a_kill_leaves_yesterday_whole_and_today_to_go_on_with(nights, tmp_path, step, can_resume):
    was, today = Path(shutil.copytree(nights / "was", tmp_path / "was")), nights / "mined.parquet"
    before = {path: path.read_bytes() for path in was.rglob("*") if path.is_file()}
    words = ["refresh", was, today, "-o", tmp_path / "now", "--workers", "0", "--quiet"]
    command = [sys.executable, "-c", KILLED, step, *map(str, words)]
    ended = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    assert ended.returncode == 9, ended
    assert {path: path.read_bytes() for path in was.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "now" / "manifest.json").exists()
    copy = Path(shutil.copytree(tmp_path / "now", tmp_path / "copy"))
    expected = maximal_bicliques(NOW)
    assert rows_of(bq.refresh(was, today, tmp_path / "now", **QUIET)) == expected
    if can_resume:
        shutil.rmtree(was)  # the copy is what the kill left, and needs nothing of it
        assert rows_of(bq.resume(copy, **QUIET)) == expected
    for path in (tmp_path / "now", copy) if can_resume else (tmp_path / "now",):
        assert bq.verify(path, progress=False).count == len(expected)
        assert not (path / "pending").exists()


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("ids", ["labels", "dense"])
@pytest.mark.first(1)
def test_a_refreshed_run_and_the_one_before_differ_in_what_all_rows_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ids: str
) -> None:
    """Ids of parts say the same as hashes of the members of all rows, which are not read then."""
    in_small_parts(monkeypatch)
    rng = np.random.default_rng(11)
    graphs = [(WAS, NOW), (NOW, WAS), *(two(rng) for _ in range(examples(6)))]
    for k, (was, now) in enumerate(graphs):
        if not was or not now:
            continue
        old, new = tmp_path / f"{k}", tmp_path / f"{k} now"
        night(old, was, ids=ids)
        parent = refreshed(old, now, new).manifest.parent
        if parent is None or parent.gone == parent.count:  # no part was taken over
            continue
        found = []
        for name, stand_in in (("Partition", None), ("follows", lambda both: False)):  # neither way needs the other
            with monkeypatch.context() as patch:
                patch.setattr(diffing, name, stand_in)
                changes = bq.diff(old, new, tmp_path / f"{k} {name}", progress=False)
            tables = [own.to_arrow().sort_by("id") for own in (changes.gone, changes.new)]
            found.append([*tables, *changes.vertices.values()])
        assert all(one.equals(other) for one, other in zip(*found, strict=True))


@pytest.mark.usefixtures("always")
def test_ids_of_a_refreshed_run_that_were_changed_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night(tmp_path / "old", WAS)
    refreshed(tmp_path / "old", NOW, tmp_path / "new")
    ids_of = by_parts._ids
    monkeypatch.setattr(by_parts, "_ids", lambda own, number: ids_of(own, number) ^ np.uint64(number == 0))
    with pytest.raises(IncompleteError, match="rows with fingerprint"):
        bq.diff(tmp_path / "old", tmp_path / "new", tmp_path / "changes", progress=False)
    assert not (tmp_path / "changes").exists()
