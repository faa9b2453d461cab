"""What graphs of several sizes take is measured, told, and put into one table."""

import json
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

import bicliques as bq
from benchmarks import sizing
from bicliques.kernels.gpu.cuda import SCRATCH_SHARE
from bicliques.pipeline.api import steps
from bicliques.pipeline.workers import devices
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import RunLimits, RunOptions
from tests.house.tree import ROOT

RECORDED = [
    row
    for machine in json.loads((ROOT / "benchmarks/sizing.json").read_text()).values()
    for row in machine["rows"]
    if row["told"]
]


def test_sizes_are_told_and_taken(tmp_path, capsys):
    file = tmp_path / "sizing.json"
    words = ["--edges", "100000", "--place", str(tmp_path), "--engine", "cpu", "--output", str(file)]
    sizing.main(words)
    [(kind, result)] = json.loads(file.read_text()).items()
    [row] = result["rows"]
    assert (row["edges"], row["complete"], row["engine"], row["bicliques"]) == (100_000, True, "cpu", 1)
    assert row["steps"].keys() >= {"ingest", "build", "mine"}
    assert 50 << 20 < row["host_bytes"] < max(row["told"].values())
    dry = bq.dry_run(tmp_path / "100000-integers", engine="cpu", min_left=20, min_right=20, sample_time=0.1)
    assert row["told"]["reading"] == dry.preparing.reading
    assert row["told"]["building"] == dry.preparing.building
    capsys.readouterr()
    sizing.main(["--table", str(file)])
    assert capsys.readouterr().out.splitlines()[2].startswith(f"| {kind} | 100,000 | integers | ")
    with pytest.raises(InputError, match="100,000 edges or more"):
        sizing.main(["--edges", "1000", "--place", str(tmp_path)])


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: f"{row['edges']}-{row['labels']}-{row['device_memory']}")
def test_no_recorded_peak_is_above_what_was_told(row):
    """Rows of before told no free memory of a device; it follows from the scratch memory, which is a share of it."""
    told = row["told"]
    assert row["host_bytes"] <= max(told["reading"], told["building"], told["mining"])
    free = told.get("free", told["device"] + told["scratch"] / SCRATCH_SHARE)
    assert row["device_bytes"] <= free + (devices._BESIDES if free else 0)


def test_a_run_that_does_not_end_in_time_has_what_it_did_until_then(tmp_path, monkeypatch):
    """It is told to end after its first step, however long that takes."""

    def told_to_end(process: subprocess.Popen[str], patience: float) -> tuple[str, str]:
        while process.poll() is None and not (tmp_path / "run/steps/ingest.json").exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        return process.communicate()

    monkeypatch.setattr(sizing, "_until", told_to_end)
    file = tmp_path / "sizing.json"
    words = ["--edges", "100000", "--place", str(tmp_path), "--engine", "cpu", "--output", str(file)]
    sizing.main(words)
    [row] = [row for result in json.loads(file.read_text()).values() for row in result["rows"]]
    if not row["complete"]:  # the rest may have been faster than the signal
        assert "not complete in " in sizing.table(json.loads(file.read_text()))[-1]
    assert (row["told"] != {}) == ("build" in row["steps"])


def test_a_run_that_has_only_read_tells_the_time_for_that(tmp_path):
    bq.generate(tmp_path / "g", n_left=30, n_right=30, edges=200, progress=False)
    options = RunOptions(source=str(tmp_path / "g"), engine="cpu")
    steps.start(str(tmp_path / "g"), tmp_path / "run", options, RunLimits(), False)
    found = sizing._found(tmp_path / "run", None)
    assert (found["told"], found["engine"]) == ({}, "cpu")
    assert "ingest" in found["steps"]
    assert "build" not in found["steps"]


def test_a_run_that_does_not_end_when_it_is_told_to_is_killed(monkeypatch):
    monkeypatch.setattr(sizing, "_GRACE", 0.0)
    program = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()  # the signal is ignored from now on
        sizing._until(process, 0.0)
    assert process.returncode == -signal.SIGKILL


def test_rows_of_several_files_become_one_table(tmp_path):
    """A new row replaces the one of the same graph on the same kind of machine, and others stay."""

    def row(edges: int, seconds: float, **more) -> dict[str, Any]:
        own = {"edges": edges, "labels": "integers", "device_memory": None, "seconds": seconds, "complete": True}
        return own | {"told": {}, "steps": {}, "file_bytes": 9, "host_bytes": 9, "device_bytes": 0} | more

    old = sizing.merged({}, "a GPU", {"cores": 1}, [row(1000, 1.0), row(10, 2.0), row(10, 3.0, device_memory="16GB")])
    old = sizing.merged(old, "2 cores", {"cores": 2}, [row(10, 4.0)])
    new = sizing.merged({}, "a GPU", {"cores": 3}, [row(1000, 5.0), row(10, 6.0, labels="text")])
    files = [tmp_path / "old.json", tmp_path / "new.json"]
    for file, numbers in zip(files, (old, new), strict=True):
        file.write_text(json.dumps(numbers))
    sizing.main(["--merge", str(files[1]), "--output", str(files[0])])
    both = json.loads(files[0].read_text())
    assert [row["seconds"] for row in both["a GPU"]["rows"]] == [2.0, 3.0, 6.0, 5.0]
    assert [row["seconds"] for row in both["2 cores"]["rows"]] == [4.0]
    assert [line.split(" | ")[0] for line in sizing.table(both)[2:]] == [
        *("| a GPU", "| a GPU, 16GB", "| a GPU", "| a GPU"),
        "| 2 cores",
    ]
