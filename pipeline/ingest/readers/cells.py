"""The cells of a table with a column per right vertex: numbers, or one of two marks such as X and a blank."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["cells_of", "has_edge", "is_cell", "is_empty"]

#: Marks for an edge and for none, in any capitals. A table has those of one line, and empty cells.
_MARKS = (
    ({"1", "1.0"}, {"0", "0.0"}),
    ({"x", "\u2713", "\u2714"}, {".", "-", "0", "no", "n"}),
    ({"yes"}, {"no"}),
    ({"y"}, {"n"}),
    ({"true"}, {"false"}),
    ({"t"}, {"f"}),
    ({"+"}, {"-"}),
)
_EMPTY = {"", "nan", "none", "null", "na", "<na>"}


def _text(cell: object) -> str:
    return str(cell).strip().lower()


def is_cell(cell: object) -> bool:
    """Whether a value may be a cell of such a table."""
    return has_edge(cell) is not None


def is_empty(cell: object) -> bool:
    """Whether a cell has nothing, or what stands for it."""
    return _text(cell) in _EMPTY


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def has_edge(cell: object, above: float = 0) -> bool | None:
    """Whether a cell says that there is an edge: a number larger than `above`, or a mark. None if it is no cell."""
    text = _text(cell)
    if text in _EMPTY:
        return False
    number = _number(text)
    if number is not None:
        return number > above
    return next((text in yes for yes, no in _MARKS if text in yes | no), None)


def cells_of(columns: Iterable[Iterable[object]]) -> str:
    """What the values of all these columns are: "flags" (0 and 1), "marks" (as X and a blank), "counts", or nothing."""
    seen = {_text(cell) for column in columns for cell in column} - _EMPTY
    for k, (yes, no) in enumerate(_MARKS):
        if seen & yes and seen <= yes | no:
            return "marks" if k else "flags"
    numbers = [_number(text) for text in seen]
    return "counts" if numbers and all(number is not None and number >= 0 for number in numbers) else ""
