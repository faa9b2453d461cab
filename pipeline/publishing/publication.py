"""One publication: what is written and removed, in which order, and its record, so it is honest at every moment."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from bicliques.pipeline.publishing.contents import PUBLISHED_FOLDERS, Contents
from bicliques.pipeline.publishing.copying import Copying
from bicliques.pipeline.publishing.place import Place, Seen
from bicliques.pipeline.publishing.record import Listed, Listing, Record, known_listing, refuse_readable
from bicliques.pipeline.run.names import MANIFEST_FILE, SUCCESS_FILE
from bicliques.pipeline.run.progress import OnProgress

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
