"""Tables with a column per right vertex: how their cells say that there is an edge, and how they are recognised.

A cell is a number, or one of two marks such as X and a blank.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from bicliques.pipeline.ingest.readers.base import EdgeStream, shorten
from bicliques.pipeline.ingest.readers.labels import INTEGER
from bicliques.pipeline.ingest.readers.look import MOST_COLUMNS, number_in
from bicliques.schemas.errors import InputError, as_option

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
#: 0 and 1.
_FLAGS = 2


def _text(cell: object) -> str:
    return str(cell).strip().lower()


def is_empty(cell: object) -> bool:
    """Whether a cell has nothing, or what stands for it."""
    return _text(cell) in _EMPTY


def has_edge(cell: object, above: float = 0) -> bool | None:
    """Whether a cell says that there is an edge: a number larger than `above`, or a mark. None if it is no cell."""
    text = _text(cell)
    if text in _EMPTY:
        return False
    number = number_in(text)
    if number is not None:
        return number > above
    return next((text in yes for yes, no in _MARKS if text in yes | no), None)


def cells_of(columns: Iterable[Iterable[object]]) -> str:
    """What the values of all these columns are: "flags" (0 and 1), "marks" (as X and a blank), "counts", or nothing."""
    seen = {_text(cell) for column in columns for cell in column} - _EMPTY
    for k, (yes, no) in enumerate(_MARKS):
        if seen & yes and seen <= yes | no:
            return "marks" if k else "flags"
    numbers = [number_in(text) for text in seen]
    return "counts" if numbers and all(number is not None and number >= 0 for number in numbers) else ""


def refuse_marks(stream: EdgeStream, columns: Sequence[Sequence[object]], kinds: Sequence[str] = ()) -> None:
    """Refuse a table whose first rows have marks, as X, or nothing in the second column and in another one.

    `columns` are the first values of the columns: the two that are read, and the others. Cells of some `kinds` are
    refused before all labels are known.
    """
    if alike := _alike(columns, "marks"):
        marks = dict.fromkeys(str(cell).strip() for column in alike for cell in column if not is_empty(cell))
        raise _crossed(stream, f"marks such as {' and '.join(map(shorten, list(marks)[:2]))}", len(alike))
    if any(is_empty(cell) for cell in columns[1]):
        kinds = ("flags", "counts")
    is_labelled = len(columns) > _FLAGS and len(set(columns[0])) == len(columns[0])
    if kinds and is_labelled and cells_of(columns[1:]) in kinds:
        raise _crossed(stream, "only numbers or nothing", len(columns) - 1)


def refuse_cells(
    stream: EdgeStream, columns: Sequence[Sequence[object]], left: pa.Array, right: pa.Array, n_rows: int
) -> None:
    """Refuse a table of 0 and 1, or of counts, with a column per right vertex.

    `stream` and `columns` are those of `refuse_marks`, and the others those of `EdgeStream.check`.
    """
    has_flags = len(right) <= _FLAGS and cells_of([("1",), right.to_pylist()]) == "flags"
    alike = _alike(columns, "flags")
    if has_flags and any(not has_edge(cell) for column in alike for cell in column):
        raise _crossed(stream, "only 0 and 1", len(alike), has_labels=cells_of(columns[:1]) != "flags")
    # integers without names may be left, right, weight, time
    is_list = stream.is_named or (not stream.reading.header and left.type == INTEGER and len(columns) <= MOST_COLUMNS)
    has_counts = len(columns) > _FLAGS and len(left) == n_rows > 1 and cells_of(columns[1:]) == "counts"
    if has_counts and not is_list:
        raise _crossed(stream, "only numbers, and no label is twice in the first one", len(columns) - 1)
    both = [*left.to_pylist(), *right.to_pylist()] if has_flags and len(left) <= _FLAGS < n_rows / 2 else []
    if cells_of([both]) == "flags" and not all(map(has_edge, both)):
        raise _crossed(stream, f"only 0 and 1, in {n_rows:,} rows", _FLAGS, has_labels=False)


def _alike(columns: Sequence[Sequence[object]], kind: str) -> list[Sequence[object]]:
    """The second column and those behind it whose values are together of one kind. None if it is the only one."""
    right, others = columns[1], columns[2:]
    alike = [other for other in others if cells_of([right, other]) == kind]
    return [right, *alike] if alike else []


def _crossed(stream: EdgeStream, cells: str, n: int, has_labels: bool = True) -> InputError:
    remedy = stream.as_table if has_labels else stream.as_cells
    return InputError(
        f"{stream.source}: this looks like a table with a column per vertex, not like a list of edges: {n} of its "
        f"columns have {cells}; {remedy}, or name two columns with {as_option('left')} and {as_option('right')} if "
        "they are the ends of edges"
    )
