"""What a run has taken so far: seconds by step, main memory by process."""

from __future__ import annotations

import re
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeline.run.folder import RunFolder
from pipeline.run.session import sessions
from schemas.manifest import LedgerEntry

__all__ = ["peak_rss", "peak_rss_of", "seconds_of"]

_HIGH_WATER = re.compile(rb"VmHWM:\s*(\d+) kB")


def peak_rss() -> int:
    """Most main memory that this process has taken so far, in bytes; mapped files that were read count.

    Notes
    -----
    Not `getrusage`, whose peak a process takes over from the one that starts it.
    """
    try:
        found = _HIGH_WATER.search(Path("/proc/self/status").read_bytes())
    except OSError:
        found = None
    return int(found[1]) << 10 if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def seconds_of(folder: RunFolder) -> dict[str, float]:
    """Wall time by step, as far as the run has come: ``startup`` first, which no step contains, up to ``mine``.

    ``startup`` is what the processes that mined took for imports, loading machine code and starting workers.
    """
    mined = sessions(folder)
    seconds = {"startup": float(sum(session.get("startup", 0.0) for session in mined))}
    for step in ("ingest", "build", "plan"):
        facts = folder.facts(step)
        if facts is not None:
            seconds[step] = facts["seconds"]
    if mined:
        seconds["mine"] = sum(session["seconds"] for session in mined)
    return seconds


def peak_rss_of(folder: RunFolder, entries: Iterable[LedgerEntry]) -> dict[str, Any]:
    """Most main memory in bytes: ``driver`` over all sessions, and ``workers`` by name, each until its last slice."""
    workers: dict[str, int] = {}
    for entry in entries:
        workers[entry.result.worker] = max(workers.get(entry.result.worker, 0), entry.result.stats.peak_rss)
    return {"driver": max((session.get("peak_rss", 0) for session in sessions(folder)), default=0), "workers": workers}
