"""Opens input files as streams of bytes. They are hashed while they are read, and decompressed by suffix."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from pipeline.ingest.readers.digests import Digest
from pipeline.ingest.readers.xz import XzFile
from schemas.errors import InputError

__all__ = ["COMPRESSIONS", "FileHash", "decompressed", "hashed", "open_file", "plain_name", "reading_errors"]

#: Bytes that a decompressor gets at a time.
_CHUNK = 1 << 20

#: Suffix -> name of the compression, for messages.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}

_DAMAGED = (OSError, zlib.error, lzma.LZMAError)


class FileHash(io.RawIOBase):
    """A file whose bytes are hashed while they are read. `hashed` makes and closes it."""

    def __init__(self, file: IO[bytes], path: Path):
        self._file = file
        self._path = path
        self._digest = Digest()

    def readable(self) -> bool:
        """True. The decompressors ask."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the file. Returns the number of bytes, which is 0 at the end."""
        with reading_errors(self._path):
            n: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._digest.update(memoryview(buffer)[:n])
        return n

    def finish(self) -> str:
        """Hash the bytes that the decompressor did not read. Returns the digest of the whole file."""
        with reading_errors(self._path):
            while data := self._file.read(_CHUNK):
                self._digest.update(data)
        return self._digest.hexdigest()


@contextmanager
def hashed(path: Path) -> Iterator[FileHash]:
    """Open a file that is hashed while it is read."""
    with open_file(path) as file:
        yield FileHash(file, path)


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn errors of the disk or the file system while a file is read into a sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); copy it to another disk") from error


def open_file(path: Path) -> IO[bytes]:
    """Open an input file.

    Raises
    ------
    InputError
        The file does not exist, is no regular file, or may not be read.
    """
    try:
        if not path.exists():
            raise InputError(f"{path} does not exist; check the name of the input file")
        if not path.is_file():
            raise InputError(f"{path} is not a regular file; name one file, not a folder or a pipe")
        return path.open("rb", buffering=0)
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}); check its permissions") from error


def plain_name(path: Path) -> str:
    """The file's name in lower case, without a compression suffix."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in COMPRESSIONS else name


@contextmanager
def decompressed(path: Path, file: FileHash) -> Iterator[IO[bytes]]:
    """The decompressed bytes. Errors of the decompressor become errors that tell the user what to do."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    raw = io.BufferedReader(file, _CHUNK)
    if compression is None:
        yield raw
        return
    try:
        with _decompressor(compression, raw) as stream:
            yield stream
    except EOFError as error:
        raise _truncated(path, compression) from error
    except _DAMAGED as error:
        if "Truncated" in str(error):
            raise _truncated(path, compression) from error
        raise InputError(
            f"{path} is not a whole {compression} file ({error}); copy it again, or rename it if it is something else"
        ) from error


def _decompressor(compression: str, raw: IO[bytes]) -> Any:
    """The decompressor. Each of them reads several streams in a row, and refuses bytes behind the last."""
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "xz":
        return io.BufferedReader(XzFile(raw), _CHUNK)
    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd" if compression == "zstd" else "bz2")


def _truncated(path: Path, compression: str) -> InputError:
    return InputError(f"{path} ends in the middle of its {compression} stream (truncated); copy or download it again")
