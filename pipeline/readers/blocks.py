"""Text files as blocks of whole lines: decompressed by suffix, hashed on the way, never read whole.

Whatever the size of a file, at most a block (and a line that is longer than one) is in memory. Line ends
become LF, a UTF-8 byte order mark is dropped, and the last line gets the line end it may lack.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from pipeline.digests import Digest
from pipeline.readers.xz import XzFile
from schemas.errors import InputError

__all__ = [
    "COMPRESSIONS",
    "LINE_BYTES",
    "Block",
    "FileHash",
    "beginning",
    "block_of",
    "blocks",
    "hashed",
    "head",
    "long_line",
    "open_file",
    "plain_name",
]

#: Bytes of text parsed at a time.
BLOCK_BYTES = 8 << 20

#: Bytes of text whose lines are looked at to guess a format, a delimiter, a header.
HEAD_BYTES = 1 << 20

#: A longer line is taken for a binary file.
LINE_BYTES = 256 << 20

#: Suffix -> name of the compression, for messages.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}

_DAMAGED = (OSError, zlib.error, lzma.LZMAError)
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Block:
    """Whole lines of a text file.

    Parameters
    ----------
    number : int
        Number of the first line, from 1.
    data : bytes
        The lines, each with its LF.
    """

    number: int
    data: bytes

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line with its number, without its LF."""
        for number, line in enumerate(io.BytesIO(self.data), self.number):
            yield number, line[:-1]

    def pieces(self, size: int) -> Iterator[Block]:
        """The same lines in blocks of about `size` bytes."""
        start, number = 0, self.number
        while start < len(self.data):
            stop = self.data.find(b"\n", min(start + size, len(self.data) - 1)) + 1
            yield Block(number, self.data[start:stop])
            number += self.data.count(b"\n", start, stop)
            start = stop

    def starting_at(self, number: int) -> Block:
        """Without the lines before line `number`."""
        start = 0
        for _ in range(self.number, number):
            start = self.data.find(b"\n", start) + 1
            if start == 0:
                return Block(number, b"")
        return Block(max(number, self.number), self.data[start:])


class FileHash(io.RawIOBase):
    """A file whose bytes are hashed as they are read; made by `hashed`, which also closes it."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._digest = Digest()

    def readable(self) -> bool:
        """Always; asked by the decompressors."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the file; the number of bytes, 0 at the end."""
        n: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._digest.update(memoryview(buffer)[:n])
        return n

    def finish(self) -> str:
        """Hash what the decompressor left unread, and return the digest of the whole file."""
        while data := self._file.read(HEAD_BYTES):
            self._digest.update(data)
        return self._digest.hexdigest()


@contextmanager
def hashed(path: Path) -> Iterator[FileHash]:
    """The opened file, hashed on the way."""
    with open_file(path) as file:
        yield FileHash(file)


def open_file(path: Path) -> IO[bytes]:
    """Open an input file.

    Raises
    ------
    InputError
        If it does not exist, is no regular file, or may not be read.
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


def beginning(path: Path) -> bytes:
    """The first bytes of a file, decompressed, without a byte order mark."""
    with hashed(path) as file, _opened(path, file) as stream:
        return _without_mark(stream.read(64), path)


def head(path: Path) -> list[bytes]:
    """The first lines of a file, at most `HEAD_BYTES`, without line ends."""
    with hashed(path) as file, closing(blocks(path, file, HEAD_BYTES)) as first:
        return next(first).data.split(b"\n")[:-1]


def blocks(path: Path, file: FileHash, size: int | None = None) -> Generator[Block]:
    """Blocks of about `size` bytes (`BLOCK_BYTES`), in order.

    Raises
    ------
    InputError
        If the file is empty, its compressed stream is truncated or damaged, it is UTF-16, or it has no
        line ends.
    """
    with _opened(path, file) as stream:
        rest, number = b"", 1
        while data := stream.read(size or BLOCK_BYTES):
            data = rest + data
            cut = data.rfind(b"\n") + 1
            if cut:
                yield block_of(path, number, data[:cut])
                number += data.count(b"\n", 0, cut)
            rest = data[cut:]
            if len(rest) > LINE_BYTES:
                raise long_line(path, number)
        if rest:
            yield block_of(path, number, rest + b"\n")
        elif number == 1:
            raise InputError(f"{path} is empty; name a file that holds edges")


def long_line(path: Path, number: int) -> InputError:
    """What to say of a line that is longer than `LINE_BYTES`."""
    return InputError(
        f"{path}, line {number}: the line is longer than {LINE_BYTES >> 20} MiB; "
        "this looks like a binary file, so name another one or its --format"
    )


def block_of(path: Path, number: int, data: bytes) -> Block:
    """Whole lines from line `number` on as a block: LF for every line end, no byte order mark.

    Raises
    ------
    InputError
        If the file turns out to be UTF-16.
    """
    if number == 1:
        data = _without_mark(data, path)
    return Block(number, data.replace(b"\r\n", b"\n") if b"\r" in data else data)


def _without_mark(data: bytes, path: Path) -> bytes:
    if data.startswith(_UTF16):
        raise InputError(f"{path} is UTF-16 text; convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8")
    return data.removeprefix(b"\xef\xbb\xbf")


@contextmanager
def _opened(path: Path, file: FileHash) -> Iterator[IO[bytes]]:
    """The decompressed bytes; errors of the decompressor become errors the user can act on."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    raw = io.BufferedReader(file, HEAD_BYTES)
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
    """All of these read several streams, one after the other, and refuse what follows the last."""
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "xz":
        return io.BufferedReader(XzFile(raw), HEAD_BYTES)
    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd" if compression == "zstd" else "bz2")


def _truncated(path: Path, compression: str) -> InputError:
    return InputError(f"{path} ends in the middle of its {compression} stream (truncated); copy or download it again")
