"""CSV and TSV: one edge per line, columns by name or position, fields in double quotes where needed.

The first hundred lines show the delimiter and the header. If the first label of a column is an integer, the column has
integers, and text further down is refused as a mixture. If it is text, the column is text. A line that repeats the
header is left out, as files have it that were joined with `cat`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from bicliques.pipeline.ingest.readers import look
from bicliques.pipeline.ingest.readers.base import BadLineError, shorten
from bicliques.pipeline.ingest.readers.blocks import MARK, Block
from bicliques.pipeline.ingest.readers.cells import cells_of, refuse_cells, refuse_marks
from bicliques.pipeline.ingest.readers.columns import choose, is_usual, options_of
from bicliques.pipeline.ingest.readers.labels import INTEGER, TEXT, kind_of, looks_integer
from bicliques.pipeline.ingest.readers.text import TextStream, check_number, parse_table
from bicliques.pipeline.run.progress import number as number_of
from bicliques.schemas.errors import InputError, as_option, as_options
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Doubt

_EXCEL = re.compile(r'"?sep=(.)"?$', re.IGNORECASE)
#: The character that stands for a delimiter of several characters. Text does not have it.
_UNIT = "\x1f"
#: Rows from which on a column of 0, 1, 2 and so on numbers the rows.
_NUMBERED_ROWS = 3


class Delimited(TextStream):
    """Edges of a CSV or TSV file.

    `separator` stands between its columns; for Arrow a `delimiter` of one character stands for it. Every line has
    `n_columns`, of which `columns` are the left and the right labels. `header` is the line of the header, or empty.
    """

    as_table = f"read it with {as_option('format', 'table')}"
    tallies = (*TextStream.tallies, "repeated")

    def __init__(self, path: Path, options: IngestOptions, format: str):
        separator = options.delimiter or ("\t" if format == "tsv" else None)
        sample = look.sample_of(path, options)
        if not sample:
            raise InputError(f"{path} holds blank lines only; name a file that holds edges")
        if options.skip_lines is None and (found := _EXCEL.match(sample[0][1])) and len(sample) > 1:
            separator, sample = separator or found[1], sample[1:]
        above = look.lines_above(options, sample)
        body = sample[len(above) :]
        number, text = body[0]
        self.separator = separator = separator or look.find_delimiter(path, body)
        rows = [look.fields_of(line, separator) for _, line in body]
        self.n_columns = n = len(rows[0])
        place = f"{path}, line {number}"
        _refuse_title(path, body, rows)
        if n < 2:
            raise InputError(f"{place}: 1 column where 2 are needed ({shorten(text)}); {_one_column(text, format)}")
        (top, self.header), names = _header(path, options, above, body, rows, separator)
        first = number + (self.header == text)
        below = [row for row in rows[first - number :] if len(row) == n]
        choice = choose(place, options, names, n, format)
        self.columns, self.weight = choice.columns, choice.weight
        order = (*self.columns, *(k for k in range(n) if k not in self.columns))
        self.sample = [[row[k] for row in below] for k in order]
        self.first_labels = [next((label for label in self.sample[k] if label.strip()), "") for k in (0, 1)]
        left, right = (kind_of(options.label_type, [label]) for label in self.first_labels)
        super().__init__(path, options, (left, right), first_line=first)
        self.is_named = bool(self.header) and choice.is_named
        self.reading = replace(
            choice.reading,
            separator=look.shown_separator(separator),
            header=bool(self.header),
            header_why=_why_header(options, bool(self.header), self.is_named),
            lines_above=top - 1,
        )
        self.delimiter = separator if len(separator) == 1 else _UNIT
        self.repeated = 0
        items = as_options(as_option("format", "fimi"), look.option_of(separator))
        self.torn = f"mend the line, or say {items} if a line has the items of a transaction"
        header = "" if self.header else ", header=None"
        self.as_cells = f"in Python, give bq.from_table(pandas.read_csv({str(path)!r}{header}), labels=False)"
        if self.reading.is_guess:
            self._refuse_others(names, top)

    def _refuse_others(self, names: Sequence[str] | None, top: int) -> None:
        """Refuse a table whose first two columns are probably not the sides."""
        numbers = _row_numbers(names, self.sample[0]) if self.n_columns > 2 else None
        objection = None
        if self.n_columns > 2 and not self.is_named:
            has_numbers = look.are_numbered(names)
            objection = numbers or (_baskets(self.separator, self.sample, names, top) if has_numbers else None)
        refuse_marks(self, self.sample, () if not objection else ("flags",) if numbers else ("flags", "counts"))
        if objection:
            header = () if self.header else (as_option("header", False),)
            table = as_options(as_option("format", "table"), *header)
            is_table = cells_of(self.sample[1:]) == "counts"
            more = f", or {table} if each further column is a vertex" if is_table else ""
            raise InputError(f"{self.path}, line {self.first_line}: {objection}{more}")

    @property
    def late_doubts(self) -> list[Doubt]:
        """See `EdgeStream`."""
        lines = number_of(self.repeated, "line repeats", "lines repeat")
        return [Doubt("repeated header", f"{lines} the header, and no edge is made of it")] if self.repeated else []

    def told_kinds(self) -> tuple[pa.DataType | None, pa.DataType | None]:
        """See `EdgeStream`. A file with a header alone does not tell whether its labels are integers."""
        is_told = [self.options.label_type != "auto" or bool(label) for label in self.first_labels]
        left, right = (kind if told else None for told, kind in zip(is_told, self.kinds, strict=True))
        return left, right

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse a table with a column per right vertex."""
        if self.reading.is_guess:
            refuse_cells(self, self.sample, left, right, n_rows)

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Parse the block, by Arrow unless it is plain, and with quotes only if it has some."""
        data, repeated = self._without_headers(block.data) if self.may_repeat_header else (block.data, 0)
        batch, is_single = None, self.delimiter == self.separator
        if is_single and self.delimiter.isascii():
            batch = self.plain(data, self.delimiter, self.columns, self.n_columns)
        if batch is None:
            if not self.may_repeat_header:
                data, repeated = self._without_headers(data)
            if not is_single:
                if _UNIT.encode() in data:
                    return None
                data = data.replace(self.separator.encode(), _UNIT.encode())
            if b"\n\n" in data or data.startswith(b"\n"):
                data = re.sub(rb"\n+", b"\n", data).removeprefix(b"\n")
            quotes = b'"' in data
            # Arrow takes one byte for a delimiter, and reads "a"b as ab where the slow pass refuses the line.
            if not self.delimiter.isascii() or (quotes and not _quotes_fields(data, self.delimiter)):
                return None
            types = dict.fromkeys(self.columns, TEXT)
            if self.weight is not None:
                types[self.weight] = pa.float64()
            batch = self.typed(parse_table(data, self.n_columns, types, self.delimiter, quotes))
        self.repeated += repeated if batch is not None else 0
        return batch

    @property
    def may_repeat_header(self) -> bool:
        """Whether a line that repeats the header could be read as an edge."""
        names = look.fields_of(self.header, self.separator)
        return bool(self.header) and all(
            kind != INTEGER or looks_integer(names[k]) for k, kind in zip(self.columns, self.kinds, strict=True)
        )

    def _without_headers(self, data: bytes) -> tuple[bytes, int]:
        """A block without the lines that repeat the header, and the number of them."""
        line = self.header.encode() + b"\n"
        if len(line) == 1 or line not in data:
            return data, 0
        kept = [each for each in data.splitlines(keepends=True) if each.removeprefix(MARK) != line]
        return b"".join(kept), data.count(b"\n") - len(kept)

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line, which is at most one edge."""
        if not line.strip(" \t"):
            return []
        if self.header and line.removeprefix(MARK.decode()) == self.header:
            self.repeated += 1
            return []
        try:
            fields = look.split_fields(line, self.separator, strict=True)
        except csv.Error as error:
            reason = f"{shorten(line)} has a quote out of place ({error})"
            raise BadLineError(reason, "mend it (a label cannot hold a line break)") from None
        if len(fields) != self.n_columns:
            raise BadLineError(
                f"{number_of(len(fields), 'column')} where the first line has {self.n_columns} ({shorten(line)})",
                f"mend the line, or name the {as_option('delimiter')}" if self.header else self.torn,
                is_lone=not line.endswith(self.separator) and bool(self.header),
            )
        if not self.header and not all(fields[k] for k in self.columns):
            raise BadLineError(f"a label is empty ({shorten(line)})", self.torn, is_lone=False)
        edge = self.edge([fields[k] for k in self.columns])
        is_light = self.weight is not None and self.is_light(check_number(fields[self.weight], "weight"))
        return [] if is_light else [edge]


def _header(
    path: Path,
    options: IngestOptions,
    above: Sequence[look.Line],
    body: Sequence[look.Line],
    rows: list[list[str]],
    delimiter: str,
) -> tuple[look.Line, list[str] | None]:
    """The line of the header, with its names. Without a header, the number of the first edge and an empty text."""
    number, text = body[0]
    chosen = [name for name in (options.left, options.right, options.weight) if isinstance(name, str)]
    if options.header is False and chosen:
        raise InputError(
            f"column {chosen[0]!r} cannot be found by name with {as_option('header', False)}; give its position from 0"
        )
    is_said = options.header is not None or bool(chosen)
    has = options.header is not False if is_said else look.has_names(options, rows)
    if above:
        names = look.fields_of(above[-1][1].lstrip("#%/").strip(), delimiter) if options.header is not False else []
        is_usual_row = look.are_usual(options, rows[0])
        if len(names) == len(rows[0]) and not is_usual_row and look.has_names(options, [names, *rows]):
            return above[-1], names
        if not has:
            look.refuse_comment_or_edge(path, above, lambda text: len(look.fields_of(text, delimiter)) == len(rows[0]))
    if has is not None:
        return ((number, text), rows[0]) if has else ((number, ""), None)
    columns = tuple(zip(*(row for row in rows if len(row) == len(rows[0])), strict=True))
    if cells_of([column[1:] for column in columns[1:]]) == "marks":
        return (number, text), rows[0]  # which is refused as a table with a column per vertex
    if len(rows[0]) > 2 and options.left is None and look.are_shared(columns):
        raise InputError(f"{path}, line {number}: {_baskets(delimiter, columns, None, number)}")
    raise InputError(
        f"{path}, line {number}: {shorten(text)} may be column names or an edge; say {as_option('header', True)} or "
        f"{as_option('header', False)}"
    )


def _why_header(options: IngestOptions, has_header: bool, is_named: bool) -> str:
    if options.header is not None or not has_header:
        return "the first line is as those below" if options.header is None else "as it was said"
    return "the two names are usual ones" if is_named else "the first line has words above other values"


def _one_column(text: str, format: str) -> str:
    """What to do with a line of one column."""
    if text.strip() == "B":
        return f"say {as_option('format', 'cxt')} if this is a context of Burmeister"
    if "::" in text:
        return f"name the separator with {look.option_of('::')}"
    if format == "tsv" and any(separator in text for separator in (",", ";", "|")):
        return f"say {as_option('format', 'csv')}"
    if text.strip().replace("\t", " ").count(" "):
        return (
            f"say {as_option('format', 'snap')} if blanks stand between the columns, or name the separator with "
            f"{as_option('delimiter')}"
        )
    return f"name the character between columns with {as_option('delimiter')}, or {look.ANOTHER_FORMAT}"


def _refuse_title(path: Path, body: Sequence[look.Line], rows: list[list[str]]) -> None:
    """Refuse first lines that have another number of columns than all others, which agree."""
    counts = [len(row) for row in rows]
    usual = max(set(counts), key=counts.count)
    first = counts.index(usual)
    if first and usual > 1 and all(count == usual for count in counts[first:]) and len(counts) - first > 1:
        names = first == 1 and counts[0] > 1 and all(map(is_usual, rows[0]))
        remedy = f"leave it out with {as_option('skip_lines', body[first][0] - 1)}, or mend it"
        raise InputError(
            f"{path}, line {body[0][0]}: {number_of(counts[0], 'column')} where the lines below have {usual} "
            f"({shorten(body[0][1])}); {'give a name to every column' if names else remedy}"
        )


def _row_numbers(names: Sequence[str] | None, column: Sequence[str]) -> str | None:
    """The objection that the first column only numbers the rows, as the index of a frame does."""
    numbers = [int(text) if text.isascii() and text.isdigit() else -1 for text in column]
    if len(numbers) < _NUMBERED_ROWS or numbers[0] not in (0, 1) or any(b != a + 1 for a, b in pairwise(numbers)):
        return None
    sides = options_of(names if names and names[1].strip() else None, 1, 2)
    return (
        f"the first column only numbers the rows; say {sides} if these are the sides, or {options_of(None, 0, 1)} if "
        "the first one is a side"
    )


def _baskets(delimiter: str, each: Sequence[Sequence[str]], names: Sequence[str] | None, top: int) -> str | None:
    """The objection that several columns without names may be the items of transactions."""
    if not look.are_shared(each) and (names or len(each) <= look.MOST_COLUMNS):
        return None
    skip = (as_option("skip_lines", top),) if names else ()
    items = as_options(as_option("format", "fimi"), look.option_of(delimiter), *skip)
    return (
        f"{len(each)} columns without names may be the items of a transaction, or the two sides and more; say {items} "
        f"if they are, or {options_of(None, 0, 1)} if the first two are the sides"
    )


def _quotes_fields(data: bytes, delimiter: str) -> bool:
    """Whether quotes enclose whole fields: they open at a field's start and close at its end, in turn.

    A doubled quote closes and opens again. Quotes inside an unquoted field are valid, too, but give False here.
    """
    text = np.frombuffer(b"\n" + data, dtype=np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    at_border = np.isin(text, [ord(delimiter), ord("\n"), ord('"')])
    return bool(len(quotes) % 2 == 0 and at_border[quotes[::2] - 1].all() and at_border[quotes[1::2] + 1].all())
