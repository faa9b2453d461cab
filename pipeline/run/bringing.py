"""Brings what a store has of a run into a working folder: records, files of steps, the ledger, the result.

What a store has may have been put by anybody. So a record gets into the folder only after it was read, and no file is
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
from bicliques.pipeline.run.checksums import checksum
from bicliques.pipeline.run.files import create, disk_errors, holds, temporary_folder, whole_file
from bicliques.pipeline.run.folder import PLACES, RunFolder, children_of
from bicliques.pipeline.run.journal import Journal
from bicliques.pipeline.run.names import (
    MANIFEST_FILE,
    OPTIONS_FILE,
    PUBLISHED_FILE,
    has_name_of_run,
    is_entry,
    refuse_links,
    remove_ours,
)
from bicliques.schemas.errors import IncompleteError, InputError
from bicliques.schemas.facts import BEFORE_MINING

logger = logging.getLogger(__name__)

#: What a complete run has beside its parts. Not every run has all of it.
BESIDE = tuple(
    f"{place}/{name}.parquet"
    for place, names in {"summary": ("sizes", "largest", "left", "right"), "vertices": ("left", "right")}.items()
    for name in names
)
_SESSIONS = "steps/mine.json"
#: Beside a working folder: what is in the store may be replaced.
_REPLACES = "replaces"


def bring_all(store: Objects, folder: RunFolder) -> None:
    """Make the folder what a driver needs: everything but the parts. Nothing is done where no run is in the store.

    Raises
    ------
    InputError
        If a run cannot be kept there.
    IncompleteError
        If the store has a file of the run that is damaged.
    ResourceError
        If the store does not answer, or the disk is full.
    """
    if not bring_options(store, folder):
        _refuse_another(store, folder)
        return
    forbid_replacing(folder.path)
    manifest = bring_records(store, folder)
    for step in BEFORE_MINING:
        if _is_known(folder, step):
            bring_files(store, folder, step)
        elif folder.step_file(step).exists():
            _bring_listed(store, folder, step)
    if not _has_manifest(folder, manifest):
        bring_ledger(store, folder)
        if manifest is not None:
            for name in BESIDE:
                bring_beside(store, folder, name)
        bring_result(folder, manifest)


def allow_replacing(path: Path) -> None:
    """Empty the working folder of a driver, and let the run that begins there replace what is in the store.

    Raises
    ------
    ResourceError
        If a file cannot be removed or written.
    """
    with disk_errors(path):
        (path.parent / _REPLACES).touch()
        if path.exists():
            remove_ours(path)


def forbid_replacing(path: Path) -> None:
    """The opposite: what is in the store is gone on with, or refused."""
    with disk_errors(path):
        (path.parent / _REPLACES).unlink(missing_ok=True)


def may_replace(path: Path) -> bool:
    """Whether the run in a working folder may replace another one in the store."""
    return (path.parent / _REPLACES).exists()


def bring_options(store: Objects, folder: RunFolder, wanted: str | None = None) -> bool:
    """Bring the options of the run. If they are of another run than the folder has, what the folder has goes.

    Parameters
    ----------
    store : Objects
    folder : RunFolder
    wanted : str or None
        Identity of the run that is expected there. None takes any.

    Returns
    -------
    bool
        Whether the store has a run.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `bring_all`. IncompleteError also if the store has another run than `wanted`, or none.
    """
    options = store.get(OPTIONS_FILE)
    if options is None:
        if wanted is not None:
            raise IncompleteError(f"{store.shown} holds no run any more; end this worker")
        return False

    def check(coming: RunFolder) -> None:
        coming.options()
        if wanted not in (None, coming.run_id()):
            raise IncompleteError(f"{store.shown} holds another run than the driver had there; end this worker")

    with disk_errors(folder.path):
        folder.path.mkdir(parents=True, exist_ok=True)
    refuse_links(folder.path)
    before = identity_in(folder)
    _bring_checked(store, folder, OPTIONS_FILE, options, check)
    if before not in (None, folder.run_id()):
        with disk_errors(folder.path):
            remove_ours(folder.path, keep=(OPTIONS_FILE,))
    return True


def left_in(store: Objects) -> InputError | None:
    """The error of a place that has no run, and has something of one. None if it is empty.

    Raises
    ------
    InputError
        If a run was published there.
    """
    there = [key for key in (PUBLISHED_FILE, "sessions/1.json", MANIFEST_FILE) if store.size(key) is not None]
    if PUBLISHED_FILE in there:
        raise InputError(
            f"{store.shown} holds what was published of a run; read {store.shown}/bicliques with other programs"
        )
    if not there:
        return None
    return InputError(
        f"{store.shown} has no {OPTIONS_FILE}, and is not empty: it has {there[0]}; name another place, or begin anew "
        "there with --overwrite"
    )


def _refuse_another(store: Objects, folder: RunFolder) -> None:
    """Refuse a place without a run that has something of another. A run that was begun here may have put it there.

    If the place is empty, a run that was mined here was removed from it, and goes here, too.
    """
    error = left_in(store)
    if error is not None and identity_in(folder) is None:
        raise error
    if error is None and was_kept(folder):
        logger.info("the run that was in %s was removed, and its copy in %s is", store.shown, folder.path)
        with disk_errors(folder.path):
            remove_ours(folder.path)


def was_kept(folder: RunFolder) -> bool:
    """Whether the folder says that its run was in the store: it has what comes to be only after the graph is there."""
    entries = any(is_entry(file.name) for file in children_of(folder.ledger))
    return entries or folder.manifest_file.exists() or folder.step_file("mine").exists()


def identity_in(folder: RunFolder) -> str | None:
    """The identity of the run in a folder. None if there is none."""
    try:
        return folder.run_id()
    except (InputError, IncompleteError):
        return None


def bring_records(store: Objects, folder: RunFolder) -> bytes | None:
    """Bring the records of all steps. Returns the manifest, if the run has one.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `bring_all`.
    """
    keys = [*(f"steps/{step}.json" for step in BEFORE_MINING), _SESSIONS, MANIFEST_FILE]
    found = dict(zip(keys, each(store.get, keys), strict=True))
    for step in BEFORE_MINING:
        key = f"steps/{step}.json"
        if (data := found[key]) is None:
            continue
        try:
            _bring_checked(store, folder, key, data, partial(RunFolder.checksums, step=step))
        except IncompleteError:
            if not _is_known(folder, step):
                _write(folder.step_file(step), data)  # resuming does the step again, as of a run in a folder
    if (sessions := found[_SESSIONS]) is not None:
        _write(folder.step_file("mine"), sessions)  # not checked, because resuming mends a damaged one
    return found[MANIFEST_FILE]


def _bring_checked(
    store: Objects, folder: RunFolder, name: str, data: bytes, check: Callable[[RunFolder], object]
) -> None:
    """Write a record into the folder after `check` has read it elsewhere. So a bad one replaces no good one."""
    file = folder.path / name
    if holds(file, data):
        return
    with temporary_folder(folder.path.parent) as place:
        _write(place / name, data)
        try:
            check(RunFolder(place))
        except (IncompleteError, InputError) as error:
            raise type(error)(str(error).replace(str(place), store.shown)) from error
    _write(file, data)


def _write(file: Path, data: bytes) -> None:
    if not holds(file, data):
        with disk_errors(file):
            file.parent.mkdir(exist_ok=True)
        with whole_file(file) as stream:
            stream.write(data)


def bring_files(
    store: Objects, folder: RunFolder, step: str, wanted: Iterable[str] | None = None, near: Iterable[Path] = ()
) -> None:
    """The files of a step that are not here, or are not as its record says. One that the store has not stays away.

    Parameters
    ----------
    store : Objects
    folder : RunFolder
    step : str
    wanted : iterable of str or None
        Their names. None: all.
    near : iterable of Path
        Working folders of this machine that may have them. A file of theirs gets a second name, and no second copy.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `bring_all`.
    """
    sums = folder.checksums(step)
    names = [name for name in sums if wanted is None or name in set(wanted)]
    near = list(near)

    def bring(name: str) -> None:
        file = folder.path / name
        with disk_errors(file):
            file.parent.mkdir(exist_ok=True)
        if _is(file, sums[name]) or any(_linked(other / name, file, sums[name]) for other in near):
            return
        _bring_file(store, file, name)

    each(bring, names)


def _bring_file(store: Objects, file: Path, name: str) -> None:
    if store.size(name) is not None:
        with whole_file(file) as stream:
            stream.writelines(store.pieces(name))


def _is_known(folder: RunFolder, step: str) -> bool:
    """Whether the folder has the record of a step, and it is whole."""
    try:
        return folder.step_file(step).exists() and folder.checksums(step) is not None
    except IncompleteError:
        return False


def _bring_listed(store: Objects, folder: RunFolder, step: str) -> None:
    """What the store lists of a step whose record is damaged. So the step can be compared with what it gave before."""
    for place in PLACES[step]:
        with disk_errors(folder.path / place):
            (folder.path / place).mkdir(exist_ok=True)
        for name in store.listed(place):
            if has_name_of_run(place, name):
                _bring_file(store, folder.path / place / name, f"{place}/{name}")


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


def bring_ledger(store: Objects, folder: RunFolder) -> Journal:
    """Make the copy of the ledger what the journal has.

    Raises
    ------
    InputError, IncompleteError, ResourceError
        As `bring_all`.
    """

    def save(number: int, data: bytes) -> None:
        file = folder.ledger / f"{number}.json"
        with disk_errors(file):
            if not holds(file, data):
                with create(file) as stream:
                    stream.write(data)  # not flushed, because it is a copy

    with disk_errors(folder.ledger):
        folder.ledger.mkdir(exist_ok=True)
    journal = Journal(store, folder.run_id(), save)
    with disk_errors(folder.ledger):
        for file in children_of(folder.ledger):
            if is_entry(file.name) and int(file.stem) not in journal.counts:
                file.unlink()
    return journal


def _has_manifest(folder: RunFolder, manifest: bytes | None) -> bool:
    """Whether the run is complete, and the folder has it so. Then all else of it is here, too."""
    return manifest is not None and holds(folder.manifest_file, manifest)


def bring_beside(store: Objects, folder: RunFolder, name: str) -> None:
    """Bring one of the files beside the parts of a complete run, if the run has it.

    Raises
    ------
    ResourceError
        As `bring_all`.
    """
    data = store.get(name)
    if data is not None:
        _write(folder.path / name, data)


def bring_result(folder: RunFolder, manifest: bytes | None) -> None:
    """Write the manifest, or remove one that the run has not any more.

    Raises
    ------
    ResourceError
        If the disk is full, or the file cannot be written or removed for another reason.
    """
    if manifest is not None:
        _write(folder.manifest_file, manifest)
        return
    with disk_errors(folder.manifest_file):
        folder.manifest_file.unlink(missing_ok=True)
