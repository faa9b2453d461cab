"""Runs commands, each in a fork of a process that has loaded everything, mostly with `shim.cpp` before libc.

It reads one JSON object per line, and answers with one: see `tests.support.forks`.
"""

from __future__ import annotations

import ctypes
import gc
import io
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

from bicliques.pipeline.cli.main import main
from bicliques.pipeline.slices import first_use
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.search import Search
from tests.faults.watching import watch
from tests.support.disk import force_nothing

KINDS = ("look", "open", "read", "write", "fsync", "close", "rename", "mkdir", "unlink", "ftruncate", "flock")
HOWS = ("count", "once", "always", "kill")
#: A command that takes longer hangs, in seconds.
LIMIT_S = 120.0


def load() -> None:
    for module in (
        "api.counting",
        "api.runs",
        "cli.cards",
        "cli.program",
        "proof.verification",
        "results.report.page",
        "results.listing",
        "series.pruning",
        "results.run_status",
        "results.report.make",
        "compare.diffing",
        "api.dry_running",
        "publishing.publish_run",
    ):
        import_module(f"bicliques.pipeline.{module}")
    refreshing = import_module("bicliques.pipeline.api.refreshing")
    for name, value in (("LEAST_S", 0), ("BUILDS", 0), ("EDGES", 0), ("SHARE", 1e9), ("BYTE_S", 0)):
        setattr(refreshing, name, value)  # rows are taken over however small the graph is
    first_use.before_reading("none", "cpu")
    first_use.before_building(BuildOptions(), False)
    first_use.before_mining("cpu", Search(), lambda _: None)
    first_use.before_proving()


def carry_out(shim: ctypes.CDLL | None, job: dict[str, Any]) -> None:
    """In the fork: everything that is printed goes to files, and the number of calls of each kind, too."""
    place = Path(job["place"])
    os.environ["TMPDIR"], tempfile.tempdir = job["scratch"], None
    sys.stdout, sys.stderr = (
        io.TextIOWrapper((place / name).open("wb"), encoding="utf-8", line_buffering=True) for name in ("out", "err")
    )
    (place / "pid").write_text(str(os.getpid()))
    if shim is not None:
        shim.shim_arm(job["below"].encode(), KINDS.index(job["kind"]), HOWS.index(job["how"]), job["at"], job["errno"])
    if job["watched"]:
        watch(Path(job["watched"]), place / "seen", job["killed_at"])
    try:
        code = main(job["words"])
    except BaseException:  # what a shell would see as a traceback
        traceback.print_exc()
        code = 99
    if shim is not None:
        shim.shim_disarm()
        counts = {kind: shim.shim_calls(k) for k, kind in enumerate(KINDS)}
        (place / "calls").write_text(json.dumps(counts))
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit(code)


def serve() -> None:
    shim = None
    if "LD_PRELOAD" in os.environ:
        shim = ctypes.CDLL(os.environ["LD_PRELOAD"])
        shim.shim_calls.restype = ctypes.c_long
        shim.shim_arm.argtypes = (ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_int)
    else:
        force_nothing()  # the shim does so, too, but counts the calls
    load()
    gc.freeze()  # otherwise each fork copies what is loaded while it looks there for garbage
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            carry_out(shim, job)
        deadline, status = time.monotonic() + LIMIT_S, None
        while status is None:
            ended, found = os.waitpid(child, os.WNOHANG)
            status = found if ended else None
            if status is None and time.monotonic() > deadline:
                os.kill(child, signal.SIGABRT)
            time.sleep(0 if ended else 0.002)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve()
