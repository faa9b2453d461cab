"""Writes the record of a publication, and notices when the place is not its own any more.

Stores have no locks. A publication that finds the record of another one in the place gives up, and takes back what the
other one cannot know of. So of two commands at most one ends well.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from threading import Lock

from pipeline.publishing.contents import Contents
from pipeline.publishing.listing import LAYOUT, Listed, Listing
from pipeline.publishing.place import Place, Seen
from pipeline.run.names import PUBLISHED_FILE
from pipeline.run.version import __version__
from schemas.errors import IncompleteError, ResourceError

__all__ = ["Record"]


class Record:
    """The record of one publication.

    Parameters
    ----------
    contents : Contents
    place : Place
    """

    def __init__(self, contents: Contents, place: Place):
        self._contents, self._place = contents, place
        self._name = uuid.uuid4().hex
        self._seen: Seen | None = None
        self._one_reader = Lock()  # files of fsspec in memory are shared by all who have them open

    def write(self, files: Mapping[str, Listed], unchecked: Iterable[str]) -> None:
        """Write the record, and read it back; see `Listing`.

        Raises
        ------
        ResourceError
            If it cannot be written, or another publication has written its own since this one wrote its last.
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
        """Refuse to go on where another publication has begun.

        Raises
        ------
        ResourceError
        """
        if self._there().publication != self._name:
            raise self.disturbed(PUBLISHED_FILE)

    def confirm(self, name: str) -> None:
        """Take a file back that was just written, if another publication has begun that does not know of it.

        Raises
        ------
        ResourceError
            If another one has begun.

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
