"""CSV and TSV: one edge per line, columns by name or position, fields in double quotes where needed.

If the first label of a column is an integer, the column has integers, and text further down is refused as a
mixture. If it is text, the column is text. `pipeline.ingest.readers.look` finds the delimiter and the header in the
first lines. A line that repeats the header is left out, as files have it that were joined with `cat`.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline.ingest.readers.base import BadLineError, EdgeStream, shorten
from pipeline.ingest.readers.blocks import MARK, Block
from pipeline.ingest.readers.cells import cells_of
from pipeline.ingest.readers.crossed import refuse_cells, refuse_marks
from pipeline.ingest.readers.labels import INTEGER, TEXT, looks_integer, parse_label
from pipeline.ingest.readers.look import Layout, fields_of, look_at_table, option_of, split_fields
from pipeline.ingest.readers.text import TextStream, check_number, parse_table
from pipeline.run.progress import number
from schemas.errors import InputError
from schemas.options import IngestOptions
from schemas.reading import Doubt

__all__ = ["open_csv", "open_tsv"]

#: The character that stands for a delimiter of several characters. Text does not have it.
_UNIT = "\x1f"


class Delimited(TextStream):
    """Edges of a CSV or TSV file.

    Parameters
    ----------
    layout : Layout
        The layout that the first lines show.
    """

    as_table = "read it with --format table"
    tallies = (*TextStream.tallies, "repeated")

    def __init__(self, path: Path, options: IngestOptions, layout: Layout):
        super().__init__(path, options, _kinds(layout, options), first_line=layout.first_line)
        self.format = layout.reading.format
        self.layout = layout
        self.reading, self.is_named = layout.reading, layout.is_named
        self.delimiter = layout.delimiter if len(layout.delimiter) == 1 else _UNIT
        header = "" if layout.header else ", header=None"
        self.as_cells = f"in Python, give bq.from_table(pandas.read_csv({str(path)!r}{header}), labels=False)"
        self.repeated = 0
        if self.reading.is_guess:
            kinds = ("flags",) if layout.numbers_rows else ("flags", "counts")
            refuse_marks(self, layout.sample, kinds if layout.objection else ())
        if layout.objection is not None:
            table = "--format table" if layout.header else "--format table --no-header"
            is_table = cells_of(layout.sample[1:]) == "counts"
            more = f", or {table} if each further column is a vertex" if is_table else ""
            raise InputError(f"{path}, line {layout.first_line}: {layout.objection}{more}")

    @property
    def late_doubts(self) -> list[Doubt]:
        """See `EdgeStream`."""
        lines = number(self.repeated, "line repeats", "lines repeat")
        return [Doubt("repeated header", f"{lines} the header, and no edge is made of it")] if self.repeated else []

    def told_kinds(self) -> tuple[pa.DataType | None, pa.DataType | None]:
        """See `EdgeStream`. A file with a header alone does not tell whether its labels are integers."""
        is_open = self.options.label_type == "auto"
        left, right = (
            None if is_open and not label else kind
            for label, kind in zip(self.layout.first_labels, self.kinds, strict=True)
        )
        return left, right

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse a table with a column per right vertex."""
        if self.reading.is_guess:
            refuse_cells(self, self.layout.sample, left, right, n_rows)

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Parse the block, by Arrow unless it is plain, and with quotes only if it has some."""
        data, repeated = block.data, 0
        if self.may_repeat_header:
            data, repeated = self._without_headers(data)
        if self.delimiter == self.layout.delimiter and self.delimiter.isascii():
            batch = self.plain(data, self.delimiter, self.layout.columns, self.layout.n_columns)
            if batch is not None:
                self.repeated += repeated
                return batch
        if not self.may_repeat_header:
            data, repeated = self._without_headers(data)
        if self.delimiter != self.layout.delimiter:
            if _UNIT.encode() in data:
                return None
            data = data.replace(self.layout.delimiter.encode(), _UNIT.encode())
        if b"\n\n" in data or data.startswith(b"\n"):
            data = re.sub(rb"\n+", b"\n", data).removeprefix(b"\n")
        quotes = b'"' in data
        # Arrow takes one byte for a delimiter, and reads "a"b as ab where the slow pass refuses the line.
        if not self.delimiter.isascii() or (quotes and not _quotes_fields(data, self.delimiter)):
            return None
        types = dict.fromkeys(self.layout.columns, TEXT)
        if self.layout.weight is not None:
            types[self.layout.weight] = pa.float64()
        columns = parse_table(data, self.layout.n_columns, types, self.delimiter, quotes)
        batch = None if columns is None else self.typed(columns[0], columns[1])
        if columns is None or batch is None:
            return None
        self.repeated += repeated
        return self.heavy(batch, columns[2] if len(columns) > 2 else None)

    @property
    def may_repeat_header(self) -> bool:
        """Whether a line that repeats the header could be read as an edge."""
        names = [
            fields_of(self.layout.header, self.layout.delimiter)[k] for k in self.layout.columns if self.layout.header
        ]
        return bool(names) and all(
            kind != INTEGER or looks_integer(name) for name, kind in zip(names, self.kinds, strict=True)
        )

    def _without_headers(self, data: bytes) -> tuple[bytes, int]:
        """A block without the lines that repeat the header, and the number of them."""
        line = self.layout.header.encode() + b"\n"
        if len(line) == 1 or line not in data:
            return data, 0
        kept = [each for each in data.splitlines(keepends=True) if each.removeprefix(MARK) != line]
        return b"".join(kept), data.count(b"\n") - len(kept)

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line, which is at most one edge."""
        if not line.strip(" \t"):
            return []
        if self.layout.header and line.removeprefix(MARK.decode()) == self.layout.header:
            self.repeated += 1
            return []
        try:
            fields = split_fields(line, self.layout.delimiter, strict=True)
        except csv.Error as error:
            raise BadLineError(
                f"{shorten(line)} has a quote out of place ({error})",
                "mend it (a label cannot hold a line break)",
            ) from None
        if len(fields) != self.layout.n_columns:
            found = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            raise BadLineError(
                f"{found} where the first line has {self.layout.n_columns} ({shorten(line)})",
                "mend the line, or name the --delimiter" if self.layout.header else _torn(self.layout.delimiter),
                is_lone=not line.endswith(self.layout.delimiter) and bool(self.layout.header),
            )
        if not self.layout.header and not all(fields[k] for k in self.layout.columns):
            raise BadLineError(f"a label is empty ({shorten(line)})", _torn(self.layout.delimiter), is_lone=False)
        left, right = (
            parse_label(fields[k], side, kind)
            for k, side, kind in zip(self.layout.columns, ("left", "right"), self.kinds, strict=True)
        )
        weight = self.layout.weight
        is_light = weight is not None and self.is_light(check_number(fields[weight], "weight"))
        return [] if is_light else [(left, right)]


def _quotes_fields(data: bytes, delimiter: str) -> bool:
    """Whether quotes enclose whole fields: they open at a field's start and close at its end, in turn.

    A doubled quote closes and opens again. Quotes inside an unquoted field are valid, too, but give False here.
    """
    text = np.frombuffer(b"\n" + data, dtype=np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    at_border = np.isin(text, [ord(delimiter), ord("\n"), ord('"')])
    return bool(len(quotes) % 2 == 0 and at_border[quotes[::2] - 1].all() and at_border[quotes[1::2] + 1].all())


def _torn(delimiter: str) -> str:
    return f"mend the line, or say --format fimi {option_of(delimiter)} if a line has the items of a transaction"


def _kinds(layout: Layout, options: IngestOptions) -> tuple[pa.DataType, pa.DataType]:
    if options.label_type != "auto":
        kind = INTEGER if options.label_type == "int" else TEXT
        return kind, kind
    left, right = (INTEGER if looks_integer(label) else TEXT for label in layout.first_labels)
    return left, right


def open_csv(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a CSV file. Its delimiter is found unless it is given."""
    return Delimited(path, options, look_at_table(path, options, "csv", options.delimiter))


def open_tsv(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a file whose delimiter is a tab unless another is given."""
    return Delimited(path, options, look_at_table(path, options, "tsv", options.delimiter or "\t"))
