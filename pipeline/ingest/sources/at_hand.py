"""Makes files of this machine of sources that are none, as standard input, for as long as they are read."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pipeline.ingest.readers.files import Files, find, is_named, items_of, title_of
from pipeline.ingest.readers.opening import suffix_of
from pipeline.ingest.sources.names import STDIN
from pipeline.run.files import disk_errors, temporary_folder
from schemas.errors import BicliqueError, InputError

__all__ = ["at_hand"]

#: Standard input in words, and the name of the file that it is copied into.
_TITLE = "standard input"
#: Bytes that are copied at a time.
_PIECE = 1 << 20


@contextmanager
def at_hand(source: Any, where: Sequence[str] = ()) -> Iterator[Any]:
    """A source that `pipeline.ingest.readers.open_source` can open: `Files` of this machine, or an object in memory.

    Raises
    ------
    InputError
        A source cannot be found or copied. Errors of the block name a copy as the user has named it.
    ResourceError
        The temporary folder has no room for a copy.
    """
    if not is_named(source):
        yield source
    elif STDIN not in (items := items_of(source)):
        yield find(source, where)
    else:
        with temporary_folder() as folder:
            copied: dict[Path, str] = {}
            yield from _renaming(_copied(items, where, folder, copied), copied)


def _renaming(files: Files, copied: dict[Path, str]) -> Iterator[Files]:
    try:
        yield files
    except BicliqueError as error:
        said = str(error)
        for path, name in copied.items():
            said = said.replace(str(path), name)
        raise type(error)(said) from None


def _copied(items: list[str], where: Sequence[str], folder: Path, copied: dict[Path, str]) -> Files:
    """The files of all items, of which some are copied into `folder`. `copied` gets the name of each copy."""
    if where:
        raise InputError("standard input lies in no folder, so --where cannot tell whether it is meant; leave one out")
    if items.count(STDIN) > 1:
        raise InputError(f"{STDIN} is given {items.count(STDIN)} times, but standard input can be read only once")
    found = []
    for item in items:
        if item == STDIN:
            path = _copy(_stdin(), folder / _TITLE)
            copied[path] = _TITLE
            found.append(Files(_TITLE, (path,), (_TITLE,), is_one=True))
        else:
            found.append(find(item))
    if len(found) == 1:
        return found[0]
    paths, names = (tuple(each for files in found for each in getattr(files, what)) for what in ("paths", "names"))
    return Files(title_of(files.title for files in found), paths, names)


def _stdin() -> IO[bytes]:
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("standard input is a terminal; pipe the edges into the command, or name a file instead of -")
    return sys.stdin.buffer


def _copy(stream: IO[bytes], target: Path) -> Path:
    """A file with all bytes of a stream. It gets the suffix of the compression that its first bytes show."""
    with disk_errors(target), target.open("wb") as file:
        shutil.copyfileobj(stream, file, _PIECE)
    with target.open("rb") as file:
        suffix = suffix_of(file.read(8))
    return target.rename(f"{target}{suffix}") if suffix else target
