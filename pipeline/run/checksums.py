"""CRC-32 of files, whose pieces are read on several threads."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bicliques.pipeline.process.cores import count_cores
from bicliques.schemas.regular_files import open_regular

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

    Raises
    ------
    OSError
        If a file cannot be read.
    """
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
