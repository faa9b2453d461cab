"""Reads text with a column per right vertex: tables with labels in front, and Burmeister's contexts (``.cxt``).

Programs of formal concept analysis exchange these contexts. Their labels stand above the cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import pyarrow as pa

from bicliques.pipeline.ingest.readers import look
from bicliques.pipeline.ingest.readers.base import SIDES, BadLineError, shorten
from bicliques.pipeline.ingest.readers.blocks import numbered_lines
from bicliques.pipeline.ingest.readers.cells import cells_of, has_edge
from bicliques.pipeline.ingest.readers.labels import kind_of, parse_label
from bicliques.pipeline.ingest.readers.text import TextStream, check_number
from bicliques.pipeline.run.progress import number as number_of
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Reading

#: Lines above the names of a context, at most: B, a title, two numbers.
_HEAD, _DIGITS = 7, 10


class CrossTable(TextStream):
    """Edges of a table of text with a column per right vertex. Its first column has the labels of the left side."""

    def __init__(self, path: Path, options: IngestOptions, format: str):
        sample = look.sample_of(path, options)
        sample = sample[len(look.lines_above(options, sample)) :]
        if not sample:
            raise InputError(f"{path} holds blank lines only; name a file that holds a table")
        self.delimiter = options.delimiter or look.find_delimiter(path, sample)
        rows = [look.fields_of(line, self.delimiter) for _, line in sample]
        n = max(map(len, rows))
        place = f"{path}, line {sample[0][0]}"
        if n < 2:
            raise InputError(
                f"{place}: 1 column where 2 are needed; name what separates them with {as_option('delimiter')}"
            )
        cells = list(zip(*(row[1:] for row in rows if len(row) == n), strict=True))
        corner, *labels = (row[0] for row in rows if row)
        is_name = not corner.strip() or (not look.is_number(corner) and all(map(look.is_number, labels)))
        if options.header is None and not is_name and cells_of(cells) and len(rows[0]) == n:
            raise InputError(
                f"{place}: the first row may name the columns, or have cells, as those below; say "
                f"{as_option('header', True)} or {as_option('header', False)}"
            )
        has_header = options.header is not False
        names = rows[0] if has_header else [str(k) for k in range(n)]
        names = names[len(names) - n + 1 :]  # the corner above the labels may be missing
        _refuse_twice(f"{place}: two columns", names)
        left = [row[0] for row in rows[has_header:] if row]
        super().__init__(
            path,
            options,
            (kind_of(options.label_type, left), kind_of(options.label_type, names)),
            0,
            sample[0][0] + has_header,
        )
        self.right = _labels(place, names, 1, self.kinds)
        self.seen: dict[str, int] = {}
        self.reading = Reading(
            format=format,
            separator=look.shown_separator(self.delimiter),
            header=has_header,
            columns_why="a row per left vertex, and a column per right one",
            lines_above=sample[0][0] - 1,
        )

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line into an edge per cell that says so."""
        if not line.strip(" \t"):
            return []
        label, *cells = look.fields_of(line, self.delimiter) or [""]
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
                f"the cell {shorten(cell)} is neither a number nor a mark such as X",
                f"correct it, or say {as_option('format', 'csv')}",
            )
        if self.options.min_weight is not None and found:
            return not self.is_light(check_number(cell, "cell"))
        return found


class Context(TextStream):
    """Edges of a context as Burmeister's programs write it: numbers, objects, attributes, and a row of X and . each."""

    def __init__(self, path: Path, options: IngestOptions, format: str):
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
        objects, attributes = names[:n], names[n:]
        if len(names) < n + m:
            raise InputError(f"{path} has fewer names than the {n + m:,} that its head says; it may be cut short")
        _refuse_twice(f"{path}: two objects", objects)
        _refuse_twice(f"{path}: two attributes", attributes)
        kinds = (kind_of(options.label_type, objects), kind_of(options.label_type, attributes))
        super().__init__(path, options, kinds, 0, len(above) + n + m + 1)
        self.reading = Reading(format=format, columns_why="a row per object, and a column per attribute")
        self.sides = [_labels(str(path), own, k, kinds) for k, own in enumerate((objects, attributes))]

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
