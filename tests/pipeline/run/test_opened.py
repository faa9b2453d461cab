"""A run, opened once: what is kept, what is read anew, and the sums over its slices."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bicliques.pipeline.api import steps
from bicliques.pipeline.run import folder as run_folder
from bicliques.pipeline.run.accounts import Account, by_worker, peak_rss_of
from bicliques.pipeline.run.files import checksum
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.session import busy_ratio_of
from bicliques.pipeline.workers.options import WorkerOptions
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.manifest import PLAN
from bicliques.schemas.options import RunLimits, RunOptions
from bicliques.schemas.stats import EngineStats, SliceStats
from tests.support.runs import answer, ledger_entry, random_edges, rewrite_record, session, write_edges

EDGES = random_edges(30, 20, 0.3, 4)


@pytest.fixture
def planned(tmp_path: Path) -> Run:
    """A run up to its plan."""
    source = write_edges(tmp_path / "g.parquet", EDGES)
    steps.start(source, tmp_path / "out", RunOptions(source=str(source)), RunLimits(), False)
    steps.prepare(tmp_path / "out", False)
    return Run.at(tmp_path / "out")


def test_what_does_not_change_is_read_once(planned: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[str] = Counter()
    whole = run_folder.read_json

    def counted(file: Path) -> Any:
        read[file.name] += 1
        return whole(file)

    monkeypatch.setattr(run_folder, "read_json", counted)
    run = Run.at(planned.path)
    for _ in range(3):
        assert run.options.search.mode == "list"
        assert run.input["n_left"] == 30
        assert run.built["merged_edges"] <= len(EDGES)
        assert run.planned["n_roots"] == len(run.plan.roots)
        assert run.names == ("user", "item")
        assert run.has("plan")
        assert len(run.identity) == 32
    assert read == {"options.json": 2, "ingest.json": 1, "build.json": 1, "plan.json": 1}, (
        "its origin is read by itself"
    )
    assert run.graph is run.graph
    assert run.plan is run.plan
    assert run.tables is run.tables
    assert run.hashes is run.hashes


def test_what_a_step_makes_anew_is_read_anew(planned: Run) -> None:
    plan, graph, tables, hashes = planned.plan, planned.graph, planned.tables, planned.hashes
    planned.finish("build", planned.built)
    assert planned.has_made("build")
    assert planned.plan is not plan
    assert planned.graph is not graph
    assert planned.tables is not tables
    assert planned.hashes is not hashes


def test_a_plan_that_is_made_anew_leaves_the_graph_alone(planned: Run) -> None:
    plan, graph, tables, hashes = planned.plan, planned.graph, planned.tables, planned.hashes
    before = planned.planned
    assert not planned.has_made("plan")
    planned.finish("plan", dict(before) | {"n_roots": 1})
    assert planned.has_made("plan")
    assert planned.planned["n_roots"] == 1
    assert planned.plan is not plan
    assert (planned.graph, planned.tables, planned.hashes) == (graph, tables, hashes)
    assert planned.graph is graph


def test_the_ledger_is_read_anew_while_others_mine(planned: Run) -> None:
    assert planned.ledger().total.count == 0
    steps.mine(planned.path, WorkerOptions(workers=0), progress=False)
    assert planned.ledger().total.count == answer(EDGES)[0]
    assert [session.outcome for session in planned.sessions()] == ["complete"]


def test_what_is_not_there_yet_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not the folder of a run"):
        Run.at(tmp_path)
    source = write_edges(tmp_path / "g.parquet", EDGES)
    run = steps.start(source, tmp_path / "out", RunOptions(source=str(source)), RunLimits(), False)
    assert run.has("ingest")
    assert not run.has("build")
    with pytest.raises(IncompleteError, match=r"step build of .* is not done; continue with"):
        _ = run.built
    ledger, problems = run.survey()
    assert (ledger.entries, problems) == ({}, {})


def test_sums_by_worker() -> None:
    stats = [
        SliceStats(EngineStats(device_bytes=5 << 30), joules=2.0, peak_watts=70.0, peak_rss=9),
        SliceStats(peak_rss=4),
        SliceStats(EngineStats(device_bytes=3 << 30), joules=1.0),
    ]
    entries = [
        ledger_entry(0, (PLAN, 0, 1), count=5, seconds=2.0, began=10.0, worker="b:1", stats=stats[0]),
        ledger_entry(1, (PLAN, 1, 2), count=1, seconds=0.5, began=11.0, worker="a:1", stats=stats[1]),
        ledger_entry(2, (PLAN, 2, 3), count=2, seconds=1.0, began=14.0, worker="b:1", stats=stats[2]),
    ]
    assert by_worker(entries) == {
        "b:1": Account(2, 7, 3.0, 15.0, 9, 5 << 30, 3.0, 70.0),
        "a:1": Account(1, 1, 0.5, 11.5, 4, 0, 0.0, 0.0),
    }
    assert list(by_worker(entries)) == ["b:1", "a:1"], "in the order of their first slices"
    assert Account.of(entries) == Account(3, 8, 3.5, 15.0, 9, 5 << 30, 3.0, 70.0)


def test_peak_memory_by_process(planned: Run) -> None:
    entry = ledger_entry(0, (PLAN, 0, 1), stats=SliceStats(peak_rss=7))
    assert peak_rss_of(planned, [entry]) == {"driver": 0, "workers": {"h:1": 7}}


def test_a_busy_ratio_is_that_of_all_sessions_together() -> None:
    sessions = [replace(session(), busy_seconds=1.0, idle_seconds=idle) for idle in (0.0, 2.0)]
    assert busy_ratio_of(sessions) == 0.5, "and not the mean of their ratios"
    assert busy_ratio_of([]) is None


def test_a_graph_that_no_step_makes_is_not_searched(planned: Run) -> None:
    """Its checksums are right, as those of files that somebody has sent may be. Compiled code would read elsewhere."""
    folder = planned.folder
    indices = np.load(folder.graph / "root_indices.npy")
    indices[3] = 1 << 30
    np.save(folder.graph / "root_indices.npy", indices)
    record = folder.path / "steps" / "build.json"
    files = json.loads(record.read_text())["files"]
    rewrite_record(record, files=files | {"graph/root_indices.npy": checksum(folder.graph / "root_indices.npy")})
    assert folder.broken("build") is None
    with pytest.raises(IncompleteError, match=r"step build of .* does not give again what it gave"):
        steps.run(folder.path, WorkerOptions(workers=0), RunLimits(), progress=False)
