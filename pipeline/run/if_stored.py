"""What is done for a run only if it is kept in a store. For a run in a folder these calls do and import nothing.

`pipeline.run.working` says which folder of this machine stands for the run, and `pipeline.run.keeping` puts what the
run has into its store. Both are imported inside the calls, because most runs are kept in folders. Steps and commands
call this module; what lies below it asks `pipeline.run.stored` which store a run is kept in.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bicliques.pipeline.run.names import MANIFEST_FILE, SUCCESS_FILE, store_url
from bicliques.pipeline.run.stored import places_here, real, store_of, url_at
from bicliques.schemas.errors import InputError

if TYPE_CHECKING:
    from bicliques.pipeline.run.folder import RunFolder
    from bicliques.pipeline.run.journal import Journal


def here(path: Path) -> Path:
    """A path, or the folder of this process for reading the run at a URL of a store, as the store has the run now.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        See `pipeline.run.working.reader_folder`.
    """
    url = store_url(path)
    if url is None:
        return _no_place(path)
    from bicliques.pipeline.run.working import reader_folder

    return reader_folder(url)


def driven(path: Path, anew: bool = False) -> Path:
    """A path, or the folder of this process for mining the run at a URL of a store, or with `anew` another one there.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        See `pipeline.run.working.driver_folder`.
    """
    url = store_url(path)
    if url is None:
        return _no_place(path)
    from bicliques.pipeline.run.working import driver_folder

    return driver_folder(url, anew)


def _no_place(path: Path) -> Path:
    """Refuse the working folder of a run that no URL has named: as a folder it would go on apart from its store."""
    if url_at(path) is None and Path(real(places_here())) in Path(real(path)).parents:
        raise InputError(f"{path} is a copy of a run that is kept in a store; name the address of the run")
    return path


def keep_steps(folder: RunFolder) -> None:
    """Put the steps of a run into its store, if it is kept in one; see `pipeline.run.keeping.keep_steps`."""
    if url_at(folder.path) is not None:
        from bicliques.pipeline.run import keeping

        keeping.keep_steps(folder)


def keep_result(folder: RunFolder, journal: Journal | None = None) -> None:
    """Put what a complete run has into its store, if it is kept in one; see `pipeline.run.keeping.keep_result`."""
    if url_at(folder.path) is not None:
        from bicliques.pipeline.run import keeping

        keeping.keep_result(folder, journal)


def keep_page(page: Path) -> None:
    """Put the page of a run into its store, if it is kept in one.

    Raises
    ------
    ResourceError
        If the store does not take it.
    """
    if (store := store_of(page.parent)) is not None:
        store.put(page.name, page)


def keep_changes(folder: Path) -> None:
    """Put the comparison of a run with the one before into its store, if it is kept in one.

    Raises
    ------
    ResourceError
        If the store does not take it.
    """
    if (store := store_of(folder)) is not None:
        from bicliques.pipeline.run.changes import put_changes

        put_changes(store, folder)


def bring_changes(folder: Path) -> None:
    """Make the comparison in the working folder of a run what its store has, if it is kept in one.

    Raises
    ------
    ResourceError
        If the store does not answer, or the disk is full.
    """
    if (store := store_of(folder)) is not None:
        from bicliques.pipeline.run import changes

        changes.bring_changes(store, folder)


def withdraw_result(folder: Path) -> None:
    """Take ``_SUCCESS`` and the manifest out of the store of a run that is not complete any more.

    Raises
    ------
    ResourceError
        If the store does not do it.
    """
    if (store := store_of(folder)) is not None:
        store.remove(SUCCESS_FILE)
        store.remove(MANIFEST_FILE)
