"""Makes the folder of a new run. If that fails, nothing is left of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import (
    FOLDERS,
    KEEP_FILE,
    LOCK_FILE,
    MANIFEST_FILE,
    OPTIONS_FILE,
    is_folder,
    is_staging,
    refuse_url,
    remove_ours,
    stranger_in,
    temporary_name,
)
from bicliques.pipeline.run.outside import refuse_inside_run
from bicliques.pipeline.run.resuming import how_to_resume
from bicliques.schemas.errors import BicliqueError, InputError


class NewRun:
    """A run that is being made."""

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self.goes = True

    def stays(self) -> None:
        """Keep the folder after an error, because from now on the run can be resumed."""
        self.goes = False


@contextmanager
def new_run(path: Path) -> Iterator[NewRun]:
    """Make the folder of a new run and hold its lock.

    If the block fails before it calls `NewRun.stays`, everything that was made is removed again. Raises `InputError` if
    `path` is a URL or not UTF-8, if it exists and is not an empty folder, if it lies in a folder of another run, if it
    cannot be made, or if another driver works in it.

    Notes
    -----
    A folder in which a run was killed before it had options counts as empty, because that run cannot be resumed.
    """
    refuse_url(path)
    _refuse_name(path)
    refuse_inside_run(path)
    made, new = _make(path), NewRun(RunFolder(path))
    try:
        _refuse_content(path)
        new.folder.store.refuse_place()
        with new.folder.store.locked():
            _refuse_content(path)
            with disk_errors(path):
                remove_ours(path, keep=(LOCK_FILE,))
            try:
                yield new
            except BaseException:
                if new.goes:
                    with suppress(OSError):  # an error here would hide the one that ended the block
                        remove_ours(path)
                raise
    except BaseException:
        if new.goes:
            _unmake(made)
        raise


def _refuse_name(path: Path) -> None:
    try:
        str(path.absolute()).encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"the name of the output folder {path} is not UTF-8, and pyarrow cannot write there; name another one"
        ) from error


def _refuse_content(path: Path) -> None:
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"the output folder {path} is not writable; name another one")
    try:
        is_empty = all(map(_is_left_over, path.iterdir()))
    except OSError as error:
        raise InputError(f"the output folder {path} cannot be read ({error.strerror}); name another one") from error
    if not is_empty:
        raise InputError(f"the output folder {path} {_what_is_in(path)}; name another one{_how_to_go_on(path)}")


def _what_is_in(path: Path) -> str:
    try:
        source = RunFolder(path).options().source
    except BicliqueError:  # the folder holds no run, or a damaged one
        return "is not empty"
    state = "complete" if (path / MANIFEST_FILE).exists() else "unfinished"
    return f"is not empty: it holds the {state} run of {source}"


def _how_to_go_on(path: Path) -> str:
    if not (path / OPTIONS_FILE).exists() or (path / MANIFEST_FILE).exists():
        return ""
    return f", or continue the run in it with: {how_to_resume(path)}"


def _is_left_over(path: Path) -> bool:
    """Whether `path` may be left from a run that was killed before it had options or while it removed its files.

    ``.keep`` may be there, because a person says so of a run that is to come.
    """
    if path.name in (LOCK_FILE, temporary_name(OPTIONS_FILE), KEEP_FILE):
        return not is_folder(path)
    if is_staging(path):
        return stranger_in(path) is None
    return path.name in FOLDERS and is_folder(path) and not any(path.iterdir())


def _make(path: Path) -> list[Path]:
    """Make `path` and the folders that are missing above it. Returns the folders made, innermost first."""
    missing = [folder for folder in (path, *path.parents) if not _exists(folder)]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError if the name holds a NUL
        _unmake([folder for folder in missing if _exists(folder)])
        raise InputError(
            f"the output folder {path} cannot be made ({_why_not(path, error)}); name another one"
        ) from error
    return missing


def _why_not(path: Path, error: OSError | ValueError) -> str:
    there = next((folder for folder in (path, *path.parents) if _exists(folder)), None)
    if there is not None and not there.is_dir():
        return f"{there} is a file"
    if isinstance(error, OSError) and error.errno == errno.ENOENT:  # as /proc says, or a folder that is just removed
        return f"nothing can be made in {there}"
    return str(error.strerror if isinstance(error, OSError) else error)


def _exists(folder: Path) -> bool:
    return os.path.exists(folder)  # noqa: PTH110 - Path.exists raises where a name is too long or may not be seen


def _unmake(made: list[Path]) -> None:
    """Remove folders that were made, unless somebody has put something into them meanwhile."""
    for folder in made:
        try:
            folder.rmdir()
        except OSError:
            return
