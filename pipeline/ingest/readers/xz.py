"""Reads xz files to the last byte. Bytes behind a stream that are not another stream are damage.

`lzma.LZMAFile` silently stops there, so half a file would be taken for the whole.
"""

from __future__ import annotations

import io
import lzma
from typing import IO, Any

__all__ = ["XzFile"]

_CHUNK = 1 << 20


class XzFile(io.RawIOBase):
    """The decompressed bytes of all streams of a file, which may be padded with zeros.

    Raises (when read)
    ------------------
    EOFError
        The file ends inside a stream.
    lzma.LZMAError
        The file is damaged.
    """

    def __init__(self, raw: IO[bytes]):
        self._raw = raw
        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        self._held = b""  # bytes that were read and not yet given to the stream

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a part of `buffer`. Returns the number of bytes, which is 0 at the end of the last stream."""
        data = b""
        while not data:
            if self._stream.eof and not self._next_stream():
                return 0
            data = self._stream.decompress(self._more() if self._stream.needs_input else b"", len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _next_stream(self) -> bool:
        rest = self._stream.unused_data.lstrip(b"\0")
        while not rest:
            read = self._raw.read(_CHUNK)
            if not read:
                return False
            rest = read.lstrip(b"\0")
        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        self._held = rest
        return True

    def _more(self) -> bytes:
        data, self._held = self._held or self._raw.read(_CHUNK), b""
        if not data:
            raise EOFError("the file ends inside a stream")
        return data
