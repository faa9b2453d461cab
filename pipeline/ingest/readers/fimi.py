"""Lines of neighbours: line k lists the right labels of left vertex k, so it has one edge per label.

FIMI counts lines, which are transactions, from 1. The adjacency lists (``.adj``) that the published programs for
bicliques take count them from 0. A blank line has a number, but no edges. Items stand between blanks, or what
``--delimiter`` names; then the first lines tell whether they are integers. A transaction may have any length; one that
is longer than a block is read in parts. Lines above the first transaction that begin with ``@``, as SPMF writes them,
or that are comments, are not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.readers import blocks, look
from bicliques.pipeline.ingest.readers.base import shorten, to_batch
from bicliques.pipeline.ingest.readers.blocks import Block
from bicliques.pipeline.ingest.readers.cells import cells_of
from bicliques.pipeline.ingest.readers.labels import (
    AS_TEXT,
    INTEGER,
    TEXT,
    kind_of,
    looks_integer,
    parse_label,
    to_integers,
)
from bicliques.pipeline.ingest.readers.opening import FileHash
from bicliques.pipeline.ingest.readers.text import TextStream, split_blanks
from bicliques.pipeline.run.progress import number as number_of
from bicliques.schemas.errors import InputError, as_option, as_options
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Reading

#: Bytes of text that are parsed at a time, and bytes of a part of a long transaction.
BLOCK_BYTES = 1 << 20

#: Lines that are no transactions, above the first one: those of SPMF, and comments.
_ABOVE = re.compile(r"@[A-Z_]+(=|\s*$)|([#%]|//)\s")
#: Lists that tell whether each begins with its own number. Most numbers that count what follows.
_LISTS = _COUNTS = 3
#: The number of the first line.
_FIRST = {"fimi": 1, "adjacency": 0}


class Fimi(TextStream):
    """Edges of a file of transactions."""

    most_threads = 4
    left_is_counted = True

    def __init__(self, path: Path, options: IngestOptions, format: str):
        self.delimiter = options.delimiter or " "
        sample = look.sample_of(path, options)
        above = 0
        while options.skip_lines is None and above < len(sample) - 1 and _ABOVE.match(sample[above][1]):
            above += 1
        first = sample[above][0] if above else (options.skip_lines or 0) + 1
        self.shift = _FIRST[format] - first
        self.lines = sample[above:]
        self.items = [self._split(text) for _, text in self.lines]
        told = self.items if options.delimiter is not None else []
        kind = kind_of(options.label_type, (item for row in told for item in row))
        super().__init__(path, options, (INTEGER, kind), first_line=first)
        if self.lines and not options.skip_bad_lines and "\ufffd" not in self.lines[0][1]:
            self._refuse_others(format)
        self.reading = Reading(
            format=format,
            separator=look.shown_separator(self.delimiter),
            columns_why="the number of the line, and what is on it",
            lines_above=first - 1,
        )

    def _split(self, line: str) -> list[str]:
        """The items of a line."""
        if self.delimiter == " ":
            return split_blanks(line.removesuffix("\r"))
        return [item for field in look.fields_of(line, self.delimiter) if (item := field.strip(" \t\r"))]

    def _refuse_others(self, format: str) -> None:
        """Refuse a file whose first lines are no transactions, or have items between other characters."""
        (place, text), options = self.lines[0], self.options
        where, shown = f"{self.path}, line {place}", shorten(text)
        if options.delimiter is None:
            found = look.separators_in(item for row in self.items for item in row)
            if any("\t" in line and " " in line.strip() for _, line in self.lines):
                found = ["\t"]
            if found:
                option = look.option_of(found[0])
                is_table = _width({len(look.fields_of(line, found[0])) for _, line in self.lines})
                edges = (
                    f"{as_options(as_option('format', 'csv'), option)} if a line is an edge, or " if is_table else ""
                )
                raise InputError(
                    f"{where}: {look.shown_separator(found[0])} may stand between the items ({shown}); say "
                    f"{edges}{as_options(as_option('format', format), option)} if it is a transaction, or "
                    f"{look.option_of(' ')} if blanks stand between them"
                )
        is_guess = options.format is None and format == "fimi" and not options.delimiter
        if is_guess and len(self.items) > 1 and (width := _width(set(map(len, self.items)))):
            kind = "tsv" if all("\t" in line for _, line in self.lines) else "snap"
            raise InputError(
                f"{where}: all lines have {width} columns, as edges have ({shown}); say {as_option('format', kind)} "
                f"if a line is an edge, or {as_option('format', 'fimi')} if it is a transaction"
            )
        if options.skip_lines is None:
            above = look.lines_above(options, self.lines)
            look.refuse_comment_or_edge(self.path, above, lambda _: self.kinds[1] == TEXT)
            starts = [row[0] if row else "" for row in self.items]
            first = int(starts[0]) if starts[0] in ("0", "1") else 0
            is_numbered = len(starts) >= _LISTS and starts == [str(first + k) for k in range(len(starts))]
            if (is_numbered and max(map(len, self.items)) > 1) or all(start.endswith(":") for start in starts):
                raise InputError(
                    f"{where}: every line begins with its own vertex ({shown}), which would be one of its items; "
                    f"{look.as_edges(self.path)}, or say {as_option('skip_lines', 0)} if it is an item"
                )
        if self.kinds[1] == INTEGER and not all(map(looks_integer, self.items[0])):
            rest = [item for row in self.items[1:] for item in row]
            is_lone = bool(rest) and all(map(looks_integer, rest))
            remedy = f"leave the line out with {as_option('skip_lines', place)}" if is_lone else AS_TEXT
            raise InputError(f"{where}: the items are text ({shown}); {remedy}")

    def blocks(self, file: FileHash) -> Iterator[Block]:
        """The blocks of the file. They are small, because parsing takes up to 40 times the memory of a block."""
        for block in blocks.blocks(self.path, file, min(blocks.BLOCK_BYTES, BLOCK_BYTES), tear=self.delimiter == " "):
            self.numbered = block.number + block.data.count(b"\n") - self.first_line
            yield block

    def check_counts(self, left: pa.Array | None = None, right: pa.Array | None = None) -> None:
        """Refuse a file whose first line may count what follows: right vertices are used, or numbered from 0."""
        line = self.lines[0] if self.lines else (0, "")
        is_first = line[0] == self.first_line and self.options.skip_lines is None
        if self.reading.format != "adjacency" or not is_first or not all(map(looks_integer, self.items[0])):
            return
        said = [int(item) for item in self.items[0]]
        if not 2 <= len(said) <= _COUNTS or not said[0] == self.numbered - 1 > 1:
            return
        n_right = () if right is None else (len(right), len(right) - 1)
        if right is not None and right.type == INTEGER:
            n_right = (*n_right, pc.max(right).as_py())
        if said[-1] == self.rows - len(said) or said[1] in n_right:
            raise look.may_be(self.path, line, "the numbers of vertices and edges, or a list")

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse lines with nothing but 0 and 1, of which most are there several times."""
        if len(right) == 2 and cells_of([right.to_pylist()]) == "flags" and self.rows > 2 * len(left):
            raise InputError(
                f"{self.source}: this looks like a table of 0 and 1 with a column per vertex: its lines hold nothing "
                f"else, {self.rows:,} times in {number_of(len(left), 'line')}; {self.as_cells}"
            )

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Split the block into lines, then items, by Arrow. Repeated blanks give empty items, which are dropped."""
        is_blank = self.delimiter == " "
        try:
            text = block.data.decode()
        except UnicodeDecodeError:
            return None
        if not is_blank and '"' in text:
            return None
        lines = pc.split_pattern(pa.array([(text.replace("\t", " ") if is_blank else text)[:-1]], TEXT), "\n").flatten()
        lists = pc.split_pattern(lines, self.delimiter)
        ids = np.arange(block.number, block.number + len(lines)) + (self.n_before + self.shift)
        numbers = np.repeat(ids, pc.list_value_length(lists).to_numpy())
        items = lists.flatten() if is_blank else pc.ascii_trim(lists.flatten(), " \t")
        there = pc.not_equal(items, "")
        items = items.filter(there)
        labels = to_integers(items) if self.kinds[1] == INTEGER else items
        return None if labels is None else to_batch(pa.array(numbers, INTEGER).filter(there), labels)

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line into one edge per item."""
        left = self.n_before + self.shift + number
        return [(left, parse_label(item, "right", self.kinds[1])) for item in self._split(line)]


def _width(widths: set[int]) -> int:
    """The one number of columns of some lines, if edges have so many. 0 if there is none."""
    return next(iter(widths)) if len(widths) == 1 and 2 <= min(widths) <= look.MOST_COLUMNS else 0
