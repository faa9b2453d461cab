"""The run that a worker works on. Each process opens it once, with memory-mapped graph and labels.

All workers of a machine share one copy of the pages.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

from pipeline.run.opened import Run
from schemas.errors import IncompleteError

__all__ = ["close_run", "open_run"]

_opening = threading.Lock()


def open_run(folder: str, identity: str) -> Run:
    """The run in `folder`. It is opened once in this process.

    Raises
    ------
    IncompleteError
        The folder does not have the run that is called `identity`.
    """
    with _opening:  # otherwise two threads could open two graphs, and a GPU would hold both
        return _open_run(folder, identity)


@lru_cache(maxsize=1)
def _open_run(folder: str, identity: str) -> Run:
    run = Run.at(Path(folder))
    if run.identity != identity:
        raise IncompleteError(f"{folder} holds another run on this worker than on the driver; share one file system")
    _ = run.graph, run.tables, run.names, run.job  # now, while no other thread can open them a second time
    return run


def close_run() -> None:
    """Free the memory of the last run."""
    _open_run.cache_clear()
