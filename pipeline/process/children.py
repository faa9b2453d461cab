"""Processes that this one starts: they do not see Ctrl-C, do not run the user's script again, and end when it ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import connection, resource_tracker, spawn
from typing import Any


def end_with_parent() -> None:
    """End this process when its parent has ended, even if that was killed. Otherwise it would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def identity(_: object = None) -> str:
    """Host and process, which are the name of a worker in the ledger and the log."""
    return f"{socket.gethostname()}:{os.getpid()}"


_standard = spawn.get_preparation_data


@contextmanager
def on_their_own() -> Iterator[None]:
    """Shield processes that are started in the block, or later by a thread that is started in the block.

    They never see Ctrl-C. A terminal sends it to all processes of a run, but only the driver must act on it. A signal
    that a thread blocks is also blocked in the threads and processes that it starts. A Ctrl-C during the block arrives
    at the end of the block.

    They never import the main module of this process. The code of a worker is in this package. A script without a guard
    (``if __name__ == "__main__"``) would start its work again in every worker.
    """
    resource_tracker.ensure_running()  # here, because its start unblocks the signal in the thread that does it
    spawn.get_preparation_data = _preparation_data
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _preparation_data(name: str) -> dict[str, Any]:
    """The data that multiprocessing sends to a new process, without the main module if a thread of ours starts it.

    It stays installed, because Dask may replace a dead worker at any time, from a thread that was started in the block.
    Such a thread is recognised by the signal that it blocks. Processes of other threads get all data.
    """
    data: dict[str, Any] = _standard(name)
    if signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ()):
        data = {key: value for key, value in data.items() if not key.startswith("init_main_from")}
    return data
