"""Finds the folder of this machine for the address of a run: the path itself, or the working folder of a URL."""

from __future__ import annotations

from pathlib import Path

from bicliques.pipeline.run.names import store_url
from bicliques.pipeline.run.store import places_here, real, store_at
from bicliques.schemas.errors import InputError


def here(path: Path) -> Path:
    """A path, or the folder of this process for reading the run at a URL of a bucket, as the bucket has the run now.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        See `pipeline.run.bucket.reader_folder`.
    """
    url = store_url(path)
    if url is None:
        return _no_place(path)
    from bicliques.pipeline.run.bucket import reader_folder  # imported only here, because most runs are in folders

    return reader_folder(url)


def driven(path: Path, anew: bool = False) -> Path:
    """A path, or the folder of this process for mining the run at a URL of a bucket, or with `anew` another one there.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        See `pipeline.run.bucket.driver_folder`.
    """
    url = store_url(path)
    if url is None:
        return _no_place(path)
    from bicliques.pipeline.run.bucket import driver_folder  # imported only here, because most runs are in folders

    return driver_folder(url, anew)


def _no_place(path: Path) -> Path:
    """Refuse the working folder of a run that no URL has named: as a folder it would go on apart from its bucket."""
    if store_at(path).url is None and Path(real(places_here())) in Path(real(path)).parents:
        raise InputError(f"{path} is a copy of a run that is kept in a store; name the address of the run")
    return path
