"""xz files to the last byte: what follows a stream and is not another one is damage, not the end.

`lzma.LZMAFile` stops there without a word, and would take half a file for the whole.
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
        If the file ends inside a stream.
    lzma.LZMAError
        If it is damaged.
    """

    def __init__(self, raw: IO[bytes]):
        self._raw = raw
        self._stream = lzma.LZMADecompressor(lzma.FORMAT_XZ)
        self._held = b""  # read, and not yet given to the stream

    def readable(self) -> bool:
        """It always is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` as far as the next bytes of the file do; 0 at the end of the last stream."""
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
