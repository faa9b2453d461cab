"""The working folder of a run that is kept in a store: which one a process has, and what is brought into it when.

A driver has everything but the parts there, before it begins. Workers have options and graph. A reader has the records
of the steps and the manifest, and anything else when it is asked for (`pipeline.run.stored.bring`). A folder can be
deleted when no process has it: what is missing is brought from the store again. See `pipeline.run.slots`.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bicliques.pipeline.remote.objects import Objects, objects_at
from bicliques.pipeline.run.bringing import (
    BESIDE,
    allow_replacing,
    bring_all,
    bring_beside,
    bring_files,
    bring_ledger,
    bring_options,
    bring_records,
    bring_result,
    identity_in,
    left_in,
    was_kept,
)
from bicliques.pipeline.run.changes import bring_changes
from bicliques.pipeline.run.files import disk_errors, holds, temporary_folder
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.lease import refuse_others
from bicliques.pipeline.run.lock import holder_here, open_lock, try_lock
from bicliques.pipeline.run.names import CHANGES, LOCK_FILE, REPORT_FILE, remove_ours
from bicliques.pipeline.run.slots import RUN, others, own_place, shared_place
from bicliques.pipeline.run.stored import is_read_by, keeps
from bicliques.schemas.errors import ResourceError
from bicliques.schemas.facts import BEFORE_MINING

#: The lock of a worker that brings the graph, and seconds for which others wait for it. A store that is silent for a
#: minute is an error, so this is only for a process that was stopped.
_BRINGING, _PATIENCE_S = "bringing.lock", 3600.0
#: Seconds between two looks at a lock.
_LOOK_S = 0.05
#: Says that all entries of a complete run are here.
_WHOLE = "ledger-is-whole"

_threads: dict[Path, threading.Lock] = {}
_readers: dict[Path, _Reader] = {}
_opening = threading.Lock()


def driver_folder(url: str, anew: bool = False) -> Path:
    """The folder of this process for mining the run at a URL, with all that the store has of it but the parts.

    If a driver of this process is at work, the folder is what it has. If the store has no run, a run that was begun on
    this machine may be there.

    Parameters
    ----------
    url : str
    anew : bool
        Whether another run is to begin there. Then the folder is empty, and what the store has is replaced when mining
        begins.

    Raises
    ------
    InputError
        If a run cannot be kept there, or another driver is at work.
    IncompleteError
        If the store has a file of the run that is damaged.
    ResourceError
        If the store does not answer, or the disk is full.
    """
    store = objects_at(url)
    place = own_place(url, "driver")
    folder = place / RUN
    with _one_thread(place):
        at_work = holder_here(folder / LOCK_FILE)
        if at_work is None or not at_work.alive:
            refuse_others(store)
            if anew:
                left_in(store)  # refuses what was published
                allow_replacing(folder)
            else:
                bring_all(store, RunFolder(folder))
    return folder


def reader_folder(url: str) -> Path:
    """The folder of this process for reading the run at a URL, as the store has the run now.

    What a driver of this machine has is read where the store has nothing yet, and never changed.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `driver_folder`.
    """
    store = objects_at(url)
    place = own_place(url, "reader")
    with _opening:
        reader = _readers.setdefault(place, _Reader(store, place))
    if reader.look():
        is_read_by(reader.folder.path, reader)
        return reader.folder.path
    error = left_in(store)
    for begun in others(place, "driver"):
        if identity_in(RunFolder(begun)) is not None and (error is not None or not was_kept(RunFolder(begun))):
            keeps(url, begun)
            return begun
    if error is not None:
        raise error
    return reader.folder.path


def worker_folder(url: str, identity: str) -> Path:
    """The folder on this machine with the graph of the run with this identity.

    Raises
    ------
    IncompleteError
        If the store has no such run, or its graph is damaged.
    InputError, ResourceError
        As `driver_folder`.
    """
    store = objects_at(url)
    place = shared_place(url, identity)
    for own in others(place, "driver"):
        at_work = holder_here(own / LOCK_FILE)
        if at_work is not None and at_work.alive and identity_in(RunFolder(own)) == identity:
            keeps(url, own)
            return own
    folder = RunFolder(place / RUN)
    with _one_thread(place), _alone(place):
        bring_options(store, folder, identity)
        bring_records(store, folder)
        bring_files(store, folder, "build", near=others(place))
        folder.check("build")
    return folder.path


@contextmanager
def copy_for_check(url: str) -> Iterator[Path]:
    """A working folder that is brought from the store anew, so that a check sees what is there. It goes afterwards.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `driver_folder`.
    """
    store = objects_at(url)
    with temporary_folder() as place:
        keeps(url, place / RUN)
        bring_all(store, RunFolder(place / RUN))
        yield place / RUN


class _Reader:
    """What a process reads of a run. Threads may share it.

    Parameters
    ----------
    store : Objects
    place : Path
    """

    def __init__(self, store: Objects, place: Path):
        self.folder = RunFolder(place / RUN)
        self._store, self._place = store, place
        self._brought: set[str] = set()

    def look(self) -> bool:
        """Bring what is small, and find out what is new. Whether there is a run."""
        with _one_thread(self._place):
            self._brought.clear()
            if not bring_options(self._store, self.folder):
                self._empty()
                return False
            manifest = bring_records(self._store, self.folder)
            if not holds(self.folder.manifest_file, manifest):
                self._forget()
            bring_result(self.folder, manifest)
            return True

    def _empty(self) -> None:
        if self.folder.path.exists():
            with disk_errors(self.folder.path):
                remove_ours(self.folder.path)

    def _forget(self) -> None:
        """Remove what may be of another manifest than the one that comes."""
        with disk_errors(self._place):
            (self._place / _WHOLE).unlink(missing_ok=True)
            for name in BESIDE:
                (self.folder.path / name).unlink(missing_ok=True)

    def __call__(self, path: Path) -> None:
        """Bring a file of the run, or what is in a folder of it."""
        name = path.relative_to(self.folder.path).as_posix()
        with _one_thread(self._place):
            if name not in self._brought:
                self._bring(name)
                self._brought.add(name)

    def _bring(self, name: str) -> None:
        if name == "ledger":
            self._bring_ledger()
        if name == CHANGES:
            bring_changes(self._store, self.folder.path)
        if name == REPORT_FILE:
            bring_beside(self._store, self.folder, name)
        missing = [each for each in BESIDE if _is_in(each, name) and not (self.folder.path / each).exists()]
        for beside in missing if self.folder.manifest_file.exists() else ():
            bring_beside(self._store, self.folder, beside)
        for step in BEFORE_MINING:
            if self.folder.step_file(step).exists():
                wanted = [known for known in self.folder.checksums(step) if _is_in(known, name)]
                bring_files(self._store, self.folder, step, wanted, others(self._place))

    def _bring_ledger(self) -> None:
        whole = self._place / _WHOLE
        if not whole.exists():
            bring_ledger(self._store, self.folder)
            if self.folder.manifest_file.exists():
                with disk_errors(whole):
                    whole.touch()


def _is_in(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}/")


@contextmanager
def _one_thread(place: Path) -> Iterator[None]:
    """Keep other threads of this process from bringing the same at the same time."""
    with _opening:
        lock = _threads.setdefault(place, threading.Lock())
    if not lock.acquire(timeout=_PATIENCE_S):
        raise _busy(place)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Keep other workers of this machine from bringing the same at the same time."""
    with disk_errors(place):
        descriptor = open_lock(place / _BRINGING, os.O_RDWR | os.O_CREAT)
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while not try_lock(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise _busy(place)
            time.sleep(_LOOK_S)
        yield
    finally:
        os.close(descriptor)


def _busy(place: Path) -> ResourceError:
    return ResourceError(
        f"another worker has been bringing what {place / RUN} needs from the store for {_PATIENCE_S:g} seconds; see "
        "that its process is not stopped"
    )
