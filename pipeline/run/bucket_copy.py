"""What a folder of this machine has of a run in a bucket: records, files of steps, the ledger, the result.

What a bucket has may have been put by anybody. So a record gets into the folder only after it was read, and no file is
written under a name that a run does not give.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path

from bicliques.pipeline.remote.objects import Objects, each
from bicliques.pipeline.run.bucket_ledger import Journal
from bicliques.pipeline.run.files import checksum, create, disk_errors, holds, temporary_folder, whole_file
from bicliques.pipeline.run.folder import PLACES, RunFolder, children_of
from bicliques.pipeline.run.names import (
    CHANGES,
    CHANGES_FILES,
    MANIFEST_FILE,
    OPTIONS_FILE,
    PUBLISHED_FILE,
    has_name_of_run,
    is_entry,
    refuse_links,
    remove_ours,
)
from bicliques.schemas.errors import IncompleteError, InputError, as_option, renaming
from bicliques.schemas.facts import BEFORE_MINING

logger = logging.getLogger(__name__)

#: What a complete run has beside its parts. Not every run has all of it.
BESIDE = tuple(
    f"{place}/{name}.parquet"
    for place, names in {"summary": ("sizes", "largest", "left", "right"), "vertices": ("left", "right")}.items()
    for name in names
)
#: The comparison with the run before, in the order in which its files are put. Its record is put last and removed
#: first. So whoever finds the record finds the files that belong to it.
CHANGES_KEYS = tuple(f"{CHANGES}/{name}" for name in CHANGES_FILES)
*_CHANGED, CHANGES_RECORD = CHANGES_KEYS
#: The record of the calls of mining.
SESSIONS = "steps/mine.json"


class Copy:
    """A working folder, which is made what the bucket has.

    Raises `InputError`: by each method, if a run cannot be kept there. Raises `IncompleteError` if the bucket has a
    file of the run that is damaged. Raises `ResourceError` if the bucket does not answer, or the disk is full.
    """

    def __init__(self, objects: Objects, folder: RunFolder):
        self._objects, self._folder = objects, folder

    def bring_all(self, if_there: Callable[[], None]) -> None:
        """Bring what a driver needs: everything but the parts. If the bucket has a run, `if_there` is called first."""
        if not self.bring_options():
            self._refuse_another()
            return
        if_there()  # before all that may fail or be killed
        manifest = self.bring_records()
        for step in BEFORE_MINING:
            if self._is_known(step):
                self.bring_files(step)
            elif self._folder.step_file(step).exists():
                self._bring_listed(step)
        if manifest is None or not holds(self._folder.manifest_file, manifest):  # else all of it is here
            self.bring_ledger()
            for name in BESIDE if manifest is not None else ():
                self.bring_beside(name)
            self.bring_result(manifest)

    def bring_options(self, wanted: str | None = None) -> bool:
        """Bring the options of the run. If they are of another run than the folder has, what the folder has goes.

        Parameters
        ----------
        wanted : str or None
            Identity of the run that is expected there, or IncompleteError is raised. None takes any.

        Returns
        -------
        bool
            Whether the bucket has a run.
        """
        options, folder = self._objects.get(OPTIONS_FILE), self._folder
        if options is None:
            if wanted is not None:
                raise IncompleteError(f"{self._objects.shown} holds no run any more; end this worker")
            return False

        def check(coming: RunFolder) -> None:
            coming.options()
            if wanted not in (None, coming.run_id()):
                raise IncompleteError(
                    f"{self._objects.shown} holds another run than the driver had there; end this worker"
                )

        with disk_errors(folder.path):
            folder.path.mkdir(parents=True, exist_ok=True)
        refuse_links(folder.path)
        before = identity_in(folder)
        self._bring_checked(OPTIONS_FILE, options, check)
        if before not in (None, folder.run_id()):
            with disk_errors(folder.path):
                remove_ours(folder.path, keep=(OPTIONS_FILE,))
        return True

    def what_is_left(self) -> InputError | None:
        """The error of a place that has no run, and has something of one. None if it is empty."""
        shown = self._objects.shown
        keys = (PUBLISHED_FILE, "sessions/1.json", MANIFEST_FILE)
        there = [key for key in keys if self._objects.size(key) is not None]
        if PUBLISHED_FILE in there:
            raise InputError(f"{shown} holds what was published of a run; read {shown}/bicliques with other programs")
        if not there:
            return None
        return InputError(
            f"{shown} has no {OPTIONS_FILE}, and is not empty: it has {there[0]}; name another place, or begin anew "
            f"there with {as_option('overwrite', True)}"
        )

    def _refuse_another(self) -> None:
        """Refuse a place without a run that has something of another. A run that was begun here may have put it there.

        If the place is empty, a run that was mined here was removed from it, and goes here, too.
        """
        error, folder = self.what_is_left(), self._folder
        if error is not None and identity_in(folder) is None:
            raise error
        if error is None and was_kept(folder):
            logger.info("the run that was in %s was removed, and its copy in %s is", self._objects.shown, folder.path)
            self.empty()

    def empty(self) -> None:
        """Remove what the folder has of a run."""
        if self._folder.path.exists():
            with disk_errors(self._folder.path):
                remove_ours(self._folder.path)

    def bring_records(self) -> bytes | None:
        """Bring the records of all steps. Returns the manifest, if the run has one."""
        keys = [*(f"steps/{step}.json" for step in BEFORE_MINING), SESSIONS, MANIFEST_FILE]
        found = dict(zip(keys, each(self._objects.get, keys), strict=True))
        for step in BEFORE_MINING:
            key = f"steps/{step}.json"
            if (data := found[key]) is None:
                continue
            try:
                self._bring_checked(key, data, partial(RunFolder.checksums, step=step))
            except IncompleteError:
                if not self._is_known(step):
                    self._write(key, data)  # resuming does the step again, as of a run in a folder
        if (sessions := found[SESSIONS]) is not None:
            self._write(SESSIONS, sessions)  # not checked, because resuming mends a damaged one
        return found[MANIFEST_FILE]

    def _bring_checked(self, name: str, data: bytes, check: Callable[[RunFolder], object]) -> None:
        """Write a record into the folder after `check` has read it elsewhere. So a bad one replaces no good one."""
        if holds(self._folder.path / name, data):
            return
        with temporary_folder(self._folder.path.parent) as place:
            _write(place / name, data)
            with renaming({place: self._objects.shown}):
                check(RunFolder(place))
        self._write(name, data)

    def _write(self, name: str, data: bytes) -> None:
        _write(self._folder.path / name, data)

    def bring_files(self, step: str, wanted: Iterable[str] | None = None, near: Iterable[Path] = ()) -> None:
        """Bring the files of a step that are not here, or not as its record says. One that the bucket lacks stays away.

        Parameters
        ----------
        wanted : iterable of str or None
            Their names. None: all.
        near : iterable of Path
            Working folders of this machine that may have them. A file of theirs gets a second name, and no second copy.
        """
        sums, near = self._folder.checksums(step), list(near)

        def bring(name: str) -> None:
            file = self._folder.path / name
            with disk_errors(file):
                file.parent.mkdir(exist_ok=True)
            if not (_is(file, sums[name]) or any(_linked(other / name, file, sums[name]) for other in near)):
                self._bring_file(name)

        each(bring, [name for name in sums if wanted is None or name in set(wanted)])

    def _bring_file(self, name: str) -> None:
        if self._objects.size(name) is not None:
            with whole_file(self._folder.path / name) as stream:
                stream.writelines(self._objects.pieces(name))

    def _is_known(self, step: str) -> bool:
        """Whether the folder has the record of a step, and it is whole."""
        try:
            return self._folder.step_file(step).exists() and self._folder.checksums(step) is not None
        except IncompleteError:
            return False

    def _bring_listed(self, step: str) -> None:
        """Bring what is listed of a step whose record is damaged. So it can be compared with what it gave before."""
        for place in PLACES[step]:
            with disk_errors(self._folder.path / place):
                (self._folder.path / place).mkdir(exist_ok=True)
            for name in self._objects.listed(place):
                if has_name_of_run(place, name):
                    self._bring_file(f"{place}/{name}")

    def bring_ledger(self) -> Journal:
        """Make the copy of the ledger what the journal has."""
        ledger = self._folder.ledger

        def save(number: int, data: bytes) -> None:
            file = ledger / f"{number}.json"
            with disk_errors(file):
                if not holds(file, data):
                    with create(file) as stream:
                        stream.write(data)  # not flushed, because it is a copy

        with disk_errors(ledger):
            ledger.mkdir(exist_ok=True)
        journal = Journal(self._objects, self._folder.run_id(), save)
        with disk_errors(ledger):
            for file in children_of(ledger):
                if is_entry(file.name) and int(file.stem) not in journal.counts:
                    file.unlink()
        return journal

    def bring_beside(self, name: str) -> None:
        """Bring a file that some complete runs have."""
        data = self._objects.get(name)
        if data is not None:
            self._write(name, data)

    def bring_result(self, manifest: bytes | None) -> None:
        """Write the manifest, or remove one that the run has not any more."""
        if manifest is not None:
            self._write(MANIFEST_FILE, manifest)
            return
        with disk_errors(self._folder.manifest_file):
            self._folder.manifest_file.unlink(missing_ok=True)

    def bring_changes(self) -> None:
        """Make ``changes/`` what the bucket has. If that is replaced meanwhile, there is none."""
        record, run = self._objects.get(CHANGES_RECORD), self._folder.path
        if record is not None and holds(run / CHANGES_RECORD, record):
            return
        self._remove_changes()
        if record is None:
            return
        with disk_errors(run / CHANGES):
            (run / CHANGES).mkdir(exist_ok=True)
        for key in _CHANGED:
            with whole_file(run / key) as stream:
                stream.writelines(self._objects.pieces(key))
        if self._objects.get(CHANGES_RECORD) != record:
            self._remove_changes()
            return
        self._write(CHANGES_RECORD, record)

    def _remove_changes(self) -> None:
        for key in (CHANGES_RECORD, *_CHANGED):
            with disk_errors(self._folder.path / key):
                (self._folder.path / key).unlink(missing_ok=True)


def was_kept(folder: RunFolder) -> bool:
    """Whether the folder says that its run was in the bucket: it has what comes to be only after the graph is there."""
    entries = any(is_entry(file.name) for file in children_of(folder.ledger))
    return entries or folder.manifest_file.exists() or folder.step_file("mine").exists()


def identity_in(folder: RunFolder) -> str | None:
    """The identity of the run in a folder. None if there is none."""
    try:
        return folder.run_id()
    except (InputError, IncompleteError):
        return None


def _write(file: Path, data: bytes) -> None:
    if not holds(file, data):
        with disk_errors(file):
            file.parent.mkdir(exist_ok=True)
        with whole_file(file) as stream:
            stream.write(data)


def _is(file: Path, expected: int) -> bool:
    try:
        return checksum(file) == expected
    except OSError:
        return False


def _linked(other: Path, file: Path, expected: int) -> bool:
    """Give a file of another folder a name here, too, if it is as expected.

    Whoever makes such a file anew removes it first, or replaces it. So the one that has its name here stays as it is.
    """
    new = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        os.link(other, new, follow_symlinks=False)
    except OSError:  # it is not there, or the file system has no second names
        return False
    try:
        if _is(new, expected):
            new.replace(file)
            return True
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)
    return False
