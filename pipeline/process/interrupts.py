"""Ctrl-C and SIGTERM, at which the driver stops in order. Workers do not see Ctrl-C (`pipeline.process.children`)."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from bicliques.pipeline.process import startup
from bicliques.schemas.errors import spoken

#: Seconds after SIGTERM in which the main thread has to notice it, and then seconds in which it removes what it made.
_UNHEARD_S, _ENDING_S = 5.0, 20.0
_NO_SIGNAL = 0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, raised after all running work was finished and committed."""

    def __init__(self, message: str, so_far: Any):
        super().__init__(message)
        self.so_far = so_far

    def __str__(self) -> str:
        return spoken(super().__str__())


class Terminated(BaseException):
    """SIGTERM. Running work is abandoned, committed work counts, and temporary files are removed."""

    def __init__(self) -> None:
        super().__init__("it was ended by SIGTERM")


@contextmanager
def terminable(exit_code: int) -> Iterator[None]:
    """In the main thread, the first SIGTERM raises `Terminated` and later ones do nothing, until the block ends.

    A program that is starting (`pipeline.process.startup`) has nothing to remove. So it ends at once, with
    `exit_code`. It also ends so if the main thread waits in a library, where Python raises nothing, or waits for
    another thread that does. If SIGTERM is ignored, it stays ignored.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    if not is_main or before not in (signal.SIG_DFL, startup.end_at_sigterm):
        yield
        return

    heard, over = threading.Event(), threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        heard.set()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # `timeout` and the like send it twice
        if startup.is_starting():
            os._exit(exit_code)
        raise Terminated

    def end_late() -> None:
        if not (heard.wait(_UNHEARD_S) and over.wait(_ENDING_S)):
            os._exit(exit_code)

    signal.signal(signal.SIGTERM, handle)
    try:
        with _at_sigterm(end_late):
            yield
    finally:
        heard.set()
        over.set()
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _at_sigterm(act: Callable[[], None]) -> Iterator[None]:
    """Call `act` in a thread of its own at SIGTERM, also while the main thread handles none."""
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    before = signal.set_wakeup_fd(tell, warn_on_full_buffer=False)  # it gets the number of each signal

    def watch() -> None:
        while (number := os.read(told, 1)[0]) not in (signal.SIGTERM, _NO_SIGNAL):
            pass
        if number == signal.SIGTERM:
            act()
        os.close(told)
        os.close(tell)

    threading.Thread(target=watch, name="sigterm", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.write(tell, bytes([_NO_SIGNAL]))


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
