"""Keeps what is written for others out of the folders of runs, whose readers would take it for theirs.

Beside these folders anything may lie: ``OUT/mine.csv`` harms nobody, and ``OUT/bicliques/mine.csv`` ends every reader
of ``OUT/bicliques``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

from pipeline.run.names import FOLDERS, OPTIONS_FILE, PUBLISHED_FILE, is_file, is_of_run
from pipeline.run.stored import url_at
from schemas.errors import InputError, ResourceError

__all__ = ["TELLS_A_RUN", "refuse_inside", "refuse_inside_run", "refuse_inside_stored_run"]

#: The files of which a folder has one if it is that of a run, or of what was published of one.
TELLS_A_RUN = (OPTIONS_FILE, PUBLISHED_FILE)


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
    refuse_inside(str(path), whole.parts, lambda parts: _is_run(Path(*parts)))
    if is_of_run(whole) and _is_run(whole.parent):
        raise InputError(f"{path} is a file of the run in {whole.parent}; name another one")


def refuse_inside(shown: str, parts: Sequence[str], is_run: Callable[[Sequence[str]], bool]) -> None:
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


def refuse_inside_stored_run(folder: Path) -> None:
    """As `refuse_inside_run`, of the address of a new run that is kept in a store.

    Parameters
    ----------
    folder : Path
        Its working folder. Of any other folder nothing is asked.

    Raises
    ------
    InputError

    Notes
    -----
    The store is asked only if a part of the address is called as a folder of a run.
    """
    if (url := url_at(folder)) is None:
        return
    from pipeline.remote.objects import Objects  # imported only here, because most runs are kept in folders
    from pipeline.remote.urls import place_of

    place, mark, query = url.partition("?")
    scheme, _, rest = place.partition("://")
    names = rest.strip("/").split("/")

    def is_run(parts: Sequence[str]) -> bool:
        above = Objects(f"{scheme}://{'/'.join(names[: len(parts)])}{mark}{query}")
        try:
            return any(above.size(name) is not None for name in TELLS_A_RUN)
        except ResourceError:  # credentials may be good for the place itself alone
            return False

    refuse_inside(place_of(url), [unquote(name) for name in names], is_run)


def _is_run(folder: Path) -> bool:
    return any(is_file(folder / name) for name in TELLS_A_RUN)
