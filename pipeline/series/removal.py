"""The removal of one run, in steps that a kill may come between.

The folder is first renamed to ``.NAME.RUN.removed``, where RUN is the identity that its ``options.json`` holds, and
that file goes last. So what a killed removal left is known again, and no folder of a user is taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pipeline.run.files import flush, read_json
from pipeline.run.folder import RunFolder
from pipeline.run.lock import locked
from pipeline.run.names import LOCK_FILE, OPTIONS_FILE, is_folder, remove_ours, stranger_in
from pipeline.series.runs import is_run
from schemas.errors import IncompleteError, InputError, ResourceError

__all__ = ["finish_removal", "is_half_removed", "refuse_strangers", "remove_run"]

_HALF_REMOVED = re.compile(r"\..+\.(?P<run>[0-9a-f]{32})\.removed", re.DOTALL)


def remove_run(path: Path, is_as_before: Callable[[RunFolder], bool]) -> bool:
    """Remove a run, unless its folder holds anything that the run has not made.

    Parameters
    ----------
    path : Path
    is_as_before : callable
        Asked when no process can begin to work on the run any more; False leaves it alone.

    Returns
    -------
    bool
        Whether it is gone.

    Raises
    ------
    InputError
        If somebody works on it, or has put something into it, which may be a link in the place of a folder.
    IncompleteError
        If it cannot be seen whether it is as before.
    ResourceError
        If a file cannot be removed.
    """
    folder = RunFolder(path)
    try:
        with _removing(path), locked(path / LOCK_FILE):
            if not is_as_before(folder):
                return False
            refuse_strangers(path)
            away = path.with_name(f".{path.name}.{folder.run_id()}.removed")
            path.rename(away)
    except ResourceError:
        if is_folder(path):
            raise
        return True  # another prune was quicker
    finish_removal(away)
    return True


def refuse_strangers(path: Path) -> None:
    """Refuse to remove a run whose folder holds something that the run has not made.

    Raises
    ------
    InputError
        Naming the first such thing.
    """
    stranger = stranger_in(path)
    if stranger is not None:
        kind = "a link" if stranger.is_symlink() else "not of the run"
        raise InputError(f"{stranger} is {kind}, so the run stays; move it away")


def is_half_removed(path: Path) -> bool:
    """Whether it is a run that `remove_run` began to remove. In an empty folder the last step is missing."""
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
    """Remove what is left of a half-removed run.

    Raises
    ------
    InputError
        If it holds something that the run has not made.
    ResourceError
        If a file cannot be removed.
    """
    with _removing(away), suppress(FileNotFoundError):  # another prune may be quicker
        remove_ours(away, keep=(OPTIONS_FILE,))
        refuse_strangers(away)  # nothing would tell later that they were in a run
        flush(away)  # or a loss of power might take the last file before the others
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
