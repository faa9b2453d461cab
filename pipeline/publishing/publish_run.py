"""The call `publish` of the Python API, and of the command so named.

A publication writes and removes files, and its record, in an order in which it is honest at every moment. It copies a
few files of the run at a time, and reads each one back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock
from typing import Any

from bicliques.pipeline.ingest.readers.opening import Digest
from bicliques.pipeline.process.in_order import in_order
from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.publishing.place import PIECE, Place, Seen, open_place
from bicliques.pipeline.publishing.record import (
    PUBLISHED_FOLDERS,
    Contents,
    Listed,
    Listing,
    Record,
    known_listing,
    refuse_place,
    refuse_readable,
    sealed,
)
from bicliques.pipeline.run.files import PathLike
from bicliques.pipeline.run.names import MANIFEST_FILE, SUCCESS_FILE
from bicliques.pipeline.run.progress import OnProgress, Progress, to_callback
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.pipeline.run.tables import open_bytes
from bicliques.schemas.errors import BicliqueError, IncompleteError, ResourceError
from bicliques.schemas.values import as_path

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Published:
    """A run that was published.

    Parameters
    ----------
    url : str
        The place, without secrets.
    run : str
        The name that no other run has.
    count : int
        Number of bicliques.
    fingerprint : int
        Of the set of bicliques, 64 bits.
    files, bytes : int
        All files of the run that are there now, and their sizes.
    written, written_bytes : int
        Those of them that this call has written. The others were there already.
    removed : int
        Files of an earlier publication that this call has removed.
    changed : bool
        Whether this call has changed anything there. If not, the run was published already.
    seconds : float
        Wall time of this call.
    """

    url: str
    run: str
    count: int
    fingerprint: int
    files: int
    bytes: int
    written: int
    written_bytes: int
    removed: int
    changed: bool
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return asdict(self) | {"fingerprint": str(self.fingerprint)}


def publish(
    out: PathLike, url: PathLike, *, overwrite: bool = False, progress: OnProgress | bool | None = None
) -> Published:
    """Copy a complete run to a folder or a bucket, so that no reader takes a part of it for all of it.

    Parameters
    ----------
    out : path
        Folder of the run. It is only read.
    url : path or str
        The folder to write: a path, or a URL with ``file://``, ``s3://``, ``gs://``, ``abfs://``, or of what fsspec
        knows. The environment has the credentials. It is empty, does not exist, has this run or a part of it; or with
        `overwrite` another run that was published there. Files of others may lie beside, and stay.
    overwrite : bool
        Whether to replace another run.
    progress : callable, bool or None
        As for `bicliques.mine`.

    Returns
    -------
    Published
        What is there now, and what of it this call has written.

    Raises
    ------
    InputError
        If the run only counted, or the place cannot be used. Nothing is written then.
    IncompleteError
        If the run is not complete and proven, or a file of it is damaged. Nothing is written then.
    ResourceError
        If a file cannot be written, or is read back otherwise than it was written. The same call goes on then.

    Notes
    -----
    ``_SUCCESS`` is written last, and removed before anything else is changed. Rows are written before all other files,
    and the manifest after all but ``_SUCCESS``. Every file is read back and its BLAKE3 digest compared. A file is not
    written again if the record ``_published.json`` has its digest and the place says that nobody has written it since.
    If it says something else, the file is read and compared. Memory: pieces of four files, some 200 MB in all.

    Examples
    --------
    >>> import bicliques
    >>> results = bicliques.mine("examples/debian12_package_tag.parquet", "OUT-to-publish", report=False)
    >>> found = bicliques.publish("OUT-to-publish", "PUBLISHED")
    >>> found.count, found.written == found.files
    (56688, True)
    >>> bicliques.publish("OUT-to-publish", "PUBLISHED").written
    0
    """
    started = time.perf_counter()
    as_path(url, "the place to publish to")  # it may be a URL, which is no path
    contents, place = sealed(as_path(out, "the folder of a run")), open_place(url)
    refuse_place(place, contents)
    done = Publication(contents, place, to_callback(progress)).make(overwrite)
    found = Published(
        url=place.shown,
        run=contents.run.identity,
        count=contents.manifest.count,
        fingerprint=contents.fingerprint,
        files=len(done.files),
        bytes=sum(listed.bytes for listed in done.files.values()),
        written=len(done.written),
        written_bytes=sum(done.files[name].bytes for name in done.written),
        removed=len(done.removed),
        changed=done.changed,
        seconds=time.perf_counter() - started,
    )
    facts: dict[str, Any] = {"url": found.url, "run": found.run, "files": found.files, "bytes": found.bytes}
    facts |= {"written": found.written, "written_bytes": found.written_bytes, "seconds": round(found.seconds, 6)}
    tell(logger, "published", f"{found.files} files of {contents.run.store.shown()} are at {found.url}", **facts)
    return found


#: The record is written again when files of so many bytes are not in it yet, and they are a share of those that are.
#: So a publication that was killed compares few files again, and the record is written a few dozen times at most.
_UNLISTED_BYTES, _UNLISTED_SHARE = 256 << 20, 1 / 8


@dataclass(frozen=True)
class Done:
    """What a publication has done.

    Parameters
    ----------
    files : dict of str to Listed
        All files of the run that are in the place now.
    written, removed : tuple of str
        Those that were written, and those of an earlier publication that were removed.
    changed : bool
        Whether anything in the place was changed.
    """

    files: dict[str, Listed]
    written: tuple[str, ...]
    removed: tuple[str, ...]
    changed: bool


class Publication:
    """One call that publishes a run."""

    def __init__(self, contents: Contents, place: Place, on_progress: OnProgress):
        self._contents, self._place = contents, place
        self._record = Record(contents, place)
        self._copying = Copying(contents, place, on_progress, self._record.confirm)
        self._files: dict[str, Listed] = {}
        self._bytes = self._listed_bytes = 0

    def make(self, overwrite: bool) -> Done:
        """Let the place agree with the run; see `pipeline.publishing.publish_run.publish` for errors."""
        there = self._place.look(PUBLISHED_FOLDERS)
        before = known_listing(self._place, there, self._contents, overwrite)
        self._files = self._copying.same(there, before)
        self._bytes = sum(listed.bytes for listed in self._files.values())
        to_write = [name for name in self._contents.names if name not in self._files]
        stale = before.names - set(self._contents.names) if before is not None else set()
        changed = SUCCESS_FILE not in there or not self._is_told(before)
        if changed:
            gone = sorted((*stale, *(name for name in to_write if name in there)), key=_order_of_removal)
            self._change(there, to_write, gone)
        return Done(self._files, tuple(to_write), tuple(sorted(stale & there.keys())), changed)

    def _is_told(self, before: Listing | None) -> bool:
        """Whether the record says all that there is to say."""
        if before is None:
            return False
        told = (before.run, before.files, before.unchecked)
        return told == (self._contents.run.identity, self._files, ()) and len(self._files) == len(self._contents.names)

    def _change(self, there: dict[str, Seen], to_write: list[str], gone: list[str]) -> None:
        """Make the place agree with the run. As long as it does not, it has no ``_SUCCESS``."""
        if SUCCESS_FILE in there:
            self._place.remove(SUCCESS_FILE)
        self._tell((*to_write, *gone))
        for name in gone:
            self._place.remove(name)
        left = dict.fromkeys(to_write)
        for phase in self._contents.phases:
            with closing(self._copying.copies([name for name in phase if name in left])) as copies:
                for name, listed in copies:
                    self._files[name] = listed
                    self._bytes += listed.bytes
                    del left[name]
                    unlisted = self._bytes - self._listed_bytes
                    if left and unlisted > max(_UNLISTED_BYTES, _UNLISTED_SHARE * self._listed_bytes):
                        self._tell(tuple(left))
        self._tell(())
        self._check()
        self._place.write(SUCCESS_FILE, ())

    def _tell(self, unchecked: tuple[str, ...]) -> None:
        self._record.write(self._files, unchecked)
        self._listed_bytes = self._bytes

    def _check(self) -> None:
        """Refuse to call a place complete that somebody has changed meanwhile."""
        there = self._place.look(PUBLISHED_FOLDERS)
        for name, listed in self._files.items():
            if there.get(name) != Seen(listed.bytes, listed.modified):
                raise self._record.disturbed(name)
        refuse_readable(self._place, there, self._files.keys())
        if SUCCESS_FILE in there:
            raise self._record.disturbed(SUCCESS_FILE)
        self._record.check()


def _order_of_removal(name: str) -> tuple[bool, bool, str]:
    """The manifest first, because it says that a run is complete, and then the rows."""
    return name != MANIFEST_FILE, not name.startswith("bicliques/"), name


#: Files that are copied or compared at a time. A store answers slowly, and takes several at once.
_AT_A_TIME = 4
#: Seconds between two looks at how far the copies are.
_LOOK_S = 0.2


class Copying:
    """Copies the files of a run, and tells how far it is.

    Parameters
    ----------
    on_progress : callable
    confirm : callable
        Called with the name of each file that was written and read back, in the thread that has done so. It raises an
        error to end all.
    """

    def __init__(self, contents: Contents, place: Place, on_progress: OnProgress, confirm: Callable[[str], None]):
        self._contents, self._place, self._on_progress, self._confirm = contents, place, on_progress, confirm
        with _reading(contents.path, contents.path):
            self._sizes = {name: contents.size(name) for name in contents.names}
        self._total = sum(self._sizes.values())
        self._lock, self._stop = Lock(), Event()
        self._written = self._read = 0
        self._started = time.monotonic()

    def same(self, there: dict[str, Seen], before: Listing | None) -> dict[str, Listed]:
        """The files that are in the place as the run has them, and so need not be written.

        A file is not read there if the record of the publication has its digest, and it has not been written since.
        Raises `IncompleteError` if a file of the run cannot be read, and `ResourceError` if a file of the place cannot
        be read.
        """

        def compared(name: str) -> tuple[str, Listed | None]:
            path, seen = self._contents.path / name, there[name]
            if self._sizes[name] != seen.bytes:
                return name, None
            with _reading(path, self._contents.path):
                digest = _digest_of(_content(path))
            listed = before.files.get(name) if before is not None else None
            if listed is not None and listed.is_still(seen):
                found = listed.blake3
            else:
                found = _digest_of(self._place.read(name))
            return name, Listed(seen.bytes, digest, seen.modified) if found == digest else None

        kept = {}
        for name, listed in in_order(compared, [name for name in self._contents.names if name in there], _AT_A_TIME):
            if listed is not None:
                kept[name] = listed
                self._written, self._read = self._written + listed.bytes, self._read + listed.bytes
            self._tell()
        return kept

    def copies(self, names: Sequence[str]) -> Generator[tuple[str, Listed], None, None]:
        """Copy these files. Each comes when it was read back.

        Raises `IncompleteError` if a file of the run cannot be read, and `ResourceError` if a file cannot be written,
        or is not what was written.
        """
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            waiting = {pool.submit(self._copy, name) for name in names}
            try:
                while waiting:
                    done, waiting = wait(waiting, _LOOK_S, FIRST_COMPLETED)
                    self._tell()
                    yield from _results(done)
            except BaseException:  # also Ctrl-C, and whatever the caller raises: nothing goes on behind it
                self._stop.set()
                for future in waiting:
                    future.cancel()
                raise

    def _copy(self, name: str) -> tuple[str, Listed]:
        digest = Digest()
        seen = self._place.write(name, self._pieces(self._contents.path / name, digest))
        found = _digest_of(self._counted(self._place.read(name)))
        if found != digest.hexdigest():
            raise ResourceError(
                f"{self._place.shown}/{name} is read back with another content than was written; give the same command "
                "again"
            )
        self._confirm(name)
        return name, Listed(seen.bytes, found, seen.modified)

    def _pieces(self, path: Path, digest: Digest) -> Iterator[bytes]:
        """The content of a file of the run, which also goes into the digest."""
        with _reading(path, self._contents.path), closing(_content(path)) as pieces:
            for piece in pieces:
                self._go_on()
                digest.update(piece)
                yield piece
                with self._lock:
                    self._written += len(piece)

    def _counted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._go_on()
            yield piece
            with self._lock:
                self._read += len(piece)

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise BicliqueError("another file could not be copied")  # nobody is told

    def _tell(self) -> None:
        share = min((self._written + self._read) / max(2 * self._total, 1), 1.0)
        seconds = time.monotonic() - self._started
        self._on_progress(Progress("publish", share, bytes=self._written, seconds=seconds))


def _results(done: Iterable[Future[tuple[str, Listed]]]) -> Iterator[tuple[str, Listed]]:
    """The results of those that did not fail, and then the first error."""
    failed = [future for future in done if future.exception() is not None]
    yield from (future.result() for future in done if future not in failed)
    for future in failed:
        future.result()


def _content(path: Path) -> Generator[bytes, None, None]:
    """The content of a file of the run, which may be in a store, piece by piece."""
    file, _ = open_bytes(path)
    with file:
        while piece := file.read(PIECE):
            yield piece


def _digest_of(pieces: Iterable[bytes]) -> str:
    digest = Digest()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


@contextmanager
def _reading(path: Path, run: Path) -> Iterator[None]:
    """Turn an error of the file system about a file of the run into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise IncompleteError(f"{path} cannot be read ({reason}); mend it with: {how_to_resume(run)}") from error
