"""Text files read on a device, block by block.

A block that is not plain (`plain_text`) has comments, quotes, blanks or a bad line. The host's reader parses it, and
says what is wrong with it.
"""

from __future__ import annotations

import mmap
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from bicliques.pipeline.ingest.gpu.arrays import Arrays
from bicliques.pipeline.ingest.gpu.plain_text import parse_plain
from bicliques.pipeline.ingest.readers.blocks import block_of, blocks, refuse_long_lines
from bicliques.pipeline.ingest.readers.edge_list import EdgeList
from bicliques.pipeline.ingest.readers.opening import COMPRESSIONS, Digest, digest_on_all_cores, hashed, open_file
from bicliques.pipeline.ingest.readers.text import TextStream
from bicliques.schemas.errors import InputError

#: Bytes of a block. A device needs long blocks, and several of them to overlap reading with parsing.
BLOCK_BYTES = 256 << 20
#: Bytes that are read from a compressed file at a time. Decompression takes most of the time there.
DECOMPRESSED_BYTES = 64 << 20

#: A block that is not plain is cut into so many pieces, down to so many bytes, before the host reads it.
_PIECES, PIECE_BYTES = 16, 4 << 20
#: Bytes in which the end of a line is searched.
LOOK = 1 << 16
_MARK = b"\xef\xbb\xbf"


def text_batches(stream: TextStream, arrays: Arrays, most: int) -> Iterator[tuple[Any, Any]]:
    """Labels of both sides, batch after batch, as columns on the device. It counts what `TextStream.chunks` counts.

    Parameters
    ----------
    stream : TextStream
    arrays : Arrays
    most : int
        Bytes of a block that the device has room for.

    Raises
    ------
    InputError
        A line is bad, and bad lines are not skipped.
    """
    if stream.path.suffix.lower() in COMPRESSIONS:
        with hashed(stream.path) as file:
            for block in blocks(stream.path, file, min(DECOMPRESSED_BYTES, most)):
                yield from _batches(stream, arrays, block.number, memoryview(block.data))
            stream.stored = file.finish()
        return
    with open_file(stream.path) as file:
        if stream.path.stat().st_size == 0:
            raise InputError(f"{stream.path} is empty; name a file that holds edges")
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    digest, number = digest_on_all_cores(), 1
    updates: list[Future[Any]] = []
    hashing = ThreadPoolExecutor(1)  # hashes every block while the device works on it
    try:
        for text in _pieces(whole, min(BLOCK_BYTES, most)):
            refuse_long_lines(stream.path, number, text)
            number += yield from _batches(stream, arrays, number, text)
            updates.append(hashing.submit(digest.update, text))
        stream.stored = hashing.submit(_finished, digest, updates)
    finally:
        hashing.shutdown(wait=False)


def _batches(
    stream: TextStream, arrays: Arrays, number: int, text: memoryview
) -> Generator[tuple[Any, Any], None, int]:
    """Left and right labels of whole lines from line `number` on. Returns the number of lines."""
    start, n_lines = _head(stream, number, text)
    plain = parse_plain(stream, arrays, text[start:]) if start < len(text) else None
    if plain is not None:
        stream.rows += (n := arrays.rows(plain[0]))
        yield plain
        return n_lines + n
    pieces = list(_pieces(text, max(len(text) // _PIECES, 1))) if len(text) > PIECE_BYTES else []
    if len(pieces) > 1:  # most of it may still be plain
        first = number
        for piece in pieces:
            number += yield from _batches(stream, arrays, number, piece)
        return number - first
    data = bytes(text)
    block = block_of(stream.path, number, data if data.endswith(b"\n") else data + b"\n")
    for batch in stream.batches_of(block.starting_at(stream.first_line)):
        if len(batch):
            stream.rows += len(batch)
            yield arrays.from_arrow(batch["left"]), arrays.from_arrow(batch["right"])
    return block.data.count(b"\n")


def _head(stream: TextStream, number: int, text: memoryview) -> tuple[int, int]:
    """Where the edges begin, behind a byte order mark, a header and comments, and how many lines are before them."""
    comment = stream.comment.encode() if isinstance(stream, EdgeList) else None
    start, lines = len(_MARK) if number == 1 and text[: len(_MARK)] == _MARK else 0, 0
    while start < len(text):
        is_comment = comment is not None and text[start : start + len(comment)] == comment
        if number + lines >= stream.first_line and not is_comment:
            break
        start = _line_end(text, start)
        lines += 1
    return start, lines


def _line_end(text: memoryview, start: int) -> int:
    """Position where the next line begins."""
    while start < len(text):
        some = bytes(text[start : start + LOOK])
        end = some.find(b"\n")
        if end >= 0:
            return start + end + 1
        start += len(some)
    return start


def _pieces(text: memoryview, size: int) -> Iterator[memoryview]:
    start = 0
    while start < len(text):
        stop = _line_end(text, min(start + size, len(text)) - 1)
        yield text[start:stop]
        start = stop


def _finished(digest: Digest, updates: list[Future[Any]]) -> str:
    """The digest. Raises the error of a block that could not be hashed."""
    for update in updates:
        update.result()
    return digest.hexdigest()
