"""Ctrl-C and SIGTERM, at which the driver stops in order. Workers do not see Ctrl-C (`pipeline.process.children`)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from pipeline.process import startup

__all__ = ["Interrupted", "Terminated", "interruptible", "terminable"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, raised after all running work was finished and committed.

    Parameters
    ----------
    message : str
    so_far : Results or Count
        The results so far.
    """

    def __init__(self, message: str, so_far: Any):
        super().__init__(message)
        self.so_far = so_far


class Terminated(BaseException):
    """SIGTERM. Running work is abandoned, committed work counts, and temporary files are removed."""

    def __init__(self) -> None:
        super().__init__("it was ended by SIGTERM")


@contextmanager
def terminable(exit_code: int) -> Iterator[None]:
    """In the main thread, the first SIGTERM raises `Terminated` and later ones do nothing, until the block ends.

    A program that is starting (`pipeline.process.startup`) has nothing to remove. So it ends at once, with
    `exit_code`. If SIGTERM is ignored, it stays ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    if not is_main or before not in (signal.SIG_DFL, startup.end_at_sigterm):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` and the like send it twice
        if startup.is_starting():
            os._exit(exit_code)
        raise Terminated

    signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interruptible(stop: threading.Event) -> Iterator[threading.Event]:
    """In the main thread, the first Ctrl-C sets `stop`, and the second one raises KeyboardInterrupt.

    Yields
    ------
    Event
        It is set by Ctrl-C alone. The caller may set `stop`, too.
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
