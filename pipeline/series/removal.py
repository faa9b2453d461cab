"""The removal of one run, in steps between which the process may be killed.

The folder is first renamed to ``.NAME.RUN.removed``, where RUN is the identity in its ``options.json``. That file is
removed last. So the rest of an interrupted removal can be recognised, and no folder of a user is taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bicliques.pipeline.run.files import flush, read_json
from bicliques.pipeline.run.folder import RunFolder
from bicliques.pipeline.run.names import OPTIONS_FILE, is_folder, remove_ours, stranger_in
from bicliques.pipeline.series.runs import is_run
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError

_HALF_REMOVED = re.compile(r"\..+\.(?P<run>[0-9a-f]{32})\.removed", re.DOTALL)


def remove_run(path: Path, is_as_before: Callable[[RunFolder], bool]) -> bool:
    """Remove a run, unless its folder has anything that the run has not made.

    Raises `InputError`: a process works on the run, or its folder has something that the run has not made, as a link in
    the place of a folder. Raises `IncompleteError`: it cannot be found out whether the run is as before. Raises
    `ResourceError`: a file cannot be removed.

    Parameters
    ----------
    is_as_before : callable
        It is called when no process can begin to work on the run any more. If it returns False, the run stays.

    Returns
    -------
    bool
        Whether the run does not exist any more.
    """
    try:
        away = set_aside(path, is_as_before)
    except ResourceError:
        if is_folder(path):
            raise
        return True  # another prune was faster
    if away is None:
        return False
    finish_removal(away)
    return True


def set_aside(path: Path, is_as_before: Callable[[RunFolder], bool] = lambda _: True) -> Path | None:
    """Do the first step of `remove_run`, with its errors. Returns the new path, or None if the run stays."""
    folder = RunFolder(path)
    with _removing(path), folder.store.locked():
        if not is_as_before(folder):
            return None
        refuse_strangers(path)
        away = path.with_name(f".{path.name}.{folder.run_id()}.removed")
        path.rename(away)
    return away


def put_back(away: Path, path: Path) -> None:
    """Undo `set_aside`, unless something else is in `path` now.

    Raises `ResourceError`: it cannot be done.
    """
    with _removing(away):
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        if not path.exists():
            away.rename(path)


def refuse_strangers(path: Path) -> None:
    """Refuse to remove a run whose folder has something that the run has not made."""
    stranger = stranger_in(path)
    if stranger is not None:
        kind = "a link" if stranger.is_symlink() else "not of the run"
        raise InputError(f"{stranger} is {kind}, so the run stays; move it away")


def is_half_removed(path: Path) -> bool:
    """Whether a folder is a run that `remove_run` began to remove. If it is empty, only the last step is missing."""
    name = _HALF_REMOVED.fullmatch(path.name)
    if name is None or not is_folder(path):
        return False
    try:
        if not is_run(path):
            return not any(path.iterdir())
        return bool(read_json(path / OPTIONS_FILE)["origin"]["run"] == name["run"])
    except (IncompleteError, LookupError, TypeError, OSError):
        return False


def finish_removal(away: Path) -> None:
    """Remove the rest of a half-removed run.

    Raises `InputError`: it has something that the run has not made. Raises `ResourceError`: a file cannot be removed.
    """
    with _removing(away), suppress(FileNotFoundError):  # another prune may be faster
        remove_ours(away, keep=(OPTIONS_FILE,))
        refuse_strangers(away)  # later nothing would show that they were in a run
        flush(away)  # otherwise a power loss might remove the last file before the others
        (away / OPTIONS_FILE).unlink(missing_ok=True)
        away.rmdir()


@contextmanager
def _removing(path: Path) -> Iterator[None]:
    """Turn an error of the file system into one sentence."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise ResourceError(f"{where} cannot be removed ({error.strerror}); see that it may be") from error
