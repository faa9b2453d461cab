"""Reads text files in blocks of whole lines.

At most a block and a line of `LINE_BYTES` are in memory, whatever the size of the file. Line ends become LF, a UTF-8
byte order mark is dropped, and the last line gets a line end if it lacks one.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bicliques.pipeline.ingest.readers.opening import FileHash, decompressed, hashed
from bicliques.schemas.errors import InputError, as_option

#: Bytes of text that are parsed at a time, by each thread. What is made of them stays in the caches of a core.
BLOCK_BYTES = 2 << 20

#: A longer line or label is refused, because the file is mostly a binary file then.
LINE_BYTES = 16 << 20

#: Bytes in which a line end is searched.
LOOK = 1 << 16

#: The byte order mark of UTF-8.
MARK = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Block:
    """Whole lines of a text file, each with its LF. `number` is that of the first one, from 1.

    If it is `torn`, the first line is a part of a longer line, whose other parts are in blocks of the same number.
    """

    number: int
    data: bytes
    torn: bool = False

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Every line with its number, without its LF."""
        for number, line in enumerate(io.BytesIO(self.data), self.number):
            yield number, line[:-1]

    def pieces(self, size: int) -> Iterator[Block]:
        """The same lines in blocks of about `size` bytes."""
        start, number = 0, self.number
        while start < len(self.data):
            stop = self.data.find(b"\n", min(start + size, len(self.data) - 1)) + 1
            yield Block(number, self.data[start:stop], self.torn and start == 0)
            number += self.data.count(b"\n", start, stop)
            start = stop

    def starting_at(self, number: int) -> Block:
        """The block without the lines before line `number`."""
        start = 0
        if number > self.number and self.number + _count_lines(self.data, len(self.data)) <= number:
            return Block(number, b"")  # of many blocks before that line none is looked at line by line
        for _ in range(self.number, number):
            start = self.data.find(b"\n", start) + 1
        return self if start == 0 else Block(number, self.data[start:])


def beginning(path: Path) -> bytes:
    """The first bytes of a file, decompressed, without a byte order mark."""
    with hashed(path) as file, decompressed(path, file) as stream:
        return _without_mark(stream.read(64), path)


def numbered_lines(path: Path) -> Generator[tuple[int, bytes]]:
    """Every line of a file with its number, from 1, without its line end. Lines are read as the caller needs them.

    A block of blank lines is left out, because a file may begin with millions of them.
    """
    with hashed(path) as file, closing(blocks(path, file, min(LOOK, BLOCK_BYTES))) as parts:
        for block in parts:
            if not block.data.isspace():
                yield from block.lines()


def blocks(path: Path, file: FileHash, size: int | None = None, tear: bool = False) -> Generator[Block]:
    """Blocks of about `size` bytes (`BLOCK_BYTES`), in order. With `tear`, long lines are cut at blanks into parts.

    InputError: the file is empty, UTF-16, or damaged, or a line (with `tear`, a word) is longer than `LINE_BYTES`.
    """
    size = size or BLOCK_BYTES
    with decompressed(path, file) as stream:
        rest, number, torn = b"", 1, False
        as_whole_lines = isinstance(stream, FileHash) and not tear  # which need no copy
        while data := stream.read(file.whole_lines(size) if as_whole_lines else size):
            data = rest + data if rest else data
            cut = data.rfind(b"\n") + 1
            if not tear:
                refuse_long_lines(path, number, memoryview(data))
            if cut:
                yield block_of(path, number, data[:cut], torn)
                number, torn = number + _count_lines(data, cut), False
            rest = data[cut:]
            if tear and len(rest) >= size and (cut := max(rest.rfind(b" "), rest.rfind(b"\t"))) > 0:
                yield block_of(path, number, rest[:cut] + b"\n", True)
                rest, torn = rest[cut:], True
            if len(rest) > LINE_BYTES:
                raise long_line(path, number)
        if rest:
            yield block_of(path, number, rest + b"\n", torn)
        elif number == 1:
            raise InputError(f"{path} is empty; name a file that holds edges")


def _count_lines(data: bytes, stop: int) -> int:
    """The number of line ends before `stop`. With short lines this is ten times as fast as `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, stop) == ord("\n")))


def refuse_long_lines(path: Path, number: int, text: memoryview) -> None:
    """Refuse a line that is longer than `LINE_BYTES`. It only reads the end of every `LINE_BYTES` of `text`.

    `number` is that of the first line.
    """
    start = 0
    while len(text) - start > LINE_BYTES:
        stop = _last_line_end(text, start, start + LINE_BYTES + 1)
        if stop is None:
            raise long_line(path, number + bytes(text[:start]).count(b"\n"))
        start = stop


def _last_line_end(text: memoryview, start: int, stop: int) -> int | None:
    """Position of the last line that begins up to `stop`. None if it is not behind `start`."""
    while stop > start:
        look = max(start, stop - LOOK)
        end = bytes(text[look:stop]).rfind(b"\n")
        if end >= 0:
            return look + end + 1
        stop = look
    return None


def long_line(path: Path, number: int) -> InputError:
    """The error for a line that is longer than `LINE_BYTES`."""
    return InputError(
        f"{path}, line {number}: the line is longer than {LINE_BYTES >> 20} MiB; this looks like a binary file, so "
        f"name another one or its {as_option('format')}"
    )


def block_of(path: Path, number: int, data: bytes, torn: bool = False) -> Block:
    """A block of whole lines from line `number` on, with LF for every line end and no byte order mark."""
    if number == 1:
        data = _without_mark(data, path)
    return Block(number, data.replace(b"\r\n", b"\n") if b"\r" in data else data, torn)


def _without_mark(data: bytes, path: Path) -> bytes:
    if data.startswith(_UTF16):
        raise InputError(f"{path} is UTF-16 text; convert it to UTF-8, for example with iconv -f UTF-16 -t UTF-8")
    return data.removeprefix(MARK)
