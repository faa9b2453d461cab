"""Ends the slices of this process before their time. What they have not done is their left-over, so nothing is lost.

It imports no other module of the package, because a process that only watches over workers imports it, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_searches: set[Callable[[], None]] = set()
_leaving = threading.Event()


@contextmanager
def may_end(stop: Callable[[], None]) -> Iterator[None]:
    """A search runs in the block, and `stop` ends it. If this process is leaving, it is ended at once."""
    with _lock:
        _searches.add(stop)
    try:
        if _leaving.is_set():
            stop()
        yield
    finally:
        with _lock:
            _searches.discard(stop)


def leave() -> None:
    """End all slices of this process at their next safe point, and all that begin from now on at once."""
    _leaving.set()
    with _lock:
        stops = list(_searches)
    for stop in stops:
        stop()


@contextmanager
def all_ended() -> Iterator[None]:
    """As `leave`, but slices that begin after the block are mined as usual."""
    leave()
    try:
        yield
    finally:
        _leaving.clear()
