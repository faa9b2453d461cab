"""KONECT and SNAP: one edge per line, columns separated by blanks or tabs.

KONECT (``out.NAME``): comments begin with ``%``. The first says what the network is (``% bip unweighted``), and
the second may have the counts (``% edges left right``). The sides have two name spaces, both from 1. There are
two to four columns: left, right, weight, time. An edge with weight zero counts, too.

SNAP: comments begin with ``#``. The file has one name space. Its first column becomes left and its second right,
so vertex 7 on both sides is two vertices. There are two to four columns, as above.

All lines of a file have as many columns as the first edge, because a further one may be a neighbour and no weight. What
programs write above the edges is recognised: names of the columns, other comments, and the numbers of vertices and
edges. `networkx.write_edgelist` ends lines with a dictionary, which is no column.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest.readers.base import SIDES, BadLineError, EdgeStream, shorten
from pipeline.ingest.readers.blocks import Block, numbered_lines
from pipeline.ingest.readers.columns import side_names
from pipeline.ingest.readers.crossed import refuse_cells
from pipeline.ingest.readers.header import has_names, is_number
from pipeline.ingest.readers.labels import AS_TEXT, INTEGER, TEXT, header_number, looks_integer, parse_label
from pipeline.ingest.readers.look import (
    MOST_COLUMNS,
    Line,
    as_edges,
    lines_above,
    refuse_comment_or_edge,
    sample_of,
    separators_in,
)
from pipeline.ingest.readers.text import TextStream, check_number, parse_table, split_blanks, tidy
from pipeline.run.progress import number
from schemas.errors import InputError
from schemas.options import IngestOptions
from schemas.reading import Doubt, Reading

__all__ = ["open_konect", "open_snap"]

_EXTRA = ("weight", "time")

#: Most numbers above the edges: left, right, edges. A few edges are counted by small numbers, as labels are.
_MOST, _FEW = 3, 2


@dataclass(frozen=True)
class FirstLine:
    """A first line of whole numbers.

    Parameters
    ----------
    path : Path
    line : Line
    numbers : tuple of int
    is_above : bool
        Whether it has another number of columns than the lines below. Then it is not read as an edge.
    """

    path: Path
    line: Line
    numbers: tuple[int, ...]
    is_above: bool

    @classmethod
    def of(
        cls, path: Path, options: IngestOptions, sample: Sequence[Line], rows: Sequence[Sequence[str]]
    ) -> FirstLine | None:
        """The first line of a sample, if it may have counts, and nobody says how many lines are above the edges."""
        first, below = rows[0] if rows else (), {len(row) for row in rows[1:]}
        are_counts = 1 <= len(first) <= _MOST and all(text.isascii() and text.isdigit() for text in first)
        if options.skip_lines is not None or not are_counts or not below:
            return None
        found = cls(path, sample[0], tuple(map(int, first)), below in ({2}, {3}) and len(first) not in below)
        if (
            options.label_type == "string"
            and not found.is_above
            and not any(is_number(text) for row in rows[1:] for text in row[:2])
        ):
            raise found._either()
        return found

    def doubt(self) -> Doubt:
        """What is said of a line that is not read."""
        number, text = self.line
        return Doubt("counts", f"line {number} ({shorten(text)}) counts vertices and edges, and no edge is made of it")

    def check(self, left: pa.Array | None, right: pa.Array | None, n_edges: int) -> None:
        """Compare the numbers with what was read.

        Parameters
        ----------
        left, right : Array or None
            The distinct labels. None for one of several files, of which only the edges are counted.
        n_edges : int
            Lines that were read as edges.

        Raises
        ------
        InputError
            A line that is not read has other numbers, or one that was read as an edge has these.
        """
        own = 0 if self.is_above else 1  # an edge of its own, with up to two vertices of its own
        *vertices, last = self.numbers
        agree = last == n_edges - own and (self.is_above or left is not None)
        if left is not None and right is not None:
            sides = (left, right)
            agree &= all(said > 1 and said >= len(labels) - own for said, labels in zip(vertices, sides, strict=False))
            if len(self.numbers) == len(sides):
                agree |= all(_counts(said, labels, own) for said, labels in zip(self.numbers, sides, strict=True))
        if agree and not self.is_above and n_edges > _FEW:
            raise self._either()
        if not agree and self.is_above:
            number, text = self.line
            is_list = len(self.numbers) == len(SIDES)
            remedy = as_edges(self.path) if is_list else f"leave it out with --skip-lines {number}"
            raise InputError(
                f"{self.path}, line {number}: {shorten(text)} has another number of columns than the lines below, and "
                f"does not count what they have; mend the line, or {remedy}"
            )

    def _either(self) -> InputError:
        number, text = self.line
        return InputError(
            f"{self.path}, line {number}: {shorten(text)} may be the numbers of vertices and edges, or an edge; "
            f"say --skip-lines {number} to leave it out, or --skip-lines 0 to read it"
        )


def _counts(said: int, labels: pa.Array, own: int) -> bool:
    """Whether a number counts the labels of a side. Read as an integer label itself, it is then the largest."""
    is_largest = not own or not pa.types.is_integer(labels.type) or said == pc.max(labels).as_py()
    return is_largest and said > 1 and said in (len(labels), len(labels) - own)


class EdgeList(TextStream):
    """Edges of a KONECT or SNAP file.

    Parameters
    ----------
    name, comment : str
        Name of the format, and the beginning of its comments.
    """

    tallies: ClassVar[tuple[str, ...]] = (*TextStream.tallies, "commented")

    def __init__(self, path: Path, options: IngestOptions, name: str, comment: str, lowest: int):
        kind = TEXT if options.label_type == "string" else INTEGER
        self.format = name
        self.comment = comment
        self.commented = 0
        sample = sample_of(path, options, lambda text: text.startswith(comment))
        above = lines_above(options, sample)
        sample = sample[len(above) :]
        rows = [_columns(text)[0] for _, text in sample]
        n = next((len(row) for row in rows if 2 <= len(row) <= MOST_COLUMNS), 0)
        refuse_comment_or_edge(path, above, lambda text: kind == TEXT and len(_columns(text)[0]) == n)
        has_comments = bool(above) or (bool(sample) and sample[0][0] > 1)
        self.counts = FirstLine.of(path, options, sample, rows) if name == "snap" else None
        if has_comments and self.counts is not None and not self.counts.is_above:
            self.counts = None  # the counts would be in the comments
        is_above = self.counts is not None and self.counts.is_above
        has_header = len(rows) > 1 and not is_above and len(rows[0]) == n and _has_header(options, rows)
        names = rows[0] if has_header else None
        edges, lines = rows[is_above or has_header :], sample[is_above or has_header :]
        self.n_columns = len(edges[0]) if edges and 2 <= len(edges[0]) <= MOST_COLUMNS else n or 2
        super().__init__(path, options, (kind, kind), lowest, first_line=lines[0][0] if lines else 1)
        if edges and not options.skip_bad_lines and "\ufffd" not in lines[0][1]:
            if n == 0:
                raise _other_columns(path, lines[0], edges)
            if kind == INTEGER and options.label_type == "auto" and not any(map(looks_integer, edges[0][:2])):
                raise InputError(f"{path}, line {lines[0][0]}: the labels are text ({shorten(lines[0][1])}); {AS_TEXT}")
        self.reading = Reading(
            format=name,
            header=True if has_header else None,
            columns=side_names(names, (0, 1)),
            weight="column 2" if options.min_weight is not None else "",
            not_read=tuple(_EXTRA[(options.min_weight is not None) : self.n_columns - 2]),
            lines_above=sample[0][0] - 1 + is_above if above or is_above or (sample and options.skip_lines) else 0,
        )

    @property
    def late_doubts(self) -> list[Doubt]:
        """See `EdgeStream`."""
        found = [self.counts.doubt()] if self.counts is not None and self.counts.is_above else []
        if self.commented:
            lines = number(self.commented, "line of two labels begins", "lines of two labels begin")
            found.append(Doubt("comments", f"{lines} with {self.comment}, the sign of a comment, and make no edges"))
        return found

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Parse the block, which is tidied for Arrow. All lines must have as many columns as the first edge."""
        batch = self._plain(block.data, "\t" if b"\t" in block.data[: block.data.find(b"\n")] else " ")
        if batch is not None:
            return batch
        data = tidy(block.data, self.comment.encode())
        batch = self._plain(data, " ")
        least = 2 if self.options.min_weight is None else 3
        if batch is None and self.n_columns >= least:
            types = {k: TEXT if k < 2 else pa.float64() for k in range(self.n_columns)}
            columns = parse_table(data, self.n_columns, types)
            batch = None if columns is None else self.typed(columns[0], columns[1])
            if columns is not None and self.n_columns > 2:
                batch = self.heavy(batch, columns[2])
        if batch is not None:
            self.commented += len(self._label.findall(block.data)) if self.comment.encode() in block.data else 0
        return batch

    @property
    def _label(self) -> re.Pattern[bytes]:
        """A line that begins with the sign of a comment, and otherwise looks like an edge with a label."""
        more = rb"[ \t]+[^ \t\n]+" * (self.n_columns - 1)
        return re.compile(rb"(?m)^" + re.escape(self.comment.encode()) + rb"[^ \t\n]+" + more + rb"[ \t]*$")

    def _plain(self, data: bytes, delimiter: str) -> pa.RecordBatch | None:
        return self.plain(data, delimiter, (0, 1), self.n_columns)

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line, which is at most one edge."""
        if line.startswith(self.comment):
            self.commented += self._label.match(line.encode()) is not None
            return []
        fields, weight = _columns(line)
        if not fields:
            return []
        if len(fields) != self.n_columns:
            found = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            is_lone = len(fields) < self.n_columns == 2
            remedy = (
                "mend the line"
                if is_lone
                else self.as_cells
                if {*fields} <= {"0", "1"}
                else f"mend the line, or {as_edges(self.path)}"
            )
            raise BadLineError(f"{found} where the first edge has {self.n_columns} ({shorten(line)})", remedy, is_lone)
        numbers = [check_number(text, what) for what, text in zip(_EXTRA, fields[2:], strict=False)]
        if weight is not None:
            numbers.insert(0, weight)
        if self.options.min_weight is not None and not numbers:
            raise BadLineError(f"no weight ({shorten(line)})", "add a third column, or leave --min-weight out")
        left, right = (
            parse_label(text, side, kind, self.lowest)
            for text, side, kind in zip(fields, ("left", "right"), self.kinds, strict=False)
        )
        return [] if numbers and self.is_light(numbers[0]) else [(left, right)]

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse a table of 0 and 1."""
        refuse_cells(self, ((), ()), left, right, n_rows)

    @property
    def n_edges(self) -> int:
        """Lines of edges that were read, with those that were left out."""
        return self.rows + self.skipped + self.light

    def check_counts(self, left: pa.Array | None = None, right: pa.Array | None = None) -> None:
        """Compare the first line with what was read, if it may count vertices and edges."""
        if self.counts is not None:
            self.counts.check(left, right, self.n_edges)


def _has_header(options: IngestOptions, rows: list[list[str]]) -> bool:
    """Whether the first line has the names of the columns."""
    return options.skip_lines is None and not is_number(rows[0][0]) and bool(has_names(options, rows))


def _columns(line: str) -> tuple[list[str], float | None]:
    """The columns of a line, and the weight in the dictionary at its end, which networkx writes."""
    line = line.rstrip(" \t\r")
    weight = None
    if line.endswith("}") and (start := line.find("{")) > 0:
        with suppress(ValueError, SyntaxError, TypeError, KeyError):
            weight = float(ast.literal_eval(line[start:])["weight"])
        line = line[:start]
    return split_blanks(line), weight


def _other_columns(path: Path, line: Line, rows: list[list[str]]) -> InputError:
    """The error for a file whose first edge does not have two to four columns between blanks."""
    place, text = line
    found = "1 column" if len(rows[0]) == 1 else f"{len(rows[0])} columns"
    if separators_in(rows[0]):
        remedy = "say --format csv"
    elif all(set(row) <= {"0", "1"} for row in rows):
        remedy = f"if it is a table of 0 and 1, in Python, give bq.from_table(numpy.loadtxt({str(path)!r}))"
    elif len(rows[0]) > 1 and len(rows) > 1:
        remedy = f"mend the line, or {as_edges(path)}"
    else:
        remedy = f"say --skip-lines {place} if it is no edge, or another --format (`bicliques look` shows the lines)"
    return InputError(
        f"{path}, line {place}: {found} where 2 to {MOST_COLUMNS} are expected, separated by blanks or tabs "
        f"({shorten(text)}); {remedy}"
    )


class Konect(EdgeList):
    """A KONECT file. Its header is compared with its edges."""

    def __init__(self, path: Path, options: IngestOptions):
        super().__init__(path, options, "konect", "%", lowest=1)
        with closing(numbered_lines(path)) as lines:
            comments = [line[1:].split() for _, line in islice(lines, 2) if line.startswith(b"%")]
        kind = comments[0][0].decode(errors="replace") if comments and comments[0] else "bip"
        if kind in ("sym", "asym"):
            raise InputError(
                f"{path}, line 1: the header says {kind!r}, a network whose columns share one name space; "
                "if the first column is to be left and the second right, write bip in place of it"
            )
        self.told: tuple[int, ...] | None = None
        if len(comments) == 2 and len(comments[1]) == 3 and all(word.isdigit() for word in comments[1]):
            self.told = tuple(header_number(f"{path}, line 2", word) for word in comments[1])

    def check_counts(self, left: pa.Array | None = None, right: pa.Array | None = None) -> None:
        """Also refuse a file whose second line has another number of edges, or of vertices, than there are."""
        super().check_counts(left, right)
        if self.told is not None and self.told[0] != self.n_edges:
            raise self._disagree(number(self.told[0], "edge"), f"the file has {self.n_edges}")
        if self.told is None or left is None or right is None or self.skipped or self.light:
            return
        for said, labels, side in ((self.told[1], left, "left"), (self.told[2], right, "right")):
            # Some names from 1 to n may be unused. Then the header has the largest name, or the number of used names.
            largest = pc.max(labels).as_py() if labels.type == INTEGER else max(said, len(labels))
            if said not in (len(labels), largest):
                found = f"the file has {len(labels)}" + (f" (largest {largest})" if labels.type == INTEGER else "")
                raise self._disagree(number(said, f"{side} vertex", f"{side} vertices"), found)

    def _disagree(self, said: str, found: str) -> InputError:
        return InputError(
            f"{self.path}, line 2: the header counts {said}, but {found}; "
            "the file may be cut short: download it again, or remove line 2 to take it as it is"
        )


def open_konect(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a KONECT file."""
    return Konect(path, options)


def open_snap(path: Path, options: IngestOptions) -> EdgeStream:
    """Open a SNAP file."""
    return EdgeList(path, options, "snap", "#", lowest=0)
