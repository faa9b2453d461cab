"""The first use of what a step uses: a fresh process imports it and loads its machine code before the step begins.

What is used on one edge here is loaded when the step works on the graph, so its seconds are those of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from kernels import engines
from pipeline.ingest.gpu.ingest_on import IngestOn, choose_reader
from pipeline.prepare.weights import RootWeights
from pipeline.run.progress import OnProgress, Progress
from schemas.errors import ResourceError
from schemas.options import BuildOptions

__all__ = ["before_building", "before_mining", "before_proving", "before_reading", "keeping_code"]


def before_reading(source: Any, ingest_on: IngestOn) -> None:
    """Load what readers use, cuDF if it is to read.

    Raises
    ------
    InputError, ResourceError
        As `pipeline.ingest.gpu.ingest_on.choose_reader`.
    """
    _convert_an_array()
    with suppress(OSError):  # of a source that cannot be looked at, which the step says better
        choose_reader(ingest_on, source)


@cache
def before_building(options: BuildOptions, prunes: bool) -> None:
    """Load what prepares a graph, also for thresholds if they prune, and what weighs its roots."""
    with keeping_code():
        from kernels.graph.prepare import prepare

        _convert_an_array()
        edges = pa.table([ids.astype(np.int32) for ids in np.nonzero(np.tri(4))], names=["left", "right"])
        # not to be written to, which makes other code
        left, right = edges["left"].to_numpy(), edges["right"].to_numpy()
        least = 2 if prunes else 1
        graph, _ = prepare(left, right, 4, 4, options, least, least)
        _ = RootWeights(graph).by_rank


@contextmanager
def keeping_code() -> Iterator[None]:
    """Turn an error of the disk that Numba keeps machine code on into one sentence.

    Raises
    ------
    ResourceError
        Naming the folder.
    """
    try:
        yield
    except OSError as error:
        import numba  # which is loaded, if it keeps anything

        raise ResourceError(
            f"machine code cannot be kept in {numba.config.CACHE_DIR} ({error.strerror or error}); make room there, or "
            "name another folder in $NUMBA_CACHE_DIR"
        ) from error


@cache
def _convert_an_array() -> None:
    """Where pandas is installed, pyarrow imports it at the first conversion."""
    pa.array(np.zeros(1, np.int32)).to_numpy()


def before_mining(engine: str, on_progress: OnProgress) -> None:
    """Load what the engine and the proof use, after compiling it if need be, which is said.

    What the engine of a device loads, it loads where the worker is: `pipeline.slices.worker.warm_up`.
    """
    kind = engines.kind(engine)
    if kind.will_compile():
        note = f"compiling the {kind.name} engine, once in this environment: about half a minute"
        on_progress(Progress("mine", note=note))
    if kind.platform.is_used_by_driver:
        _mine_an_edge(kind.name)
    before_proving()


@cache
def _mine_an_edge(engine: str) -> None:
    with keeping_code():
        engines.compile_engine(engine)


@cache
def before_proving() -> None:
    """Load what reads rows back."""
    _convert_an_array()
    with keeping_code():
        engines.compile_proof()
