"""Keeps what is written for others out of the folders of runs, whose readers would take it for theirs.

Beside these folders anything may lie: ``OUT/mine.csv`` harms nobody, and ``OUT/bicliques/mine.csv`` ends every reader
of ``OUT/bicliques``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bicliques.pipeline.run.names import FOLDERS, OPTIONS_FILE, PUBLISHED_FILE, is_file, is_of_run
from bicliques.schemas.errors import InputError

#: The files of which a folder has one if it is that of a run, or of what was published of one.
_TELLS_A_RUN = (OPTIONS_FILE, PUBLISHED_FILE)


def refuse_inside_run(path: str | os.PathLike[str]) -> None:
    """Refuse to write something new in a folder that a run fills, or in the place of a file of a run.

    Parameters
    ----------
    path : path
        A file or a folder of this machine that is to be written.

    Raises
    ------
    InputError
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

    Raises
    ------
    InputError
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

    Raises
    ------
    InputError
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
