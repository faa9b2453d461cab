"""The engine of a slice. On a core each thread has its own. On a GPU the process has one, for one slice at a time.

A GPU worker has two slices at a time: while the bicliques of one are written, the next one is mined. So a turn ends
with the search, before the slice is over.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from kernels.engines import MOST_HALVINGS, EngineKind
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
        """Replace the engine by one with half the device memory. Returns False when there is none smaller."""
        if self.kind.place != "gpu" or self.halvings == MOST_HALVINGS:
            return False
        self.halvings += 1
        del self.engine
        self.kind.release()
        self.engine = self.kind.make(self.halvings)
        return True


class _Thread(threading.local):
    server: Server | None = None


_thread = _Thread()
_gpu_turn = threading.Lock()
_gpu: Server | None = None


@contextmanager
def turn(kind: EngineKind, run: str) -> Iterator[Server]:
    """The engine, for the caller alone until the block ends. If it is shared, this waits for it."""
    if kind.place == "core":
        if _thread.server is None or (_thread.server.kind, _thread.server.run) != (kind, run):
            _thread.server = Server(kind, run)
        yield _thread.server
        return
    with _gpu_turn:
        yield _on_gpu(kind, run)


def forget() -> None:
    """Free the memory of the engines: that of the calling thread, and that of the process on a GPU, after its turn."""
    global _gpu
    _thread.server = None
    with _gpu_turn:
        if _gpu is not None:
            release = _gpu.kind.release
            _gpu = None
            release()


def _on_gpu(kind: EngineKind, run: str) -> Server:
    global _gpu
    if _gpu is None or (_gpu.kind, _gpu.run) != (kind, run):
        _gpu = None  # first, because otherwise old and new would both need memory
        _gpu = Server(kind, run)
    return _gpu
