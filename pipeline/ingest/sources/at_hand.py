"""Makes files of this machine of sources that are none, standard input and URLs, for as long as they are read."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from bicliques.pipeline.ingest.readers.files import Files, find, is_named, items_of, title_of
from bicliques.pipeline.ingest.readers.opening import suffix_of
from bicliques.pipeline.ingest.sources.names import STDIN, from_record, is_there
from bicliques.pipeline.run.files import disk_errors, temporary_folder
from bicliques.pipeline.run.names import url_of
from bicliques.schemas.errors import InputError, as_option, renaming

logger = logging.getLogger(__name__)

#: Standard input in words, and the name of the file that it is copied into.
_TITLE = "standard input"
#: Bytes that are copied at a time.
_PIECE = 1 << 20


@contextmanager
def at_hand(source: Any, where: Sequence[str] = ()) -> Iterator[Any]:
    """A source that `pipeline.ingest.readers.open_source` can open: `Files` of this machine, or an object in memory.

    Raises `InputError`: a source cannot be found or copied. Errors of the block name a copy as the user has named it.
    Raises `ResourceError`: the temporary folder has no room for a copy.
    """
    items = items_of(source) if is_named(source) else []
    if not items:
        yield source
    elif not any(item == STDIN or url_of(item) for item in items):
        yield find(items, where)
    else:
        copied: dict[Path, str] = {}
        with temporary_folder() as folder:
            files = _copied(items, where, folder, copied)
            with renaming(copied):
                yield files


def _copied(items: list[str], where: Sequence[str], folder: Path, copied: dict[Path, str]) -> Files:
    """The files of all items, of which some are copied into `folder`. `copied` gets the name of each copy."""
    found = []
    for number, item in enumerate(items):
        if item == STDIN:
            found.append(_stdin_copied(items, where, folder, copied))
        elif url_of(item) is not None:
            found.append(_url_copied(item, where, folder / str(number), copied))
        else:
            found.append(find(item, where))
    if len(found) == 1:
        return found[0]
    paths, names = (tuple(each for files in found for each in getattr(files, what)) for what in ("paths", "names"))
    return Files(title_of(files.title for files in found), paths, names)


def _url_copied(url: str, where: Sequence[str], folder: Path, copied: dict[Path, str]) -> Files:
    from bicliques.pipeline.ingest.sources import remote  # only for remote files

    listing = remote.listed(url, where)
    paths = []
    for number, file in enumerate(listing.files):
        name = PurePosixPath(file.name).name
        target = folder / str(number) / (name if name not in ("", "..") else "file")
        target.parent.mkdir(parents=True)
        with disk_errors(target), target.open("wb") as stream:
            remote.copy(file, stream)
        logger.info("%s is copied, %d bytes", file.shown, target.stat().st_size)
        paths.append(_with_suffix(target))
        copied[paths[-1]] = file.shown
    return Files(listing.title, tuple(paths), tuple(file.name for file in listing.files), listing.is_one)


def _stdin_copied(items: list[str], where: Sequence[str], folder: Path, copied: dict[Path, str]) -> Files:
    if where:
        raise InputError(
            f"standard input lies in no folder, so {as_option('where')} cannot tell whether it is meant; leave one out"
        )
    if items.count(STDIN) > 1:
        raise InputError(f"{STDIN} is given {items.count(STDIN)} times, but standard input can be read only once")
    target, stream = folder / _TITLE, _stdin()
    with disk_errors(target), target.open("wb") as file:
        shutil.copyfileobj(stream, file, _PIECE)
    path = _with_suffix(target)
    copied[path] = _TITLE
    return Files(_TITLE, (path,), (_TITLE,), is_one=True)


def _stdin() -> IO[bytes]:
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("standard input is a terminal; pipe the edges into the command, or name a file instead of -")
    return sys.stdin.buffer


def _with_suffix(path: Path) -> Path:
    """The file with the suffix of the compression that its first bytes show."""
    with path.open("rb") as file:
        suffix = suffix_of(file.read(8))
    return path.rename(f"{path}{suffix}") if suffix and path.suffix.lower() != suffix else path


def digest_of(name: str, where: Sequence[str] = ()) -> str | None:
    """The digest of a recorded source as it is now, of the files that fit. None for one that cannot be read again.

    Raises `InputError`: a file may not be read.
    """
    if not is_there(name):
        return None
    with at_hand(from_record(name), where) as files:
        digest: str = files.digest()
    return digest
