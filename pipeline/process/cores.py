"""How many processor cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["count_cores", "processes_that_share", "share_cores"]

#: The processor time that a container may take, as "quota period" in microseconds, or "max period" (cgroup v2).
_QUOTA_FILE = Path("/sys/fs/cgroup/cpu.max")


#: Set by `share_cores`.
_sharing = 1


def share_cores(processes: int) -> None:
    """Say how many processes, this one among them, share the cores of the machine. Each takes an equal share."""
    global _sharing
    _sharing = processes


def processes_that_share() -> int:
    """How many processes share the cores of the machine. 1 if nobody has said so."""
    return _sharing


def count_cores(quota_file: Path = _QUOTA_FILE) -> int:
    """Cores on which the system schedules this process; in a container with a quota of processor time, no more than it.

    Parameters
    ----------
    quota_file : Path
        See `_QUOTA_FILE`. A file that is missing or says something else sets no quota.
    """
    # macOS has no such call
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = map(int, quota_file.read_text().split())
    except (OSError, ValueError):
        return cores
    return max(min(cores, -(-quota // period)), 1) if period > 0 else cores
