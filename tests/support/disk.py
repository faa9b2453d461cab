"""Tests do not wait for a disk: what they write has to survive a killed process, and no loss of power."""

from __future__ import annotations

import os


def force_nothing() -> None:
    """From now on `os.fsync` of this process only looks whether there is such a file.

    A run forces some thirty files and folders to the disk. That takes longer than the rest of a small one.
    """

    def only_looked_at(descriptor: int) -> None:
        os.fstat(descriptor)

    os.fsync = only_looked_at  # type: ignore[assignment]
