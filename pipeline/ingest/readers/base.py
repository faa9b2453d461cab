"""The parts of a reader: a row in the table of formats, and the stream of raw edges that it opens.

A stream yields batches of two columns, ``left`` and ``right``. Each is int64, large_string, or a dictionary of
large_string in which every value occurs. There are no nulls, and labels are exactly as in the input. A column has
integers in every batch, or text in every batch. `pipeline.ingest.table.normalise` numbers the labels, sorts the edges
and removes duplicates.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Doubt, Reading

#: The two sides, and their names where the input has none.
SIDES = ("left", "right")

#: The remedy that every bad line has, besides its own remedies.
SKIP = f"leave such lines out with {as_option('skip_bad_lines', True)}"

#: What to do with NaN among the values of a matrix, where it stands for a missing entry.
NAN_REMEDY = (
    "if there is no edge, make it 0 (numpy.nan_to_num), or say from which weight on there is one with "
    f"{as_option('min_weight')}"
)

#: The options that apply to labels which may be text, and those that apply to a table with columns of such labels.
ON_LABELS = frozenset({"label_type"})
ON_TABLES = ON_LABELS | {"left", "right", "weight", "min_weight"}

#: The option that applies to formats whose edges may have a weight.
ON_WEIGHTS = frozenset({"min_weight"})

_UNUSED = {
    "left": f"{as_option('left')} names a column",
    "right": f"{as_option('right')} names a column",
    "delimiter": f"{as_option('delimiter')} separates columns",
    "header": f"{as_option('header')} and {as_option('header', False)} are about column names",
    "skip_lines": f"{as_option('skip_lines')} counts lines above the edges",
    "label_type": f"{as_option('label_type', 'string')} takes labels as text",
    "where": f"{as_option('where')} chooses files by their folders",
    "weight": f"{as_option('weight')} names a column",
    "min_weight": f"{as_option('min_weight')} compares weights",
}

#: In a quoted text: a backslash of its own, or the byte for which Python's ``surrogateescape`` stands.
_ESCAPES = re.compile(r"(\\\\)|\\udc([89a-f][0-9a-f])")


class BadLineError(Exception):
    """A line that is not an edge of its format. The caller adds the file and the line number.

    `reason` has the offending text, and `remedy` what the user can do, besides leaving the line out. That does not
    help if many lines may be wrong, and not one (`is_lone`).
    """

    def __init__(self, reason: str, remedy: str, is_lone: bool = True):
        super().__init__(reason)
        self.reason, self.remedy, self.is_lone = reason, remedy, is_lone

    def at(self, place: str, otherwise: str | None = SKIP) -> InputError:
        """The error that a user sees, in one sentence. `place` is the file and the line."""
        more = f", or {otherwise}" if otherwise and self.is_lone else ""
        return InputError(f"{place}: {self.reason}; {self.remedy}{more}")


class EdgeStream(ABC):
    """Raw edges of one source, batch after batch.

    Attributes
    ----------
    source : str
        The path as the user gave it, or the type of the object.
    skipped, light : int
        Lines (rows of a table) left out so far because of ``skip_bad_lines``, and edges because of ``min_weight``.
    integers : (DataType, DataType)
        Type of integer labels of the left and right side in the label table, int64 or int32.
    reading : Reading
        What the source is taken for.
    kinds : (DataType or None, DataType or None)
        Type of the labels of the left and of the right side in the batches: int64, or large_string (or a dictionary of
        it). None where the column does not tell.
    n_before, numbered : int
        In a format that numbers its lines, those of the files before this one, and those of this file. The latter are
        known when `chunks` has ended.
    left_is_counted : bool
        Whether the left labels are numbers of lines, which a table of 0 and 1 does not have.
    is_named : bool
        Whether the two columns have names that sides usually have.
    as_table, as_cells : str
        What to do if it is a table with a column per right vertex, and labels in front or nothing but cells.
    is_small : bool
        Whether all of it may be in memory, beside a few others like it, and its lines have no numbers. Then several
        files are read at a time.
    """

    source: str
    skipped: int = 0
    light: int = 0
    integers: tuple[pa.DataType, pa.DataType] = (pa.int64(), pa.int64())
    reading: Reading
    kinds: tuple[pa.DataType | None, pa.DataType | None] = (None, None)
    n_before: int = 0
    numbered: int = 0
    left_is_counted: bool = False
    is_named: bool = False
    as_table: str = ""
    as_cells: str = ""
    is_small: bool = False

    @abstractmethod
    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Batches with the columns left and right. It can be used once. A bad line is refused unless it is skipped."""

    def told_kinds(self) -> tuple[pa.DataType | None, pa.DataType | None]:
        """`kinds`, as far as the source tells them before it is read."""
        return self.kinds

    def digest(self) -> str | None:
        """BLAKE3 (hex) of the file's bytes, after `chunks` has ended. None for an object in memory."""
        return None

    @property
    def late_doubts(self) -> list[Doubt]:
        """What became doubtful while the edges were read, after `chunks` has ended."""
        return []

    @property
    def side_names(self) -> tuple[str, str]:
        """Names of the two columns that are read, in a form that can be shown."""
        return self.reading.columns

    def check(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Compare what the source says about itself with what was read, and refuse a table with a column per vertex.

        `left` and `right` are the distinct labels in any order, and `n_rows` the edges that were read, with duplicates.
        """
        self.check_counts(left, right)
        self.check_table(left, right, n_rows)

    def check_counts(self, left: pa.Array | None = None, right: pa.Array | None = None) -> None:
        """Refuse other counts in the header than in the lines. Labels are not known of one of several files."""
        return None

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse a table with a column per vertex. Parameters are those of `check`."""
        return None


@dataclass(frozen=True)
class Format:
    """A row of the table of formats.

    `patterns` are shell patterns of file names without a compression suffix, and `options` the fields of
    `IngestOptions` that the format can use; any other one that is set is an error. `open` makes a stream of a path,
    options and the name.
    """

    name: str
    patterns: tuple[str, ...]
    description: str
    options: frozenset[str]
    open: Callable[[Path, IngestOptions, str], EdgeStream]


def refuse_unused(name: str, used: frozenset[str], options: IngestOptions) -> None:
    """Refuse an option that would be ignored, because the format `name` does not use it."""
    for option, meaning in _UNUSED.items():
        value = getattr(options, option)
        if option in used or value is None or value == () or (option == "label_type" and value != "string"):
            continue
        raise InputError(f"{meaning}, which format {name} does not have; leave the option out")
    if (options.left is None) != (options.right is None):
        raise InputError(
            f"only one of {as_option('left')} and {as_option('right')} is given; name both columns, or neither for "
            "the first two"
        )


def shorten(text: str | bytes, most: int = 60) -> str:
    r"""`text` quoted for a message, cut to `most` characters. A byte that is not UTF-8 is written as ``\xe9``."""
    if isinstance(text, bytes):
        text = text.decode(errors="surrogateescape")
    quoted = repr(text if len(text) <= most else text[: most - 3] + "...")
    return _ESCAPES.sub(lambda found: found[1] or rf"\x{found[2]}", quoted)


def to_batch(*columns: pa.Array) -> pa.RecordBatch:
    """The two columns, and that of weights if there is one, as one batch."""
    return pa.RecordBatch.from_arrays(list(columns), names=[*SIDES, "weight"][: len(columns)])
