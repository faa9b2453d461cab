"""What is published of a run, in which order, and the record of it.

A run that is not complete and whole is refused. The record, ``_published.json``, says of which run the publication is,
and which file has which digest. It is the first file that is written and is written again as the publication goes on.
So it always names all files that a publication has put there or may be putting there, and nothing else is ever removed.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock

from bicliques.pipeline import __version__
from bicliques.pipeline.ingest.readers.files import is_hidden
from bicliques.pipeline.proof import summary, vertices
from bicliques.pipeline.proof.wholeness import why_not_whole
from bicliques.pipeline.publishing.place import Place, Seen
from bicliques.pipeline.run.names import (
    MANIFEST_FILE,
    OPTIONS_FILE,
    PUBLISHED_FILE,
    REFUSED_FILE,
    REPORT_FILE,
    SUCCESS_FILE,
    has_name_of_run,
    is_file,
    is_folder,
    refuse_links,
)
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import number
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError, as_option
from bicliques.schemas.manifest import Manifest
from bicliques.schemas.records import checked, parsed, read_as, with_checksum

_PARTS = "bicliques"
#: Folders beside the parts, all of which can be read without the rest of the run.
_BESIDE = ("edges", "labels", "summary", "vertices", "changes", "communities")
#: The folders of a run that are published.
PUBLISHED_FOLDERS = (_PARTS, *_BESIDE)


@dataclass(frozen=True, eq=False)
class Contents:
    """What is published.

    Parameters
    ----------
    phases : tuple of tuple of str
        Names of files below the folder of the run, with slashes. All files of a phase are written before any file of
        the next: the parts, what lies beside them, the manifest.
    """

    run: Run
    manifest: Manifest
    phases: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of the phases."""
        return tuple(name for phase in self.phases for name in phase)

    @property
    def fingerprint(self) -> int:
        """The fingerprint of the manifest."""
        assert self.manifest.fingerprint is not None, "a run that lists has a fingerprint"
        return self.manifest.fingerprint

    @property
    def path(self) -> Path:
        """Folder of the run."""
        return self.run.path

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return self._sizes[name] if name in self._sizes else (self.path / name).stat().st_size

    @cached_property
    def _sizes(self) -> dict[str, int]:
        return {f"{_PARTS}/{part.name}": part.bytes for part in self.manifest.parts}


def is_published(name: str) -> bool:
    """Whether a file of this name may be one that was published, and not one of somebody else."""
    folder, slash, rest = name.rpartition("/")
    if not slash:
        return name in (MANIFEST_FILE, REPORT_FILE)
    return folder in PUBLISHED_FOLDERS and has_name_of_run(folder, rest)


def sealed(path: Path) -> Contents:
    """What is published of the run in a folder."""
    run = Run.with_holes(path)
    if run.job.rows == "none":
        raise InputError(
            f"{path} was mined with {as_option('count_only', True)} and holds no bicliques to publish; mine it again "
            "without"
        )
    refuse_links(run.path)
    if os.path.lexists(refused := run.path / REFUSED_FILE):
        raise InputError(
            f"{path} has not passed the gate of its schedule, so it is not published; look at its changes, and let it "
            f"pass: start the flow for its day without refuse_above, or remove {refused}"
        )
    manifest = run.folder.manifest()
    if manifest is None:
        raise IncompleteError(
            f"{path} is not complete, and only a complete run is published; continue with: "
            f"{how_to_resume(path, run.ended())}"
        )
    if (reason := _why_damaged(run, manifest)) is not None:
        raise IncompleteError(f"{reason}; mend it with: {how_to_resume(path)}")
    run.folder.check("ingest")
    parts = tuple(f"{_PARTS}/{part.name}" for part in manifest.parts)
    page = (REPORT_FILE,) if is_file(run.store.local(run.path / REPORT_FILE)) else ()
    return Contents(run, manifest, (parts, (*_beside(run), *page), (MANIFEST_FILE,)))


def _why_damaged(run: Run, manifest: Manifest) -> str | None:
    """The first thing that is wrong with a complete run, in words. Ledger, sizes of parts and summary are looked at."""
    if (reason := why_not_whole(run, manifest)) is not None:
        return reason
    if manifest.proven_rows != manifest.count:
        return f"{manifest.proven_rows:,} of {manifest.count:,} rows in {run.path} are proven"
    if run.options.search.per_vertex and (reason := vertices.why_damaged(run)) is not None:
        return reason
    return summary.why_damaged(run.folder, manifest)


def _beside(run: Run) -> list[str]:
    """Names of the files beside the parts. Files that are not finished do not count."""
    found = []
    for name in _BESIDE:
        folder = run.store.local(run.path / name)
        if is_folder(folder):
            found += [f"{name}/{file.name}" for file in run.folder.own_files(folder) if not file.name.startswith(".")]
    return found


#: Version of the record.
LAYOUT = 1


@dataclass(frozen=True)
class Listed:
    """A file whose content was read back, or compared, and is that of the run.

    Parameters
    ----------
    blake3 : str
        Digest of its content, as ``b3sum`` prints it.
    modified : int or None
        When it was written, as `pipeline.publishing.place.Seen` has it.
    """

    bytes: int
    blake3: str
    modified: int | None

    def is_still(self, seen: Seen | None) -> bool:
        """Whether a file has not been written again since. Of a place that tells no times this is not known: False."""
        return seen is not None and self.modified is not None and Seen(self.bytes, self.modified) == seen


@dataclass(frozen=True)
class Listing:
    """What was published, and how far.

    Parameters
    ----------
    layout : int
        `LAYOUT`.
    version : str
        Version of the package.
    run : str
        The name that no other run has.
    created : str
        When the run was proven, in UTC, ISO 8601.
    fingerprint : str
        Both as in the manifest.
    publication : str
        The name of the call that wrote this, which no other call has.
    files : dict of str to Listed
        By the name below the place, with slashes.
    unchecked : tuple of str
        Names of files that are not there yet, are not checked yet, or are yet to be removed. Empty at the end.
    """

    layout: int
    version: str
    run: str
    created: str
    count: int
    fingerprint: str
    publication: str
    files: dict[str, Listed] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()

    @property
    def names(self) -> frozenset[str]:
        """All files that a publication has put there, or may have."""
        return frozenset((*self.files, *self.unchecked))

    def to_bytes(self) -> bytes:
        """The content of ``_published.json``."""
        return json.dumps(with_checksum(asdict(self)), indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Listing:
        """Inverse of `to_bytes`."""
        found = parsed(data)
        if found.get("layout") != LAYOUT:
            raise IncompleteError(f"it has layout {found.get('layout')!r}, and this version reads {LAYOUT}")
        listing = read_as(cls, checked(found), "the listing")
        stranger = next((name for name in sorted(listing.names) if not is_published(name)), None)
        if stranger is not None:
            raise IncompleteError(f"it names {stranger!r:.80}, which is no file of a run")
        return listing


class Record:
    """The record of one publication."""

    def __init__(self, contents: Contents, place: Place):
        self._contents, self._place = contents, place
        self._name = uuid.uuid4().hex
        self._seen: Seen | None = None
        self._one_reader = Lock()  # files of fsspec in memory are shared by all who have them open

    def write(self, files: Mapping[str, Listed], unchecked: Iterable[str]) -> None:
        """Write the record, and read it back; see `Listing`.

        Raises `ResourceError` if it cannot be written, or another publication has written its own since this one wrote
        its last.
        """
        if self._seen is not None:
            self.check()
        run, manifest = self._contents.run.identity, self._contents.manifest
        number, names = str(self._contents.fingerprint), tuple(dict.fromkeys(unchecked))
        listing = Listing(
            LAYOUT, __version__, run, manifest.created, manifest.count, number, self._name, dict(files), names
        )
        data = listing.to_bytes()
        self._seen = self._place.write(PUBLISHED_FILE, (data,))
        if b"".join(self._place.read(PUBLISHED_FILE)) != data:
            raise self.disturbed(PUBLISHED_FILE)

    def check(self) -> None:
        """Refuse to go on where another publication has begun."""
        if self._there().publication != self._name:
            raise self.disturbed(PUBLISHED_FILE)

    def confirm(self, name: str) -> None:
        """Take a file back that was just written, if another publication has begun that does not know of it.

        Raises `ResourceError` if another one has begun.

        Notes
        -----
        Every publication removes what the record that it finds names, after it has written its own. So this is asked
        after each file, and costs one request that reads nothing.
        """
        if self._seen is not None and self._seen.modified is not None and self._place.see(PUBLISHED_FILE) == self._seen:
            return
        there = self._there()
        if there.publication != self._name:
            if name not in there.names:
                self._place.remove(name)
            raise self.disturbed(PUBLISHED_FILE)

    def disturbed(self, name: str) -> ResourceError:
        """The error of a place in which something else writes, and where that shows."""
        return ResourceError(
            f"{self._place.shown}/{name} was changed while the run was published; see that nothing else writes there, "
            "and give the same command again"
        )

    def _there(self) -> Listing:
        with self._one_reader:
            data = b"".join(self._place.read(PUBLISHED_FILE))
        try:
            return Listing.from_bytes(data)
        except IncompleteError as error:
            raise self.disturbed(PUBLISHED_FILE) from error


def refuse_place(place: Place, contents: Contents) -> None:
    """Refuse a place inside the folder of the run or of another one, whose readers would take its files for rows."""
    store = contents.run.store.shown()
    if place.is_below(contents.path) or f"{place.shown}/".startswith(f"{store}/"):
        raise InputError(f"{place.shown} is the folder of the run, or lies in it; name a folder elsewhere")
    place.refuse_inside_run()


def known_listing(place: Place, there: dict[str, Seen], contents: Contents, overwrite: bool) -> Listing | None:
    """The record of what was published in a place. None if nothing was."""
    if OPTIONS_FILE in there:
        raise InputError(f"{place.shown} is the folder of a run, which is not published into; name another one")
    if PUBLISHED_FILE not in there:
        ours = next((name for name in sorted(there) if is_published(name) or name == SUCCESS_FILE), None)
        if ours is not None:
            raise InputError(f"{place.shown} holds {ours}, which was not published there; name another folder")
        refuse_readable(place, there, ())
        return None
    try:
        found = Listing.from_bytes(b"".join(place.read(PUBLISHED_FILE)))
    except IncompleteError as error:
        found = _made_up(place, there, contents, error)
    if found.run != contents.run.identity and not overwrite:
        same = "the same" if found.fingerprint == str(contents.manifest.fingerprint) else "other"
        raise InputError(
            f"{place.shown} holds another run, of {found.created}, with {number(found.count, 'biclique')} ({same} "
            f"ones); name another folder, or replace it with {as_option('overwrite', True)}"
        )
    refuse_readable(place, there, found.names | set(contents.names))
    return found


def refuse_readable(place: Place, there: Collection[str], ours: Collection[str]) -> None:
    """Refuse files of somebody else that a reader of the rows would read, too."""
    for name in sorted(there):
        is_row = name.startswith("bicliques/") and name.endswith(".parquet") and not is_hidden(name)
        if is_row and name not in ours:
            raise InputError(
                f"{place.shown}/{name} is of somebody else, and would be read as rows of the run; move it away"
            )


def _made_up(place: Place, there: Collection[str], contents: Contents, error: IncompleteError) -> Listing:
    """A record in the place of one that cannot be read, if all files there have names of the run at hand.

    A store that does not write a file whole or not at all may leave a record that was cut off. Names of parts belong to
    one run.
    """
    manifest, ours = contents.manifest, {name for name in there if is_published(name)}
    if SUCCESS_FILE in there or not ours <= set(contents.names):
        raise InputError(
            f"{place.shown}/{PUBLISHED_FILE} cannot be used ({error}), so nobody knows which files were published "
            "there; delete them, or name another folder"
        ) from error
    number = str(manifest.fingerprint)
    return Listing(
        LAYOUT, __version__, contents.run.identity, manifest.created, manifest.count, number, "", {}, tuple(ours)
    )
