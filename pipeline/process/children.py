"""Processes that this one starts: they do not see Ctrl-C, and do not run the user's script once more."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker, spawn
from typing import Any

__all__ = ["on_their_own"]

_standard = spawn.get_preparation_data


@contextmanager
def on_their_own() -> Iterator[None]:
    """Processes that are started in the block, or later by a thread that is, are on their own.

    They never see Ctrl-C: a terminal sends it to all processes of a run, and only the driver is to act on it. A signal
    that a thread blocks is blocked in the threads and processes it starts. A Ctrl-C during the block comes at its end.

    They never import the main module of this process: what a worker does is in this package, and a script that has no
    guard (``if __name__ == "__main__"``) would start its work once more in every worker.
    """
    resource_tracker.ensure_running()  # which unblocks the signal in the thread that starts its first process
    spawn.get_preparation_data = _preparation_data
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _preparation_data(name: str) -> dict[str, Any]:
    """What multiprocessing tells a new process; without the main module if a thread of ours starts it.

    It stays installed, because Dask replaces a worker that has died at any time, from a thread that was started in the
    block. Such a thread is known by the signal that it blocks; what others start is told everything.
    """
    data: dict[str, Any] = _standard(name)
    if signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        data = {key: value for key, value in data.items() if not key.startswith("init_main_from")}
    return data
