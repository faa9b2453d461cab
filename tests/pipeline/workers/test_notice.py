"""Workers that are told to end by SIGTERM hand their slices back before they do."""

import signal
import subprocess
import time
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import distributed
import psutil
import pytest

from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers import notice
from bicliques.schemas.options import RunLimits
from tests.support.dask_commands import connected, dask_scheduler, start_worker
from tests.support.held import HANDING_BACK_S, held_slice
from tests.support.pools import FakePool
from tests.support.runs import answer, load_ledger, prepared_run, quiet, random_edges

EDGES = random_edges(40, 30, 0.3, seed=5)
#: Seconds after which a worker that was told to end is one that does not.
LIMIT_S = 120.0


@pytest.mark.parametrize(
    "words", [pytest.param((), id="nanny"), pytest.param(("--no-nanny",), id="no nanny", marks=pytest.mark.exhaustive)]
)
def test_a_worker_that_is_told_to_end_hands_its_slice_back(tmp_path, monkeypatch, words):
    """Both workers hold their first slices. One is told to end; the other one goes on when that one has ended.

    To hand its slice back takes the worker longer than it stays when it has none.
    """
    assert HANDING_BACK_S > 2 * notice._QUIET_S
    monkeypatch.setattr(driver, "mine_slice", held_slice)
    folder = prepared_run(tmp_path, EDGES, engine="reference")
    told: dict[str, float] = {}
    with dask_scheduler() as address:
        first, second = (start_worker(address, *words) for _ in range(2))
        pool = connected(address, 2)

        def watch(progress: object) -> None:
            holding = {pool.who(tag) for tag in range(2)} - {""}
            mine = [name for name in holding if first.pid in family(name)]
            if not told and len(holding) == 2 and mine:
                told[mine[0]] = time.monotonic() + LIMIT_S
                first.send_signal(signal.SIGTERM)
            elif told and first.poll() is not None:
                (tmp_path / "go").touch()
            elif told and time.monotonic() > max(told.values()):
                raise AssertionError(f"a worker that was told to end is still there after {LIMIT_S:g} s")

        try:
            session = driver.mine_run(Run(folder), pool, RunLimits(), watch)
        finally:
            (tmp_path / "go").touch()
            pool.close()
            for worker in (first, second):
                kill_all(worker)
    assert first.returncode == 0
    assert (session.outcome, session.retries) == ("complete", 0)
    manifest = proving.prove(Run(folder), FakePool(), quiet)
    assert (manifest.count, manifest.fingerprint) == answer(EDGES)
    [handed_back] = [e for e in load_ledger(folder.path).entries.values() if e.result.worker in told]
    assert handed_back.result.n_left_over == sum(stop - start for _, start, stop in handed_back.took)
    assert handed_back.result.total.seen == 0


def kill_all(worker: subprocess.Popen[str]) -> None:
    """End a worker and what it has started, if it is still there."""
    if worker.poll() is None:
        for process in [*psutil.Process(worker.pid).children(recursive=True), psutil.Process(worker.pid)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
    worker.wait()


def family(name: str) -> set[int]:
    """The process of a worker, and the one that started it, from the name of the worker."""
    pid = name.rpartition(":")[2]
    try:
        return {int(pid), psutil.Process(int(pid)).ppid()}
    except (psutil.NoSuchProcess, ValueError):  # an address, because the name is not known yet
        return set()


def test_a_worker_that_dies_while_it_is_brought_the_notice_hinders_no_other() -> None:
    brought: list[str] = []

    def register(plugin: Any) -> None:
        brought.append(plugin.name)
        raise distributed.comm.CommClosedError("in <TCP>: Stream is closed")

    notice.bring_notice(SimpleNamespace(register_plugin=register))  # type: ignore[arg-type]
    assert brought == ["bicliques-notice-of-nannies", "bicliques-notice"]
