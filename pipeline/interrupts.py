"""Ctrl-C: the driver stops in order. Its workers do not see it (`pipeline.children`)."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

__all__ = ["Interrupted", "interruptible"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after everything that was running was finished and committed.

    Parameters
    ----------
    message : str
    so_far : Results or Count
        What there is already.
    """

    def __init__(self, message: str, so_far: Any):
        super().__init__(message)
        self.so_far = so_far


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[threading.Event]:
    """In the main thread, the first Ctrl-C sets `stop`, and the second one raises KeyboardInterrupt.

    Yields
    ------
    Event
        Set by Ctrl-C alone; `stop` may be set by the caller, too.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        pressed.set()
        stop.set()

    before = signal.signal(signal.SIGINT, handle)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
