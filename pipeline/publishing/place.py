"""Where a run is published: a folder of this machine, or one that a URL names. Both do the same things."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from bicliques.pipeline.remote.urls import file_system, is_on_objects, place_of, plain_errors, without_secrets
from bicliques.pipeline.run.files import PathLike, disk_errors, flush, whole_file
from bicliques.pipeline.run.names import is_file, is_folder, temporary_name, url_of
from bicliques.pipeline.run.outside import refuse_inside_run, refuse_inside_store
from bicliques.schemas.errors import BicliqueError, InputError, ResourceError
from bicliques.schemas.regular_files import open_regular
from bicliques.schemas.values import local_path

#: Bytes that are read and written at a time.
PIECE = 8 << 20
#: Bytes after which a writer waits until the store has taken all of them. Arrow sends beside the writer, and would
#: otherwise keep all that a slow network has not taken yet.
_IN_FLIGHT = 32 << 20
_SECOND = 10**9


@dataclass(frozen=True)
class Seen:
    """What a place says of a file.

    Parameters
    ----------
    modified : int or None
        When it was written, in nanoseconds since 1970 (UTC). A store says it to the second. None if it does not say it.
    """

    bytes: int
    modified: int | None


class Place:
    """A folder that a run is published to: one of this machine. Names of files are relative to it, with slashes.

    Files get their names when they are whole, and survive a loss of power then. Raises `ResourceError`: by each method,
    if a file cannot be written, read or removed, or the place does not answer.

    Attributes
    ----------
    shown : str
        The folder in words, without secrets.
    """

    def __init__(self, path: Path):
        self.shown = str(path)
        self._path = path

    def look(self, folders: Iterable[str]) -> dict[str, Seen]:
        """The files directly in the place, and all those below these folders of it. Empty if it does not exist."""
        if os.path.lexists(self._path) and not os.path.isdir(self._path):  # noqa: PTH112 - Path.is_dir may raise
            raise InputError(f"{self._path} is no folder; name another one")
        found = {}
        try:
            for path in self._path.iterdir() if self._path.exists() else ():
                if path.name in folders:
                    self._refuse_link(path)
                    found.update({str(each.relative_to(self._path)): _seen(each) for each in _below(path)})
                elif not is_folder(path):
                    found[path.name] = _seen(path)
        except OSError as error:
            raise InputError(f"{self._path} cannot be read ({error.strerror}); name another folder") from error
        return found

    def _refuse_link(self, folder: Path) -> None:
        if not is_folder(folder):
            raise InputError(
                f"{folder} is a link or a file, and nothing is published through one; put a folder in its place"
            )

    def write(self, name: str, pieces: Iterable[bytes]) -> Seen:
        """Write a file, which is then whole. If `pieces` raises an error, or the process is killed, it is not there."""
        target = self._path / name
        with disk_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(target) as file:
            for piece in pieces:
                file.write(piece)
        with disk_errors(target):
            return _seen(target)

    def see(self, name: str) -> Seen | None:
        """What the place says of one file. None if it is not there."""
        with disk_errors(self._path / name):
            return _seen(self._path / name) if os.path.lexists(self._path / name) else None

    def read(self, name: str) -> Iterator[bytes]:
        """The pieces of a file."""
        try:
            with open_regular(self._path / name) as file:
                while piece := file.read(PIECE):
                    yield piece
        except OSError as error:
            reason = error.strerror
            raise ResourceError(f"{self._path / name} cannot be read back ({reason}); see that it may be") from error

    def remove(self, name: str) -> None:
        """Remove a file, if it is there, and what an interrupted `write` has left of it."""
        path = self._path / name
        with disk_errors(path):
            for each in (path, path.with_name(temporary_name(path.name))):
                each.unlink(missing_ok=True)
            if is_folder(path.parent):
                flush(path.parent)

    def is_below(self, folder: Path) -> bool:
        """Whether the place is a folder of this machine, or in one."""
        return self._path.resolve().is_relative_to(folder.resolve())

    def refuse_inside_run(self) -> None:
        """Refuse a place in a folder that a run fills; see `pipeline.run.outside`."""
        refuse_inside_run(self._path)


class StorePlace(Place):
    """A folder on a file system that `pipeline.remote.urls` opens."""

    def __init__(self, url: str):
        self.shown, self._url = place_of(url), url
        with plain_errors(url, self.shown, "cannot be opened"):
            self._system, path = file_system(url)
        self._top = path.rstrip("/")
        if not self._top:
            raise InputError(f"{without_secrets(url)} names no bucket and no folder; write it as in s3://lake/night")

    def look(self, folders: Iterable[str]) -> dict[str, Seen]:
        """See `Place.look`."""
        from pyarrow.fs import FileSelector, FileType  # only where there is a file system of Arrow

        found, wanted = {}, frozenset(folders)
        with plain_errors(self._url, self.shown):
            entries = self._system.get_file_info(FileSelector(self._top, allow_not_found=True))
            for entry in list(entries):
                if entry.type == FileType.Directory and self._name_of(entry) in wanted:
                    entries += self._system.get_file_info(FileSelector(entry.path, recursive=True))
            for entry in entries:
                if entry.type == FileType.File:
                    found[self._name_of(entry)] = _stored(entry)
        return found

    def _name_of(self, entry: Any) -> str:
        path: str = entry.path
        return path[len(self._top) :].strip("/")

    def is_below(self, folder: Path) -> bool:
        """See `Place.is_below`."""
        return False

    def refuse_inside_run(self) -> None:
        """See `Place.refuse_inside_run`."""
        refuse_inside_store(self.shown, self._top, lambda: self._system)

    def write(self, name: str, pieces: Iterable[bytes]) -> Seen:
        """See `Place.write`."""
        path, n_written, n_sure = f"{self._top}/{name}", 0, 0
        with plain_errors(self._url, f"{self.shown}/{name}", "cannot be written", ResourceError):
            if not is_on_objects(self._url):
                self._system.create_dir(path.rpartition("/")[0], recursive=True)
            stream = self._system.open_output_stream(path, compression=None)
            try:
                for piece in pieces:
                    n_written += stream.write(piece)
                    if n_written - n_sure >= _IN_FLIGHT:
                        stream.flush()
                        n_sure = n_written
            except BicliqueError:  # of the pieces, so the store is well
                self._withdraw(stream, path)
                raise
            stream.close()
        seen = self.see(name)
        if seen is None:
            raise ResourceError(f"{self.shown}/{name} is not there after it was written; give the same command again")
        return seen

    def _withdraw(self, stream: Any, path: str) -> None:
        """Remove a file that is not whole. A stream cannot be given up: closing it makes a file of what it has."""
        with suppress(Exception):
            stream.close()
            self._system.delete_file(path)

    def see(self, name: str) -> Seen | None:
        """See `Place.see`."""
        from pyarrow.fs import FileType  # only where there is a file system of Arrow

        with plain_errors(self._url, f"{self.shown}/{name}", kind=ResourceError):
            entry = self._system.get_file_info(f"{self._top}/{name}")
        return _stored(entry) if entry.type == FileType.File else None

    def read(self, name: str) -> Iterator[bytes]:
        """See `Place.read`."""
        with (
            plain_errors(self._url, f"{self.shown}/{name}", "cannot be read back", ResourceError),
            self._system.open_input_stream(f"{self._top}/{name}", compression=None) as stream,
        ):
            while piece := stream.read(PIECE):
                yield piece

    def remove(self, name: str) -> None:
        """See `Place.remove`."""
        with (
            plain_errors(self._url, f"{self.shown}/{name}", "cannot be removed", ResourceError),
            suppress(FileNotFoundError),
        ):
            self._system.delete_file(f"{self._top}/{name}")


def open_place(url: PathLike) -> Place:
    """The place that a path or a URL names. Nothing is read yet."""
    text = url_of(url)
    if text is None:
        return Place(local_path(url))
    scheme, _, rest = text.partition("://")
    if scheme.lower() == "file":
        if not rest.startswith("/"):
            raise InputError(f"{text} names a file of another machine; write three slashes, as in file:///data/night")
        return Place(Path(unquote(rest)))
    if scheme.lower() in ("http", "https"):
        raise InputError(
            f"{without_secrets(text)} is an address of the web, where nothing can be written; name a folder, or one "
            "with s3://, gs:// or abfs://"
        )
    return StorePlace(text)


def _below(folder: Path) -> Iterator[Path]:
    """All that is below a folder and is no folder. Links are not followed."""
    for path in folder.iterdir():
        if is_folder(path):
            yield from _below(path)
        else:
            yield path


def _seen(path: Path) -> Seen:
    found = path.lstat()
    return Seen(found.st_size if is_file(path) else -1, found.st_mtime_ns)


def _stored(entry: Any) -> Seen:
    """What a file system of Arrow says of a file. Listings of a store have fractions of seconds, other answers none."""
    nanoseconds = entry.mtime_ns
    modified = None if nanoseconds is None else nanoseconds // _SECOND * _SECOND
    return Seen(entry.size if entry.size is not None else -1, modified)
