"""Adds to the footer of a Parquet file what its writer cannot say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bicliques.pipeline.output.thrift import BINARY, LIST, STRUCT, Struct, read_struct, written

MAGIC = b"PAR1"
#: Numbers of fields in the structs of a footer (https://github.com/apache/parquet-format, parquet.thrift).
ROW_GROUPS, _PAIRS = 4, 5  # of FileMetaData
_KEY, _VALUE = 1, 2  # of KeyValue


def amend(path: Path, pairs: Mapping[str, str]) -> None:
    """Add metadata to a file.

    Parameters
    ----------
    path : Path
        A file that is whole. Only its footer is written anew.
    pairs : mapping
        Keys and values that are added to the metadata.

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
        before = footer.pop(_PAIRS, (LIST, (STRUCT, [])))[1][1]
        fields = {**footer, _PAIRS: (LIST, (STRUCT, [*before, *(_pair(*pair) for pair in pairs.items())]))}
        last = written(Struct(sorted(fields.items())))
        file.seek(start)
        file.write(last + len(last).to_bytes(4, "little") + MAGIC)
        file.truncate()


def _pair(key: str, value: str) -> Struct:
    return Struct({_KEY: (BINARY, key.encode()), _VALUE: (BINARY, value.encode())})
