"""Adds to the footer of a Parquet file what its writer cannot say."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.output.thrift import BINARY, FALSE, I32, LIST, STRUCT, TRUE, Struct, read_struct, written

__all__ = ["MAGIC", "ROW_GROUPS", "amend"]

MAGIC = b"PAR1"
#: Numbers of fields in the structs of a footer (https://github.com/apache/parquet-format, parquet.thrift).
ROW_GROUPS, _PAIRS = 4, 5  # of FileMetaData
_SORTING = 4  # of RowGroup
_COLUMN, _DESCENDING, _NULLS_FIRST = 1, 2, 3  # of SortingColumn
_KEY, _VALUE = 1, 2  # of KeyValue


def amend(path: Path, pairs: Mapping[str, str], descending: Sequence[int]) -> None:
    """Add metadata to a file, and say by which columns the rows of every row group are sorted.

    Parameters
    ----------
    path : Path
        A file that is whole. Only its footer is written anew.
    pairs : mapping
        Keys and values that are added to the metadata.
    descending : sequence of int
        Positions of the columns, as the footer numbers them. The rows are sorted by the first, those with equal values
        by the second, and so on, the largest first.

    Raises
    ------
    OSError
        If the file cannot be read or written.
    """
    with path.open("r+b") as file:
        file.seek(-4 - len(MAGIC), os.SEEK_END)
        length = int.from_bytes(file.read(4), "little")
        start = file.seek(-4 - len(MAGIC) - length, os.SEEK_END)
        footer = read_struct(memoryview(file.read(length)))
        _append(footer, _PAIRS, [_pair(key, value) for key, value in pairs.items()])
        for group in footer.get_value(ROW_GROUPS)[1]:
            _append(group, _SORTING, [_by(column) for column in descending])
        last = written(footer)
        file.seek(start)
        file.write(last + len(last).to_bytes(4, "little") + MAGIC)
        file.truncate()


def _pair(key: str, value: str) -> Struct:
    return _struct((_KEY, BINARY, key.encode()), (_VALUE, BINARY, value.encode()))


def _by(column: int) -> Struct:
    return _struct((_COLUMN, I32, column), (_DESCENDING, TRUE, None), (_NULLS_FIRST, FALSE, None))


def _struct(*fields: tuple[int, int, Any]) -> Struct:
    return Struct({number: (kind, value) for number, kind, value in fields})


def _append(struct: Struct, field: int, entries: list[Struct]) -> None:
    """Add entries to a list of structs, which need not be there yet. Fields stay in the order of their numbers."""
    before = struct.pop(field, (LIST, (STRUCT, [])))[1][1]
    fields = {**struct, field: (LIST, (STRUCT, [*before, *entries]))}
    struct.clear()
    struct.update(sorted(fields.items()))
