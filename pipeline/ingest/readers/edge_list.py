"""KONECT and SNAP: one edge per line, two to four columns between blanks or tabs: left, right, weight, time.

KONECT (``out.NAME``): comments begin with ``%``. The first says what the network is (``% bip unweighted``), and
the second may have the counts (``% edges left right``). The sides have two name spaces, both from 1.

SNAP: comments begin with ``#``. The file has one name space. Its first column becomes left and its second right,
so vertex 7 on both sides is two vertices.

All lines of a file have as many columns as the first edge, because a further one may be a neighbour and no weight. What
programs write above the edges is recognised: names of the columns, other comments, and the numbers of vertices and
edges. `networkx.write_edgelist` ends lines with a dictionary, which is no column.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.readers import look
from bicliques.pipeline.ingest.readers.base import SIDES, BadLineError, shorten
from bicliques.pipeline.ingest.readers.blocks import Block, numbered_lines
from bicliques.pipeline.ingest.readers.cells import refuse_cells
from bicliques.pipeline.ingest.readers.columns import side_names
from bicliques.pipeline.ingest.readers.labels import AS_TEXT, INTEGER, TEXT, header_number, kind_of, looks_integer
from bicliques.pipeline.ingest.readers.text import TextStream, check_number, parse_table, split_blanks, tidy
from bicliques.pipeline.run.progress import number as number_of
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Doubt, Reading

_EXTRA = ("weight", "time")

#: Most numbers above the edges: left, right, edges. A few edges are counted by small numbers, as labels are.
_MOST, _FEW = 3, 2


class EdgeList(TextStream):
    """Edges of a SNAP file, or one of KONECT.

    `counts` is the first line, if it may have counts. If it has another number of columns than those below
    (`is_above`), it is not read as an edge.
    """

    tallies: ClassVar[tuple[str, ...]] = (*TextStream.tallies, "commented")
    comment = "#"

    def __init__(self, path: Path, options: IngestOptions, format: str, lowest: int = 0):
        kind = kind_of(options.label_type, ())
        self.commented = 0
        sample = look.sample_of(path, options, lambda text: text.startswith(self.comment))
        above = look.lines_above(options, sample)
        sample = sample[len(above) :]
        rows = [_columns(text)[0] for _, text in sample]
        n = next((len(row) for row in rows if 2 <= len(row) <= look.MOST_COLUMNS), 0)
        look.refuse_comment_or_edge(path, above, lambda text: kind == TEXT and len(_columns(text)[0]) == n)
        has_comments = bool(above) or (bool(sample) and sample[0][0] > 1)
        self.first, below = sample[0] if sample else (0, ""), {len(row) for row in rows[1:]}
        self.is_above, self.counts = False, tuple[int, ...]()
        if format == "snap" and options.skip_lines is None and below and _are_counts(rows[0]):
            self.is_above = below in ({2}, {3}) and len(rows[0]) not in below
            # those of comments would be in them
            self.counts = tuple(map(int, rows[0])) if self.is_above or not has_comments else ()
            has_numbers = any(look.is_number(text) for row in rows[1:] for text in row[:2])
            if kind == TEXT and not self.is_above and not has_numbers:
                raise look.may_be(path, self.first, "the numbers of vertices and edges, or an edge")
        is_header = len(rows) > 1 and not self.is_above and len(rows[0]) == n and options.skip_lines is None
        has_names = look.has_names(options, rows) if is_header else False
        has_header = bool(has_names) and not look.is_number(rows[0][0])
        if has_names is None and kind == TEXT and len({look.is_number(text) for text in rows[0][:2]}) == 2:
            raise look.may_be(path, self.first, "the names of the columns, or an edge")
        edges, lines = rows[self.is_above or has_header :], sample[self.is_above or has_header :]
        self.n_columns = len(edges[0]) if edges and 2 <= len(edges[0]) <= look.MOST_COLUMNS else n or 2
        super().__init__(path, options, (kind, kind), lowest, first_line=lines[0][0] if lines else 1)
        if edges and not options.skip_bad_lines and "\ufffd" not in lines[0][1]:
            if n == 0:
                raise _other_columns(path, lines[0], edges)
            if kind == INTEGER and options.label_type == "auto" and not any(map(looks_integer, edges[0][:2])):
                raise InputError(f"{path}, line {lines[0][0]}: the labels are text ({shorten(lines[0][1])}); {AS_TEXT}")
        is_told = bool(above) or self.is_above or (bool(sample) and bool(options.skip_lines))
        self.reading = Reading(
            format=format,
            header=True if has_header else None,
            columns=side_names(rows[0] if has_header else None, (0, 1)),
            weight="column 2" if options.min_weight is not None else "",
            not_read=tuple(_EXTRA[(options.min_weight is not None) : self.n_columns - 2]),
            lines_above=self.first[0] - 1 + self.is_above if is_told else 0,
        )

    @property
    def late_doubts(self) -> list[Doubt]:
        """See `EdgeStream`."""
        found, (place, text) = [], self.first
        if self.is_above:
            said = f"line {place} ({shorten(text)}) counts vertices and edges, and no edge is made of it"
            found.append(Doubt("counts", said))
        if self.commented:
            lines = number_of(self.commented, "line of two labels begins", "lines of two labels begin")
            found.append(Doubt("comments", f"{lines} with {self.comment}, the sign of a comment, and make no edges"))
        return found

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Parse the block, which is tidied for Arrow. All lines must have as many columns as the first edge."""
        delimiter = "\t" if b"\t" in block.data[: block.data.find(b"\n")] else " "
        batch = self.plain(block.data, delimiter, (0, 1), self.n_columns)
        if batch is not None:
            return batch
        data = tidy(block.data, self.comment.encode())
        batch = self.plain(data, " ", (0, 1), self.n_columns)
        if batch is None and self.n_columns >= (2 if self.options.min_weight is None else 3):
            types = {k: TEXT if k < 2 else pa.float64() for k in range(self.n_columns)}
            batch = self.typed(parse_table(data, self.n_columns, types))
        if batch is not None:
            self.commented += len(self._label.findall(block.data)) if self.comment.encode() in block.data else 0
        return batch

    @property
    def _label(self) -> re.Pattern[bytes]:
        """A line that begins with the sign of a comment, and otherwise looks like an edge with a label."""
        more = rb"[ \t]+[^ \t\n]+" * (self.n_columns - 1)
        return re.compile(rb"(?m)^" + re.escape(self.comment.encode()) + rb"[^ \t\n]+" + more + rb"[ \t]*$")

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line, which is at most one edge."""
        if line.startswith(self.comment):
            self.commented += self._label.match(line.encode()) is not None
            return []
        fields, weight = _columns(line)
        if not fields:
            return []
        if len(fields) != self.n_columns:
            found = f"{number_of(len(fields), 'column')} where the first edge has {self.n_columns} ({shorten(line)})"
            if len(fields) < self.n_columns == 2:
                raise BadLineError(found, "mend the line")
            is_table = {*fields} <= {"0", "1"}
            remedy = self.as_cells if is_table else f"mend the line, or {look.as_edges(self.path)}"
            raise BadLineError(found, remedy, is_lone=False)
        numbers = [check_number(text, what) for what, text in zip(_EXTRA, fields[2:], strict=False)]
        if weight is not None:
            numbers.insert(0, weight)
        if self.options.min_weight is not None and not numbers:
            raise BadLineError(
                f"no weight ({shorten(line)})", f"add a third column, or leave {as_option('min_weight')} out"
            )
        edge = self.edge(fields)
        return [] if numbers and self.is_light(numbers[0]) else [edge]

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse a table of 0 and 1."""
        refuse_cells(self, ((), ()), left, right, n_rows)

    @property
    def n_edges(self) -> int:
        """Lines of edges that were read, with those that were left out."""
        return self.rows + self.skipped + self.light

    def check_counts(self, left: pa.Array | None = None, right: pa.Array | None = None) -> None:
        """Compare the first line with what was read. Of one of several files only the edges are counted.

        A line that is not read must have the numbers of what was read, and one that was read as an edge must not.
        """
        if not self.counts:
            return
        own = 0 if self.is_above else 1  # an edge of its own, with up to two vertices of its own
        *vertices, last = self.counts
        agree = last == self.n_edges - own and (self.is_above or left is not None)
        if left is not None and right is not None:
            sides = (left, right)
            agree &= all(said > 1 and said >= len(labels) - own for said, labels in zip(vertices, sides, strict=False))
            if len(self.counts) == len(sides):
                agree |= all(_counts(said, labels, own) for said, labels in zip(self.counts, sides, strict=True))
        if agree and not self.is_above and self.n_edges > _FEW:
            raise look.may_be(self.path, self.first, "the numbers of vertices and edges, or an edge")
        if not agree and self.is_above:
            place, text = self.first
            is_list = len(self.counts) == len(SIDES)
            remedy = look.as_edges(self.path) if is_list else f"leave it out with {as_option('skip_lines', place)}"
            raise InputError(
                f"{self.path}, line {place}: {shorten(text)} has another number of columns than the lines below, and "
                f"does not count what they have; mend the line, or {remedy}"
            )


def _are_counts(row: Sequence[str]) -> bool:
    return 1 <= len(row) <= _MOST and all(text.isascii() and text.isdigit() for text in row)


def _counts(said: int, labels: pa.Array, own: int) -> bool:
    """Whether a number counts the labels of a side. Read as an integer label itself, it is then the largest."""
    is_largest = not own or not pa.types.is_integer(labels.type) or said == pc.max(labels).as_py()
    return is_largest and said > 1 and said in (len(labels), len(labels) - own)


def _columns(line: str) -> tuple[list[str], float | None]:
    """The columns of a line, and the weight in the dictionary at its end, which networkx writes."""
    line = line.rstrip(" \t\r")
    weight = None
    if line.endswith("}") and (start := line.find("{")) > 0:
        with suppress(ValueError, SyntaxError, TypeError, KeyError):
            weight = float(ast.literal_eval(line[start:])["weight"])
        line = line[:start]
    return split_blanks(line), weight


def _other_columns(path: Path, line: look.Line, rows: list[list[str]]) -> InputError:
    """The error for a file whose first edge does not have two to four columns between blanks."""
    place, text = line
    if look.separators_in(rows[0]):
        remedy = f"say {as_option('format', 'csv')}"
    elif all(set(row) <= {"0", "1"} for row in rows):
        remedy = f"if it is a table of 0 and 1, in Python, give bq.from_table(numpy.loadtxt({str(path)!r}))"
    elif len(rows[0]) > 1 and len(rows) > 1:
        remedy = f"mend the line, or {look.as_edges(path)}"
    else:
        remedy = f"say {as_option('skip_lines', place)} if it is no edge, or {look.ANOTHER_FORMAT}"
    return InputError(
        f"{path}, line {place}: {number_of(len(rows[0]), 'column')} where 2 to {look.MOST_COLUMNS} are expected, "
        f"separated by blanks or tabs ({shorten(text)}); {remedy}"
    )


class Konect(EdgeList):
    """A KONECT file. Its header is compared with its edges."""

    comment = "%"

    def __init__(self, path: Path, options: IngestOptions, format: str):
        super().__init__(path, options, format, lowest=1)
        with closing(numbered_lines(path)) as lines:
            comments = [line[1:].split() for _, line in islice(lines, 2) if line.startswith(b"%")]
        kind = comments[0][0].decode(errors="replace") if comments and comments[0] else "bip"
        if kind in ("sym", "asym"):
            raise InputError(
                f"{path}, line 1: the header says {kind!r}, a network whose columns share one name space; "
                "if the first column is to be left and the second right, write bip in place of it"
            )
        words = comments[1] if len(comments) == 2 else []
        is_told = len(words) == 3 and all(word.isdigit() for word in words)
        self.told = [header_number(f"{path}, line 2", word) for word in words] if is_told else []

    def check_counts(self, left: pa.Array | None = None, right: pa.Array | None = None) -> None:
        """Refuse a file whose second line has another number of edges, or of vertices, than there are."""
        if self.told and self.told[0] != self.n_edges:
            raise self._disagree(number_of(self.told[0], "edge"), f"the file has {self.n_edges}")
        if not self.told or left is None or right is None or self.skipped or self.light:
            return
        for said, labels, side in zip(self.told[1:], (left, right), SIDES, strict=True):
            # Some names from 1 to n may be unused. Then the header has the largest name, or the number of used names.
            largest = pc.max(labels).as_py() if labels.type == INTEGER else max(said, len(labels))
            if said not in (len(labels), largest):
                found = f"the file has {len(labels)}" + (f" (largest {largest})" if labels.type == INTEGER else "")
                raise self._disagree(number_of(said, f"{side} vertex", f"{side} vertices"), found)

    def _disagree(self, said: str, found: str) -> InputError:
        return InputError(
            f"{self.path}, line 2: the header counts {said}, but {found}; "
            "the file may be cut short: download it again, or remove line 2 to take it as it is"
        )
