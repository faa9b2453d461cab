"""The engine of a slice: that of the thread, or, where engines are shared, that of the process for one slice at a time.

A worker with a GPU has two slices at a time: while the bicliques of one are written, the next one is mined. So a turn
ends with the search, before the slice is over.

Some functions use modules and machine code of a step on a graph of one edge before it begins. So they are loaded when
the step works on the real graph, and its seconds are those of the work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from bicliques.kernels import engines
from bicliques.pipeline.ingest.gpu.ingest_on import IngestOn, choose_reader
from bicliques.pipeline.ingest.readers.text import LARGE_BYTES, plain_integers
from bicliques.pipeline.ingest.sources.names import n_bytes_of
from bicliques.pipeline.run.progress import OnProgress, Progress
from bicliques.schemas.options import BuildOptions
from bicliques.schemas.platform import EngineKind
from bicliques.schemas.search import Search
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


def before_reading(source: Any, ingest_on: IngestOn, where: Sequence[str] = ()) -> None:
    """Load the code of readers, also cuDF if that is going to read.

    Raises `InputError` or `ResourceError` as `pipeline.ingest.gpu.ingest_on.choose_reader`.
    """
    _convert_an_array()
    with suppress(OSError):  # the source cannot be read; the step says so in better words
        n_bytes = n_bytes_of(source, where)
        reader = choose_reader(ingest_on, n_bytes)[0]
        if reader is None and n_bytes >= LARGE_BYTES:
            plain_integers(b"1 2\n", " ", (0, 1), 2)


@cache
def before_building(options: BuildOptions, prunes: bool, compiles: bool = True, in_bands: bool = False) -> None:
    """Load the code that prepares a graph, also that for thresholds if they prune.

    Parameters
    ----------
    prunes : bool
        Whether a threshold is more than 1.
    compiles : bool
        Whether the code is compiled; see `pipeline.prepare.build.compiles`.
    in_bands : bool
        Whether the graph is built in bands.
    """
    _convert_an_array()
    if not compiles:
        import bicliques.kernels.graph.sorting  # noqa: F401 - loads all that it needs

        return
    from bicliques.kernels.graph.prepare import prepare

    left, right = (ids.astype(np.int32) for ids in np.nonzero(np.tri(4)))
    least = 2 if prunes else 1
    prepare(left, right, 4, 4, options, least, least)
    if in_bands:
        from bicliques.kernels.graph.ceilings import EdgesByCeiling

        EdgesByCeiling(left, right, 4, 4, Search(largest=1)).reaching(1)


@cache
def _convert_an_array() -> None:
    """Convert an array. If pandas is installed, pyarrow imports it at the first conversion."""
    pa.array(np.zeros(1, np.int32)).to_numpy()


def before_mining(engine: str, search: Search, on_progress: OnProgress) -> None:
    """Load the code of the engine for a search. If it has to be compiled first, say so.

    The code of a device's engine is loaded in the worker: `pipeline.slices.worker.warm_up`.
    """
    kind = engines.kind(engine)
    if kind.will_compile(search):
        note = f"compiling the {kind.name} engine, once in this environment: about ten seconds"
        on_progress(Progress("mine", note=note))
    if kind.platform.is_used_by_driver:
        load_engine(kind.name, search.prunes, search.pq is not None)


@cache
def load_engine(name: str, prunes: bool, pq: bool = False) -> None:
    """Load the code of an engine into this process, or compile it, for searches with or without thresholds.

    With `pq` that for bicliques which need not be maximal.
    """
    engines.compile_engine(name, Search("count", pq="all") if pq else Search(min_left=2) if prunes else Search())


@cache
def before_proving() -> None:
    """Load the code that reads rows back."""
    _convert_an_array()
    engines.compile_proof()
