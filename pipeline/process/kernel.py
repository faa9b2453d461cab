"""Which system this process runs on. Containers of one machine share its kernel, and may share the names of others."""

from __future__ import annotations

from pathlib import Path

__all__ = ["boot_id", "process_table"]

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
