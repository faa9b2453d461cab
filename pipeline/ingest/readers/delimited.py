"""CSV and TSV: one edge per line, columns by name or position, fields in double quotes where needed.

If the first label of a column is an integer, the column has integers, and text further down is refused as a
mixture. If it is text, the column is text. `pipeline.ingest.readers.sniff` finds the delimiter and the header in
the first lines.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from pipeline.ingest.readers.base import BadLineError, EdgeStream, shorten
from pipeline.ingest.readers.blocks import Block
from pipeline.ingest.readers.columns import refuse_crossed
from pipeline.ingest.readers.labels import INTEGER, TEXT, looks_integer, parse_label
from pipeline.ingest.readers.sniff import Layout, sniff, split_fields
from pipeline.ingest.readers.text import TextStream, check_number, parse_table
from schemas.options import IngestOptions

__all__ = ["open_csv", "open_tsv"]


class Delimited(TextStream):
    """Edges of a CSV or TSV file.

    Parameters
    ----------
    layout : Layout
        The layout that the first lines show.
    """

    def __init__(self, path: Path, options: IngestOptions, name: str, layout: Layout):
        super().__init__(path, options, _kinds(layout, options), first_line=layout.first_line)
        self.format = name
        self.layout = layout
        self.side_names = layout.names
        self.guessed = options.left is None

    def told_kinds(self) -> tuple[pa.DataType | None, pa.DataType | None]:
        """See `EdgeStream`. A file with a header alone does not tell whether its labels are integers."""
        is_open = self.options.label_type == "auto"
        left, right = (
            None if is_open and not label else kind
            for label, kind in zip(self.layout.first_labels, self.kinds, strict=True)
        )
        return left, right

    def check_table(self, left: pa.Array, right: pa.Array) -> None:
        """Refuse a table with a column per right vertex."""
        if self.guessed:
            refuse_crossed(self, right, left, lambda: self.layout.flags)

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Parse the block, by Arrow unless it is plain, and with quotes only if it has some."""
        data = block.data
        if self.layout.delimiter.isascii():
            batch = self.plain(data, self.layout.delimiter, self.layout.columns, self.layout.n_columns)
            if batch is not None:
                return batch
        if b"\n\n" in data or data.startswith(b"\n"):
            data = re.sub(rb"\n+", b"\n", data).removeprefix(b"\n")
        quotes = b'"' in data
        # Arrow takes one byte for a delimiter, and reads "a"b as ab where the slow pass refuses the line.
        if not self.layout.delimiter.isascii() or (quotes and not _quotes_fields(data, self.layout.delimiter)):
            return None
        types = dict.fromkeys(self.layout.columns, TEXT)
        if self.layout.weight is not None:
            types[self.layout.weight] = pa.float64()
        columns = parse_table(data, self.layout.n_columns, types, self.layout.delimiter, quotes)
        if columns is None:
            return None
        return self.heavy(self.typed(columns[0], columns[1]), columns[2] if len(columns) > 2 else None)

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line, which is at most one edge."""
        if not line.strip(" \t"):
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
                "mend the line or name the --delimiter",
            )
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


def _kinds(layout: Layout, options: IngestOptions) -> tuple[pa.DataType, pa.DataType]:
    if options.label_type != "auto":
        kind = INTEGER if options.label_type == "int" else TEXT
        return kind, kind
    left, right = (INTEGER if looks_integer(label) else TEXT for label in layout.first_labels)
    return left, right


def open_csv(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a CSV file. Its delimiter is found unless it is given."""
    return Delimited(path, options, "csv", sniff(path, options, options.delimiter))


def open_tsv(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a file whose delimiter is a tab unless another is given."""
    return Delimited(path, options, "tsv", sniff(path, options, options.delimiter or "\t"))
