"""The run that a worker works on. Each process opens it once, with memory-mapped graph and labels.

All workers of a machine share one copy of the pages.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from pathlib import Path

from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.names import url_of
from bicliques.pipeline.run.opened import Run
from bicliques.schemas.errors import IncompleteError

_opening = threading.Lock()


def open_in_worker(folder: str, identity: str) -> Run:
    """The run in `folder`, which may be a URL of a store, opened once in this process.

    Raises
    ------
    IncompleteError
        The folder does not have the run that is called `identity`.
    """
    with _opening:  # or two threads would have a graph each, and a GPU both
        return _opened(folder, identity)


@lru_cache(maxsize=1)
def _opened(folder: str, identity: str) -> Run:
    url = url_of(folder)
    if url is None:
        run = Run.with_holes(Path(folder))
    else:
        from bicliques.pipeline.run.bucket import (
            worker_folder,  # imported only here, because most runs are kept in folders
        )

        run = Run.with_holes(worker_folder(url, identity))
        with disk_errors(run.folder.pending):
            run.folder.pending.mkdir(exist_ok=True)
    if run.identity != identity:
        raise IncompleteError(f"{folder} holds another run on this worker than on the driver; share one file system")
    _ = (
        run.graph,
        run.bands,
        run.tables,
        run.provenance,
        run.job,
    )  # now, while no other thread can open them a second time
    return run


def close_in_worker() -> None:
    """Give back the memory of the last run."""
    _opened.cache_clear()
