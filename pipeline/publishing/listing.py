"""The record of a publication, ``_published.json``: of which run it is, and which file has which digest.

It is the first file that is written and is written again as the publication goes on. So it always names all files that
a publication has put there or may be putting there, and nothing else is ever removed.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from bicliques.pipeline.publishing.contents import is_published
from bicliques.pipeline.publishing.place import Seen
from bicliques.schemas.errors import IncompleteError
from bicliques.schemas.records import checked, parsed, read_as, with_checksum

#: Version of the record.
LAYOUT = 1


@dataclass(frozen=True)
class Listed:
    """A file whose content was read back, or compared, and is that of the run.

    Parameters
    ----------
    bytes : int
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
    count : int
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
        """Inverse of `to_bytes`.

        Raises
        ------
        IncompleteError
            If it is damaged, or names a file that no run has.
        """
        found = parsed(data)
        if found.get("layout") != LAYOUT:
            raise IncompleteError(f"it has layout {found.get('layout')!r}, and this version reads {LAYOUT}")
        listing = read_as(cls, checked(found), "the listing")
        stranger = next((name for name in sorted(listing.names) if not is_published(name)), None)
        if stranger is not None:
            raise IncompleteError(f"it names {stranger!r:.80}, which is no file of a run")
        return listing
