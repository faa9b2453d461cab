"""The cores that this process may use, the memory that it gives back, and which kernel it shares with containers."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

#: Where the limits of a container are.
_CGROUP = Path("/sys/fs/cgroup")
#: The processor time that a container may take, as "quota period" in microseconds: a file of cgroup v2, and two of v1.
#: Without a quota v2 says "max" in its place, and v1 says -1.
_QUOTA_FILES = (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us"))


#: Set by `share_cores`.
_sharing = 1


def share_cores(processes: int) -> None:
    """Say how many processes, this one among them, share the cores of the machine. Each takes an equal share."""
    global _sharing
    _sharing = processes


def processes_that_share() -> int:
    """How many processes share the cores of the machine. 1 if nobody has said so."""
    return _sharing


def count_cores(cgroup: Path = _CGROUP) -> int:
    """Cores on which the system schedules this process; in a container with a quota of processor time, no more than it.

    Parameters
    ----------
    cgroup : Path
        See `_CGROUP`. Files that are missing or say something else set no quota.
    """
    # macOS has no such call
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for names in _QUOTA_FILES:
        try:
            quota, period = (int(word) for name in names for word in (cgroup / name).read_text().split())
        except (OSError, ValueError):
            continue
        if quota > 0 and period > 0:
            cores = min(cores, -(-quota // period))
    return cores


#: The name of a kernel since it was started. It is the same in all of its containers, and on no other machine.
_BOOT_FILE = Path("/proc/sys/kernel/random/boot_id")
#: A link to the name of the table of processes.
_PROCESSES = Path("/proc/self/ns/pid")


def boot_id() -> str:
    """The name of the kernel. Empty where kernels have none."""
    try:
        return _BOOT_FILE.read_text().strip()
    except OSError:  # not Linux
        return ""


def process_table() -> str:
    """The table in which numbers of processes mean what they mean here. Empty where there are no containers.

    A container mostly has a table of its own, also if it has the host name of the machine.
    """
    try:
        return f"{boot_id()} {_PROCESSES.readlink()}"
    except OSError:  # not Linux
        return ""


def give_back_memory() -> None:
    """Return what the allocators of Arrow and of C keep for later. It takes milliseconds.

    Threads that have ended leave free pages in arenas of their own, which other threads do not use. Without this a
    process that has searched and then reads rows has both peaks at once.
    """
    import pyarrow as pa  # imported only here, because every command counts cores

    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; other libraries of C have none
        if trim is not None:
            trim(0)
