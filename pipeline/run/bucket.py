"""A run in a bucket: all that it does otherwise than one in a folder, and which working folder a process has of it.

A driver has everything but the parts there, before it begins. Workers have options and graph. A reader has the records
of the steps and the manifest, and anything else when it is asked for (`Store.local`). A folder can be deleted when no
process has it: what is missing is brought from the bucket again. See `pipeline.run.bucket_cache`.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from bicliques.pipeline.remote.objects import Objects, each, objects_at
from bicliques.pipeline.remote.urls import file_system, place_of
from bicliques.pipeline.run.bucket_cache import RUN, others, own_place, shared_place
from bicliques.pipeline.run.bucket_copy import (
    BESIDE,
    CHANGES_KEYS,
    CHANGES_RECORD,
    SESSIONS,
    Copy,
    identity_in,
    was_kept,
)
from bicliques.pipeline.run.bucket_ledger import Journal, is_at_work, leased, refuse_others, said_of_driver
from bicliques.pipeline.run.files import disk_errors, holds, temporary_folder
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.lock import Holder, holder, open_lock, try_lock, words_of
from bicliques.pipeline.run.names import (
    CHANGES,
    FOLDERS,
    LOCK_FILE,
    MANIFEST_FILE,
    OPTIONS_FILE,
    REPORT_FILE,
    SUCCESS_FILE,
    has_name_of_run,
)
from bicliques.pipeline.run.outside import refuse_inside_store
from bicliques.pipeline.run.store import PARTS, PENDING, Store, is_known, store_at
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError, called
from bicliques.schemas.facts import BEFORE_MINING
from bicliques.schemas.manifest import Part
from bicliques.schemas.regular_files import read_regular

logger = logging.getLogger(__name__)

#: Keys of entries, and of the announcements of their numbers.
_OF_LEDGER = re.compile(r"ledger/\d+/(block-)?\d+\.json", re.ASCII)
#: The lock of a worker that brings the graph, and seconds for which others wait for it. A store that is silent for a
#: minute is an error, so this is only for a process that was stopped.
_BRINGING, _PATIENCE_S = "bringing.lock", 3600.0
#: Seconds between two looks at a lock.
_LOOK_S = 0.05
#: Beside a working folder: what is in the bucket may be replaced; and all entries of a complete run are here.
_REPLACES, _WHOLE = "replaces", "ledger-is-whole"

_opening = threading.Lock()


class Bucket(Store):
    """A run in a bucket, and the working folder that a driver or a worker has of it. Threads may share it.

    Parameters
    ----------
    place : Path
        The folder that the working folder is in.
    """

    url: str

    def __init__(self, url: str, place: Path):
        super().__init__(place / RUN)
        self.url, self._place = url, place
        self._journal: Journal | None = None
        self._busy = threading.Lock()
        called(str(self.path), place_of(url))  # sentences name the folder by the address

    @property
    def objects(self) -> Objects:
        """What is in the bucket. The environment may name another endpoint each time."""
        return objects_at(self.url)

    @property
    def folder(self) -> RunFolder:
        """The working folder."""
        return RunFolder(self.path)

    @property
    def copy(self) -> Copy:
        """The working folder, to be made what the bucket has."""
        return Copy(self.objects, self.folder)

    def shown(self, *names: str) -> str:
        """See `Store`."""
        return "/".join((place_of(self.url), *names))

    def for_arrow(self, path: Path) -> tuple[str, Any] | None:
        """See `Store`."""
        return self.objects.for_arrow(_key_of(path.name)) if path.parent.name == PARTS else None

    def unreadable(self, path: Path, reason: str, error: Exception) -> Exception | None:
        """See `Store`."""
        if path.parent.name != PARTS or isinstance(error, FileNotFoundError):
            return None
        shown = f"{self.shown(PARTS, path.name)} cannot be read ({reason})"
        if "AWS Error" in str(error):  # damaged pages are an OSError, too
            return ResourceError(f"{shown}; check the connection and the credentials")
        return IncompleteError(f"{shown}; try again; if it stays so, remove it from the store and resume the run")

    def sizes(self, parts: Iterable[Part]) -> dict[str, int]:
        """See `Store`."""
        names = [part.name for part in parts]
        sizes = each(self.objects.size, map(_key_of, names))
        return {name: size for name, size in zip(names, sizes, strict=True) if size is not None}

    def deliver(self, parts: Iterable[Part]) -> None:
        """Put those of these parts that are in a folder of this machine, and remove them there."""
        for part in parts:
            file = self.path / PENDING / part.name
            if file.exists():
                self.objects.put(_key_of(part.name), file)
                with disk_errors(file):
                    file.unlink()

    admit = deliver  # their names are final

    def commit(self, number: int, entry: bytes, parts: Iterable[Part], flush_names: Callable[[], None]) -> None:
        """See `Store`. The file of the entry is a copy."""
        assert self._journal is not None, "a session was begun"
        self.deliver(parts)
        self._journal.commit(number, entry)
        file = self.path / "ledger" / f"{number}.json"
        with disk_errors(file):
            file.write_bytes(entry)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """See `Store`."""
        with super().locked(), leased(self.objects):
            try:
                yield
            finally:
                self._journal = None

    def holder(self) -> Holder | None:
        """See `Store`."""
        said = said_of_driver(self.objects)
        return None if said is None else Holder(is_at_work(said), words_of(said))

    def is_driven_here(self) -> bool:
        """Whether a driver works in the folder now."""
        at_work = holder(self.path / LOCK_FILE)
        return at_work is not None and at_work.alive

    def refuse_place(self) -> None:
        """See `Store`."""
        place = self.url.partition("?")[0].partition("://")[2]
        refuse_inside_store(self.shown(), unquote(place.strip("/")), lambda: file_system(self.url)[0])

    def refuse_above(self, inputs: Iterable[str]) -> None:
        """See `Store`. A bucket is not asked what else there is."""
        for below in map(place_of, inputs):
            if below.startswith(f"{self.shown()}/"):
                raise InputError(
                    f"{self.shown()} holds the input {below}, and a run has its folder alone; name another one"
                )

    def take_over(self) -> None:
        """See `Store`."""
        self._journal = self.copy.bring_ledger()

    def begin(self, counting: Iterable[int], parts: Iterable[Part]) -> None:
        """See `Store`. Parts that count no more are removed.

        They are listed before the session begins. So a part of a later session, with which another driver has gone on
        meanwhile, is never among them.
        """
        assert self._journal is not None, "the ledger was taken over"
        there = {name for name in self.objects.listed(PARTS) if has_name_of_run(PARTS, name)}
        self._journal.begin(counting)
        for name in there - {part.name for part in parts}:
            logger.info("%s belongs to no committed slice and is removed", self.shown(PARTS, name))
            self.objects.remove(_key_of(name))

    def keep(self, name: str) -> None:
        """See `Store`."""
        self.objects.put(name, self.path / name)

    def keep_steps(self) -> None:
        """See `Store`. What is there already is not put again.

        If the run may replace another one (`driver_folder`), the other one is removed before. With its options it is
        no run any more, and with the session that begins then its driver can add nothing.
        """
        objects, folder = self.objects, self.folder
        if (self._place / _REPLACES).exists():
            self._remove_another()
            self._may_replace(False)
        for step in BEFORE_MINING:
            record = read_regular(folder.step_file(step))
            is_known = objects.get(f"steps/{step}.json") == record
            sizes = {name: (folder.path / name).stat().st_size for name in folder.checksums(step)}
            each(self.keep, [name for name, size in sizes.items() if not (is_known and objects.size(name) == size)])
            if not is_known:
                objects.put(f"steps/{step}.json", record)
        options = read_regular(folder.path / OPTIONS_FILE)
        if objects.get(OPTIONS_FILE) != options:
            objects.put(OPTIONS_FILE, options)

    def _may_replace(self, may: bool) -> None:
        """Say whether the run in the working folder may replace another one in the bucket."""
        mark = self._place / _REPLACES
        with disk_errors(mark):
            mark.touch() if may else mark.unlink(missing_ok=True)

    def _remove_another(self) -> None:
        """Remove the run that is there. It can be repeated after a kill: until the options are put, no run is there."""
        objects, folder = self.objects, self.folder
        journal = Journal(objects, folder.run_id(), replaces=True)
        if journal.is_first and objects.size(OPTIONS_FILE) is None:
            return
        for key in (SUCCESS_FILE, MANIFEST_FILE, OPTIONS_FILE):
            objects.remove(key)
        if journal.is_new:
            journal.begin(())
        logger.info("the run that was in %s is removed", self.shown())
        listed = [f"{place}/{name}" for place in FOLDERS for name in objects.listed(place)]
        own = {name for step in BEFORE_MINING for name in (f"steps/{step}.json", *folder.checksums(step))}
        # what the new run puts at once is not removed: a request of a process that was killed may arrive late
        each(objects.remove, {SESSIONS, *BESIDE, *CHANGES_KEYS, REPORT_FILE, *filter(_is_of_run, listed)} - own)

    def keep_result(self) -> None:
        """See `Store`. The manifest is put last, and then ``_SUCCESS``.

        Before, a session is begun in which nothing is mined. So no other driver can have gone on with the run. Of a run
        that has all that already, only files are put that are missing there, or have another size.
        """
        objects, folder = self.objects, self.folder
        manifest = folder.manifest()
        assert manifest is not None
        if self._journal is None:
            self.keep_steps()  # what was lost there is made again here
        text = read_regular(folder.manifest_file)
        names = [SESSIONS, *BESIDE]
        sizes = {name: (folder.path / name).stat().st_size for name in names if (folder.path / name).exists()}
        if objects.size(SUCCESS_FILE) is not None and objects.get(MANIFEST_FILE) == text:
            for name, size in sizes.items():
                if objects.size(name) != size:
                    logger.warning("%s is missing or damaged, and is put again", self.shown(name))
                    self.keep(name)
            return
        self._journal = self._journal or Journal(objects, folder.run_id())
        self.begin([int(file.stem) for file in folder.entries_there()], manifest.parts)
        for name in sizes:
            self.keep(name)
        objects.put(MANIFEST_FILE, text)
        objects.put(SUCCESS_FILE, b"")

    def keep_changes(self) -> None:
        """See `Store`."""
        self.objects.remove(CHANGES_RECORD)
        each(self.keep, CHANGES_KEYS[:-1])
        self.keep(CHANGES_RECORD)

    def bring_changes(self) -> None:
        """See `Store`."""
        self.copy.bring_changes()

    def withdraw_result(self) -> None:
        """See `Store`."""
        self.objects.remove(SUCCESS_FILE)
        self.objects.remove(MANIFEST_FILE)

    def bring_for_driver(self, anew: bool) -> None:
        """Bring what a driver needs. With `anew` the folder is emptied, and what is in the bucket may be replaced."""
        with self.one_thread():
            if self.is_driven_here():
                return
            refuse_others(self.objects)
            if anew:
                self.copy.what_is_left()  # refuses what was published
                self._may_replace(True)
                self.copy.empty()
            else:
                self.copy.bring_all(lambda: self._may_replace(False))

    def bring_for_worker(self, identity: str) -> None:
        """Bring what a worker needs of the run with this identity."""
        with self.one_thread(), self._one_process():
            self.copy.bring_options(identity)
            self.copy.bring_records()
            self.copy.bring_files("build", near=others(self._place))
            self.folder.check("build")

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Keep other threads of this process from bringing the same at the same time."""
        if not self._busy.acquire(timeout=_PATIENCE_S):
            raise self._error_of_waiting()
        try:
            yield
        finally:
            self._busy.release()

    @contextmanager
    def _one_process(self) -> Iterator[None]:
        """Keep other workers of this machine from bringing the same at the same time."""
        with disk_errors(self._place):
            descriptor = open_lock(self._place / _BRINGING, os.O_RDWR | os.O_CREAT)
        try:
            deadline = time.monotonic() + _PATIENCE_S
            while not try_lock(descriptor, fcntl.LOCK_EX):
                if time.monotonic() > deadline:
                    raise self._error_of_waiting()
                time.sleep(_LOOK_S)
            yield
        finally:
            os.close(descriptor)

    def _error_of_waiting(self) -> ResourceError:
        return ResourceError(
            f"another worker has been bringing what {self.path} needs from the store for {_PATIENCE_S:g} seconds; see "
            "that its process is not stopped"
        )


class ReadBucket(Bucket):
    """A run in a bucket, and the working folder that a reader has of it."""

    def __init__(self, url: str, place: Path):
        super().__init__(url, place)
        self._brought: set[str] = set()

    def look(self) -> bool:
        """Bring what is small, and find out what is new. Whether there is a run."""
        with self.one_thread():
            self._brought.clear()
            if not self.copy.bring_options():
                self.copy.empty()
                return False
            manifest = self.copy.bring_records()
            if not holds(self.folder.manifest_file, manifest):  # remove what may be of another one
                with disk_errors(self._place):
                    for path in (self._place / _WHOLE, *(self.path / name for name in BESIDE)):
                        path.unlink(missing_ok=True)
            self.copy.bring_result(manifest)
            return True

    def local(self, path: Path) -> Path:
        """See `Store`."""
        name = path.relative_to(self.path).as_posix()
        with self.one_thread():
            if name not in self._brought:
                self._bring(name)
                self._brought.add(name)
        return path

    def _bring(self, name: str) -> None:
        copy, folder = self.copy, self.folder
        if name == "ledger":
            self._bring_ledger()
        if name == CHANGES:
            copy.bring_changes()
        if name == REPORT_FILE:
            copy.bring_beside(name)
        missing = [each for each in BESIDE if _is_in(each, name) and not (self.path / each).exists()]
        for beside in missing if folder.manifest_file.exists() else ():
            copy.bring_beside(beside)
        for step in BEFORE_MINING:
            if folder.step_file(step).exists():
                wanted = [known for known in folder.checksums(step) if _is_in(known, name)]
                copy.bring_files(step, wanted, others(self._place))

    def _bring_ledger(self) -> None:
        whole = self._place / _WHOLE
        if not whole.exists():
            self.copy.bring_ledger()
            if self.folder.manifest_file.exists():
                with disk_errors(whole):
                    whole.touch()


_B = TypeVar("_B", bound=Bucket)


def _opened(kind: type[_B], url: str, place: Path) -> _B:
    """The bucket of a working folder, the same one for the same folder."""
    with _opening:
        found = store_at(place / RUN)
        if not isinstance(found, kind):
            found = kind(url, place)
            is_known(found)
    return found


def driver_folder(url: str, anew: bool = False) -> Path:
    """The folder of this process for mining the run at a URL, with all that the bucket has of it but the parts.

    If a driver of this process is at work, the folder is what it has. If the bucket has no run, a run that was begun on
    this machine may be there. With `anew` another run is to begin there: the folder is empty then, and what the bucket
    has is replaced when mining begins. Raises `InputError` if a run cannot be kept there, or another driver is at work,
    and `IncompleteError` if the bucket has a file of the run that is damaged, and `ResourceError` if the bucket does
    not answer, or the disk is full.
    """
    objects_at(url)  # refuses a URL of no folder before there is one here
    bucket = _opened(Bucket, url, own_place(url, "driver"))
    bucket.bring_for_driver(anew)
    return bucket.path


def reader_folder(url: str) -> Path:
    """The folder of this process for reading the run at a URL, as the bucket has the run now.

    What a driver of this machine has is read where the bucket has nothing yet, and never changed. Raises `InputError`,
    `IncompleteError` or `ResourceError` as `driver_folder`.
    """
    objects_at(url)
    place = own_place(url, "reader")
    bucket = _opened(ReadBucket, url, place)
    if bucket.look():
        return bucket.path
    error = bucket.copy.what_is_left()
    for begun in others(place, "driver"):
        if identity_in(RunFolder(begun)) is not None and (error is not None or not was_kept(RunFolder(begun))):
            return _opened(Bucket, url, begun.parent).path
    if error is not None:
        raise error
    return bucket.path


def worker_folder(url: str, identity: str) -> Path:
    """The folder on this machine with the graph of the run with this identity.

    Raises `InputError`, `IncompleteError` or `ResourceError` as `driver_folder`. IncompleteError also if the bucket has
    no such run.
    """
    objects_at(url)
    place = shared_place(url, identity)
    for own in others(place, "driver"):
        driving = _opened(Bucket, url, own.parent)
        if driving.is_driven_here() and identity_in(driving.folder) == identity:
            return driving.path
    bucket = _opened(Bucket, url, place)
    bucket.bring_for_worker(identity)
    return bucket.path


@contextmanager
def copy_for_check(url: str) -> Iterator[Path]:
    """A working folder that is brought from the bucket anew, so that a check sees what is there. It goes afterwards.

    Raises `InputError`, `IncompleteError` or `ResourceError` as `driver_folder`.
    """
    with temporary_folder() as place:
        bucket = _opened(Bucket, url, place)
        bucket.copy.bring_all(lambda: None)
        yield bucket.path


def _key_of(name: str) -> str:
    return f"{PARTS}/{name}"


def _is_of_run(key: str) -> bool:
    """Whether a run has put an object under this key, and it is no session."""
    place, _, name = key.partition("/")
    return has_name_of_run(place, name) or _OF_LEDGER.fullmatch(key) is not None


def _is_in(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}/")
