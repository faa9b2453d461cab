"""Writes a part again without some of its rows, by its pages: nothing is laid out as members or labels.

Dictionaries are copied, and codes are packed anew without those of the rows that go. A row group that keeps all of its
rows is copied as it is. This takes a fifth of the time of Arrow, which looks every member up in a new dictionary.
"""

from __future__ import annotations

import zlib
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
_PATH, _CODEC, _VALUES, _SIZE, _LENGTH, _DATA, _DICTIONARY, _STATISTICS, _COUNTS = 3, 4, 5, 6, 7, 9, 11, 12, (13, 16)
_MOST, _LEAST = (1, 5), (2, 6)  # of statistics; each has an older and a newer field
_PLAIN, _BY_DICTIONARY, _RUNS, _NONE, _ZSTD = 0, 8, 3, 0, 6
#: Codes are packed bits, of which zstd saves a tenth. Higher levels save hardly more.
_LEVEL = 1
#: So many labels that are gone are not looked for.
_MANY_LABELS = 100


class Changes(NamedTuple):
    """How the vertices of one side are called in the new part.

    Parameters
    ----------
    now : ndarray of int32, or None
        Dense ids by those of the part, in the same order, -1 for vertices that are gone. None: all keep their names.
    gone : list of bytes
        Labels that are gone, as a dictionary has them. No row that stays has one.
    """

    now: np.ndarray | None
    gone: list[bytes]


def write_without(
    stored: Any, n_bytes: int, out: Any, ids: np.ndarray, stays: np.ndarray, sides: tuple[Changes, Changes]
) -> bool:
    """Write those rows of a part that stay. Returns False if the part is written in another way than by `PartWriter`,
    or if a dictionary has a label that is gone, and has to be made anew.

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
    sides : (Changes, Changes)

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
            if sides[0].now is not None or not stays[rows].all():
                edited = _edited(own[0], told, stays[rows], ids[rows], sides[k - 1] if k in (1, 2) else None)
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


def _edited(own: bytes, told: Struct, stays: np.ndarray, ids: np.ndarray, side: Changes | None) -> list[bytes] | None:
    """The pages of a column without rows, of which `told` is made to tell. None: it is written in another way."""
    n_rows, n_values, codec = len(stays), told[_VALUES][1], told[_CODEC][1]
    if told[_PATH][1][1] == [b"id"]:
        own_ids = ids[stays]
        return _tell(told, [_page(own_ids.tobytes(), len(own_ids), _PLAIN, None)]) if codec == _NONE else None
    if _DICTIONARY not in told:
        return None
    is_list, zstd = len(told[_PATH][1][1]) > 1, pa.Codec("zstd", _LEVEL)
    starts = np.empty(n_rows + 1, OFFSET) if is_list else np.arange(n_rows + 1)
    numbers, made, entries = [], [], None
    seen = rows = 0
    for page in pages_of(own, n_values) if codec == _ZSTD else ():
        if page is None or page.is_dictionary == (entries is not None):
            return None
        if entries is None:
            entries = content = page.content
            if side is not None and side.now is not None:
                content = side.now[entries.view(np.int32)]
            if side is not None and ((side.now is not None and content.min() < 0) or _has_one(content, side.gone)):
                return None
            made.append(_page(content.tobytes(), page.n, None, zstd))
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
        if not is_list and n > 0:
            codes = np.empty(page.n, np.uint32)
            pages.unpack_codes(words, page.content, at + 1, width, page.n, codes)
            numbers.append(entries.view(np.int32)[codes[stays[rows:begun]]])
        if n == pages.DAMAGED:
            raise ValueError("a page has too few codes")
        if n > 0:
            groups = (n + 7) // 8
            coded = bytes([width]) + _packed_run(n, packed.view(np.uint8)[: groups * width])
            heads = (_packed_run(n, levels[:groups]), varint(n << 1) + b"\1") if is_list else ()
            written = b"".join([*(len(head).to_bytes(4, "little") + head for head in heads), coded])
            made.append(_page(written, n, _BY_DICTIONARY, zstd))
        rows, seen = begun, seen + page.n
    if rows != n_rows or seen != n_values:
        raise ValueError(f"a row group holds {rows} rows and {seen} values instead of {n_rows} and {n_values}")
    for fields, choose in ((_MOST, np.max), (_LEAST, np.min)) if _STATISTICS in told else ():
        for field in set(fields) & told[_STATISTICS][1].keys():
            told[_STATISTICS][1][field] = BINARY, choose([choose(own) for own in numbers]).astype(np.int32).tobytes()
    told[_DATA] = I64, told[_DICTIONARY][1] + len(made[0].stored)
    return _tell(told, made)


def _has_one(content: np.ndarray, labels: list[bytes]) -> bool:
    """Whether a dictionary may have one of these labels."""
    stored = content.tobytes() if labels else b""
    return len(labels) > _MANY_LABELS or any(label in stored for label in labels)


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
