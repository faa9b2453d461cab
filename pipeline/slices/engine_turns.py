"""The engine of a slice: that of the thread, or, where engines are shared, that of the process for one slice at a time.

A worker with a GPU has two slices at a time: while the bicliques of one are written, the next one is mined. So a turn
ends with the search, before the slice is over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from bicliques.schemas.platform import EngineKind
from bicliques.schemas.work import Engine


class Server:
    """An engine that is kept from slice to slice of a run.

    Parameters
    ----------
    run : str
        Identity of the run. Another run gets another engine.
    """

    def __init__(self, kind: EngineKind, run: str):
        self.kind, self.run = kind, run
        self.halvings = 0
        self.leaves_writing = False  # to the cores, because the device has too little memory for it
        self.engine: Engine = kind.make(0)

    def make_smaller(self) -> bool:
        """Replace the engine by one with half the device memory. Returns False when there is none smaller."""
        if self.halvings == self.kind.platform.most_halvings:
            return False
        self.halvings += 1
        del self.engine
        self.kind.platform.release()
        self.engine = self.kind.make(self.halvings)
        return True


class _Thread(threading.local):
    server: Server | None = None


_thread = _Thread()
_shared_turn = threading.Lock()
_shared: Server | None = None


@contextmanager
def turn(kind: EngineKind, run: str) -> Iterator[Server]:
    """The engine, for the caller alone until the block ends. If it is shared, this waits for it."""
    if not kind.platform.shares_engine:
        if _thread.server is None or (_thread.server.kind, _thread.server.run) != (kind, run):
            _thread.server = Server(kind, run)
        yield _thread.server
        return
    with _shared_turn:
        yield _shared_by_all(kind, run)


def forget() -> None:
    """Free the memory of the engine of the calling thread and of the shared engine, after its turn."""
    global _shared
    _thread.server = None
    with _shared_turn:
        if _shared is not None:
            release = _shared.kind.platform.release
            _shared = None
            release()


def _shared_by_all(kind: EngineKind, run: str) -> Server:
    global _shared
    if _shared is None or (_shared.kind, _shared.run) != (kind, run):
        _shared = None  # first, because otherwise old and new would both need memory
        _shared = Server(kind, run)
    return _shared
