"""What a run says of itself from outside: complete, running, stopped, failed, dead; and how to go on."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import bicliques as bq
from bicliques.pipeline.api import steps
from bicliques.pipeline.cli import main
from bicliques.pipeline.results.run_status import status_of
from bicliques.pipeline.run import store
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.lock import holder, locked
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import ResourceError
from tests.support.runs import QUIET, ROOT, environment, random_edges, write_edges

EDGES = random_edges(40, 30, 0.3, 4)
LARGE = random_edges(250, 80, 0.35, 7)


def mine(source: Path, out: Path, **options) -> bq.Results:
    return bq.mine(source, out, **QUIET, **options)


def test_a_complete_run_needs_nothing(source, tmp_path):
    began = time.time()
    results = mine(source, tmp_path / "out")
    found = bq.status(tmp_path / "out")
    assert (found.state, found.share, found.nodes_left, found.go_on, found.step) == ("complete", 1.0, 0, "", "")
    assert found.done == ("ingest", "build", "plan", "mine", "prove")
    assert found.source == str(source)
    assert (found.count, found.bytes) == (len(results), results.manifest.bytes)
    assert [worker.bicliques for worker in found.workers] == [len(results)]
    assert found.workers[0].name.endswith(f":{os.getpid()}")
    assert began <= found.workers[0].last_seen <= time.time()


def test_a_reader_waits_for_a_part_that_its_driver_is_about_to_move(source, tmp_path, monkeypatch):
    out = tmp_path / "out"
    mine(source, out, max_results=50)
    (part,) = (out / "bicliques").iterdir()
    (out / "pending").mkdir(exist_ok=True)
    pending = part.rename(out / "pending" / part.name)
    waited = []

    def sleep(seconds: float):
        waited.append(seconds)
        pending.rename(part)

    monkeypatch.setattr(store, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    with locked(RunFolder(out).store.path / "run.lock"):
        assert bq.open_run(out).files == [part]
    assert len(waited) == 1


def test_a_limit_is_named_and_lifted(source, tmp_path, capsys):
    out = tmp_path / "out"
    mine(source, out, max_results=50)
    found = bq.status(out)
    assert (found.state, found.step, found.count) == ("stopped", "mine", 50)
    assert "limit on the number of results" in found.why
    assert found.go_on == f"bicliques.resume({str(out)!r}, max_results=None)"
    assert bq.status(out).go_on == f"bicliques.resume({str(out)!r}, max_results=None)"
    command = status_of(run := Run.at(out), run.survey()).go_on
    assert command == f"bicliques resume {out} --max-results none"
    assert found.share is not None
    assert 0 <= found.share < 1
    assert found.nodes_left
    code = main.main([*command.split()[1:], "--workers", "0", "--quiet"])
    assert code == 0
    capsys.readouterr()
    assert main.main(["status", str(out)]) == 0
    card = capsys.readouterr().out.splitlines()
    assert card[0] == f"source: {source}"
    assert card[1].startswith("state: complete (proven")
    assert bq.status(out).sessions == 2


def test_the_share_grows_with_the_work(tmp_path):
    out = tmp_path / "out"
    mine(write_edges(tmp_path / "large.parquet", LARGE), out, time_limit=0.4, slice_seconds=0.1)
    first = bq.status(out)
    bq.resume(out, time_limit=0.3, workers=0, slice_seconds=0.1, progress=False, report=False)
    second = bq.status(out)
    assert first.share is not None
    assert second.share is not None
    assert 0 < first.share < second.share < 1
    assert second.mining_seconds > first.mining_seconds
    assert "time limit" in second.why


def test_a_run_between_two_steps(source, tmp_path):
    out = tmp_path / "out"
    mine(source, out, max_results=1)
    for step in ("build", "plan", "mine"):
        (out / "steps" / f"{step}.json").unlink()
    found = bq.status(out)
    assert (found.state, found.done, found.step) == ("stopped", ("ingest",), "build")
    assert (found.share, found.nodes_left, found.count) == (None, None, 0)


def test_status_of_a_run_that_is_mined_and_not_proven(source, tmp_path):
    out = tmp_path / "out"
    mine(source, out)
    (out / "manifest.json").unlink()
    found = bq.status(out)
    assert (found.state, found.step, found.share) == ("stopped", "prove", 1.0)
    assert "not proven" in found.why


def test_status_repeats_the_error_that_ended_the_run(source, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def fail(*_):
        raise ResourceError("the mine has flooded")

    monkeypatch.setattr("bicliques.pipeline.run.ledger.Ledger.commit", fail)
    with pytest.raises(ResourceError, match="flooded"):
        mine(source, out)
    found = bq.status(out)
    assert (found.state, found.why, found.step) == ("failed", "the mine has flooded", "mine")
    assert bq.open_run(out).outcome == "failed"


def test_a_part_that_is_gone_is_named(source, tmp_path, capsys):
    out = tmp_path / "out"
    mine(source, out)
    part = next((out / "bicliques").iterdir())
    part.unlink()
    found = bq.status(out)
    assert found.state == "failed"
    assert part.name in found.why
    assert part.name in found.problems[0]
    assert (out / "ledger" / "0.json").exists(), "a look changes nothing"
    assert main.main(["status", str(out)]) == 1
    assert f"go on with: bicliques resume {out}" in capsys.readouterr().out


def test_running_then_killed(tmp_path, capsys):
    source, out = write_edges(tmp_path / "large.parquet", LARGE), tmp_path / "out"
    command = [sys.executable, "-m", "bicliques", "mine", source, "-o", out, "--quiet", "--workers", "0"]
    process = subprocess.Popen([*map(str, command), "--slice-seconds", "0.1"], env=environment(), cwd=ROOT)
    try:
        deadline = time.monotonic() + 300
        while len(list((out / "ledger").glob("*.json"))) < 3:  # other files there are not finished yet
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert main.main(["status", str(out), "--json"]) == 4
        seen = json.loads(capsys.readouterr().out)
        assert seen["state"] == "running"
        assert f"process {process.pid} on" in seen["why"]
        assert seen["slices"] >= 3
        assert seen["go_on"] == ""
    finally:
        process.kill()
        process.wait()
    assert main.main(["status", str(out)]) == 1
    text = capsys.readouterr().out
    assert f"state: dead (process {process.pid} on" in text
    assert f"go on with: bicliques resume {out}" in text
    assert f":{process.pid}: " in text


def test_reading_the_holder_of_a_lock_does_not_take_the_lock(tmp_path):
    file = tmp_path / "run.lock"
    assert holder(file) is None
    with locked(file):
        seen = holder(file)
        assert seen.alive
        assert f"process {os.getpid()}" in seen.words
    assert holder(file) is None
    file.write_text(json.dumps({"pid": 1, "host": "elsewhere", "since": "2026-01-01"}))
    seen = holder(file)
    assert seen.alive, "where locks do not reach another host, its word counts"


def test_a_driver_waits_while_another_process_reads_the_lock(tmp_path):
    file = tmp_path / "run.lock"
    looking = "import fcntl, os, time; f = os.open({!r}, os.O_RDONLY | os.O_CREAT); fcntl.flock(f, fcntl.LOCK_SH); "
    program = looking.format(str(file)) + "print('held', flush=True); time.sleep(0.1)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    with process:
        process.stdout.readline()
        with locked(file):
            assert holder(file) is not None


def test_looking_at_a_run_loads_no_graph(source, tmp_path, monkeypatch):
    mine(source, tmp_path / "out", max_results=10)
    monkeypatch.setattr("bicliques.schemas.graph.MiningGraph.open", lambda folder: pytest.fail("the graph was opened"))
    assert bq.status(tmp_path / "out").count == 10


def test_status_after_each_step_of_a_run(source, tmp_path):
    out = tmp_path / "out"
    mine(source, out, max_results=1)
    options, limits = RunFolder(out).options(), RunFolder(out).limits()
    folder = steps.start(source, tmp_path / "other", options, limits, False)
    found = bq.status(folder.path)
    assert (found.state, found.why, found.step) == ("stopped", "mining has not begun", "build")
