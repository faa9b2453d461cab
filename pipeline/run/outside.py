"""What is written beside runs: never in the folder of one, whose readers would take it for theirs.

The folder of a result, such as a comparison, holds nothing else, and is written whole or not.

Beside these folders anything may lie: ``OUT/mine.csv`` harms nobody, and ``OUT/bicliques/mine.csv`` ends every reader
of ``OUT/bicliques``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bicliques.pipeline.run.files import disk_errors
from bicliques.pipeline.run.names import FOLDERS, OPTIONS_FILE, PUBLISHED_FILE, is_file, is_of_run
from bicliques.schemas.errors import InputError, ResourceError

#: The files of which a folder has one if it is that of a run, or of what was published of one.
_TELLS_A_RUN = (OPTIONS_FILE, PUBLISHED_FILE)


def refuse_inside_run(path: str | os.PathLike[str]) -> None:
    """Refuse to write something new in a folder that a run fills, or in the place of a file of a run.

    Parameters
    ----------
    path : path
        A file or a folder of this machine that is to be written.
    """
    try:
        whole = Path(os.path.realpath(path))
    except ValueError:  # a NUL, which who writes there refuses
        return
    _refuse_inside(str(path), whole.parts, lambda parts: _is_run(Path(*parts)))
    if is_of_run(whole) and _is_run(whole.parent):
        raise InputError(f"{path} is a file of the run in {whole.parent}; name another one")


def _refuse_inside(shown: str, parts: Sequence[str], is_run: Callable[[Sequence[str]], bool]) -> None:
    """Refuse a place in a folder that a run fills.

    Parameters
    ----------
    shown : str
        The place in words.
    parts : sequence of str
        The names on the way to it, its own one last.
    is_run : callable
        Whether the first names lead to the folder of a run, or of what was published of one.
    """
    for k in range(1, len(parts)):
        if parts[k] in FOLDERS and is_run(parts[:k]):
            raise InputError(
                f"{shown} is or lies in the folder {parts[k]} of a run, whose readers would read it, too; name a "
                "place elsewhere"
            )


def refuse_inside_store(shown: str, path: str, system: Callable[[], Any]) -> None:
    """As `refuse_inside_run`, of a folder of a store. A store that does not tell what lies above has the last word.

    Parameters
    ----------
    shown : str
        The folder in words.
    path : str
        The same on its file system.
    system : callable
        () -> that file system of Arrow. It is asked only if a part of the path is called as a folder of a run.
    """

    def is_run(parts: Sequence[str]) -> bool:
        from pyarrow.fs import FileType  # only where there is a file system of Arrow

        try:
            found = system().get_file_info(["/".join((*parts, name)) for name in _TELLS_A_RUN])
        except Exception:  # credentials may be good for the place itself alone; packages have errors of their own
            return False
        return any(entry.type == FileType.File for entry in found)

    _refuse_inside(shown, path.split("/"), is_run)


def _is_run(folder: Path) -> bool:
    return any(is_file(folder / name) for name in _TELLS_A_RUN)


def names_in(place: Path) -> list[str]:
    """The names in a folder, ascending. None if it does not exist.

    Raises `InputError` if it cannot be read.
    """
    try:
        return sorted(path.name for path in place.iterdir()) if place.is_dir() else []
    except OSError as error:
        raise _unusable(place, error) from error


def refuse_strangers(place: Path, names: Iterable[str], is_own: Callable[[str], bool]) -> None:
    """Refuse a folder that holds a file of somebody else."""
    stranger = next((name for name in names if not is_own(name)), None)
    if stranger is not None:
        raise InputError(f"the output folder {place} is not empty: it holds {stranger}; name another one")


def remove_own(place: Path, is_own: Callable[[str], bool]) -> None:
    """Remove the files of a result, whole or not, from a folder that may not be there.

    Raises `ResourceError` if one cannot be removed.
    """
    with disk_errors(place):
        for path in place.iterdir() if place.is_dir() else ():
            if is_own(path.name):
                path.unlink()


@contextmanager
def fill_folder(place: Path, remove: Callable[[Path], None]) -> Iterator[None]:
    """Make the folder, without what `remove` removes. If the block fails, that goes, and so does a new folder.

    Raises `InputError` if the folder cannot be made.
    """
    try:
        made = not place.exists()
        place.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # ValueError if the name holds a NUL
        raise _unusable(place, error) from error
    try:
        remove(place)  # a process that was killed may have left files
        yield
    except BaseException:
        with suppress(OSError, ResourceError):  # an error here would hide the one that ended the block
            remove(place)
            if made:
                place.rmdir()
        raise


def _unusable(place: Path, error: OSError | ValueError) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else error
    return InputError(f"the output folder {place} cannot be used ({reason}); name another one")
