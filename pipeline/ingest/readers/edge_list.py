"""KONECT and SNAP: one edge per line, columns separated by blanks or tabs.

KONECT (``out.NAME``): comments begin with ``%``. The first says what the network is (``% bip unweighted``), and
the second may have the counts (``% edges left right``). The sides have two name spaces, both from 1. There are
two to four columns: left, right, weight, time. An edge with weight zero counts, too.

SNAP: comments begin with ``#``. The file has one name space. Its first column becomes left and its second right,
so vertex 7 on both sides is two vertices. There are two to four columns, as above.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest.readers.base import BadLineError, EdgeStream, shorten
from pipeline.ingest.readers.blocks import Block, numbered_lines
from pipeline.ingest.readers.labels import INTEGER, TEXT, header_number, parse_label
from pipeline.ingest.readers.text import TextStream, check_number, parse_table, split_blanks, tidy
from pipeline.run.progress import number
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["open_konect", "open_snap"]

_EXTRA = ("weight", "time")
_MOST_COLUMNS = 2 + len(_EXTRA)


class EdgeList(TextStream):
    """Edges of a KONECT or SNAP file.

    Parameters
    ----------
    name, comment : str
        Name of the format, and the beginning of its comments.
    """

    def __init__(self, path: Path, options: IngestOptions, name: str, comment: str, lowest: int):
        kind = TEXT if options.label_type == "string" else INTEGER
        super().__init__(path, options, (kind, kind), lowest)
        self.format = name
        self.comment = comment

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Parse the block, which is tidied for Arrow. All lines must have as many columns as the first."""
        batch = self._plain(block.data, "\t" if b"\t" in block.data[: block.data.find(b"\n")] else " ")
        if batch is not None:
            return batch
        data = tidy(block.data, self.comment.encode())
        n_columns = _columns_of(data, " ")
        least = 2 if self.options.min_weight is None else 3
        if data and not least <= n_columns <= _MOST_COLUMNS:
            return None
        batch = self._plain(data, " ")
        if batch is not None:
            return batch
        types = {k: TEXT if k < 2 else pa.float64() for k in range(max(n_columns, least))}
        columns = parse_table(data, max(n_columns, least), types)
        if columns is None:
            return None
        return self.heavy(self.typed(columns[0], columns[1]), columns[2] if len(columns) > 2 else None)

    def _plain(self, data: bytes, delimiter: str) -> pa.RecordBatch | None:
        n_columns = _columns_of(data, delimiter)
        return self.plain(data, delimiter, (0, 1), n_columns) if 2 <= n_columns <= _MOST_COLUMNS else None

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line, which is at most one edge."""
        if line.startswith(self.comment):
            return []
        fields = split_blanks(line)
        if not fields:
            return []
        if not 2 <= len(fields) <= _MOST_COLUMNS:
            found = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            raise BadLineError(
                f"{found} where 2 to {_MOST_COLUMNS} are expected, separated by blanks or tabs ({shorten(line)})",
                self.as_frame.remedy() if set(fields) <= {"0", "1"} else "mend the line or name another --format",
            )
        numbers = [check_number(text, what) for what, text in zip(_EXTRA, fields[2:], strict=False)]
        if self.options.min_weight is not None and not numbers:
            raise BadLineError(f"no weight ({shorten(line)})", "add a third column, or leave --min-weight out")
        left, right = (
            parse_label(text, side, kind, self.lowest)
            for text, side, kind in zip(fields, ("left", "right"), self.kinds, strict=False)
        )
        return [] if numbers and self.is_light(numbers[0]) else [(left, right)]


def _columns_of(data: bytes, delimiter: str) -> int:
    """Columns of the first line."""
    return data.count(delimiter.encode(), 0, data.find(b"\n") + 1) + 1


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
        self.counts: tuple[int, ...] | None = None
        if len(comments) == 2 and len(comments[1]) == 3 and all(word.isdigit() for word in comments[1]):
            self.counts = tuple(header_number(f"{path}, line 2", word) for word in comments[1])

    def check_counts(self) -> None:
        """Refuse a file whose second line has another number of edges than there are."""
        n_lines = self.rows + self.skipped + self.light
        if self.counts is not None and self.counts[0] != n_lines:
            raise self._disagree(number(self.counts[0], "edge"), f"the file has {n_lines}")

    def check(self, left: pa.Array, right: pa.Array) -> None:
        """Also refuse a file whose second line has other numbers of vertices than there are."""
        super().check(left, right)
        if self.counts is None or self.skipped or self.light:
            return
        for said, labels, side in ((self.counts[1], left, "left"), (self.counts[2], right, "right")):
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
