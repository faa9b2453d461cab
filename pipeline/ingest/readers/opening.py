"""Opens input files as streams of bytes. They are hashed while they are read, and decompressed by suffix.

The digest shows whether a file has changed since it was read. It is BLAKE3, as ``b3sum`` prints it: on one core two to
three times as fast as SHA-256, and all cores can share a file.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from blake3 import blake3

from bicliques.schemas.errors import InputError
from bicliques.schemas.regular_files import open_regular

#: ``update(bytes)`` and ``hexdigest()``, as those of `hashlib`.
Digest = blake3

#: Bytes that a decompressor gets at a time.
_CHUNK = 1 << 20
#: Reads that may wait to be hashed.
_WAITING = 4
#: Bytes in which the end of a line is looked for.
_LOOK = 1 << 12

#: Suffix -> name of the compression, for messages.
COMPRESSIONS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}

#: First bytes of a compressed file -> suffix.
_MAGIC = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}


def digest_on_all_cores() -> Digest:
    """A digest whose updates use all cores, unless they are small. It does not work in a forked process."""
    return Digest(max_threads=Digest.AUTO)


def file_digest(path: Path) -> str:
    """Digest (hex) of a file's bytes as they are stored now."""
    with reading_errors(path), open_regular(path) as file:  # a mapped file that is cut short kills its reader
        digest = hashlib.file_digest(file, digest_on_all_cores)  # type: ignore[arg-type] # whose `update` returns it
    return digest.hexdigest()


def list_digest(digests: Iterable[str], names: Iterable[str]) -> str:
    """Digest (hex) over several files: that of the lines which ``b3sum`` prints for them, in this order."""
    digest = Digest()
    for each, name in zip(digests, names, strict=True):
        digest.update(f"{each}  {name}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


class FileHash(io.RawIOBase):
    """A file that is hashed as it is read. A thread hashes long reads while the caller goes on."""

    def __init__(self, file: IO[bytes], path: Path, thread: ThreadPoolExecutor):
        self._file = file
        self._path = path
        self._digest = Digest()
        self._thread = thread
        self._under_way: deque[Future[Any]] = deque()

    def readable(self) -> bool:
        """True. The decompressors ask."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` from the file. Returns the number of bytes, which is 0 at the end."""
        with reading_errors(self._path):
            n: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        self._wait(0)
        self._digest.update(memoryview(buffer)[:n])
        return n

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes of the file, and none at its end."""
        with reading_errors(self._path):
            data = self._file.read(size)
        self._wait(_WAITING if len(data) >= _CHUNK else 0)
        if len(data) >= _CHUNK:
            self._under_way.append(self._thread.submit(self._digest.update, data))
        else:
            self._digest.update(data)
        return data

    def whole_lines(self, size: int) -> int:
        """Bytes to read so that they end with a line. About `size`; that many if no line ends soon behind them."""
        place = self._file.tell() + size
        with reading_errors(self._path):
            end = os.pread(self._file.fileno(), _LOOK, place - 1).find(b"\n")
        return size + max(end, 0)

    def finish(self) -> str:
        """Hash the bytes that the decompressor did not read. Returns the digest of the whole file."""
        while self.read(_CHUNK):
            pass
        self._wait(0)
        return self._digest.hexdigest()

    def _wait(self, most: int) -> None:
        """Wait until at most so many reads are still to be hashed."""
        while len(self._under_way) > most:
            self._under_way.popleft().result()


@contextmanager
def hashed(path: Path) -> Iterator[FileHash]:
    """Open a file that is hashed while it is read."""
    with open_file(path) as file, ThreadPoolExecutor(1) as thread:
        yield FileHash(file, path, thread)


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn errors of the disk or the file system while a file is read into a sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error}); copy it to another disk") from error


def open_file(path: Path) -> IO[bytes]:
    """Open an input file. It is refused if it does not exist, is no regular file, or may not be read."""
    try:
        if not path.exists():
            raise InputError(f"{path} does not exist; check the name of the input file")
        if not path.is_file():
            raise InputError(
                f"{path} is not a regular file; name a file, or pipe the edges into the command and name -"
            )
        return open_regular(path)
    except OSError as error:
        raise InputError(f"{path} cannot be opened ({error.strerror}); check its permissions") from error


def plain_name(path: Path) -> str:
    """The file's name in lower case, without a compression suffix."""
    name = path.name.lower()
    return name.removesuffix(path.suffix.lower()) if path.suffix.lower() in COMPRESSIONS else name


def suffix_of(start: bytes) -> str:
    """Suffix of the compression that the first bytes of a file show. Empty if they show none."""
    return next((suffix for magic, suffix in _MAGIC.items() if start.startswith(magic)), "")


@contextmanager
def decompressed(path: Path, file: FileHash) -> Iterator[IO[bytes] | FileHash]:
    """The decompressed bytes. Errors of the decompressor become errors that tell the user what to do."""
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression is None:
        yield file
        return
    try:
        with _decompressor(compression, io.BufferedReader(file, _CHUNK)) as stream:
            yield stream
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, EOFError) or "Truncated" in str(error):
            remedy = f"ends in the middle of its {compression} stream (truncated); copy or download it again"
        else:
            remedy = f"is not a whole {compression} file ({error}); copy it again, or rename it if it is something else"
        raise InputError(f"{path} {remedy}") from error


def _decompressor(compression: str, raw: IO[bytes]) -> Any:
    """The decompressor. Each of them reads several streams in a row, and refuses bytes behind the last."""
    if compression == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if compression == "xz":
        return io.BufferedReader(_XzFile(raw), _CHUNK)
    return pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd" if compression == "zstd" else "bz2")


class _XzFile(io.RawIOBase):
    """The decompressed bytes of all streams of an xz file, which may be padded with zeros.

    `lzma.LZMAFile` silently stops at bytes that are no stream, so half a file would be taken for the whole.
    """

    def __init__(self, raw: IO[bytes]):
        self._raw, self._stream = raw, lzma.LZMADecompressor(lzma.FORMAT_XZ)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = held = b""
        while not data:
            if self._stream.eof:
                held = self._stream.unused_data.lstrip(b"\0")
                while not held:
                    if not (read := self._raw.read(_CHUNK)):
                        return 0
                    held = read.lstrip(b"\0")
                self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
            elif self._stream.needs_input and not (held := self._raw.read(_CHUNK)):
                raise EOFError("the file ends inside a stream")
            data, held = self._stream.decompress(held, len(buffer)), b""
        buffer[: len(data)] = data
        return len(data)
