"""The whole pipeline in one process: whatever is varied, count and fingerprint are those of the engine alone."""

import fcntl
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import bicliques as bq
from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.cpu.workspace import Sizes
from bicliques.pipeline.output import part_writer, stretch
from bicliques.pipeline.run import files
from bicliques.pipeline.slices.worker import SliceTask
from bicliques.pipeline.workers.thread_pool import InThreads
from bicliques.schemas.bicliques import SCHEMA_VERSION
from bicliques.schemas.errors import InputError, ResourceError
from tests.support.engines import kind_of, registered
from tests.support.oracles import closed_pairs
from tests.support.runs import OWN, QUIET, answer, load_ledger, manifest_pair, random_edges, write_edges

EDGES = random_edges(60, 40, 0.3, 1)
SMALL = random_edges(14, 11, 0.4, 2)
STEPS = {"build": "bicliques.pipeline.api.preparing.build_graph", "mine": "bicliques.pipeline.mining.driver.mine_run"}


def rows_of(results: bq.Results) -> set[tuple[frozenset[Any], frozenset[Any]]]:
    table = results.to_arrow(columns=["left", "right"]).to_pydict()
    rows = [(frozenset(a), frozenset(b)) for a, b in zip(table["left"], table["right"], strict=True)]
    assert len(rows) == len(set(rows)) == len(results)
    return set(rows)


@pytest.mark.parametrize("strings", [False, True])
def test_the_rows_are_the_maximal_bicliques_in_the_users_labels(tmp_path, strings):
    source = write_edges(tmp_path / "g.parquet", SMALL, strings)
    results = bq.mine(source, tmp_path / "out", **QUIET)
    names = (lambda x: f"u{x}", lambda x: f"thing {x}") if strings else (int, int)
    expected = {
        (frozenset(names[0](u * 3 + 5) for u in left), frozenset(names[1](v * 7 + 1) for v in right))
        for left, right in closed_pairs({(int(u), int(v)) for u, v in SMALL})
    }
    assert rows_of(results) == expected
    assert results.complete
    assert results.outcome == "complete"
    assert results.manifest.schema_version == SCHEMA_VERSION
    assert re.fullmatch(r"[\d-]{10}T[\d:]{8}\+00:00", results.manifest.created), "to the second, and in UTC"
    frame = results.to_pandas()
    assert (frame.n_left == frame.left.map(len)).all()
    assert (frame.n_right == frame.right.map(len)).all()
    if not strings:  # dense ids follow the order of the labels, and words have another one
        assert manifest_pair(tmp_path / "out") == answer(SMALL)


def test_dense_ids_are_rows_of_the_label_tables(tmp_path):
    source = write_edges(tmp_path / "g.parquet", SMALL, strings=True)
    dense = bq.mine(source, tmp_path / "dense", ids="dense", **QUIET)
    named = bq.mine(source, tmp_path / "named", **QUIET)
    assert dense.manifest.fingerprint == named.manifest.fingerprint
    left, right = (
        pd.read_parquet(tmp_path / "dense" / "labels" / f"{side}.parquet").label for side in ("left", "right")
    )
    translated = {(frozenset(left[list(a)]), frozenset(right[list(b)])) for a, b in rows_of(dense)}
    assert translated == rows_of(named)


@pytest.mark.parametrize(
    "options",
    [
        {"root_side": "left"},
        {"root_side": "right"},
        {"order": "two-hop"},
        {"order": "unilateral"},
        {"order": "id"},
        {"slice_seconds": 0.01},
        {"ids": "dense"},
        {"count_only": True},
    ],
    ids=str,
)
def test_nothing_changes_the_answer(tmp_path, options):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    bq.mine(source, tmp_path / "out", **QUIET, **options)
    assert manifest_pair(tmp_path / "out") == answer(EDGES)


@pytest.mark.exhaustive
def test_tiny_buffers_and_slices_of_10_ms_give_the_same(tmp_path, monkeypatch):
    tiny = Sizes(hub_bits=64, hub_list=16, hub_frame_bits=16, word_stack=64, rows=7, members=40)
    for name, value in (("GROUP_MEMBERS", 60), ("GROUP_ROWS", 9), ("STRETCH_ROWS", 20)):
        monkeypatch.setattr(stretch, name, value)
    monkeypatch.setattr(part_writer, "PART_BYTES", 30_000)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    with registered(kind_of("cpu", lambda halvings: CpuEngine(tiny))):
        results = bq.mine(source, tmp_path / "out", workers=0, slice_seconds=0.01, progress=False, report=False)
    assert (len(results), results.manifest.fingerprint) == answer(EDGES)
    assert len(load_ledger(tmp_path / "out").entries) > 5
    assert len(results.files) > 5
    bq.verify(tmp_path / "out", progress=False)


@pytest.mark.parametrize(
    "search",
    [
        {"min_left": 3},
        {"min_right": 4},
        {"min_left": 3, "min_right": 3},
        {"max_left": 4},
        {"max_right": 3},
        {"min_left": 2, "max_left": 6, "min_right": 2, "max_right": 5},
    ],
    ids=str,
)
@pytest.mark.first(4)
def test_thresholds_prune_and_filter_the_maximal_bicliques(tmp_path, search):
    source = write_edges(tmp_path / "g.parquet", SMALL)
    every = rows_of(bq.mine(source, tmp_path / "all", **QUIET))
    some = bq.mine(source, tmp_path / "some", **QUIET, **search)

    def wanted(side: str, size: int) -> bool:
        return search.get(f"min_{side}", 1) <= size <= search.get(f"max_{side}", size)

    assert rows_of(some) == {(a, b) for a, b in every if wanted("left", len(a)) and wanted("right", len(b))}
    assert bq.count(source, **OWN, **search).count == len(some) < len(every)
    bq.verify(tmp_path / "some", progress=False)


def test_thresholds_that_leave_nothing_are_a_complete_answer(tmp_path):
    source = write_edges(tmp_path / "g.parquet", SMALL)
    results = bq.mine(source, tmp_path / "out", min_left=15, **QUIET)
    assert results.complete
    assert len(results) == len(results.to_pandas()) == results.top().num_rows == 0
    assert list(results.to_pandas().columns) == ["id", "left", "right", "n_left", "n_right", "root"]
    assert bq.verify(tmp_path / "out", progress=False).count == 0
    assert bq.count(source, min_left=15, **OWN).count == 0
    assert bq.dry_run(source, min_left=15, progress=False).estimate is None


@pytest.mark.parametrize("most", [1, 10, 1500])
def test_max_results_is_exact_and_the_run_goes_on_from_there(tmp_path, most):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    out = tmp_path / "out"
    results = bq.mine(source, out, max_results=most, workers=0, slice_seconds=0.02, progress=False, report=False)
    assert len(results) == len(results.to_pandas()) == most
    assert results.outcome == "max_results"
    assert not (out / "manifest.json").exists()
    again = bq.resume(out, **QUIET)
    assert (len(again), again.outcome) == (most, "max_results")
    more = bq.resume(out, max_results=most + 5, **QUIET)
    assert len(more) == most + 5
    whole = bq.resume(out, max_results=None, **QUIET)
    assert (len(whole), whole.manifest.fingerprint) == answer(EDGES)
    assert len(rows_of(whole)) == len(whole)


def test_as_many_results_as_there_are_is_complete(tmp_path):
    source = write_edges(tmp_path / "g.parquet", SMALL)
    count, _ = answer(SMALL)
    assert bq.mine(source, tmp_path / "out", max_results=count + 1, **QUIET).complete


def test_a_time_limit_stops_and_leaves_a_resumable_run(tmp_path):
    edges = random_edges(300, 90, 0.35, 7)
    source = write_edges(tmp_path / "g.parquet", edges)
    out = tmp_path / "out"
    results = bq.mine(source, out, time_limit=0.3, **QUIET)
    assert results.outcome == "time_limit"
    assert 0 < len(results) < 4_000_000
    assert len(results) == sum(len(results.to_arrow(columns=["root"])[name]) for name in ["root"])
    again = bq.resume(out, time_limit=0.2, **QUIET)
    assert len(again) > len(results)
    sessions = json.loads((out / "steps" / "mine.json").read_text())["sessions"]
    assert [session["outcome"] for session in sessions] == ["time_limit", "time_limit"]


def test_no_slice_is_given_more_time_than_is_left(tmp_path, monkeypatch):
    given = []
    submit = InThreads.submit

    def watched(pool: InThreads, tag: int, function: Callable[[Any], Any], argument, **how: bool):
        if isinstance(argument, SliceTask):
            given.append(argument.limits.seconds or math.inf)
        submit(pool, tag, function, argument, **how)

    monkeypatch.setattr(InThreads, "submit", watched)
    source = write_edges(tmp_path / "g.parquet", random_edges(300, 90, 0.35, 7))
    results = bq.mine(source, tmp_path / "out", time_limit=0.1, **QUIET)
    assert results.outcome == "time_limit"
    assert 0 < max(given) <= 0.1


def test_what_is_removed_afterwards_is_not_forced_to_the_disk(tmp_path, monkeypatch):
    """A disk takes milliseconds to say that it has something."""
    forced = []
    monkeypatch.setattr("os.fsync", forced.append)
    source = write_edges(tmp_path / "g.parquet", random_edges(20, 20, 0.4, 3))
    assert bq.count(source, **OWN).complete
    assert forced == []
    bq.mine(source, tmp_path / "out", **QUIET)
    assert forced  # a run is to survive a loss of power


def test_count_counts_and_leaves_nothing(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    (tmp_path / "scratch").mkdir()
    count, fingerprint = answer(EDGES)
    found = bq.count(source, workers=0, folder=tmp_path / "scratch", progress=False)
    assert (found.count, found.complete, found.fingerprint) == (count, True, None)
    proved = bq.count(source, fingerprint=True, root_side="left", **OWN)
    assert proved.fingerprint == fingerprint
    stopped = bq.count(source, max_results=5, **OWN)
    assert (stopped.count, stopped.complete, stopped.outcome) == (5, False, "max_results")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_run_that_only_counted_says_so_when_asked_for_rows(tmp_path):
    source = write_edges(tmp_path / "g.parquet", SMALL)
    results = bq.mine(source, tmp_path / "out", count_only=True, **QUIET)
    assert len(results) == answer(SMALL)[0]
    assert results.manifest.proven_rows == 0
    for ask in (results.to_pandas, results.top, lambda: bq.verify(tmp_path / "out")):
        with pytest.raises(InputError, match="holds no bicliques"):
            ask()


@pytest.mark.parametrize("source", [None, 7, len, b"x.csv"], ids=str)
def test_other_objects_are_refused(tmp_path, source):
    with pytest.raises(InputError, match=r"no source|is not a graph"):
        bq.mine(source, tmp_path / "out", **QUIET)
    assert list(tmp_path.iterdir()) == []


def test_a_fresh_run_takes_its_lock_once_and_sums_each_file_once(tmp_path, monkeypatch):
    locks, summed = [], Counter[str]()
    flock, of_piece = fcntl.flock, files._of_piece

    def lock(descriptor: int, kind: int):
        flock(descriptor, kind)
        if kind & fcntl.LOCK_EX:
            locks.append(descriptor)

    def counted(file: Path, start: int) -> tuple[int, int]:
        summed[file.name] += 1
        return of_piece(file, start)

    monkeypatch.setattr(fcntl, "flock", lock)
    monkeypatch.setattr(files, "_of_piece", counted)
    source = write_edges(tmp_path / "g.parquet", SMALL)
    bq.mine(source, tmp_path / "out", **QUIET)
    assert len(locks) == 1
    assert set(summed.values()) == {1}, "what was just written is not read again"
    assert {"edges.parquet", "roots.npy"} <= summed.keys()
    bq.resume(tmp_path / "out", **QUIET)
    assert summed["edges.parquet"] == 2, "a run that was left is checked"


@pytest.mark.parametrize("step", ["build", "mine"])
def test_an_error_after_the_input_is_read_leaves_a_run_to_go_on_with(tmp_path, monkeypatch, step):
    def fail(*_):
        raise ResourceError("the disk is full")

    source, out = write_edges(tmp_path / "g.parquet", SMALL), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(STEPS[step], fail)
        with pytest.raises(ResourceError, match="the disk is full, then continue with: bicliques"):
            bq.mine(source, out, **QUIET)
    assert bq.resume(out, **QUIET).complete


def test_the_manifest_is_the_run_card(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    # so much time that even on a busy machine some roots are timed
    manifest = bq.mine(source, tmp_path / "out", workers=0, slice_seconds=1000.0, progress=False, report=False).manifest
    assert manifest.input["n_edges"] == len(EDGES)
    assert len(manifest.input["digest"]) == 64
    assert manifest.proven_rows == manifest.count
    assert list(manifest.seconds) == ["startup", "ingest", "build", "plan", "mine", "prove"]
    assert list(manifest.peak_rss["workers"]) == list(manifest.mining["workers"])
    assert manifest.peak_rss["driver"] >= manifest.peak_rss["workers"].popitem()[1] > 50 << 20
    assert manifest.bytes == sum(path.stat().st_size for path in (tmp_path / "out" / "bicliques").iterdir())
    assert 0 < manifest.mining["busy_ratio"] <= 1
    assert manifest.graph["profile"]["left"]["max"] == np.bincount(EDGES[:, 0]).max()
    assert -1 <= manifest.plan["rank_correlation"] <= 1
    assert manifest.plan["roots_timed"] > 3


def test_progress_grows_and_ends_with_everything(tmp_path):
    source = write_edges(tmp_path / "g.parquet", EDGES)
    seen = []
    results = bq.mine(source, tmp_path / "out", workers=0, slice_seconds=0.02, progress=seen.append)
    steps = list(dict.fromkeys(moment.step for moment in seen))
    assert steps == ["ingest", "build", "plan", "mine", "prove", "report"]
    mining = [moment for moment in seen if moment.step == "mine"]
    assert [m.bicliques for m in mining] == sorted(m.bicliques for m in mining)
    assert (mining[-1].share, mining[-1].bicliques) == (1.0, len(results))
    assert mining[-1].bytes == results.manifest.bytes


@pytest.mark.parametrize("call", ["mine", "count", "dry_run", "resume"])
def test_workers_that_an_engine_cannot_have_are_refused_at_once(call, tmp_path):
    source = write_edges(tmp_path / "g.parquet", SMALL)
    bq.mine(source, tmp_path / "run", engine="reference", max_results=2, **QUIET)
    (tmp_path / "run" / "steps" / "plan.json").unlink()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    asked = {
        "mine": lambda: bq.mine(tmp_path / "not there", tmp_path / "new", engine="cpu", devices=(0,)),
        "count": lambda: bq.count(tmp_path / "not there", engine="cpu", devices=(0,)),
        "dry_run": lambda: bq.dry_run(tmp_path / "not there", engine="cpu", devices=(0,)),
        "resume": lambda: bq.resume(tmp_path / "run", max_results=3, devices=(0,)),
    }
    with pytest.raises(InputError, match="works on processor cores: leave devices, rmm_pool and spill out"):
        asked[call]()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
