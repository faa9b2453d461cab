"""A run that is kept in a store: which store that is, and where its parts are.

Such a run has a *working folder* on each machine, with options, graph, plan and a copy of the ledger. The parts are in
the store alone. A path of one, below ``bicliques/`` of the working folder, stands for its object.

Which store that is, only a URL that somebody has given to this process says. No file says it, because whoever may write
beside a folder could then redirect its run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.names import has_name_of_run, url_of
from bicliques.schemas.errors import called

if TYPE_CHECKING:
    from bicliques.pipeline.remote.objects import Objects
    from bicliques.schemas.manifest import Part

_PLACE = "bicliques"
#: What brings the files of runs that are read from a store, by their folders.
_readers: dict[Path, Callable[[Path], None]] = {}
#: The URLs of the runs whose working folders this process has, by the real paths of these folders.
_urls: dict[str, str] = {}


def is_read_by(folder: Path, reader: Callable[[Path], None]) -> None:
    """From now on `reader` brings what is asked for of the run in a folder; see `bring`."""
    _readers[folder] = reader


def bring(path: Path) -> Path:
    """A file of a run, or a folder in its folder. If the run is read from a store, it is brought from there.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `here`.
    """
    for folder in (path.parent, path.parent.parent) if _readers else ():
        if (reader := _readers.get(folder)) is not None:
            reader(path)
    return path


def places_here() -> Path:
    """The folder with all working folders of this user on this machine; see `pipeline.run.slots`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "bicliques", "stores")  # noqa: PTH111 - no home is no error


def real(path: str | os.PathLike[str]) -> str:
    """A path without links. One that no file can have stays as it is, and who opens it refuses it."""
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL
        return os.fspath(path)


def keeps(url: str, folder: Path) -> None:
    """From now on a folder is the working folder of the run at a URL, and sentences name it by its address."""
    from bicliques.pipeline.remote.urls import place_of  # imported only here, because most runs are kept in folders

    _urls[real(folder)] = url
    called(str(folder), place_of(url))


def url_at(folder: Path) -> str | None:
    """The URL of the store that the run of a working folder is kept in. None for any other folder."""
    return _urls.get(real(folder)) if _urls else None


def address_of(folder: Path) -> Path | str:
    """What programs are told of the folder of a run: the address that commands take if it is kept in a store."""
    return url_at(folder) or folder


def shown_place(folder: Path, *names: str) -> str:
    """What people are told of a folder of a run, or of a path below it: a run in a store is named by its address."""
    url = url_at(folder)
    return str(folder.joinpath(*names)) if url is None else "/".join((shown_address(url), *names))


def shown_address(address: str) -> str:
    """What people are told of the address of a run: a path as it is, and a URL without its options."""
    url = url_of(address)
    if url is None:
        return address
    from bicliques.pipeline.remote.urls import place_of  # imported only here, because most runs are kept in folders

    return place_of(url)


def store_of(folder: Path) -> Objects | None:
    """The store that the run of a working folder is kept in. None for any other folder.

    Raises
    ------
    InputError
        If the package that asks a store is not installed.
    """
    url = url_at(folder)
    if url is None:
        return None
    from bicliques.pipeline.remote.objects import (
        objects_at,  # imported only here, because most runs are kept in folders
    )

    return objects_at(url)


def key_of(name: str) -> str:
    """The key of a part."""
    return f"{_PLACE}/{name}"


def for_arrow(path: Path) -> tuple[str, Any] | None:
    """Where Arrow finds a part of a run that is kept in a store: path and file system. None for a file."""
    if path.parent.name != _PLACE:
        return None
    store = store_of(path.parent.parent)
    return None if store is None else store.for_arrow(key_of(path.name))


def sizes_of(store: Objects, parts: Iterable[Part]) -> dict[str, int]:
    """Bytes of each of these parts that is there, by its name. Each is asked for by its key."""
    from bicliques.pipeline.remote.objects import each  # imported only here, because most runs are kept in folders

    names = [part.name for part in parts]
    sizes = each(store.size, map(key_of, names))
    return {name: size for name, size in zip(names, sizes, strict=True) if size is not None}


def put_parts(store: Objects, pending: Path, parts: Iterable[Part]) -> None:
    """Put those of these parts into the store that are in a folder of this machine, and remove them there.

    Raises
    ------
    ResourceError
        If the store does not take one, or a file cannot be removed.
    """
    for part in parts:
        file = pending / part.name
        if file.exists():
            store.put(key_of(part.name), file)
            with disk_errors(file):
                file.unlink()


def parts_listed(store: Objects) -> set[str]:
    """Names of the parts that a listing has. A listing that lags leaves some out."""
    return {name for name in store.listed(_PLACE) if has_name_of_run(_PLACE, name)}
