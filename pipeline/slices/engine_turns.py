"""Which engine serves a slice: the thread's own; where engines are shared, the process's one, a slice at a time.

A worker with a GPU has two slices in hand: while the bicliques of one are written, the next one is mined. So the
turn ends when the search does, not when the slice is over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from schemas.engine_kind import EngineKind
from schemas.work import Engine

__all__ = ["Server", "forget", "turn"]


class Server:
    """An engine that is kept from slice to slice of a run.

    Parameters
    ----------
    kind : EngineKind
    run : str
        Identity of the run. Another run gets another engine.
    """

    def __init__(self, kind: EngineKind, run: str):
        self.kind, self.run = kind, run
        self.halvings = 0
        self.engine: Engine = kind.make(0)

    def make_smaller(self) -> bool:
        """Replace the engine by one with half the device memory, from now on; False when there is none smaller."""
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
    """The engine, for the caller alone until the block ends; waits for it where it is shared."""
    if not kind.platform.shares_engine:
        if _thread.server is None or (_thread.server.kind, _thread.server.run) != (kind, run):
            _thread.server = Server(kind, run)
        yield _thread.server
        return
    with _shared_turn:
        yield _shared_by_all(kind, run)


def forget() -> None:
    """Give back the memory of the engine of the calling thread, and of the one that is shared, after its turn."""
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
        _shared = None  # first, or both would need memory
        _shared = Server(kind, run)
    return _shared
