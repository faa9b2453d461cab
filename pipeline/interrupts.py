"""Ctrl-C: the driver stops in order, and its workers do not see it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import FrameType

__all__ = ["interruptible", "unseen_by_children"]


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[None]:
    """In the main thread, the first Ctrl-C sets `stop`, and the second one raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def unseen_by_children() -> Iterator[None]:
    """Processes that are started in the block, or later by a thread that is, never see Ctrl-C.

    A terminal sends it to all processes of a run, and only the driver is to act on it. A signal that a thread
    blocks is blocked in the threads and processes it starts. A Ctrl-C during the block comes at its end.
    """
    resource_tracker.ensure_running()  # which unblocks the signal in the thread that starts its first process
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
