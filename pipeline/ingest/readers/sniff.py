"""Finds the layout of a CSV file (delimiter, header, columns) in its first lines, or refuses the file."""

from __future__ import annotations

import csv
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pipeline.ingest.readers.base import shorten
from pipeline.ingest.readers.blocks import HEAD_BYTES, LINE_BYTES, numbered_lines
from pipeline.ingest.readers.columns import Flags, find_columns, find_weight, is_side, side_names
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["Layout", "sniff", "split_fields"]

#: Delimiters in order of preference. A blank is not among them, because it is too often part of a label.
_DELIMITERS = (",", "\t", ";", "|")

_SAMPLE_LINES = 100

#: Column names that are recognised above columns of text, as are those of the known pairs. Capitals do not matter.
_USUAL_NAMES = frozenset(("tail", "head", "node1", "node2", "id"))


@dataclass(frozen=True)
class Layout:
    """How to read the lines of a CSV file.

    Parameters
    ----------
    delimiter : str
    n_columns : int
        Number of columns that every line must have.
    columns : pair of int
        Positions of the left and of the right labels.
    first_line : int
        Number of the first line below the header.
    first_labels : pair of str
        The first label of each side, empty if there is none in the sample.
    names : pair of str
        See `EdgeStream.side_names`.
    flags : Flags
        Flags among the other columns of the sample.
    weight : int or None
        Position of the weights, if they matter.
    """

    delimiter: str
    n_columns: int
    columns: tuple[int, int]
    first_line: int
    first_labels: tuple[str, str]
    names: tuple[str, str]
    flags: Flags
    weight: int | None = None


def sniff(path: Path, options: IngestOptions, delimiter: str | None) -> Layout:
    """Look at the first hundred lines.

    Raises
    ------
    InputError
        There is only one column, a named column is missing, or it is unclear whether the first line is a
        header.
    """
    sample = _sample(path)
    if not sample:
        raise InputError(f"{path} holds blank lines only; name a file that holds edges")
    if delimiter is None:
        delimiter = _find_delimiter([line for _, line in sample])
    first, text = sample[0]
    rows = [_fields(line, delimiter) for _, line in sample]
    if "\r" in text:
        raise InputError(f"{path}, line {first}: a carriage return inside the line; save the file with Unix line ends")
    if len(rows[0]) < 2:
        raise InputError(
            f"{path}, line {first}: 1 column where 2 are needed ({shorten(text)}); "
            "name the character between columns with --delimiter, or another --format"
        )
    has_header = _has_header(options, rows)
    if has_header is None:
        raise InputError(
            f"{path}, line {first}: {shorten(text)} may be column names or an edge, for all columns are text; "
            "say --header or --no-header"
        )
    names, n = rows[0] if has_header else None, len(rows[0])
    columns = find_columns(f"{path}, line {first}", options, names, n)
    weight = find_weight(f"{path}, line {first}", options, names, n, columns)
    body = [row for row in rows[has_header:] if len(row) == n]
    left, right = (next((row[k] for row in body if row[k].strip()), "") for k in columns)
    flags = Flags.among((row[k] for row in body) for k in range(n) if k not in columns)
    return Layout(delimiter, n, columns, first + has_header, (left, right), side_names(names, columns), flags, weight)


def _sample(path: Path) -> list[tuple[int, str]]:
    """The first lines that are not blank, with their numbers: at most a hundred, and at most `HEAD_BYTES`."""
    sample: list[tuple[int, str]] = []
    n_bytes = 0
    with closing(numbered_lines(path)) as lines:
        for number, line in lines:
            if line.strip(b" \t\r"):
                sample.append((number, line.decode(errors="replace")))
                n_bytes += len(line)
            if len(sample) == _SAMPLE_LINES or n_bytes > HEAD_BYTES:
                break
    return sample


def split_fields(line: str, delimiter: str, strict: bool = False) -> list[str]:
    """Columns of a line, without quotes.

    Raises
    ------
    csv.Error
        A quote is out of place, and `strict` is true.
    """
    before = csv.field_size_limit(LINE_BYTES)  # a limit of the whole process; the default is 128 KiB
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=strict))
    finally:
        csv.field_size_limit(before)


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        return split_fields(line, delimiter)
    except csv.Error:
        return []


def _find_delimiter(lines: list[str]) -> str:
    """The delimiter with which most lines have as many columns as the first line."""

    def agreeing(delimiter: str) -> int:
        counts = [len(_fields(line, delimiter)) for line in lines]
        return sum(count == counts[0] for count in counts) if counts[0] > 1 else 0

    return max(_DELIMITERS, key=agreeing)  # of equal ones, the first


def _has_header(options: IngestOptions, rows: list[list[str]]) -> bool | None:
    """Whether the first row has names. None when the rows do not show it."""
    names = [name for name in (options.left, options.right, options.weight) if isinstance(name, str)]
    if options.header is False and names:
        raise InputError(f"column {names[0]!r} cannot be found by name with --no-header; give its position from 0")
    if options.header is not None or names:
        return options.header is not False
    first, rest = rows[0], rows[1:]
    if any(_is_number(field) for field in first):
        return False
    below = [[row[k] for row in rest if k < len(row)] for k in range(len(first))]
    if any(2 * sum(_is_number(field) for field in column) > len(column) for column in below):
        return True
    if any(name in column for name, column in zip(first, below, strict=True)):
        return False  # a name does not occur again in its column
    columns = (0, 1) if options.left is None or options.right is None else (options.left, options.right)
    chosen = [first[k] for k in columns if isinstance(k, int) and k < len(first)]
    usual = [_is_usual(name.strip().lower()) for name in chosen]
    return True if all(usual) else None


def _is_usual(name: str) -> bool:
    return name in _USUAL_NAMES or name.endswith("_id") or is_side(name)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return any(character.isdigit() for character in text)
