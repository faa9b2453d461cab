"""The common part of all text formats: a fast pass over blocks, and a slow pass that finds bad lines.

Compiled code or Arrow parses a block first. Arrow may refuse the block because of another number of columns, text for a
number, or an open quote. Then the block is cut into pieces, and pieces that fail again into smaller ones. The smallest
are read line by line in Python. Only this slow pass decides which lines are bad.

Blocks are parsed on all cores, and their edges come in the order of the file. So does the first error.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from copy import copy
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from bicliques.pipeline.ingest.readers.base import SIDES, SKIP, BadLineError, EdgeStream, shorten, to_batch
from bicliques.pipeline.ingest.readers.blocks import Block, blocks
from bicliques.pipeline.ingest.readers.labels import INTEGER, parse_label, to_integers, without_empty
from bicliques.pipeline.ingest.readers.opening import FileHash, hashed
from bicliques.pipeline.process.cores import count_cores
from bicliques.pipeline.process.in_order import MOST_THREADS, ahead, in_order
from bicliques.schemas.options import IngestOptions

#: Number of pieces that a refused block is cut into: 2 MiB become 64 KiB, then 2 KiB (and the rest of a line). Blocks
#: of so many bytes are for the slow pass.
_PIECES, _SLOW_BYTES = 32, 16 << 10

#: A block is not encoded if of every `_SAMPLE`-th of it so large a share is different.
_SAMPLE, _MOSTLY = 8, 0.9

#: Bytes of a file from which on compiled code parses plain integers. Arrow takes several times as long, and for fewer
#: bytes as long as loading the code.
LARGE_BYTES = 64 << 20
#: Most digits of a number that compiled code reads.
_MOST_DIGITS = 16

_TAB_TO_BLANK = bytes.maketrans(b"\t", b" ")


class TextStream(EdgeStream):
    """Edges of a text file.

    `kinds` are the types of the left and of the right labels, `INTEGER` or `TEXT`. Integers begin at `lowest`, and the
    lines that may have an edge at `first_line`. The reader has handled those before it.
    """

    #: Attributes that count something, which is added up over the blocks.
    tallies: ClassVar[tuple[str, ...]] = ("rows", "skipped", "light")
    #: Most threads that parse blocks.
    most_threads = MOST_THREADS

    def __init__(
        self,
        path: Path,
        options: IngestOptions,
        kinds: tuple[pa.DataType, pa.DataType],
        lowest: int = 0,
        first_line: int = 1,
    ):
        self.path, self.source, self.options = path, str(path), options
        self.as_cells = f"in Python, give bq.from_table(numpy.loadtxt({str(path)!r}))"
        self.kinds, self.lowest, self.first_line = kinds, lowest, first_line
        self.rows = 0
        self.is_large = path.stat().st_size >= LARGE_BYTES
        #: Digest of the file as stored, after it is read. It may still be being computed.
        self.stored: str | Future[str] | None = None

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Batches of edges. See `EdgeStream.chunks`. Text has dictionaries."""
        threads = min(count_cores(), self.most_threads)
        with hashed(self.path) as file:
            found = self.blocks(file)
            for batch, part in in_order(self._parsed, ahead(found, threads) if threads > 1 else found, threads):
                for name in self.tallies:
                    setattr(self, name, getattr(self, name) + getattr(part, name))
                yield batch
            self.stored = file.finish()

    def _parsed(self, block: Block) -> tuple[pa.RecordBatch, Self]:
        """Edges of a block, and a copy of this stream that counted it, because threads cannot share counts."""
        part = copy(self)
        for name in self.tallies:
            setattr(part, name, 0)
        batch = pa.concat_batches(list(part.batches_of(block.starting_at(self.first_line))))
        part.rows = batch.num_rows
        return to_batch(*map(_encoded, batch.columns)), part

    def blocks(self, file: FileHash) -> Iterator[Block]:
        """The blocks of the opened file."""
        return blocks(self.path, file)

    def digest(self) -> str | None:
        """See `EdgeStream`."""
        return self.stored.result() if isinstance(self.stored, Future) else self.stored

    def batches_of(self, block: Block) -> Iterator[pa.RecordBatch]:
        """Edges of a block, by Arrow if it can parse all of it, and otherwise in pieces or line by line."""
        if block.data.isspace() and not block.data.strip(b" \t\n"):  # a file may have gigabytes of blank lines
            block = Block(block.number, b"")
        # A carriage return inside a line is a line end for Arrow, but not for the slow pass.
        batch = None if b"\r" in block.data else self.parse_block(block)
        if batch is not None:
            yield batch
            return
        pieces = list(block.pieces(len(block.data) // _PIECES)) if len(block.data) > _SLOW_BYTES else []
        if len(pieces) > 1:
            for piece in pieces:
                yield from self.batches_of(piece)
        else:  # the block is small, or nearly all of it is one line
            yield self.parse_lines(block)

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """All edges of `block`. None when a line may be bad, or lines are read one by one."""
        return None

    @abstractmethod
    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Edges of one line (none for a blank line or a comment). BadLineError: it does not fit the format."""

    def parse_lines(self, block: Block) -> pa.RecordBatch:
        """The slow pass over `block`. It refuses the first bad line, or leaves bad lines out and counts them."""
        edges: list[tuple[int | str, int | str]] = []
        for number, raw in block.lines():
            try:
                edges.extend(self.parse_line(number, _decode(raw)))
            except BadLineError as bad:
                in_parts = block.torn and number == block.number
                if in_parts or not self.options.skip_bad_lines:
                    raise bad.at(f"{self.path}, line {number}", None if in_parts else SKIP) from None
                self.skipped += 1
        return to_batch(*(pa.array([edge[k] for edge in edges], self.kinds[k]) for k in (0, 1)))

    def plain(self, data: bytes, delimiter: str, columns: tuple[int, int], n_columns: int) -> pa.RecordBatch | None:
        """Labels of a block of plain integers. None for any other block, and when a label is below the lowest."""
        if self.kinds != (INTEGER, INTEGER) or self.options.min_weight is not None or not self.is_large:
            return None
        found = plain_integers(data, delimiter, columns, n_columns)
        if found is None or min(int(numbers.min()) for numbers in found) < self.lowest:
            return None
        return to_batch(*map(pa.array, found))

    def is_light(self, weight: float) -> bool:
        """Whether the edge of a line is to be left out. It is counted then."""
        light = self.options.min_weight is not None and not weight >= self.options.min_weight
        self.light += light
        return light

    def typed(self, columns: Sequence[pa.Array] | None) -> pa.RecordBatch | None:
        """Edges of columns: left and right labels as text, and weights if these matter. None when a label is bad."""
        if columns is None:
            return None
        labels = [
            to_integers(texts, self.lowest) if kind == INTEGER else without_empty(texts)
            for texts, kind in zip(columns, self.kinds, strict=False)
        ]
        if labels[0] is None or labels[1] is None:
            return None
        batch = to_batch(*labels)
        return batch if len(columns) == len(SIDES) else self.heavy(batch, columns[2])

    def heavy(self, batch: pa.RecordBatch, weights: pa.Array) -> pa.RecordBatch:
        """The edges whose weight is at least the smallest one, if weights matter. Others are counted."""
        if self.options.min_weight is None:
            return batch
        kept = batch.filter(pc.greater_equal(weights, self.options.min_weight))
        self.light += len(batch) - len(kept)
        return kept

    def edge(self, labels: Sequence[str]) -> tuple[int | str, int | str]:
        """An edge of a line. BadLineError: a label is bad."""
        left, right = (
            parse_label(text, side, kind, self.lowest)
            for text, side, kind in zip(labels, SIDES, self.kinds, strict=False)
        )
        return left, right


def plain_integers(data: bytes, delimiter: str, columns: Sequence[int], n_columns: int) -> list[np.ndarray] | None:
    """Some columns of a plain block, by compiled code, while other threads work. None when the block is not plain.

    It is plain if all lines have `n_columns` fields of digits, with one ASCII delimiter between two, and the wanted
    ones have no leading zero and at most 16 digits.
    """
    from bicliques.kernels.compiled.digits import read_columns  # not before it pays: it loads machine code

    wanted = np.full(n_columns, -1)
    wanted[list(columns)] = np.arange(len(columns))
    most = len(data) // (2 * n_columns)
    found = np.empty(len(columns) * most, np.int64)
    n = read_columns(np.frombuffer(data, np.uint8), ord(delimiter), wanted, _MOST_DIGITS, found, most)
    return list(found.reshape(len(columns), most)[:, :n]) if n > 0 else None


def _encoded(labels: pa.Array) -> pa.Array:
    """Text as a dictionary, which many threads make. But not if most of it is different, because it is hashed again."""
    if labels.type == INTEGER:
        return labels
    some = labels.slice(0, len(labels) // _SAMPLE)
    if len(some) and len(some.dictionary_encode().dictionary) > _MOSTLY * len(some):
        return labels
    return labels.dictionary_encode()


def _decode(line: bytes) -> str:
    if b"\r" in line:
        raise BadLineError("a carriage return inside the line", "save the file with Unix line ends")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        reason = f"byte {error.start + 1} is not UTF-8 ({shorten(line)})"
        raise BadLineError(reason, "convert the file to UTF-8 with iconv") from None


def tidy(data: bytes, comment: bytes = b"") -> bytes:
    """The text without comments, blank lines and blanks around lines, and with one blank between columns."""
    if comment and (data.startswith(comment) or b"\n" + comment in data):
        data = re.sub(rb"(?m)^%s[^\n]*\n" % re.escape(comment), b"", data)
    if b"\t" in data:
        data = data.translate(_TAB_TO_BLANK)
    text = np.frombuffer(data, np.uint8)
    is_gap = (text == ord(" ")) | (text == ord("\n"))
    if not is_gap[:1].any() and not (is_gap[1:] & is_gap[:-1]).any():
        return data  # most text is tidy, and finding that out takes a tenth of the time of what follows
    if b"  " in data:
        data = re.sub(rb" +", b" ", data)
    data = data.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")
    if b"\n\n" in data or data.startswith(b"\n"):
        data = re.sub(rb"\n+", b"\n", data).removeprefix(b"\n")
    return data


def split_blanks(line: str) -> list[str]:
    """Columns of a line, separated by blanks and tabs. Other white space does not separate."""
    return [field for field in line.replace("\t", " ").split(" ") if field]


def check_number(text: str, what: str) -> float:
    """The number in a text, which is a weight or a time. BadLineError: there is none."""
    try:
        return float(text)
    except ValueError:
        raise BadLineError(f"the {what} {shorten(text)} is not a number", "correct it or remove the column") from None


def parse_table(
    data: bytes, n_columns: int, types: dict[int, pa.DataType], delimiter: str = " ", quotes: bool = False
) -> list[pa.Array] | None:
    """Some columns of a table, by Arrow. None when Arrow refuses, or finds another number of rows.

    The lines have no blank one among them, each has its LF, and all must have `n_columns`. `types` are the wanted ones.
    """
    if not data:
        return [pa.array([], kind) for kind in types.values()]
    names = [str(k) for k in range(n_columns)]
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(data),
            read_options=pa_csv.ReadOptions(column_names=names),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter, quote_char='"' if quotes else False),
            convert_options=pa_csv.ConvertOptions(
                column_types={names[k]: kind for k, kind in types.items()},
                include_columns=[names[k] for k in types],
                null_values=[],
            ),
        )
    except pa.ArrowInvalid:
        return None
    # A label with a line break inside quotes makes fewer rows than lines.
    if table.num_rows != data.count(b"\n"):
        return None
    return [column.combine_chunks() for column in table.columns]
