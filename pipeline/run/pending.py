"""Parts that wait until the ledger names them, so that a reader of ``bicliques/`` never sees rows that do not count.

A worker closes its parts in ``pending/``. Once the entry that names a part is on disk, the driver moves the part into
``bicliques/``. A driver that was killed between the two leaves a part that counts in ``pending/``. It is read there
until the run is opened for writing, which moves it.

The folder lies beside ``bicliques/`` and not in it, because Polars and DuckDB read hidden folders, too, where they are
given a folder or ``**``.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from bicliques.pipeline.run.folder import RunFolder, children_of
from bicliques.pipeline.run.names import is_part
from bicliques.pipeline.run.resuming import in_the_way
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.manifest import Part

#: Seconds between two looks of a reader, and for how long it looks. A driver moves a part some milliseconds after its
#: entry, unless the disk stalls.
_LOOK_S, _PATIENCE_S = 0.002, 10.0


def await_driver(folder: RunFolder, parts: Iterable[Part]) -> None:
    """Wait until no part is about to be moved, so that a reader can keep the names of the files.

    Returns at once where nobody works on the run. Of a driver that moves nothing for ten seconds no more is expected.
    """
    deadline = time.monotonic() + _PATIENCE_S
    for part in parts:
        while folder.store.place_of(part).parent == folder.pending and time.monotonic() < deadline:
            at_work = folder.store.holder()
            if at_work is None or not at_work.alive:
                return
            time.sleep(_LOOK_S)


def pending_there(folder: RunFolder) -> list[Path]:
    """The files in ``pending/`` that have the name of a part, finished or not.

    Raises
    ------
    IncompleteError
        If ``pending`` is a file, or a folder has the name of a part.
    """
    parts = [path for path in children_of(folder.pending) if is_part(path)]
    for path in parts:
        if not path.is_file():
            raise IncompleteError(in_the_way(path, "is not a file, and has the name of a part", folder.path))
    return parts


def close_pending(folder: RunFolder) -> None:
    """Remove the folder of a run in which nothing waits any more. Files of others in it keep it."""
    with suppress(OSError):
        folder.pending.rmdir()
