"""Judges whether the first line of a text has the names of the columns, by the two columns that are read."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.ingest.readers.columns import is_usual
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["are_usual", "has_header", "has_names", "is_number", "why_header"]

#: What stands for a missing value. It is neither a number nor a name.
_MISSING = frozenset(("", "na", "n/a", "nan", "null", "none", "nil", "missing", "unknown", "-", "?", ".", "\\n"))


def has_header(options: IngestOptions, rows: list[list[str]]) -> bool | None:
    """Whether the first row has names. None when the rows do not show it."""
    names = [name for name in (options.left, options.right, options.weight) if isinstance(name, str)]
    if options.header is False and names:
        raise InputError(f"column {names[0]!r} cannot be found by name with --no-header; give its position from 0")
    if options.header is not None or names:
        return options.header is not False
    return has_names(options, rows)


def why_header(options: IngestOptions, has_header: bool, is_named: bool) -> str:
    """Why the first line is a header, or is none."""
    if options.header is not None:
        return "as it was said"
    if has_header:
        return "the two names are usual ones" if is_named else "the first line has words above other values"
    return "the first line is as those below"


def _chosen(options: IngestOptions, row: Sequence[str]) -> list[int]:
    columns = (0, 1) if options.left is None or options.right is None else (options.left, options.right)
    return [k for k in columns if isinstance(k, int) and k < len(row)]


def are_usual(options: IngestOptions, row: Sequence[str]) -> bool:
    """Whether a row has usual names in the two columns that are read."""
    return all(is_usual(row[k]) for k in _chosen(options, row))


def has_names(options: IngestOptions, rows: Sequence[Sequence[str]]) -> bool | None:
    """Whether the first row has the names of the columns, by the two columns that are read. None: it may have.

    Usual names win. A label is not empty, so a row with an empty one has names. A word above numbers is a name, and a
    number above words may be one. Where the two columns have words only, a name above numbers in another column says
    it, and a word that comes again below is a label.
    """
    first, rest = list(rows[0]), [row for row in rows[1:] if list(row) != list(rows[0])]
    chosen = _chosen(options, first)
    if are_usual(options, first):
        return True
    below = [[row[k] for row in rest if k < len(row)] for k in range(len(first))]
    filled = [[cell for cell in column if cell.strip()] for column in below]
    blank = [k for k in chosen if not first[k].strip()]
    is_alone = len(rest) == len(rows) - 1 and not any({*first} - {""} & {*column} for column in below)
    if len(blank) == 1 and is_alone and all(label.strip() for label in below[blank[0]]):
        return True
    over_numbers = [2 * sum(map(is_number, column)) > len(column) for column in filled]
    numbers = [is_number(field) for field in first]
    named = [not numbers[k] and over_numbers[k] and first[k].strip().lower() not in _MISSING for k in range(len(first))]
    if any(named[k] for k in chosen):
        return True
    if any(numbers[k] for k in chosen):
        is_like_below = all(numbers[k] == over_numbers[k] for k in chosen) or not rest
        are_positions = first == [str(k) for k in range(len(first))] and len(rest) == len(rows) - 1
        return None if not is_like_below or are_positions or any(is_usual(first[k]) for k in chosen) else False
    if any(named):
        return True
    if len(rest) < len(rows) - 1:
        return None  # a header that is repeated, or an edge
    return False if any(first[k] in below[k] for k in chosen) else None


def is_number(text: str) -> bool:
    """Whether a text is a number in digits."""
    try:
        float(text)
    except ValueError:
        return False
    return any(character.isdigit() for character in text)
