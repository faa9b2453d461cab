"""Tables with a column per right vertex: how their cells say that there is an edge, how they are recognised, and read.

The labels of the left side are in the first column. A cell is a number, or one of two marks such as X and a blank.
Burmeister's contexts (``.cxt``), which programs of formal concept analysis exchange, have their labels above the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import pyarrow as pa

from pipeline.ingest.readers.base import SIDES, BadLineError, EdgeStream, shorten
from pipeline.ingest.readers.blocks import Block, numbered_lines
from pipeline.ingest.readers.cells import cells_of, has_edge, is_empty
from pipeline.ingest.readers.header import is_number
from pipeline.ingest.readers.labels import INTEGER, TEXT, looks_integer, parse_label
from pipeline.ingest.readers.look import (
    MOST_COLUMNS,
    fields_of,
    find_delimiter,
    lines_above,
    sample_of,
    shown_separator,
)
from pipeline.ingest.readers.text import TextStream, check_number
from pipeline.run.progress import number as number_of
from schemas.errors import InputError
from schemas.options import IngestOptions
from schemas.reading import Reading

__all__ = ["open_context", "open_table", "refuse_cells", "refuse_marks"]

#: 0 and 1.
_FLAGS = 2
#: Lines above the names of a context, at most: B, a title, two numbers.
_HEAD, _DIGITS = 7, 10


def refuse_marks(stream: EdgeStream, columns: Sequence[Sequence[object]], kinds: Sequence[str] = ()) -> None:
    """Refuse a table whose first rows have cells that are no labels, in the second column and in another one.

    Such cells are marks, as X and a blank, and empty ones.

    Parameters
    ----------
    stream : EdgeStream
    columns : sequence of sequence
        The first values of the columns: the two that are read, and the others.
    kinds : sequence of str
        The kinds of cells for which the table is refused before its labels are known to the end.

    Raises
    ------
    InputError
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

    Parameters
    ----------
    stream : EdgeStream
    columns : sequence of sequence
        As of `refuse_marks`.
    left, right : Array
        All distinct labels of the two columns that are read.
    n_rows : int
        Rows that were read.

    Raises
    ------
    InputError
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
        f"columns have {cells}; {remedy}, or name two columns with --left and --right if they are the ends "
        "of edges"
    )


class CrossTable(TextStream):
    """Edges of a table of text with a column per right vertex. Its first column has the labels of the left side."""

    format = "table"

    def __init__(self, path: Path, options: IngestOptions):
        sample = sample_of(path, options)
        sample = sample[len(lines_above(options, sample)) :]
        if not sample:
            raise InputError(f"{path} holds blank lines only; name a file that holds a table")
        self.delimiter = options.delimiter or find_delimiter(path, sample)
        rows = [fields_of(line, self.delimiter) for _, line in sample]
        self.n_columns = max(map(len, rows))
        self.place = f"{path}, line {sample[0][0]}"
        if self.n_columns < 2:
            raise InputError(f"{self.place}: 1 column where 2 are needed; name what separates them with --delimiter")
        has_header = self._has_header(options, rows)
        names = rows[0] if has_header else [str(k) for k in range(self.n_columns)]
        names = names[len(names) - self.n_columns + 1 :]  # the corner above the labels may be missing
        _refuse_twice(f"{self.place}: two columns", names)
        left = [row[0] for row in rows[has_header:] if row]
        super().__init__(path, options, (_kind(options, left), _kind(options, names)), 0, sample[0][0] + has_header)
        self.right = _labels(self.place, names, 1, self.kinds)
        self.seen: dict[str, int] = {}
        self.reading = Reading(
            format=self.format,
            separator=shown_separator(self.delimiter),
            header=has_header,
            columns_why="a row per left vertex, and a column per right one",
            lines_above=sample[0][0] - 1,
        )

    def _has_header(self, options: IngestOptions, rows: list[list[str]]) -> bool:
        """Whether the first row names the right vertices. It does unless it has cells as those below."""
        cells = list(zip(*(row[1:] for row in rows if len(row) == self.n_columns), strict=True))
        corner, *labels = (row[0] for row in rows if row)
        is_name = not corner.strip() or (not is_number(corner) and all(map(is_number, labels)))
        if options.header is None and not is_name and cells_of(cells) and len(rows[0]) == self.n_columns:
            raise InputError(
                f"{self.place}: the first row may name the columns, or have cells, as those below; "
                "say --header or --no-header"
            )
        return options.header is not False

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """None, because lines are read one by one."""
        return None

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line into an edge per cell that says so."""
        if not line.strip(" \t"):
            return []
        label, *cells = fields_of(line, self.delimiter) or [""]
        if len(cells) != len(self.right):
            found = number_of(len(cells), "cell")
            raise BadLineError(f"{found} where there are {len(self.right)} columns of them", "mend the line")
        if (first := self.seen.setdefault(label, number)) != number:
            raise BadLineError(f"the row is called {shorten(label)}, as line {first} is", "rename one")
        left = parse_label(label, "left", self.kinds[0])
        return [(left, right) for right, cell in zip(self.right, cells, strict=True) if self._has_edge(cell)]

    def _has_edge(self, cell: str) -> bool:
        found = has_edge(cell)
        if found is None:
            raise BadLineError(
                f"the cell {shorten(cell)} is neither a number nor a mark such as X", "correct it, or say --format csv"
            )
        if self.options.min_weight is not None and found:
            return not self.is_light(check_number(cell, "cell"))
        return found


class Context(TextStream):
    """Edges of a context as Burmeister's programs write it: numbers, objects, attributes, and a row of X and . each."""

    format = "cxt"

    def __init__(self, path: Path, options: IngestOptions):
        with closing(numbered_lines(path)) as lines:
            texts = (line.decode(errors="replace") for _, line in lines)
            above = ["", next(texts, "").strip()]
            while len(above) < _HEAD and not all(map(_is_count, above[-2:])):
                above.append(next(texts, "").strip())
            if above[1] != "B" or not all(map(_is_count, above[-2:])):
                raise InputError(f"{path} is no context of Burmeister: line 1 must be B, and two numbers must follow")
            n, m = map(int, above[-2:])
            names = [next(texts, "")]
            names = [*names[bool(not names[0].strip()) :], *islice(texts, n + m - bool(names[0].strip()))]
        self.n_rows, self.objects, self.attributes = n, names[:n], names[n:]
        if len(names) < n + m:
            raise InputError(f"{path} has fewer names than the {n + m:,} that its head says; it may be cut short")
        _refuse_twice(f"{path}: two objects", self.objects)
        _refuse_twice(f"{path}: two attributes", self.attributes)
        kinds = (_kind(options, self.objects), _kind(options, self.attributes))
        super().__init__(path, options, kinds, 0, len(above) + n + m + 1)
        self.reading = Reading(format=self.format, columns_why="a row per object, and a column per attribute")
        self.sides = [_labels(str(path), names, k, kinds) for k, names in enumerate((self.objects, self.attributes))]

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """None, because lines are read one by one."""
        return None

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse the row of an object into an edge per X."""
        left, right = self.sides
        cells, k = line.strip().upper(), number - self.first_line
        if not cells:
            return []
        if k >= len(left) or len(cells) != len(right) or not {*cells} <= {"X", "."}:
            raise BadLineError(
                f"{shorten(line)} is not one of {len(left):,} rows of {len(right):,} X and .", "mend the line"
            )
        return [(left[k], attribute) for attribute, cell in zip(right, cells, strict=True) if cell == "X"]


def _kind(options: IngestOptions, labels: Sequence[str]) -> pa.DataType:
    is_integer = options.label_type == "int" or (options.label_type == "auto" and all(map(looks_integer, labels)))
    return INTEGER if is_integer else TEXT


def _is_count(text: str) -> bool:
    """Whether a text is a number of objects or attributes."""
    return text.isdecimal() and len(text) < _DIGITS


def _labels(place: str, names: Sequence[str], side: int, kinds: tuple[pa.DataType, pa.DataType]) -> list[int | str]:
    """The labels of a side, which stand together in one place."""
    try:
        return [parse_label(name, SIDES[side], kinds[side]) for name in names]
    except BadLineError as bad:
        raise bad.at(place, None) from None


def _refuse_twice(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{what} are called {shorten(twice)}; rename one")


def open_table(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a table of text with a column per right vertex."""
    return CrossTable(path, options)


def open_context(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a context of Burmeister."""
    return Context(path, options)
