"""What a run asks of the place that it is kept in. `Store` is a folder of this machine, and needs little.

`pipeline.run.bucket` is the other place. A run in a bucket has a *working folder* on each machine, with options, graph,
plan and a copy of the ledger. The parts are in the bucket alone. A path of one, below ``bicliques/`` of the working
folder, stands for its object.

Which bucket that is, only a URL that somebody has given to this process says. No file says it, because whoever may
write beside a folder could then redirect its run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bicliques.pipeline.run.files import disk_errors, whole_file
from bicliques.pipeline.run.lock import Holder, holder, locked
from bicliques.pipeline.run.names import LOCK_FILE, url_of

if TYPE_CHECKING:
    from bicliques.schemas.manifest import Part

#: The folder of the parts that count, and that of those whose slice is not in the ledger yet. It lies beside the other
#: and not in it, because Polars and DuckDB read hidden folders, too, where they are given a folder or ``**``.
PARTS, PENDING = "bicliques", "pending"
#: Seconds between two looks of a reader, and for how long it looks. A driver moves a part some milliseconds after its
#: entry, unless the disk stalls.
_LOOK_S, _PATIENCE_S = 0.002, 10.0
#: The working folders of this process, by their real paths.
_buckets: dict[str, Store] = {}


class Store:
    """The folder of a run. Every method says what a bucket does otherwise.

    Raises `InputError`, `IncompleteError` or `ResourceError`: of a bucket by each method that asks it: if another
    driver is at work, if it has something of the run that is damaged, if it does not answer.

    Parameters
    ----------
    path : Path
        The folder. Of a run in a bucket, its working folder.

    Attributes
    ----------
    url : str or None
        The address of the bucket.
    """

    url: str | None = None

    def __init__(self, path: Path):
        self.path = path

    @property
    def address(self) -> Path | str:
        """What programs are told of the run: what commands take."""
        return self.url or self.path

    def shown(self, *names: str) -> str:
        """What people are told of the run, or of a path in its folder. A bucket has its own names."""
        return str(self.path.joinpath(*names))

    def local(self, path: Path) -> Path:
        """A file of the run, or a folder in its folder. It is brought here from a bucket that is read."""
        return path

    def for_arrow(self, path: Path) -> tuple[str, Any] | None:
        """Where Arrow finds a part that is in a bucket: path and file system. None for a file."""
        return None

    def unreadable(self, path: Path, reason: str, error: Exception) -> Exception | None:
        """The error of a part that a bucket does not give. None for a file, and for a part that is not there."""
        return None

    def sizes(self, parts: Iterable[Part]) -> dict[str, int]:
        """Bytes of each of these parts that is there, by its name. A bucket is asked for each by its key."""
        places = {part.name: self.place_of(part) for part in parts}
        return {name: path.stat().st_size for name, path in places.items() if path.exists()}

    def place_of(self, part: Part) -> Path:
        """The file of a part that counts: in ``bicliques/``, or in ``pending/`` if it was not moved yet."""
        target, waiting = self.path / PARTS / part.name, self.path / PENDING / part.name
        return waiting if not target.exists() and waiting.exists() else target

    def deliver(self, parts: Iterable[Part]) -> None:
        """Put the parts that a worker has closed where the driver finds them. A bucket gets them now, to stay."""

    def commit(self, number: int, entry: bytes, parts: Iterable[Part], flush_names: Callable[[], None]) -> None:
        """Write the entry of a slice, and let its parts be seen. From the entry on its work counts.

        In a folder parts are seen after it, so a reader of ``bicliques/`` never has rows that do not count. In a bucket
        they are there before it, under names that no other attempt has, because objects cannot be renamed.
        """
        with whole_file(self.path / "ledger" / f"{number}.json", flush_names) as stream:
            stream.write(entry)
        self.admit(parts)

    def admit(self, parts: Iterable[Part]) -> None:
        """Move parts into ``bicliques/``, or put them into a bucket that has not got them. An entry names them.

        Raises `ResourceError` if a part cannot be moved. It counts, and opening the run for writing moves it.
        """
        for part in parts:
            target = self.path / PARTS / part.name
            with disk_errors(target):
                (self.path / PENDING / part.name).rename(target)

    def await_driver(self, parts: Iterable[Part]) -> None:
        """Wait until no part is about to be moved, so that a reader can keep the names of the files.

        Returns at once where nobody works on the run. Of a driver that moves nothing for ten seconds no more is
        expected. If it was killed, opening the run for writing moves the part.
        """
        deadline = time.monotonic() + _PATIENCE_S
        for part in parts:
            while self.place_of(part).parent.name == PENDING and time.monotonic() < deadline:
                at_work = self.holder()
                if at_work is None or not at_work.alive:
                    return
                time.sleep(_LOOK_S)

    def locked(self) -> AbstractContextManager[None]:
        """Be the driver of the run during a block; see `pipeline.run.lock`. A bucket has a lock of its own, too."""
        return locked(self.path / LOCK_FILE)

    def holder(self) -> Holder | None:
        """The process that works on the run, or that died while it did. None if neither is there."""
        return holder(self.path / LOCK_FILE)

    def refuse_place(self) -> None:
        """Refuse a bucket for a new run if the address is in a folder that a run fills."""

    def refuse_above(self, inputs: Iterable[str]) -> None:
        """Refuse a bucket for a new run if one of these paths and URLs is below it. A folder is refused anyway."""

    def take_over(self) -> None:
        """Before what counts is found out: bring the ledger that is in the bucket."""

    def begin(self, counting: Iterable[int], parts: Iterable[Part]) -> None:
        """Begin to mine. A bucket gets a session, in which the entries of these slices count, and these parts stay."""

    def keep(self, name: str) -> None:
        """Put a file of the run, which is here, into its bucket."""

    def keep_steps(self) -> None:
        """Put options and steps of the run, with their files, into its bucket."""

    def keep_result(self) -> None:
        """Put what a complete run has besides its parts into its bucket."""

    def keep_changes(self) -> None:
        """Put the comparison with the run before into the bucket, in the place of another one."""

    def bring_changes(self) -> None:
        """Make the comparison in the working folder what the bucket has."""

    def withdraw_result(self) -> None:
        """Take ``_SUCCESS`` and the manifest out of the bucket of a run that is not complete any more."""


def store_at(folder: Path) -> Store:
    """Where the run in a folder is kept."""
    return (_buckets.get(real(folder)) if _buckets else None) or Store(folder)


def store_of(path: Path) -> Store:
    """Where the run is kept that a file is of, directly in its folder or in one of its folders."""
    for folder in (path.parent, path.parent.parent) if _buckets else ():
        if (found := _buckets.get(real(folder))) is not None:
            return found
    return Store(path.parent.parent)


def is_known(store: Store) -> None:
    """From now on the working folder of a bucket is known by its path."""
    _buckets[real(store.path)] = store


def shown_address(address: str) -> str:
    """What people are told of the address of a run: a path as it is, and a URL without its options."""
    url = url_of(address)
    if url is None:
        return address
    from bicliques.pipeline.remote.urls import place_of  # imported only here, because most runs are kept in folders

    return place_of(url)


def places_here() -> Path:
    """The folder with all working folders of this user on this machine; see `pipeline.run.bucket_cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "bicliques", "stores")  # noqa: PTH111 - no home is no error


def real(path: str | os.PathLike[str]) -> str:
    """A path without links. One that no file can have stays as it is, and who opens it refuses it."""
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL
        return os.fspath(path)
