"""Files that are either whole or not there, and errors of the file system in one sentence."""

from __future__ import annotations

import errno
import json
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schemas.errors import IncompleteError, InputError, ResourceError
from schemas.records import checked, sealed

__all__ = ["checksum", "disk_errors", "flush", "read_json", "replace_file", "settle", "temporary_folder", "write_json"]


#: A file system that takes no more: not a user's permission, not a broken disk.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def temporary_folder(place: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A folder in `place`, or where the system keeps such, that is gone after the block.

    Raises
    ------
    InputError
        If it cannot be made.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="bicliques-", dir=place)
    except OSError as error:
        where = "the temporary folder ($TMPDIR)" if place is None else place
        raise InputError(f"nothing can be put into {where} ({error.strerror}); name another one") from error
    with folder as path:
        yield Path(path)


@contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Turn an error of the file system into one sentence.

    Raises
    ------
    ResourceError
        Naming `place` and the reason.
    """
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        remedy = "make room" if error.errno in _FULL else "see that it can be written"
        raise ResourceError(f"cannot write {place} ({reason}); {remedy}") from error


def replace_file(temporary: Path, target: Path) -> None:
    """Give a finished file its name, and make sure that both survive a loss of power."""
    flush(temporary)
    temporary.replace(target)
    flush(target.parent)


def settle(folder: Path) -> None:
    """Make sure that the files of a folder survive a loss of power."""
    for path in (*folder.iterdir(), folder):
        flush(path)


def flush(path: Path) -> None:
    """Make sure that what was written to a file, or which names a folder has, survives a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(file: Path) -> int:
    """CRC-32 of a file's bytes; about a second a gigabyte."""
    crc = 0
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            crc = zlib.crc32(block, crc)
    return crc


def write_json(target: Path, data: dict[str, Any]) -> None:
    """Write a record with its checksum (`schemas.records`); the file is either whole or not there.

    Raises
    ------
    ResourceError
        If the disk is full, or the like.
    """
    temporary = target.with_name(f".{target.name}.tmp")
    with disk_errors(target):
        try:
            temporary.write_text(json.dumps(sealed(data), indent=1))
            replace_file(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def read_json(file: Path) -> dict[str, Any]:
    """The record in a JSON file, without its checksum.

    Raises
    ------
    IncompleteError
        If it is missing or damaged.
    """
    try:
        data = json.loads(file.read_bytes())
    except (OSError, RecursionError, ValueError) as error:
        raise IncompleteError(f"{file} cannot be read ({error})") from error
    if not isinstance(data, dict):
        raise IncompleteError(f"{file} does not hold a JSON object")
    try:
        return checked(data)
    except IncompleteError as error:
        raise IncompleteError(f"{file} cannot be used ({error})") from error
