"""The comparison of a run with the one before it, in the store that the run is kept in: ``changes/`` below its URL.

Its record is put last, and removed first. So whoever finds the record finds the files that belong to it.
"""

from __future__ import annotations

from pathlib import Path

from bicliques.pipeline.remote.objects import Objects, each
from bicliques.pipeline.run.files import disk_errors, holds, whole_file
from bicliques.pipeline.run.names import CHANGES, CHANGES_FILES

#: In the order in which they are put.
CHANGES_KEYS = tuple(f"{CHANGES}/{name}" for name in CHANGES_FILES)
*_FILES, _RECORD = CHANGES_KEYS


def bring_changes(store: Objects, run: Path) -> None:
    """Make ``changes/`` in the folder of a run what the store has. If that is replaced meanwhile, it has none.

    Raises
    ------
    ResourceError
        If the store does not answer, or the disk is full.
    """
    record, here = store.get(_RECORD), run / _RECORD
    if record is not None and holds(here, record):
        return
    _remove(run)
    if record is None:
        return
    with disk_errors(here):
        here.parent.mkdir(exist_ok=True)
    for key in _FILES:
        with whole_file(run / key) as stream:
            stream.writelines(store.pieces(key))
    if store.get(_RECORD) != record:
        _remove(run)
        return
    with whole_file(here) as stream:
        stream.write(record)


def _remove(run: Path) -> None:
    for key in (_RECORD, *_FILES):
        with disk_errors(run / key):
            (run / key).unlink(missing_ok=True)


def put_changes(store: Objects, run: Path) -> None:
    """Put ``changes/`` of the folder of a run into the store, in the place of another one.

    Raises
    ------
    ResourceError
        If the store does not take it.
    """
    store.remove(_RECORD)
    each(lambda key: store.put(key, run / key), _FILES)
    store.put(_RECORD, run / _RECORD)
