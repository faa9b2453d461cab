"""Writes a part again without some of its rows, by its pages: nothing is laid out as members or labels.

Dictionaries are copied, and codes are packed anew without those of the rows that go. A row group that keeps all of its
rows is copied as it is. This takes half of the time of Arrow, which looks every member up in a new dictionary.
"""

from __future__ import annotations

import zlib
from itertools import compress, pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bicliques.kernels.compiled import parquet_pages as pages
from bicliques.pipeline.compare.thrift import BINARY, I32, I64, LIST, STRUCT, Struct, read_struct, varint, write_struct
from bicliques.pipeline.proof.coded_groups import levels_of, pages_of
from bicliques.schemas.dtypes import OFFSET

_MAGIC = b"PAR1"
# numbers of fields: of the file, of a row group, of a column, and of what is told of a column
_ROWS_OF_FILE, _GROUPS = 3, 4
_COLUMNS, _BYTES, _ROWS, _BEGIN, _STORED, _NUMBER = 1, 2, 3, 5, 6, 7
_TOLD, _INDEXES = 3, (4, 5, 6, 7)
_TYPE, _PATH, _CODEC, _VALUES, _SIZE, _LENGTH, _DATA, _DICTIONARY, _STATISTICS, _COUNTS = (
    1,
    3,
    4,
    5,
    6,
    7,
    9,
    11,
    12,
    (13, 16),
)
_MOST, _LEAST = (1, 5), (2, 6)  # of statistics; each has an older and a newer field
#: Bytes of an entry of a dictionary, by its type. Others are texts.
_WIDTHS = {1: 4, 2: 8}
_PLAIN, _BY_DICTIONARY, _RUNS, _NONE, _ZSTD = 0, 8, 3, 0, 6
#: Codes are packed bits, of which zstd saves a tenth. Higher levels save hardly more.
_LEVEL = 1


def write_without(
    stored: Any, n_bytes: int, out: Any, ids: np.ndarray, stays: np.ndarray, now: tuple[np.ndarray, np.ndarray] | None
) -> bool:
    """Write those rows of a part that stay. Returns False if the part is written in another way than by `PartWriter`.

    Parameters
    ----------
    stored : file
        The part, which Arrow can read.
    n_bytes : int
        Its length.
    out : file
        Where the new part goes, from its beginning.
    ids : ndarray, uint64
        The ids of the rows.
    stays : ndarray of bool
        Which rows stay. At least one does.
    now : (ndarray, ndarray) or None
        By side, dense ids by those of the part, in the same order. None: labels or ids stay.

    Raises
    ------
    OSError, ValueError
        The part cannot be read, or is damaged.
    """
    stored.seek(n_bytes - 8)
    length = int.from_bytes(stored.read(4), "little")
    stored.seek(n_bytes - 8 - length)
    footer, _ = read_struct(stored.read(length))
    at, first = out.write(_MAGIC), 0
    kept: list[Struct] = []
    for group in footer[_GROUPS][1][1]:
        n = group[_ROWS][1]
        rows = slice(first, first + n)
        first += n
        if not stays[rows].any():
            continue
        begin, size = at, 0
        for k, column in enumerate(group[_COLUMNS][1][1]):
            told: Struct = column[_TOLD][1]
            start = told.get(_DICTIONARY, told[_DATA])[1]
            stored.seek(start)
            own = [stored.read(told[_LENGTH][1])]
            if now is not None or not stays[rows].all():
                edited = _edited(
                    own[0], told, stays[rows], ids[rows], now[k - 1] if now is not None and k in (1, 2) else None
                )
                if edited is None:
                    return False
                own = edited
            for field in (_DATA, _DICTIONARY):
                if field in told:
                    told[field] = I64, told[field][1] + at - start
            for field in _INDEXES:  # those of the pages are not written
                column.pop(field, None)
            at += sum(map(out.write, own))
            size += told[_SIZE][1]
        group |= {_ROWS: (I64, int(np.count_nonzero(stays[rows]))), _BYTES: (I64, size), _BEGIN: (I64, begin)}
        group |= {_STORED: (I64, at - begin), _NUMBER: (4, len(kept))}
        kept.append(group)
    footer |= {_ROWS_OF_FILE: (I64, int(np.count_nonzero(stays))), _GROUPS: (LIST, (STRUCT, kept))}
    end = write_struct(footer)
    out.write(end + len(end).to_bytes(4, "little") + _MAGIC)
    return True


def _edited(own: bytes, told: Struct, stays: np.ndarray, ids: np.ndarray, now: np.ndarray | None) -> list[bytes] | None:
    """The pages of a column without rows, of which `told` is made to tell. None: it is written in another way."""
    n_rows, n_values, codec = len(stays), told[_VALUES][1], told[_CODEC][1]
    if told[_PATH][1][1] == [b"id"]:
        own_ids = ids[stays]
        return _tell(told, [_page(own_ids.tobytes(), len(own_ids), _PLAIN, None)]) if codec == _NONE else None
    if _DICTIONARY not in told or codec != _ZSTD:
        return None
    is_list, zstd = len(told[_PATH][1][1]) > 1, pa.Codec("zstd", _LEVEL)
    starts = np.empty(n_rows + 1, OFFSET) if is_list else np.arange(n_rows + 1)
    kept: list[tuple[int, int, np.ndarray, np.ndarray]] = []  # of each page: values, bits of a code, levels, codes
    dictionary = None
    seen = rows = 0
    for page in pages_of(own, n_values):
        if page is None or page.is_dictionary == (dictionary is not None):
            return None
        if dictionary is None:
            dictionary, used = page, np.zeros(page.n, np.bool_)
            continue
        if is_list:
            at, begun = levels_of(page.content, page.n, seen, starts, rows)
            starts[begun] = n_values + 1  # behind all values, until the next page says where the next row begins
        else:
            at, begun = 0, rows + page.n
        words, width = page.content[: len(page.content) & ~7].view(np.uint64), int(page.content[at])
        if width > 32 or begun > n_rows:
            raise ValueError("a page has codes of too many bits, or too many")
        row = rows if rows < begun and starts[rows] == seen else rows - 1
        levels, packed = np.full((page.n + 7) // 8, 255, np.uint8), np.zeros(page.n * width // 64 + 2, np.uint64)
        n = pages.keep_rows(words, page.content, at + 1, width, page.n, seen, starts, row, stays, levels, packed)
        if n == pages.DAMAGED or pages.note_codes(packed, packed.view(np.uint8), width, n, used) == pages.DAMAGED:
            raise ValueError("a page has codes that its dictionary does not have, or too few")
        if n > 0:
            kept.append((n, width, levels, packed))
        rows, seen = begun, seen + page.n
    if rows != n_rows or seen != n_values or not used.any():
        raise ValueError(f"a row group holds {rows} rows and {seen} values instead of {n_rows} and {n_values}")
    assert dictionary is not None
    entries = _entries(dictionary.content.tobytes(), used, _WIDTHS.get(told[_TYPE][1]), now)
    n_used = int(np.count_nonzero(used))
    made, numbers = [_page(entries, n_used, None, zstd)], np.cumsum(used, dtype=np.uint64) - np.uint64(1)
    for n, width, levels, packed in kept:
        codes = packed
        if n_used < len(used):
            codes = np.zeros_like(packed)
            pages.renumber_codes(packed, packed.view(np.uint8), width, n, numbers, codes)
        coded = bytes([width]) + _packed_run(n, codes.view(np.uint8)[: (n + 7) // 8 * width])
        heads = (_packed_run(n, levels[: (n + 7) // 8]), varint(n << 1) + b"\1") if is_list else ()
        written = b"".join([*(len(head).to_bytes(4, "little") + head for head in heads), coded])
        made.append(_page(written, n, _BY_DICTIONARY, zstd))
    if _STATISTICS in told:
        sizes, known = np.frombuffer(entries, np.int32), told[_STATISTICS][1]
        for fields, value in ((_MOST, sizes.max()), (_LEAST, sizes.min())):
            known |= {field: (BINARY, value.tobytes()) for field in fields if field in known}
    told[_DATA] = I64, told[_DICTIONARY][1] + len(made[0].stored)
    return _tell(told, made)


def _entries(stored: bytes, used: np.ndarray, width: int | None, now: np.ndarray | None) -> bytes:
    """The entries of a dictionary that rows use. Any other could be a label that the input lacks."""
    if width is not None:
        values = np.frombuffer(stored, f"i{width}")[used]
        return (values if now is None else now[values]).tobytes()
    ends = [0]
    for _ in range(len(used)):  # each text has its length in front
        ends.append(ends[-1] + 4 + int.from_bytes(stored[ends[-1] : ends[-1] + 4], "little"))
    return b"".join(stored[begin:end] for begin, end in compress(pairwise(ends), used))


def _packed_run(n: int, packed: np.ndarray) -> bytes:
    """A run of n values as packed bits."""
    return varint(-(-n // 8) << 1 | 1) + packed.tobytes()


class _Page(NamedTuple):
    """A page as it is stored, the length that it would have if it were not compressed, and its number of values."""

    stored: bytes
    size: int
    n: int


def _page(content: bytes, n: int, encoding: int | None, codec: pa.Codec | None) -> _Page:
    """A page of n values, or a dictionary if there is no encoding."""
    packed = content if codec is None else codec.compress(content, asbytes=True)
    checksum = int(np.uint32(zlib.crc32(packed)).astype(np.int32))
    told = {1: (I32, n), 2: (I32, _PLAIN if encoding is None else encoding)}
    if encoding is not None:
        told |= {3: (I32, _RUNS), 4: (I32, _RUNS)}
    head: Struct = {1: (I32, 2 if encoding is None else 0), 2: (I32, len(content)), 3: (I32, len(packed))}
    written = write_struct(head | {4: (I32, checksum), 7 if encoding is None else 5: (STRUCT, told)})
    return _Page(written + packed, len(written) + len(content), 0 if encoding is None else n)


def _tell(told: Struct, made: list[_Page]) -> list[bytes]:
    """Have the sizes of these pages told. Returns the pages."""
    for field in _COUNTS:
        told.pop(field, None)
    told |= {_VALUES: (I64, sum(page.n for page in made)), _SIZE: (I64, sum(page.size for page in made))}
    told[_LENGTH] = I64, sum(len(page.stored) for page in made)
    return [page.stored for page in made]
