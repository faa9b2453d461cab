"""Lines of neighbours: line k lists the right labels of left vertex k, so it has one edge per label.

FIMI counts lines, which are transactions, from 1. The adjacency lists (``.adj``) that the published programs for
bicliques take count them from 0.

A blank line is a transaction without items. It has a number, but no edges. Items are integers, or text with
``--label-type string``. Transaction numbers are always integers, from 1. A transaction may have any length; one that
is longer than a block is read in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest.readers import blocks
from pipeline.ingest.readers.base import EdgeStream, to_batch
from pipeline.ingest.readers.blocks import Block
from pipeline.ingest.readers.columns import are_flags
from pipeline.ingest.readers.labels import INTEGER, TEXT, parse_label, to_integers
from pipeline.ingest.readers.opening import FileHash
from pipeline.ingest.readers.text import TextStream, split_blanks
from pipeline.run.progress import number
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["BLOCK_BYTES", "open_adjacency", "open_fimi"]

#: Bytes of text that are parsed at a time, and bytes of a part of a long transaction.
BLOCK_BYTES = 1 << 20


class Fimi(TextStream):
    """Edges of a file of transactions."""

    most_threads = 4
    left_is_counted = True

    def __init__(self, path: Path, options: IngestOptions, name: str, first_number: int):
        self.format = name
        self.shift = first_number - 1  # from numbers of lines, which begin at 1
        super().__init__(path, options, (INTEGER, TEXT if options.label_type == "string" else INTEGER))

    def blocks(self, file: FileHash) -> Iterator[Block]:
        """The blocks of the file. They are small, because parsing takes up to 40 times the memory of a block."""
        for block in blocks.blocks(self.path, file, min(blocks.BLOCK_BYTES, BLOCK_BYTES), tear=True):
            self.numbered = block.number + block.data.count(b"\n") - 1
            yield block

    def check_table(self, left: pa.Array, right: pa.Array) -> None:
        """Refuse lines with nothing but 0 and 1, of which most are there several times."""
        if are_flags(right) and self.rows > 2 * len(left):
            raise InputError(
                f"{self.source}: this looks like a table of 0 and 1 with a column per vertex: its lines hold nothing "
                f"else, {self.rows:,} times in {number(len(left), 'line')}; {self.as_frame.remedy()}"
            )

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Split the block into lines, then items, by Arrow. Repeated blanks give empty items, which are dropped."""
        try:
            text = block.data.decode().replace("\t", " ")
        except UnicodeDecodeError:
            return None
        lines = pc.split_pattern(pa.array([text[:-1]], TEXT), "\n").flatten()
        lists = pc.split_pattern(lines, " ")
        ids = np.arange(block.number, block.number + len(lines)) + (self.n_before + self.shift)
        numbers = np.repeat(ids, pc.list_value_length(lists).to_numpy())
        there = pc.not_equal(lists.flatten(), "")
        items = lists.flatten().filter(there)
        labels = to_integers(items) if self.kinds[1] == INTEGER else items
        return None if labels is None else to_batch(pa.array(numbers, INTEGER).filter(there), labels)

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line into one edge per item."""
        return [
            (self.n_before + self.shift + number, parse_label(item, "right", self.kinds[1]))
            for item in split_blanks(line)
        ]


def open_fimi(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a file of transactions."""
    return Fimi(path, options, "fimi", 1)


def open_adjacency(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a file of adjacency lists."""
    return Fimi(path, options, "adjacency", 0)
