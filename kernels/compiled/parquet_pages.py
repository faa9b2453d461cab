"""Decodes pages of Parquet, of list columns whose values are coded by a dictionary, and sums the hashes of each list.

It follows the description of the format (https://parquet.apache.org/docs/file-format). Page headers are structs of
Thrift's compact protocol. Levels and codes are runs of one value mixed with bit-packed groups of eight. Whatever a
buffer holds, nothing outside it is read: every function returns `DAMAGED` instead.
"""

from __future__ import annotations

import numpy as np

from bicliques.kernels.compiled.jit import compiled, entry
from bicliques.kernels.compiled.searching import mixed

#: What the functions return when a buffer is not as the format has it.
DAMAGED = -1
#: See `sum_codes`.
UNSORTED = -2

#: Number of fields that `page_header` fills.
HEADER_FIELDS = 8
#: Structs inside one another in the header of a page.
_DEEPEST = 8
_STRUCT, _BINARY, _DOUBLE, _BYTE = 12, 8, 7, 3


@compiled
def _varint(buffer: np.ndarray, at: int, end: int) -> tuple[int, int]:
    """An unsigned number of 7 bits per byte, and the position behind it, `DAMAGED` if it does not end."""
    value, shift = np.uint64(0), np.uint64(0)
    while at < end and shift < 64:
        byte = np.uint64(buffer[at])
        at += 1
        value |= (byte & np.uint64(127)) << shift
        if byte < 128:
            return int(np.int64(value)), at
        shift += np.uint64(7)
    return 0, DAMAGED


@entry
def page_header(buffer: np.ndarray, at: int, found: np.ndarray) -> int:
    """Read the header of a page.

    Parameters
    ----------
    buffer : ndarray of uint8
    at : int
        Where the header begins.
    found : ndarray of int64, shape (16,)
        Output, in the first 8: kind of the page, sizes of its content before and after compression, its CRC-32, number
        of values, and encodings of values and of both levels. -1 where the header has no such field.

    Returns
    -------
    int
        Where the content begins, or `DAMAGED`.
    """
    end = len(buffer)
    for k in range(HEADER_FIELDS):
        found[k] = -1
    fields = found[HEADER_FIELDS:]  # the last field of each struct that is open
    fields[0] = depth = 0
    while at < end:
        head = np.int64(buffer[at])
        at += 1
        if head == 0:  # the end of a struct
            if depth == 0:
                return at
            depth -= 1
            continue
        kind = head & 15
        if head >> 4:
            fields[depth] += head >> 4
        else:
            number, at = _varint(buffer, at, end)
            if at < 0:
                return DAMAGED
            fields[depth] = (number >> 1) ^ -(number & 1)
        if kind in (1, 2):  # a truth value, which has no bytes of its own
            continue
        if kind == _STRUCT:
            depth += 1
            if depth == _DEEPEST:
                return DAMAGED
            fields[depth] = 0
        elif kind == _BYTE:
            at += 1
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BINARY:
            length, at = _varint(buffer, at, end)
            if at < 0 or length < 0 or length > end - at:
                return DAMAGED
            at += length
        elif 4 <= kind <= 6:
            number, at = _varint(buffer, at, end)
            if at < 0:
                return DAMAGED
            number = (number >> 1) ^ -(number & 1)
            if depth == 0 and fields[0] == 1:
                found[0] = number
            elif depth == 0 and 2 <= fields[0] <= 4:
                found[fields[0] - 1] = number
            elif depth == 1 and fields[0] in (5, 7) and 1 <= fields[1] <= 4:  # of a page of values or a dictionary
                found[fields[1] + 3] = number
        else:  # a page header has no lists
            return DAMAGED
    return DAMAGED


@entry
def row_starts(buffer: np.ndarray, at: int, end: int, values: int, first: int, starts: np.ndarray, row: int) -> int:
    """Find where rows begin, from the levels of repetition of a page: 0 begins a row, 1 continues it.

    Parameters
    ----------
    buffer : ndarray of uint8
    at, end : int
        Where the levels begin and end.
    values : int
        Number of values of the page.
    first : int
        Number of values of earlier pages.
    starts : ndarray of int64, shape (rows + 1,)
        Output: number of the first value of each row.
    row : int
        Number of rows that began in earlier pages.

    Returns
    -------
    int
        Number of rows that have begun, or `DAMAGED`: there are too many rows, or the levels are no levels.
    """
    done, most = 0, len(starts) - 1
    while done < values:
        head, at = _varint(buffer, at, end)
        if at < 0 or head < 0:
            return DAMAGED
        n = head >> 1
        if head & 1:
            if n > end - at:
                return DAMAGED
            for k in range(n):
                packed, left = int(buffer[at + k]), min(8, values - done)
                if packed == 255:  # no row begins here
                    done += left
                    continue
                if row + left > most:  # perhaps too many: look at each
                    for bit in range(left):
                        if (packed >> bit) & 1 == 0:
                            if row == most:
                                return DAMAGED
                            starts[row] = first + done + bit
                            row += 1
                else:
                    for bit in range(left):
                        starts[row] = first + done + bit
                        row += 1 - ((packed >> bit) & 1)
                done += left
            at += n
        else:
            n = min(n, values - done)
            if at >= end or buffer[at] > 1 or n == 0:
                return DAMAGED
            if buffer[at] == 0:
                if row + n > most:
                    return DAMAGED
                for k in range(n):
                    starts[row + k] = first + done + k
                row += n
            at += 1
            done += n
    return row


@entry
def all_ones(buffer: np.ndarray, at: int, end: int, values: int) -> int:
    """1 if so many levels are all 1, otherwise 0. If they are, no list is empty, and no value is missing."""
    done = 0
    while done < values:
        head, at = _varint(buffer, at, end)
        if at < 0 or head < 0:
            return 0
        n = head >> 1
        if head & 1:
            if n > end - at:
                return 0
            for k in range(n):
                left = min(8, values - done)
                if np.int64(buffer[at + k]) & ((1 << left) - 1) != (1 << left) - 1:
                    return 0
                done += left
            at += n
        else:
            if at >= end or buffer[at] != 1 or n == 0:
                return 0
            at += 1
            done += n
    return 1


@compiled
def _bits_at(words: np.ndarray, buffer: np.ndarray, bit: int) -> np.uint64:
    """The bits from the bit numbered `bit` on, at least 57 if the buffer has so many. `words` are its first bytes."""
    word = bit >> 6
    if word + 1 < len(words):
        shift = np.uint64(bit & 63)
        return words[word] >> shift | words[word + 1] << np.uint64(1) << (np.uint64(63) - shift)
    value, first = np.uint64(0), bit >> 3
    for k in range(min(8, len(buffer) - first)):
        value |= np.uint64(buffer[first + k]) << np.uint64(8 * k)
    return value >> np.uint64(bit & 7)


@entry
def sum_codes(
    data: tuple[np.ndarray, np.ndarray],
    page: tuple[int, int, int, int],
    rows: tuple[np.ndarray, int],
    codes: tuple[np.ndarray, np.ndarray],
    previous: np.ndarray,
    occurrences: np.ndarray,
    sums: np.ndarray,
) -> int:
    """Sum hashes modulo 2**64, row by row, over the values of a page. Vertices have to ascend within a row.

    Parameters
    ----------
    data : (ndarray of uint64, ndarray of uint8)
        The page as words, without the bytes that do not fill one, and as bytes. Words are read faster.
    page : (int, int, int, int)
        Where the codes begin, which go to the end of the bytes; bits of a code, 0 to 32; number of values of the page,
        and of earlier pages.
    rows : (ndarray of int64, shape (rows + 1,), int)
        Number of the first value of each row, of which the last is larger than all; and number of the row of the last
        value of earlier pages, -1 if there is none.
    codes : (ndarray of int32, ndarray of uint64)
        Vertex and hash by code.
    previous : ndarray of int64, shape (1,)
        Vertex of the last value of earlier pages. The last one of this page takes its place.
    occurrences : ndarray of int64
        Occurrences of each code; those found here are added.
    sums : ndarray of uint64, shape (rows,)
        Output; the sums of the page are added.

    Returns
    -------
    int
        Number of the row of the last value, or `DAMAGED`. `UNSORTED` less the number of the first row whose vertices
        do not ascend, if there is one.
    """
    (words, buffer), (ids, hashes), (starts, row) = data, codes, rows
    at, width, values, first = page
    end, known, done = len(buffer), np.uint64(len(hashes)), 0
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    total = np.uint64(0)
    border = starts[row + 1]
    before = previous[0]
    while done < values:
        head, at = _varint(buffer, at, end)
        if at < 0 or head < 0:
            return DAMAGED
        n = head >> 1
        if head & 1:
            if n == 0 or (width > 0 and n > (end - at) // width):
                return DAMAGED
            until = at + n * width
            n = min(8 * min(n, values), values - done)
            bit = 8 * at
            for k in range(n):
                code = _bits_at(words, buffer, bit) & mask
                bit += width
                if code >= known:
                    return DAMAGED
                if first + done + k == border:
                    if row >= 0:
                        sums[row] += total
                    total = np.uint64(0)
                    row += 1
                    border = starts[row + 1]
                    before = np.int64(-1)
                vertex = np.int64(ids[code])
                if vertex <= before:
                    return UNSORTED - row
                before = vertex
                total += hashes[code]
                occurrences[code] += 1
            at = until
        else:
            n = min(n, values - done)
            code, bytes_of_code = np.uint64(0), (width + 7) // 8
            if n == 0 or bytes_of_code > end - at:
                return DAMAGED
            for j in range(bytes_of_code):
                code |= np.uint64(buffer[at + j]) << np.uint64(8 * j)
            if code >= known:
                return DAMAGED
            at += bytes_of_code
            for k in range(n):
                if first + done + k == border:
                    if row >= 0:
                        sums[row] += total
                    total = np.uint64(0)
                    row += 1
                    border = starts[row + 1]
                    before = np.int64(-1)
                vertex = np.int64(ids[code])
                if vertex <= before:
                    return UNSORTED - row
                before = vertex
                total += hashes[code]
            occurrences[code] += n
        done += n
    if row >= 0:
        sums[row] += total
    previous[0] = before
    return row


@entry
def combine(left: np.ndarray, right: np.ndarray) -> None:
    """Turn the sums of the left side (uint64) into the hashes of rows, with those of the right side."""
    for row in range(len(left)):
        left[row] = mixed(left[row], right[row])
