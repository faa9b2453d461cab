"""Gives memory that is free in this process back to the system, before work that needs much of another kind."""

from __future__ import annotations

import ctypes
import sys

import pyarrow as pa


def give_back_memory() -> None:
    """Return what the allocators of Arrow and of C keep for later. It takes milliseconds.

    Threads that have ended leave free pages in arenas of their own, which other threads do not use. Without this a
    process that has searched and then reads rows has both peaks at once.
    """
    pa.default_memory_pool().release_unused()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; other libraries of C have none
        if trim is not None:
            trim(0)
