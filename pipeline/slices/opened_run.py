"""A run that is open in a worker. Each process opens it once, with memory-mapped graph and labels.

All workers of a machine share one copy of the pages.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from pipeline.output.part_writer import Tables
from pipeline.prepare.labels import open_labels
from pipeline.run.folder import RunFolder
from schemas.bicliques import vertex_hashes
from schemas.errors import IncompleteError
from schemas.facts import side_names
from schemas.graph import MiningGraph
from schemas.options import RunOptions

__all__ = ["OpenRun", "close_run", "hashes_of", "open_run"]


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A run that is open in a worker."""

    folder: RunFolder
    options: RunOptions
    graph: MiningGraph
    tables: Tables
    names: tuple[str, str]


def open_run(folder: str, run: str) -> OpenRun:
    """The run in `folder`. It is opened once in this process.

    Raises
    ------
    IncompleteError
        The folder has another run than `run`.
    """
    with _opening:  # otherwise two threads could open two graphs, and a GPU would hold both
        return _open_run(folder, run)


_opening = threading.Lock()


@lru_cache(maxsize=1)
def _open_run(folder: str, run: str) -> OpenRun:
    opened = RunFolder(Path(folder))
    options = opened.options()
    if opened.run_id() != run:
        raise IncompleteError(f"{folder} holds another run on this worker than on the driver; share one file system")
    tables: Tables = None
    if options.ids == "labels":
        tables = (open_labels(opened, "left"), open_labels(opened, "right"))
    return OpenRun(opened, options, MiningGraph.open(opened.graph), tables, side_names(opened.facts("ingest")))


def hashes_of(run: OpenRun) -> tuple[np.ndarray, np.ndarray]:
    """`schemas.bicliques.vertex_hashes` of the run's graph. They are computed once in this process."""
    with _opening:
        return _hashes_of(run)


@lru_cache(maxsize=1)
def _hashes_of(run: OpenRun) -> tuple[np.ndarray, np.ndarray]:
    return vertex_hashes(run.graph.n_left, run.graph.n_right)


def close_run() -> None:
    """Free the memory of the last run."""
    _open_run.cache_clear()
    _hashes_of.cache_clear()
