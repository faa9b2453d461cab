"""The first use of what a step uses: a fresh process imports it and loads its machine code before the step begins.

What is used on one edge here is loaded when the step works on the graph, so its seconds are those of the work.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline import engines
from pipeline.gpu.ingest import IngestOn, choose_reader
from pipeline.progress import Progress, Report
from pipeline.weights import RootWeights
from schemas.options import BuildOptions

__all__ = ["before_building", "before_mining", "before_proving", "before_reading"]


def before_reading(source: Any, ingest_on: IngestOn) -> None:
    """Load what readers use, cuDF if it is to read.

    Raises
    ------
    InputError, ResourceError
        As `pipeline.gpu.ingest.choose_reader`.
    """
    _convert_an_array()
    with suppress(OSError):  # of a source that cannot be looked at, which the step says better
        choose_reader(ingest_on, source)


@cache
def before_building(options: BuildOptions, prunes: bool) -> None:
    """Load what prepares a graph, also for thresholds if they prune, and what weighs its roots."""
    from kernels.graph.prepare import prepare

    _convert_an_array()
    edges = pa.table([ids.astype(np.int32) for ids in np.nonzero(np.tri(4))], names=["left", "right"])
    left, right = edges["left"].to_numpy(), edges["right"].to_numpy()  # not to be written to, which makes other code
    least = 2 if prunes else 1
    graph, _ = prepare(left, right, 4, 4, options, least, least)
    _ = RootWeights(graph).by_rank


@cache
def _convert_an_array() -> None:
    """Where pandas is installed, pyarrow imports it at the first conversion."""
    pa.array(np.zeros(1, np.int32)).to_numpy()


def before_mining(engine: str, report: Report) -> None:
    """Load what an engine on cores and the proof use, after compiling it if need be, which is said.

    What a GPU loads, it loads where the worker is: `pipeline.worker.warm_up`.
    """
    kind = engines.kind(engine)
    if kind.will_compile():
        note = f"compiling the {kind.name} engine, once in this environment: about half a minute"
        report(Progress("mine", note=note))
    if kind.place == "core":
        _mine_an_edge(kind.name)
    before_proving()


@cache
def _mine_an_edge(engine: str) -> None:
    engines.compile_engine(engine)


@cache
def before_proving() -> None:
    """Load what reads rows back."""
    _convert_an_array()
    engines.compile_proof()
