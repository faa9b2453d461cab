"""Batches of labels from tables whose columns have types, in a file or in memory.

Integers of any width become int64, and in the label table int32 if the column has 32 bits. Strings of any layout become
strings. The two label columns are the first two unless others are named. Messages count rows from 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.types import is_decimal

from pipeline.ingest.readers.base import BadLineError, EdgeStream, to_batch
from pipeline.ingest.readers.columns import Flags, refuse_crossed
from pipeline.ingest.readers.lists import Slice, slices
from pipeline.ingest.readers.sieve import only_used, sieve, why_bad
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = ["FURTHER_ROWS", "REFUSALS", "ROWS", "Pair", "TableStream", "fit_for_flags", "reason_of"]

#: Rows that are handled at a time.
ROWS = 1 << 20

#: Rows of other columns that are read.
FURTHER_ROWS = 100

#: Errors that Arrow raises at a damaged table. pyarrow itself decodes the names of columns.
REFUSALS = (pa.ArrowException, OSError, UnicodeDecodeError)

#: The left and the right column of some rows, as they are stored, and their weights if these matter.
Pair = tuple[pa.Array, ...]


class TableStream(EdgeStream):
    """Edges of a table with typed columns.

    Parameters
    ----------
    source, format : str
    options : IngestOptions
    unit : str
        Word for a row in messages.
    """

    def __init__(self, source: str, format: str, options: IngestOptions, unit: str = "row"):
        self.source = source
        self.format = format
        self.options = options
        self.unit = unit

    @abstractmethod
    def pairs(self) -> Iterator[Pair]:
        """The two columns as they are stored, in the batches of the table."""

    def further(self) -> Iterable[Iterable[object]]:
        """The first values of the other columns, if their type allows 0 and 1."""
        return ()

    @abstractmethod
    def damaged(self, reason: str) -> InputError:
        """The error for a table that Arrow cannot read."""

    def check_table(self, left: pa.Array, right: pa.Array) -> None:
        """Refuse a table with a column per right vertex."""
        if self.guessed:
            refuse_crossed(self, right, left, self._flags)

    def _flags(self) -> Flags:
        return Flags.among(self.further())

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Batches of edges. See `EdgeStream.chunks`."""
        return self.labelled(self.pairs())

    def labelled(self, pairs: Iterable[Pair], n_before: int = 0) -> Iterator[pa.RecordBatch]:
        """Batches of edges of columns that begin behind `n_before` rows. Each has at most `ROWS` rows."""
        try:
            for left, right, *weights in pairs:
                for part in slices(self.source, left, right, ROWS):
                    if weights:
                        part = self._heavy(part, weights[0], n_before)
                    if len(part.left):
                        yield self._labels(part, n_before)
                n_before += len(left)
        except REFUSALS as error:
            raise self.damaged(reason_of(error)) from error

    def _heavy(self, part: Slice, weights: pa.Array, n_before: int) -> Slice:
        """The edges whose weight is at least the smallest one. Others are counted."""
        weights = weights.slice(part.start, part.stop - part.start)
        if not (pa.types.is_integer(weights.type) or pa.types.is_floating(weights.type) or is_decimal(weights.type)):
            raise InputError(f"{self.source}: the column of weights is {weights.type}; cast it to numbers")
        weights.validate(full=True)
        missing = weights.is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            if not self.options.skip_bad_lines:
                place = f"{self.source}, {self.unit} {n_before + part.start + int(missing.argmax()) + 1}"
                raise BadLineError("the weight is null", "fill it in").at(place)
            self.skipped += int(missing.sum())
        enough = pc.fill_null(pc.greater_equal(weights, self.options.min_weight), False).to_numpy(zero_copy_only=False)
        self.light += int((~enough & ~missing).sum())
        return part.only(enough)

    def _labels(self, part: Slice, n_before: int) -> pa.RecordBatch:
        left, right = part.left, part.right
        if n_before + part.row(0) == 0 and self.guessed:
            for column in (left, right):
                if not pa.types.is_integer(column.type) and fit_for_flags(column.type):
                    refuse_crossed(self, column[:FURTHER_ROWS].unique(), left, self._flags)
            if pa.types.is_boolean(left.type) and pa.types.is_boolean(right.type):
                raise InputError(
                    f"{self.source} has two columns of booleans, which are no labels; if each is a vertex, "
                    f"{self.as_frame.remedy()}, or cast them to integers"
                )
        left_labels, left_bad = sieve(left, f"{self.source}: the left", self.options.label_type)
        right_labels, right_bad = sieve(right, f"{self.source}: the right", self.options.label_type)
        bad = pc.or_(left_bad, right_bad)
        if not pc.any(bad, min_count=0).as_py():
            return to_batch(left_labels, right_labels)
        if not self.options.skip_bad_lines:
            row = pc.index(bad, True).as_py()
            column, side = (left, "left") if left_bad[row].as_py() else (right, "right")
            raise why_bad(column, row, side).at(f"{self.source}, {self.unit} {n_before + part.row(row) + 1}")
        good = pc.invert(bad)
        kept = [only_used(labels.filter(good)) for labels in (left_labels, right_labels)]
        self.skipped += len(bad) - len(kept[0])
        return to_batch(*kept)


def fit_for_flags(kind: pa.DataType) -> bool:
    """Whether a column of this type may have 0 and 1."""
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)


def reason_of(error: Exception) -> str:
    """The first line of Arrow's message."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
