"""Workers are processes of their own: they never run the script of the user who starts them."""

import multiprocessing
import subprocess
import sys
from multiprocessing import spawn
from pathlib import Path
from types import SimpleNamespace

import pytest

from bicliques.pipeline.process.children import on_their_own
from bicliques.pipeline.workers.dask_pool import DaskPool
from bicliques.schemas.errors import ResourceError
from tests.support.runs import answer, environment, random_edges, write_edges

EDGES = random_edges(120, 70, 0.35, 5)

SCRIPT = """
print("script starts", flush=True)
import os, signal, time
import bicliques as bq
from bicliques.pipeline.workers.opening import open_pool
from bicliques.pipeline.workers.options import WorkerOptions

print(bq.count({source!r}, workers=2, progress=False).count)
with open_pool(WorkerOptions(workers=1)) as pool:
    (first,) = pool.client.run(os.getpid).values()
    os.kill(first, signal.SIGKILL)
    while set(pool.client.run(os.getpid, on_error="ignore").values()) <= {{first}}:
        time.sleep(0.05)
print("a worker was replaced")
"""


@pytest.mark.exhaustive
def test_a_script_without_a_guard_runs_once_whatever_workers_it_starts(tmp_path: Path) -> None:
    source, script = write_edges(tmp_path / "g.parquet", EDGES), tmp_path / "script.py"
    script.write_text(SCRIPT.format(source=str(source)))
    ended = subprocess.run(
        [sys.executable, script], env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["script starts", str(answer(EDGES)[0]), "a worker was replaced"]


def test_processes_that_users_start_still_import_their_main_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "__main__", SimpleNamespace(__spec__=None, __file__="/a/script.py"))
    with on_their_own():
        ours = spawn.get_preparation_data("ours")
    theirs = spawn.get_preparation_data("theirs")
    assert theirs.keys() - ours.keys() == {"init_main_from_path"}
    assert theirs["init_main_from_path"] == "/a/script.py"


def test_a_process_that_is_being_started_starts_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(ResourceError, match=r"is still starting cannot start workers; .* __name__ == '__main__'"):
        DaskPool.local(1)
