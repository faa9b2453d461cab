"""Processes killed in the middle, a full disk, Ctrl-C: after resume the same answer, no row twice, no orphan."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import bicliques as bq
from bicliques.schemas.errors import InputError
from tests.support.runs import ROOT, answer, environment, load_ledger, manifest_pair, random_edges, write_edges

#: 1,659 bicliques, so 110 short slices: `PROGRAM`. With two workers these take ten seconds, and hardly any of a core.
EDGES = random_edges(60, 50, 0.2, 5)
#: The command line, with slices that wait: what comes in the middle does so on a machine that stalls, too.
PROGRAM = """
from bicliques.pipeline.cli.main import program
from bicliques.pipeline.mining import driver
from tests.support import held

driver.mine_slice = held.short_slice
program()
"""


@pytest.fixture(scope="module")
def expected() -> tuple[int, int]:
    return answer(EDGES)


def start(folder: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    source = write_edges(folder / "g.parquet", EDGES)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "mine", str(source), "-o", str(out), "--quiet", "--no-report", *options],
        env=environment(),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a shell that starts the tests in the background has them ignore Ctrl-C, and that is handed down
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def wait_for_entries(out: Path, n: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 180  # a busy machine takes a minute to import everything in three processes
    while len(list((out / "ledger").glob("*.json")) if (out / "ledger").exists() else []) < n:
        assert process.poll() is None, f"it ended too early: {process.communicate()}"
        if time.monotonic() > deadline:
            os.killpg(process.pid, signal.SIGKILL)
            pytest.fail("it takes too long")
        time.sleep(0.02)


def hurry(out: Path) -> None:
    """From now on slices do not wait."""
    (out.parent / "go").touch()


def go_on(out: Path) -> None:
    assert bq.resume(out, workers=0, progress=False, report=False).complete


def check(out: Path, expected: tuple[int, int]) -> None:
    assert manifest_pair(out) == expected
    ledger = load_ledger(out)
    assert list(ledger.orphans()) == []
    assert ledger.outstanding() == {}
    assert bq.verify(out, sample=50, progress=False).count == expected[0]


def test_a_killed_worker_while_a_second_driver_is_refused(tmp_path: Path, expected: tuple[int, int]) -> None:
    out = tmp_path / "out"
    process = start(tmp_path, out, "--workers", "2")
    wait_for_entries(out, 3, process)
    with pytest.raises(InputError, match=f"is being worked on by process {process.pid} on"):
        bq.resume(out, workers=0, progress=False)
    newest = max(load_ledger(out).entries.values(), key=lambda entry: entry.result.began + entry.result.seconds)
    victim = int(newest.result.worker.rpartition(":")[2])
    assert victim != process.pid
    time.sleep(0.1)  # it is in the middle of its next slice: one that it has yet to hand over is done again by Dask
    os.kill(victim, signal.SIGKILL)
    hurry(out)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    check(out, expected)
    manifest = bq.open_run(out).manifest
    assert manifest.mining["retries"] == 1
    assert len(manifest.mining["workers"]) >= 2
    assert re.search(rf"slice \d+ failed the first time: its worker \S+:{victim} died", error), "it is named"


@pytest.mark.parametrize("missing", [pytest.param(0, marks=pytest.mark.exhaustive), 1])
def test_a_killed_driver(missing: int, tmp_path: Path, expected: tuple[int, int]) -> None:
    out, options = tmp_path / "out", ["--workers", "2"]
    if missing:
        options += ["--missing-pairs", str(missing), "--min-left", "3", "--min-right", "4"]
        asked = {"missing_pairs": missing, "min_left": 3, "min_right": 4, "workers": 0, "progress": False}
        counted = bq.count(write_edges(tmp_path / "g.parquet", EDGES), fingerprint=True, **asked)
        assert counted.fingerprint is not None
        expected = counted.count, counted.fingerprint
    process = start(tmp_path, out, *options)
    wait_for_entries(out, 3, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    _, alive = psutil.wait_procs(workers, timeout=15)
    assert not alive, "workers outlive their driver"
    assert (out / "run.lock").exists()
    entries = len(load_ledger(out).entries)
    assert not (out / "manifest.json").exists()
    assert len(bq.open_run(out)) > 0
    go_on(out)
    assert len(load_ledger(out).entries) > entries
    check(out, expected)
    assert not (out / "run.lock").exists()


def test_ctrl_c_in_a_terminal(tmp_path: Path, expected: tuple[int, int]) -> None:
    out = tmp_path / "out"
    process = start(tmp_path, out, "--workers", "2")
    wait_for_entries(out, 3, process)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to every process of the group
    output, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert error == f"bicliques: not complete; go on with: bicliques resume {out}\n"
    assert "so far; not complete: it was stopped" in output
    ledger = load_ledger(out)
    assert 0 < ledger.total.count < expected[0]
    assert list(ledger.orphans()) == []
    assert f"{ledger.total.count:,} so far" in output
    go_on(out)
    check(out, expected)


@pytest.mark.exhaustive
def test_ctrl_c_while_workers_are_starting(tmp_path: Path, expected: tuple[int, int]) -> None:
    """Workers get the signal, too, long before they can ignore it."""
    out = tmp_path / "out"
    process = start(tmp_path, out, "--workers", "2")
    deadline = time.monotonic() + 60
    while len(psutil.Process(process.pid).children(recursive=True)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert re.fullmatch(rf"bicliques: .*go on with: bicliques resume {out}\n", error), error
    go_on(out)
    check(out, expected)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(path: Path) -> None:
    """Write a file until there is no room for more."""
    try:
        with path.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.exhaustive)])
def test_a_full_disk(small_disk: Path, tmp_path: Path, expected: tuple[int, int], workers: str) -> None:
    out = small_disk / "out"
    process = start(tmp_path, out, "--workers", workers)
    wait_for_entries(out, 3, process)
    fill(small_disk / "of somebody else")
    _, error = process.communicate(timeout=120)
    assert process.returncode == 1, error
    assert "No space left on device" in error
    assert f"continue with: bicliques resume {out}" in error
    assert error.count("\n") == 1, error
    assert not (out / "manifest.json").exists()
    (small_disk / "of somebody else").unlink()
    go_on(out)
    check(out, expected)


@pytest.mark.exhaustive  # while it counts: see below
def test_sigterm_while_it_mines(tmp_path: Path, expected: tuple[int, int]) -> None:
    out = tmp_path / "out"
    process = start(tmp_path, out, "--workers", "2")
    wait_for_entries(out, 3, process)
    workers = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)  # as `timeout` does
    _, error = process.communicate(timeout=90)
    assert process.returncode == 143, error
    assert error == f"bicliques: ended by SIGTERM; go on with: bicliques resume {out}\n"
    _, alive = psutil.wait_procs(workers, timeout=15)
    assert not alive, "workers outlive their driver"
    assert not (out / "run.lock").exists()
    found = bq.status(out)
    assert (found.state, found.why, found.step) == ("stopped", "it was ended by SIGTERM", "mine")
    assert found.slices >= 3
    assert bq.open_run(out).outcome == "interrupted"
    go_on(out)
    assert len(load_ledger(out).entries) > found.slices
    check(out, expected)


def test_sigterm_while_it_counts_leaves_no_temporary_folder(tmp_path: Path) -> None:
    source, scratch = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "count", str(source), "--workers", "0", "--fingerprint", "--quiet"],
        env=environment() | {"TMPDIR": str(scratch)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 120
    while not list(scratch.glob("bicliques-*/run/ledger")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.terminate()
    _, error = process.communicate(timeout=60)
    assert process.returncode == 143, error
    assert error == "bicliques: ended by SIGTERM; nothing was written\n"
    assert list(scratch.iterdir()) == []
