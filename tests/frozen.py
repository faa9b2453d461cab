"""Runs and stores as a version has written them, so that later versions can be seen to read, verify and resume them.

    python -m tests.frozen FOLDER

writes an archive of each with the version that is imported. tests/data/frozen/README.md says which versions wrote those
that are kept, and `tests/test_frozen.py` reads them.
"""

import io
import os
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import bicliques as bq
from tests.support.runs import environment, random_edges, write_edges

EDGES = random_edges(24, 16, 0.4, 3)
#: A run of these is killed once it has committed some slices.
MANY = random_edges(60, 40, 0.35, 5)
_KILLED = """
import os, signal, socket, sys, bicliques as bq
socket.gethostname = lambda: 'host'
def kill(progress):
    if progress.step == sys.argv[3] and progress.bicliques >= int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)
bq.mine(sys.argv[1], sys.argv[2], engine="reference", workers=0, slice_seconds=0.1, report=False, progress=kill)
"""


def _mine(source: Any = "words.parquet", *, of: str = "mine", **options: Any) -> Callable[[], None]:
    def make() -> None:
        getattr(bq, of)(source, "OUT", progress=False, **({"engine": "cpu", "report": False} | options))

    return make


def _text(name: str, text: str, **options: Any) -> Callable[[], None]:
    def make() -> None:
        Path(name).write_text(text)
        _mine(name, **options)()

    return make


def _killed(step: str, rows: int) -> Callable[[], None]:
    def make() -> None:
        command = [sys.executable, "-c", _KILLED, "many.parquet", "OUT", step, str(rows)]
        ended = subprocess.run(command, env=environment(), check=False)
        assert ended.returncode == -signal.SIGKILL

    return make


def _from_run() -> None:
    bq.mine("words.parquet", "FIRST", engine="cpu", progress=False, report=False)
    bq.mine("FIRST", "OUT", engine="cpu", min_left=3, report=False, progress=False)


def _compared() -> None:
    write_edges(Path("later.parquet"), EDGES[5:], strings=True)
    bq.mine("words.parquet", "OLD", engine="cpu", progress=False, report=False)
    bq.mine("later.parquet", "NEW", engine="cpu", progress=False, report=False)
    bq.diff("OLD", "NEW", "OUT", progress=False)


def _published() -> None:
    bq.mine("words.parquet", "FIRST", engine="cpu", progress=False, report=False)
    bq.publish("FIRST", "OUT", progress=False)


RUNS: dict[str, Callable[[], None]] = {
    "words": _mine(report=True),
    "integers": _mine("integers.parquet"),
    "thresholds": _mine(min_left=3, min_right=2),
    "largest-sides": _mine(max_left=6, max_right=5),
    "counted": _mine(count_only=True),
    "sizes": _mine(count_only=True, sizes=True),
    "per-vertex": _mine(per_vertex=True),
    "dense-ids": _mine(ids="dense"),
    "containing": _mine(containing_left=["u5"], containing_right=["thing 1"]),
    "largest": _mine(of="largest", top=3),
    "largest-balance": _mine("integers.parquet", of="largest", by="balance"),
    "reference-left": _mine(engine="reference", root_side="left"),
    "unilateral": _mine(order="unilateral"),
    "nothing": _mine(min_left=20, min_right=16),
    "limit": _mine("many.parquet", max_results=1000, slice_seconds=0.05),
    "weights": _text(
        "w.csv", "who,what,weight\n" + "".join(f"ü {a},{b},{a * b % 5}\n" for a, b in EDGES), min_weight=2
    ),
    "transactions": _text("t.dat", "".join(f"{a} {b + 20}\n" for a, b in EDGES), format="snap"),
    "of-a-run": _from_run,
    "killed-while-mining": _killed("mine", 1000),
    "killed-before-mining": _killed("plan", 0),
    "compared": _compared,
    "published": _published,
}

#: Options of runs that are kept in a store.
STORES: dict[str, dict[str, Any]] = {
    "words": {},
    "per-vertex": {"per_vertex": True},
    "counted": {"count_only": True},
    "limit": {"max_results": 100, "slice_seconds": 0.02},
    "largest": {"top": 3},
}


def _archive(target: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for name, data in sorted(files.items()):
            about = tarfile.TarInfo(name)
            about.size = len(data)
            archive.addfile(about, io.BytesIO(data))


def write_runs(target: Path) -> None:
    for name, make in RUNS.items():
        with tempfile.TemporaryDirectory(prefix="frozen-") as place:
            before = Path.cwd()
            os.chdir(place)
            write_edges(Path("words.parquet"), EDGES, strings=True)
            write_edges(Path("integers.parquet"), EDGES)
            write_edges(Path("many.parquet"), MANY)
            make()
            os.chdir(before)
            out = Path(place) / "OUT"
            files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
            _archive(target / f"run-{name}.tar.xz", files)


def write_stores(target: Path) -> None:
    from tests.support.stored import machines_with_a_bucket, source_in

    for name, options in STORES.items():
        with (
            tempfile.TemporaryDirectory(prefix="frozen-") as place,
            pytest.MonkeyPatch.context() as patch,
            machines_with_a_bucket(Path(place), patch) as machines,
        ):
            call = bq.largest if name == "largest" else bq.mine
            call(source_in(Path(place)), machines.url, engine="cpu", report=False, progress=False, **options)
            _archive(target / f"store-{name}.tar.xz", machines.there())


if __name__ == "__main__":
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    socket.gethostname = lambda: "host"  # type: ignore[assignment]
    write_runs(folder)
    write_stores(folder)
