"""Small graphs and short cuts for tests that run the pipeline."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bicliques.kernels.cpu.engine import CpuEngine
from bicliques.kernels.gpu.cuda import CUDA
from bicliques.kernels.graph.prepare import prepare
from bicliques.pipeline.api import steps
from bicliques.pipeline.mining import driver
from bicliques.pipeline.proof import proving
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.ledger import Ledger
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.workers.thread_pool import InThreads, Pool
from bicliques.schemas.bicliques import nowhere
from bicliques.schemas.facts import MiningSession, Outcome
from bicliques.schemas.hashes import vertex_hashes
from bicliques.schemas.manifest import LedgerEntry, Range, SliceResult
from bicliques.schemas.options import BuildOptions, RunLimits, RunOptions
from bicliques.schemas.records import with_checksum
from bicliques.schemas.search import Limits, Search
from bicliques.schemas.totals import Found
from bicliques.schemas.work import Subtrees

ROOT = Path(__file__).parents[2]
#: What most calls of tests ask for: no other processes, and nothing on stderr.
OWN: dict[str, Any] = {"workers": 0, "progress": False}
#: And no page, at which nobody looks.
QUIET = OWN | {"report": False}


def random_edges(n_left: int, n_right: int, density: float, seed: int) -> np.ndarray:
    """Pairs of vertex numbers, sorted; no vertex is without an edge."""
    rng = np.random.default_rng(seed)
    adjacent = rng.random((n_left, n_right)) < density
    adjacent[np.arange(n_left), np.arange(n_left) % n_right] = True
    adjacent[np.arange(n_right) % n_left, np.arange(n_right)] = True
    return np.argwhere(adjacent).astype(np.int32)


#: Edges for a pool of two workers, both of which get some slices.
FOR_TWO = random_edges(90, 60, 0.35, 8)
#: Edges with so much work that slices are running when a worker is killed.
FOR_KILLS = random_edges(150, 80, 0.35, 5)


def write_edges(path: Path, edges: np.ndarray, strings: bool = False) -> Path:
    """A Parquet edge list: labels 3 x + 5 on the left, 7 x + 1 on the right; as words if `strings`."""
    pq.write_table(pa.table(labels_of(edges[:, 0], edges[:, 1], strings), ["user", "item"]), path)
    return path


def labels_of(left: np.ndarray, right: np.ndarray, strings: bool = False) -> list[pa.Array]:
    """The labels that `write_edges` gives to these vertices."""
    left, right = left.astype(np.int64) * 3 + 5, right.astype(np.int64) * 7 + 1
    return [
        pa.array([f"u{x}" for x in left] if strings else left),
        pa.array([f"thing {x}" for x in right] if strings else right),
    ]


def prepared_run(folder: Path, edges: np.ndarray, search: Search | None = None, engine: str = "bitmatrix") -> RunFolder:
    """A run in ``folder/out`` that is planned and not mined."""
    source = write_edges(folder / "g.parquet", edges)
    options = RunOptions(source=str(source), search=search or Search(), engine=engine)
    steps.start(source, folder / "out", options, RunLimits(), False)
    steps.prepare(folder / "out", False)
    return RunFolder(folder / "out")


def mined_in_threads(folder: RunFolder, slice_seconds: float = 0.01) -> None:
    """Mine and prove a run of `prepared_run` as a process does that has a GPU: two slices in hand."""
    pool = InThreads(CUDA.slices_in_hand, share_engine=True)
    try:
        assert driver.mine_run(Run(folder), pool, RunLimits(), quiet, slice_seconds).outcome == "complete"
        proving.prove(Run(folder), pool, quiet)
    finally:
        pool.close()


def check_two_find_everything(folder: Path, pool: Pool) -> None:
    """Mine a new run in short slices with a pool of two workers, both of which get some, and prove it."""
    run = prepared_run(folder, FOR_TWO)
    session = driver.mine_run(Run(run), pool, RunLimits(), quiet, 0.01)
    assert 0 < session.busy_ratio <= 1
    manifest = proving.prove(Run(run), pool, quiet)
    assert (manifest.count, manifest.fingerprint) == answer(FOR_TWO)
    assert len(manifest.mining["workers"]) == 2


def quiet(progress: object) -> None:
    """Say nothing."""


def answer(edges: np.ndarray, strings: bool = False, is_dense: bool = False, **search: Any) -> tuple[int, int]:
    """Count and fingerprint, from the engine alone, without the pipeline.

    Labels are those of `write_edges`, or the numbers of `edges` if `is_dense`.
    """
    n_left, n_right = int(edges[:, 0].max()) + 1, int(edges[:, 1].max()) + 1
    left, right = labels_of(np.arange(n_left), np.arange(n_right), strings)
    known = None if is_dense else (vertex_hashes(left, "left"), vertex_hashes(right, "right"))
    graph, _ = prepare(edges[:, 0], edges[:, 1], n_left, n_right, BuildOptions(), known=known)
    wanted = Search(mode="fingerprint", **search)
    found = CpuEngine().mine(graph, Subtrees.of_roots(np.arange(graph.n_roots)), wanted, Limits(), nowhere)
    assert found.fingerprint is not None
    return found.count, found.fingerprint


def load_ledger(path: Path) -> Ledger:
    """The ledger of a run as it is on disk."""
    return Run.with_holes(path).ledger()


def ledger_entry(number: int, *took: Range, count: int = 0, weight: float = 0.0, **report: Any) -> LedgerEntry:
    """An entry of a run that counts; `report` are fields of its `SliceResult`."""
    usual = {"attempt": 0, "parts": (), "n_left_over": 0, "began": 0.0, "seconds": 0.0, "worker": "h:1"}
    return LedgerEntry(SliceResult(number, total=Found(count), **usual | report), took, weight)


def session(began: float = 0.0, seconds: float = 0.0, outcome: Outcome = "complete", **more: Any) -> MiningSession:
    """A session that committed nothing."""
    return MiningSession(outcome, 0, began, seconds, 0, 0, "h:1", 0.0, 0.0, **more)


def rewrite_record(file: Path, target: Path | None = None, **changes: Any) -> None:
    """Change a record of a run as a program would that means it: the checksum is right again."""
    (target or file).write_text(json.dumps(with_checksum(json.loads(file.read_text()) | changes)))


def manifest_pair(path: Path) -> tuple[int, int]:
    """Count and fingerprint in the manifest."""
    data = json.loads((path / "manifest.json").read_text())
    return data["count"], int(data["fingerprint"])


def bicliques(*arguments: str | Path, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "bicliques", *map(str, arguments)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        **how,
    )


def environment() -> dict[str, str]:
    """That of this process, with the repository root first on the path."""
    return os.environ | {"PYTHONPATH": str(ROOT)}


def planned(tmp_path: Path, edges: np.ndarray, engine: str = "cpu", **search: Any) -> Run:
    """A run in whose folder everything is done that comes before mining."""
    source = write_edges(tmp_path / "g.parquet", edges)
    options = RunOptions(source=str(source), engine=engine, search=Search(**search))
    steps.start(source, tmp_path / "out", options, RunLimits(), False)
    steps.prepare(tmp_path / "out", False)
    return Run(RunFolder(tmp_path / "out"))
