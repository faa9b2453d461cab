"""Loads the modules and the machine code of a step before the step begins.

Each function here uses them on a graph of one edge. So they are loaded when the step works on the real graph, and its
seconds are those of the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
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
from bicliques.schemas.search import Search


def before_reading(source: Any, ingest_on: IngestOn, where: Sequence[str] = ()) -> None:
    """Load the code of readers, also cuDF if that is going to read.

    Raises
    ------
    InputError, ResourceError
        As `pipeline.ingest.gpu.ingest_on.choose_reader`.
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
