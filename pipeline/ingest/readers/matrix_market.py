"""Matrix Market coordinate files. Row numbers are left labels and column numbers right labels, as in the file.

An entry with the stored value zero is not an edge. Values are only compared with zero. A symmetric or
skew-symmetric file stores one triangle and stands for the whole matrix. So entry (i, j) is edge i - j and edge
j - i, as in `scipy.io.mmread`. Rows and columns are still two name spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.readers.base import NAN_REMEDY, BadLineError, shorten, to_batch
from bicliques.pipeline.ingest.readers.blocks import Block, numbered_lines
from bicliques.pipeline.ingest.readers.labels import INTEGER, TEXT, header_number
from bicliques.pipeline.ingest.readers.text import TextStream, check_number, parse_table, split_blanks, tidy
from bicliques.pipeline.run.progress import number as number_of
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Reading

_FIELDS = ("pattern", "integer", "real")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


class MatrixMarket(TextStream):
    """Edges of a Matrix Market file. Its header is compared with its entries."""

    tallies = (*TextStream.tallies, "entries")

    def __init__(self, path: Path, options: IngestOptions, format: str):
        with closing(numbered_lines(path)) as lines:
            self.n_columns, self.is_symmetric = _read_banner(path, next(lines, (1, b""))[1].decode(errors="replace"))
            if self.n_columns == 2 and options.min_weight is not None:
                raise InputError(
                    f"{path}, line 1: a matrix of pattern has no values; leave {as_option('min_weight')} out"
                )
            self.size_line, (self.n_rows, self.n_cols, self.n_entries) = _read_sizes(path, lines)
        super().__init__(path, options, (INTEGER, INTEGER), lowest=1, first_line=self.size_line + 1)
        weight = "value" if options.min_weight is not None else ""
        self.reading = Reading(
            format=format, weight=weight, not_read=("value",) if self.n_columns == 3 and not weight else ()
        )
        self.entries = 0

    def parse_block(self, block: Block) -> pa.RecordBatch | None:
        """Parse the tidied block by Arrow."""
        types = {0: TEXT, 1: TEXT, 2: pa.float64()} if self.n_columns == 3 else {0: TEXT, 1: TEXT}
        columns = parse_table(tidy(block.data), self.n_columns, types)
        batch = None if columns is None else self.typed(columns[:2])
        if columns is None or batch is None:
            return None
        bad = pc.or_(pc.greater(batch["left"], self.n_rows), pc.greater(batch["right"], self.n_cols))
        if self.n_columns == 3 and self.options.min_weight is None:
            bad = pc.or_(bad, pc.is_nan(columns[2]))
        if pc.any(bad, min_count=0).as_py():
            return None
        self.entries += batch.num_rows
        if self.n_columns == 3:
            there = pc.not_equal(columns[2], 0.0)
            batch = self.heavy(batch.filter(there), columns[2].filter(there))
        if not self.is_symmetric:
            return batch
        rest = batch.filter(pc.not_equal(batch["left"], batch["right"]))
        left = pa.concat_arrays([batch["left"], rest["right"]])
        return to_batch(left, pa.concat_arrays([batch["right"], rest["left"]]))

    def parse_line(self, number: int, line: str) -> Sequence[tuple[int | str, int | str]]:
        """Parse a line into up to two edges."""
        fields = split_blanks(line)
        if not fields:
            return []
        if len(fields) != self.n_columns:
            found = f"{number_of(len(fields), 'column')} where line 1 promises {self.n_columns} ({shorten(line)})"
            raise BadLineError(found, "mend the line or line 1")
        i, j = self.edge(fields)
        if int(i) > self.n_rows or int(j) > self.n_cols:
            raise BadLineError(
                f"entry ({i}, {j}) is outside the {self.n_rows} x {self.n_cols} matrix of line {self.size_line}",
                f"mend the entry or line {self.size_line}",
            )
        value = check_number(fields[2], "value") if self.n_columns == 3 else 1.0
        if self.options.min_weight is None and value != value:
            raise BadLineError(f"the value of entry ({i}, {j}) is NaN", NAN_REMEDY, is_lone=False)
        self.entries += 1
        if value == 0 or self.is_light(value):
            return []
        return [(i, j), (j, i)] if self.is_symmetric and i != j else [(i, j)]

    def check_counts(self, left: pa.Array | None = None, right: pa.Array | None = None) -> None:
        """Refuse a file with more or fewer entries than its header says."""
        found, said = self.entries + self.skipped, number_of(self.n_entries, "entry", "entries")
        if found != self.n_entries:
            raise InputError(
                f"{self.path}, line {self.size_line}: the header says {said}, but the file has {found}; "
                "it may be cut short: download it again, or correct the number"
            )


def _read_banner(path: Path, line: str) -> tuple[int, bool]:
    """The number of columns of an entry, and whether only one triangle is stored."""
    words = line.lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        raise InputError(
            f"{path}, line 1: {shorten(line)} is not a Matrix Market header; it must read %%MatrixMarket matrix "
            f"coordinate pattern general, or name another {as_option('format')}"
        )
    layout, field, symmetry = words[2:]
    if layout != "coordinate" or field not in _FIELDS or symmetry not in _SYMMETRIES:
        raise InputError(
            f"{path}, line 1: '{layout} {field} {symmetry}' is not a sparse matrix of edges; write it as "
            f"coordinate, {' or '.join(_FIELDS)}, {' or '.join(_SYMMETRIES)}"
        )
    return 2 if field == "pattern" else 3, symmetry != "general"


def _read_sizes(path: Path, lines: Iterable[tuple[int, bytes]]) -> tuple[int, list[int]]:
    """The number of the line with the sizes, and the sizes. `lines` are those below the first."""
    for place, line in lines:
        if line.startswith(b"%") or not line.strip():
            continue
        words = line.split()
        if len(words) == 3 and all(word.isdigit() for word in words):
            return place, [header_number(f"{path}, line {place}", word) for word in words]
        raise InputError(
            f"{path}, line {place}: {shorten(line)} is not a line of sizes; "
            "the first line after the comments must hold the numbers of rows, columns and entries"
        )
    raise InputError(f"{path} has no line of sizes; the file is cut short: download it again")
