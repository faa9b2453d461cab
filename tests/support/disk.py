"""Tests do not wait for a disk: what they write has to survive a killed process, and no loss of power."""

import os
import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
#: Far more than is there at a time, since the folder of a test that has passed is removed.
_ENOUGH = 4 << 30


def folder_in_memory() -> Path | None:
    """Where files are in memory alone, if this machine has such a place with room for those of tests."""
    if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > _ENOUGH:
        return _MEMORY
    return None


def force_nothing() -> None:
    """From now on `os.fsync` of this process only looks whether there is such a file.

    A run forces some thirty files and folders to the disk. That takes longer than the rest of a small one.
    """

    def only_looked_at(descriptor: int) -> None:
        os.fstat(descriptor)

    os.fsync = only_looked_at  # type: ignore[assignment]
