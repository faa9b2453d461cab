"""The working folder of a run that is kept in a store: brought from the store, and the store kept up with it.

It lies in the cache of the user, by the URL of the run, and can be deleted at any time: what is missing is brought from
the store again. See `pipeline.run.stored`.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.remote.objects import Objects, each, objects_at
from pipeline.run.files import disk_errors, temporary_folder, whole_file, write_json
from pipeline.run.folder import RunFolder, children_of
from pipeline.run.journal import Journal
from pipeline.run.lock import holder_here
from pipeline.run.names import (
    LOCK_FILE,
    MANIFEST_FILE,
    OPTIONS_FILE,
    PUBLISHED_FILE,
    STORE_FILE,
    SUCCESS_FILE,
    is_entry,
    refuse_links,
    remove_ours,
)
from pipeline.run.stored import key_of, parts_listed, store_of
from schemas.errors import IncompleteError, InputError
from schemas.manifest import Part

if TYPE_CHECKING:
    from pipeline.run.ledger import Ledger

__all__ = [
    "begin_session",
    "copy_for_check",
    "keep_result",
    "keep_steps",
    "working_folder",
]

logger = logging.getLogger(__name__)

_STEPS = ("ingest", "build", "plan")
#: What a complete run has beside its parts. Not every run has all of it.
_BESIDE = tuple(
    f"{place}/{name}.parquet"
    for place, names in {"summary": ("sizes", "largest", "left", "right"), "vertices": ("left", "right")}.items()
    for name in names
)
_RUN, _REFRESHING = "run", "refresh.lock"


def working_folder(url: str, in_worker: bool = False) -> Path:
    """The working folder on this machine of the run at a URL, as the store has the run now.

    If a driver of this machine is at work, the folder is what it has. If the store has no run, a run that was begun on
    this machine may be there.

    Parameters
    ----------
    url : str
    in_worker : bool
        Only what a worker needs: the graph, and no ledger.

    Raises
    ------
    InputError
        If a run cannot be kept there.
    IncompleteError
        If the store has a file of the run that is damaged.
    ResourceError
        If the store does not answer, or the disk is full.
    """
    store = objects_at(url)
    place = _cache() / "stores" / hashlib.sha256(url.encode()).hexdigest()[:20]
    with _alone(place):
        folder = _named(place, store)
        at_work = holder_here(folder / LOCK_FILE)
        if at_work is None or not at_work.alive:
            _bring(store, RunFolder(folder), ("build",) if in_worker else _STEPS, not in_worker)
            if in_worker:
                RunFolder(folder).check("build")
    return folder


@contextmanager
def copy_for_check(url: str) -> Iterator[Path]:
    """A working folder that is brought from the store anew, so that a check sees what is there. It goes afterwards.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `working_folder`.
    """
    store = objects_at(url)
    with temporary_folder() as place:
        folder = _named(place, store)
        _bring(store, RunFolder(folder), _STEPS, True)
        yield folder


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bicliques"


def _named(place: Path, store: Objects) -> Path:
    """The working folder in a place that has its store written down."""
    with disk_errors(place):
        place.mkdir(parents=True, exist_ok=True)
    if not (place / STORE_FILE).exists():
        write_json(place / STORE_FILE, {"url": store.url})
    return place / _RUN


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Keep other processes of this machine from bringing the same at the same time."""
    with disk_errors(place):
        place.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place / _REFRESHING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _bring(store: Objects, folder: RunFolder, steps: Iterable[str], with_ledger: bool) -> None:
    options = store.get(OPTIONS_FILE)
    if options is None:
        _bring_nothing(store, folder)
        return
    path = folder.path
    with disk_errors(path):
        path.mkdir(exist_ok=True)
    refuse_links(path)
    before = _identity(folder)
    _bring_checked(store, folder, OPTIONS_FILE, options, lambda coming: (coming.options(), coming.run_id()))
    run = folder.run_id()
    if before not in (None, run):
        with disk_errors(path):
            remove_ours(path, keep=(OPTIONS_FILE,))
    for step in _STEPS:
        _bring_step(store, folder, step)
    for step in steps:
        if folder.step_file(step).exists():
            _bring_files(store, folder, step)
    if with_ledger and not _has_manifest(folder, manifest := store.get(MANIFEST_FILE)):
        _bring_ledger(store, folder)
        _bring_result(store, folder, manifest)


def _bring_nothing(store: Objects, folder: RunFolder) -> None:
    """Refuse a place without a run that has something of another. A run that was begun here may have put it there.

    If the place is empty, a run that was mined here was removed from it, and goes here, too.
    """
    there = [key for key in (PUBLISHED_FILE, "sessions/1.json", MANIFEST_FILE) if store.size(key) is not None]
    if PUBLISHED_FILE in there:
        raise InputError(
            f"{store.shown} holds what was published of a run; read {store.shown}/bicliques with other programs"
        )
    if not there:
        if _was_kept(folder):
            logger.info("the run that was in %s was removed, and its copy in %s is", store.shown, folder.path)
            with disk_errors(folder.path):
                remove_ours(folder.path)
    elif _identity(folder) is None:
        raise InputError(
            f"{store.shown} has no {OPTIONS_FILE}, and is not empty: it has {there[0]}; name another place"
        )


def _was_kept(folder: RunFolder) -> bool:
    """Whether the folder says that its run was in the store: it has what comes to be only after the graph is there."""
    entries = any(is_entry(file.name) for file in children_of(folder.ledger))
    return entries or folder.manifest_file.exists() or folder.step_file("mine").exists()


def _identity(folder: RunFolder) -> str | None:
    try:
        return folder.run_id()
    except (InputError, IncompleteError):
        return None


def _bring_step(store: Objects, folder: RunFolder, step: str) -> None:
    key = f"steps/{step}.json"
    if (data := store.get(key)) is not None:
        _bring_checked(store, folder, key, data, lambda coming: coming.checksums(step))


def _bring_checked(
    store: Objects, folder: RunFolder, name: str, data: bytes, check: Callable[[RunFolder], object]
) -> None:
    """Write a record into the folder after `check` has read it elsewhere. So a bad one replaces no good one."""
    file = folder.path / name
    if file.exists() and file.read_bytes() == data:
        return
    with temporary_folder(folder.path.parent) as place:
        _write(place / name, data)
        try:
            check(RunFolder(place))
        except (IncompleteError, InputError) as error:
            raise type(error)(str(error).replace(str(place), store.shown)) from error
    _write(file, data)


def _write(file: Path, data: bytes) -> None:
    if not file.exists() or file.read_bytes() != data:
        with disk_errors(file):
            file.parent.mkdir(exist_ok=True)
        with whole_file(file) as stream:
            stream.write(data)


def _bring_files(store: Objects, folder: RunFolder, step: str) -> None:
    """The files of a step that are not here, or are not as its record says. One that the store has not stays away."""
    names = list(folder.checksums(step))
    for name in {name.partition("/")[0] for name in names}:
        with disk_errors(folder.path / name):
            (folder.path / name).mkdir(exist_ok=True)
    if folder.broken(step) is None:
        return

    def bring(name: str) -> None:
        if store.size(name) is not None:
            with whole_file(folder.path / name) as file:
                file.writelines(store.pieces(name))

    each(bring, names)


def _bring_ledger(store: Objects, folder: RunFolder) -> Journal:
    """Make the copy of the ledger what the journal has."""

    def save(number: int, data: bytes) -> None:
        file = folder.ledger / f"{number}.json"
        with disk_errors(file):
            if not file.exists() or file.read_bytes() != data:
                file.write_bytes(data)  # not flushed, because it is a copy

    with disk_errors(folder.ledger):
        folder.ledger.mkdir(exist_ok=True)
    journal = Journal(store, folder.run_id(), save)
    with disk_errors(folder.ledger):
        for file in children_of(folder.ledger):
            if is_entry(file.name) and int(file.stem) not in journal.counts:
                file.unlink()
    return journal


def _has_manifest(folder: RunFolder, manifest: bytes | None) -> bool:
    """Whether the run is complete, and the folder has it so. Then its ledger is here, too."""
    file = folder.manifest_file
    return manifest is not None and file.exists() and file.read_bytes() == manifest


def _bring_result(store: Objects, folder: RunFolder, manifest: bytes | None) -> None:
    if (sessions := store.get("steps/mine.json")) is not None:
        _write(folder.step_file("mine"), sessions)  # not checked, because resuming mends a damaged one
    if manifest is None:
        with disk_errors(folder.manifest_file):
            folder.manifest_file.unlink(missing_ok=True)
        return
    for name in _BESIDE:
        data = store.get(name)
        if data is not None:
            _write(folder.path / name, data)
    _write(folder.manifest_file, manifest)


def begin_session(folder: RunFolder, survey: Callable[[], Ledger]) -> Journal:
    """Begin a session of the driver: take over the ledger that is in the store.

    Parameters
    ----------
    folder : RunFolder
    survey : callable
        () -> the entries in the folder that count.

    Raises
    ------
    InputError
        If another driver has begun a session meanwhile.
    ResourceError
        If the store does not answer, or does not take something.
    """
    store = store_of(folder.path)
    assert store is not None
    journal = _bring_ledger(store, folder)
    ledger = survey()
    _begin(store, journal, ledger.entries, ledger.parts)
    return journal


def _begin(store: Objects, journal: Journal, counting: Iterable[int], parts: Iterable[Part]) -> None:
    """Begin a session, and remove parts that count no more.

    They are listed before it begins. So a part of a later session, with which another driver has gone on meanwhile, is
    never among them.
    """
    there = parts_listed(store)
    journal.begin(counting)
    for name in there - {part.name for part in parts}:
        logger.info("%s/bicliques/%s belongs to no committed slice and is removed", store.shown, name)
        store.remove(key_of(name))


def keep_steps(folder: RunFolder) -> None:
    """Put options and steps of a run, with their files, into its store. What is there already is not put again."""
    store = store_of(folder.path)
    assert store is not None
    for step in _STEPS:
        record = folder.step_file(step).read_bytes()
        is_known = store.get(f"steps/{step}.json") == record
        sizes = {name: (folder.path / name).stat().st_size for name in folder.checksums(step)}
        names = [name for name, size in sizes.items() if not (is_known and store.size(name) == size)]
        each(lambda name: store.put_file(name, folder.path / name), names)
        if not is_known:
            store.put(f"steps/{step}.json", record)
    options = (folder.path / OPTIONS_FILE).read_bytes()
    if store.get(OPTIONS_FILE) != options:
        store.put(OPTIONS_FILE, options)


def keep_result(folder: RunFolder, journal: Journal | None = None) -> None:
    """Put what a complete run has beside its parts into its store: the manifest last, and then ``_SUCCESS``.

    Before, a session is begun in which nothing is mined. So no other driver can have gone on with the run. Of a run
    that has all that already, only files are put that are missing there, or have another size.

    Parameters
    ----------
    folder : RunFolder
    journal : Journal or None
        That of the driver that has mined. None reads it anew.

    Raises
    ------
    InputError
        If another driver has gone on with the run.
    ResourceError
        If the store does not take something.
    """
    store, manifest = store_of(folder.path), folder.manifest()
    assert store is not None
    assert manifest is not None
    if journal is None:
        keep_steps(folder)  # what was lost there is made again here
    text = folder.manifest_file.read_bytes()
    names = ["steps/mine.json", *_BESIDE]
    sizes = {name: (folder.path / name).stat().st_size for name in names if (folder.path / name).exists()}
    if store.size(SUCCESS_FILE) is not None and store.get(MANIFEST_FILE) == text:
        for name, size in sizes.items():
            if store.size(name) != size:
                logger.warning("%s/%s is missing or damaged, and is put again", store.shown, name)
                store.put_file(name, folder.path / name)
        return
    journal = journal or Journal(store, folder.run_id())
    _begin(store, journal, [int(file.stem) for file in folder.entries_there()], manifest.parts)
    for name in sizes:
        store.put_file(name, folder.path / name)
    store.put(MANIFEST_FILE, text)
    store.put(SUCCESS_FILE, b"")
