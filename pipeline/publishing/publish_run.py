"""The call `publish` of the Python API, and of the command so named.

A publication writes and removes files, and its record, in an order in which it is honest at every moment.
"""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.publishing.copying import Copying
from bicliques.pipeline.publishing.place import Place, Seen, open_place
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
from bicliques.pipeline.run.progress import OnProgress, to_callback
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
    """One call that publishes a run.

    Parameters
    ----------
    on_progress : callable
    """

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
