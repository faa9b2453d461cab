"""What a run has taken so far: seconds by step, main memory by process, and the sums of each worker."""

from __future__ import annotations

import re
import resource
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bicliques.pipeline.run.opened import Run
from bicliques.schemas.facts import BEFORE_MINING
from bicliques.schemas.manifest import LedgerEntry

_HIGH_WATER = re.compile(rb"VmHWM:\s*(\d+) kB")


def peak_rss() -> int:
    """Most main memory that this process has taken so far, in bytes. Pages of mapped files that were read count, too.

    Notes
    -----
    `getrusage` is asked only where ``/proc`` is missing, because a process inherits its peak from the process that
    started it.
    """
    try:
        found = _HIGH_WATER.search(Path("/proc/self/status").read_bytes())
    except OSError:
        found = None
    if found:
        return int(found[1]) << 10
    unit = 1 if sys.platform == "darwin" else 1024  # only macOS counts bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


@dataclass(frozen=True)
class Account:
    """What some slices took and gave, summed up.

    Parameters
    ----------
    slices, bicliques : int
        How many slices, and how many bicliques they found.
    busy_seconds : float
        Seconds that the slices kept engines busy, added up; see `schemas.manifest.SliceResult`.
    last_seen : float
        End of the last slice, in seconds since 1970 (UTC).
    peak_rss : int
        Most main memory that a process had taken when one of the slices ended, in bytes.
    device_bytes : int
        Most device memory that was in use when one of the slices ended, in bytes. 0 without a device.
    joules : float
        Energy that the devices took. 0 where nothing was measured.
    peak_watts : float
        Largest power of a device. 0 where nothing was measured.
    """

    slices: int
    bicliques: int
    busy_seconds: float
    last_seen: float
    peak_rss: int
    device_bytes: int
    joules: float
    peak_watts: float

    @classmethod
    def of(cls, entries: Iterable[LedgerEntry]) -> Account:
        """The account of the slices of `entries`, of which there is at least one."""
        results = [entry.result for entry in entries]
        return cls(
            slices=len(results),
            bicliques=sum(result.total.seen for result in results),
            busy_seconds=sum(result.busy_seconds for result in results),
            last_seen=max(result.began + result.seconds for result in results),
            peak_rss=max(result.stats.peak_rss for result in results),
            device_bytes=max(result.stats.engine.device_bytes for result in results),
            joules=sum(result.stats.joules or 0.0 for result in results),
            peak_watts=max(result.stats.peak_watts or 0.0 for result in results),
        )


def by_worker(entries: Iterable[LedgerEntry]) -> dict[str, Account]:
    """The account of every worker by its name, in the order in which the workers first appear in `entries`."""
    own: dict[str, list[LedgerEntry]] = defaultdict(list)
    for entry in entries:
        own[entry.result.worker].append(entry)
    return {worker: Account.of(some) for worker, some in own.items()}


def seconds_of(run: Run) -> dict[str, float]:
    """Wall time of every step that the run has done, up to ``mine``, in seconds.

    The first entry, ``startup``, is in no step. It is the time that the processes that mined took to import modules, to
    load machine code and to start workers.
    """
    mined = run.sessions()
    seconds = {"startup": float(sum(session.startup for session in mined))}
    for step in BEFORE_MINING:
        if run.has(step):
            seconds[step] = run.facts(step)["seconds"]
    if mined:
        seconds["mine"] = sum(session.seconds for session in mined)
    return seconds


def peak_rss_of(run: Run, entries: Iterable[LedgerEntry]) -> dict[str, Any]:
    """Most main memory that the processes of a run took, in bytes.

    ``driver`` is the most that the driver took in any session. ``workers`` has the most of each worker, by its name,
    until the end of its last slice.
    """
    workers = {worker: account.peak_rss for worker, account in by_worker(entries).items()}
    return {"driver": max((session.peak_rss for session in run.sessions()), default=0), "workers": workers}
