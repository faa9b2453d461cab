"""Writes files that are whole or not there, sums files up, and puts errors of the file system into one sentence."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.run.names import is_file, temporary_name
from bicliques.schemas.errors import IncompleteError, InputError, ResourceError
from bicliques.schemas.records import checked, with_checksum
from bicliques.schemas.regular_files import open_regular, read_regular
from bicliques.schemas.values import local_path

#: The types that a path may have in a call.
PathLike = str | os.PathLike[str]

logger = logging.getLogger(__name__)

#: Errors of a file system that has no room left. The remedy is to make room, not to change permissions.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
#: The folders of `temporary_folder` that are there now. What is in them need not survive a loss of power.
_temporary: set[Path] = set()


@contextmanager
def temporary_folder(place: str | os.PathLike[str] | None = None) -> Iterator[Path]:
    """A folder that is removed after the block. It is made in `place`, or in the temporary folder of the system."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="bicliques-", dir=None if place is None else local_path(place)))
    except OSError as error:
        where = "the temporary folder ($TMPDIR)" if place is None else place
        raise InputError(f"nothing can be put into {where} ({error.strerror}); name another one") from error
    _temporary.add(folder)
    try:
        yield folder
    finally:
        _temporary.discard(folder)
        _remove(folder)
        if os.path.lexists(folder):
            logger.warning("%s could not be removed; delete it", folder)


def _remove(folder: Path) -> None:
    """Remove a folder with all that is in it. Ctrl-C does not stop this, and is raised again at the end."""
    pressed: KeyboardInterrupt | None = None
    while True:
        try:
            shutil.rmtree(folder, ignore_errors=True)  # an error here would hide the one that ended the block
            break
        except KeyboardInterrupt as error:
            pressed = error
    if pressed is not None:
        raise pressed


@contextmanager
def disk_errors(place: Path) -> Iterator[None]:
    """Turn an error of the file system into one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # NumPy raises such an error when the disk has taken only a part of an array
            raise ResourceError(f"cannot write all of {place} ({error}); make room") from error
        remedy = "make room" if error.errno in _FULL else "see that it can be written"
        if error.errno == errno.EISDIR:
            place, remedy = _folder_in_the_way(place, error), "move it away"
        raise ResourceError(f"cannot write {place} ({os.strerror(error.errno)}); {remedy}") from error


def _folder_in_the_way(place: Path, error: OSError) -> Path:
    """The folder that stands where a file should be, if `error` names it; else `place`."""
    names = [Path(os.fsdecode(name)) for name in (error.filename2, error.filename) if name is not None]
    return next((name for name in names if name.is_dir() and name.is_relative_to(place)), place)


@contextmanager
def temporary_errors(folder: Path, needed: int) -> Iterator[None]:
    """Turn an error of the file system below a `temporary_folder` into one sentence."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or error
        raise ResourceError(
            f"cannot write the temporary folder {folder} ({reason}); make room for {needed:,} bytes there, or name "
            "another place in $TMPDIR"
        ) from error


def create(path: Path) -> IO[bytes]:
    """Open a new file to write into.

    A file of that name is removed first. If it is a link, the link is removed, and its target stays as it is. Raises
    `OSError` if the file cannot be made.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o666)
    except FileExistsError:
        path.unlink(missing_ok=True)  # somebody else may have removed it just now
        descriptor = os.open(path, flags, 0o666)
    return os.fdopen(descriptor, "wb")


@contextmanager
def whole_file(target: Path, flush_names: Callable[[], None] | None = None) -> Iterator[IO[bytes]]:
    """A new file to write into. After the block it gets the name `target`. If the block raises an error, it is removed.

    Raises `ResourceError` if the disk is full, or the file cannot be written for another reason.

    Parameters
    ----------
    flush_names : callable or None
        Makes sure that the name survives a loss of power, as a `SharedFlush` of the folder does. None: the folder is
        flushed.
    """
    temporary = target.with_name(temporary_name(target.name))
    with disk_errors(target):
        try:
            with create(temporary) as file:
                yield file
                file.flush()
                if _is_to_last(temporary):
                    os.fsync(file.fileno())
            _rename(temporary, target, flush_names)
        except BaseException:
            with suppress(OSError):  # an error here would hide the one that ended the block
                temporary.unlink(missing_ok=True)
            raise


def replace_file(temporary: Path, target: Path) -> None:
    """Give a finished file its name, and make sure that its content and its name survive a loss of power."""
    flush(temporary)
    _rename(temporary, target)


def _rename(temporary: Path, target: Path, flush_names: Callable[[], None] | None = None) -> None:
    temporary.replace(target)
    if flush_names is None:
        flush(target.parent)
    else:
        flush_names()


class SharedFlush:
    """Flushes the list of names in a folder for threads that have each given a name to a file there.

    While one flush goes on others wait, and the next one is for all of them. A disk takes milliseconds for each.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._asking, self._flushing = threading.Lock(), threading.Lock()
        self._asked = self._flushed = 0  # callers: the last one, and the last one whose names are safe

    def __call__(self) -> None:
        """Return when a flush is over that began after this call.

        Raises `OSError` if the disk does not take it.
        """
        with self._asking:
            self._asked += 1
            own = self._asked
        with self._flushing:
            if self._flushed < own:
                with self._asking:
                    last = self._asked
                flush(self._folder)
                self._flushed = last


def settle(folder: Path) -> None:
    """Make sure that the files of a folder survive a loss of power."""
    for path in (*filter(is_file, folder.iterdir()), folder):
        flush(path)


def flush(path: Path) -> None:
    """Make sure that the content of a file, or the list of names in a folder, survives a loss of power.

    Nothing is done inside a `temporary_folder`, because a disk takes milliseconds for each.
    """
    if not _is_to_last(path):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_to_last(path: Path) -> bool:
    """Whether a file has to survive a loss of power, because it is in no `temporary_folder`."""
    return not _temporary or _temporary.isdisjoint(path.parents)


def write_json(target: Path, data: dict[str, Any]) -> None:
    """Write a record with its checksum (`schemas.records`). The file is either whole or not there.

    Raises `ResourceError` if the disk is full, or the file cannot be written for another reason.
    """
    with whole_file(target) as file:
        file.write(json.dumps(with_checksum(data), indent=1).encode())


def holds(file: Path, content: bytes | None) -> bool:
    """Whether a file is there, can be read, and has just this content."""
    try:
        return read_regular(file) == content
    except OSError:
        return False


def read_json(file: Path) -> dict[str, Any]:
    """The record in a JSON file, without its checksum."""
    try:
        data = json.loads(read_regular(file))
    except (OSError, RecursionError, ValueError) as error:
        raise IncompleteError(f"{file} cannot be read ({error})") from error
    if not isinstance(data, dict):
        raise IncompleteError(f"{file} does not hold a JSON object")
    try:
        return checked(data)
    except IncompleteError as error:
        raise IncompleteError(f"{file} cannot be used ({error})") from error


#: Bytes of a piece, and most threads that read pieces. More threads wait for memory.
_PIECE, _MOST_THREADS = 16 << 20, 16
#: Bytes that are read at a time.
_BLOCK = 1 << 18
#: The generator polynomial, its lowest power in the highest bit, without x^32.
_POLYNOMIAL = 0xEDB88320


def checksum(file: Path) -> int:
    """CRC-32 of a file's bytes. It takes about one second per gigabyte and core."""
    return checksums_of([file])[file]


def checksums_of(files: Sequence[Path]) -> dict[Path, int]:
    """The `checksum` of each file.

    Raises `OSError` if a file cannot be read.
    """
    from concurrent.futures import ThreadPoolExecutor  # here, because most commands sum up no file

    pieces = [(file, start) for file in files for start in range(0, max(file.stat().st_size, 1), _PIECE)]
    sums = dict.fromkeys(files, 0)
    with ThreadPoolExecutor(min(count_cores(), _MOST_THREADS)) as threads:
        # small files are read sooner than threads start
        at_a_time = threads.map if len(pieces) > len(files) else map
        found = at_a_time(lambda piece: _of_piece(*piece), pieces)
        for (file, start), (crc, length) in zip(pieces, found, strict=True):
            sums[file] = joined(sums[file], crc, length) if start else crc
    return sums


def _of_piece(file: Path, start: int) -> tuple[int, int]:
    """CRC-32 of the piece of a file that begins at `start`, and its length."""
    crc, length, block = 0, 0, memoryview(bytearray(_BLOCK))
    with open_regular(file) as stream:
        stream.seek(start)
        while n := stream.readinto(block[: _PIECE - length]):
            crc = zlib.crc32(block[:n], crc)
            length += n
    return crc, length


def joined(one: int, other: int, length: int) -> int:
    """CRC-32 of two texts one behind the other. The second has `length` bytes.

    Notes
    -----
    A text is a polynomial, and its CRC-32 is the rest after a division. `length` bytes behind the first text multiply
    it by x^(8 length). This is the method of `crc32_combine` in zlib (Mark Adler).
    """
    power, square = 1 << 31, 1 << 23  # x^0 and x^8
    while length:
        if length & 1:
            power = _product(power, square)
        square = _product(square, square)
        length >>= 1
    return _product(power, one) ^ other


def _product(a: int, b: int) -> int:
    """The product of two polynomials after division. The highest bit is the lowest power."""
    product = 0
    for k in range(31, -1, -1):
        if a >> k & 1:
            product ^= b
        b = b >> 1 ^ _POLYNOMIAL if b & 1 else b >> 1
    return product
