"""The folder of a new run: made whole, or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.folder import LOCK_FILE, RunFolder, how_to_resume
from pipeline.lock import locked
from schemas.errors import InputError

__all__ = ["new_run"]


@contextmanager
def new_run(path: Path) -> Iterator[RunFolder]:
    """Make the folder of a new run and hold its lock; when the block fails, everything made is removed again.

    Raises
    ------
    InputError
        If `path` exists and is not an empty folder, cannot be made, or another driver works in it.
    """
    made = _make(path)
    try:
        _refuse_content(path)
        with locked(path / LOCK_FILE):
            _refuse_content(path)
            try:
                yield RunFolder(path)
            except BaseException:
                for child in path.iterdir():
                    shutil.rmtree(child) if child.is_dir() else child.unlink()
                raise
    except BaseException:
        _unmake(made)
        raise


def _refuse_content(path: Path) -> None:
    if not os.access(path, os.W_OK | os.X_OK):
        raise InputError(f"the output folder {path} is not writable; name another one")
    if set(os.listdir(path)) - {LOCK_FILE}:  # noqa: PTH208 - only the names
        remedy = f"continue the run in it with: {how_to_resume(path)}" if (path / "options.json").exists() else ""
        raise InputError(
            f"the output folder {path} is not empty; name another one" + (f", or {remedy}" if remedy else "")
        )


def _make(path: Path) -> list[Path]:
    """Make `path` and what is missing above it; the folders made, innermost first."""
    missing = [folder for folder in (path, *path.parents) if not _exists(folder)]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # the latter for a NUL in the name
        _unmake([folder for folder in missing if _exists(folder)])
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"the output folder {path} cannot be made ({reason}); name another one") from error
    return missing


def _exists(folder: Path) -> bool:
    return os.path.exists(folder)  # noqa: PTH110 - Path.exists raises where a name is too long or may not be seen


def _unmake(made: list[Path]) -> None:
    """Remove folders that were made, unless somebody has put something into them meanwhile."""
    for folder in made:
        try:
            folder.rmdir()
        except OSError:
            return
