"""The call `publish` of the Python API, and of the command so named."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass
from typing import Any

from bicliques.pipeline.process.logs import tell
from bicliques.pipeline.publishing.contents import sealed
from bicliques.pipeline.publishing.place import open_place
from bicliques.pipeline.publishing.publication import Publication
from bicliques.pipeline.publishing.record import refuse_place
from bicliques.pipeline.run.files import PathLike
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
