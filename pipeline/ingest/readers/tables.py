"""Batches of labels from tables whose columns have types, in a file or in memory.

Integers of any width become int64, and in the label table int32 if the column has 32 bits. Strings of any layout become
strings. The two label columns are the first two unless others are named. Messages count rows from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.types import is_decimal

from bicliques.pipeline.ingest.readers.base import BadLineError, EdgeStream, to_batch
from bicliques.pipeline.ingest.readers.cells import has_edge, refuse_cells, refuse_marks
from bicliques.pipeline.ingest.readers.columns import choose, column_of_field, index_first
from bicliques.pipeline.ingest.readers.look import are_numbered, are_shared
from bicliques.pipeline.ingest.readers.sieve import (
    Slice,
    integers_of,
    is_list,
    is_text,
    kinds_of,
    only_used,
    sieve,
    slices,
    why_bad,
)
from bicliques.schemas.errors import InputError
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Reading

#: Rows that are handled at a time.
ROWS = 1 << 20

#: Rows of other columns that are read, and most of these columns.
FURTHER_ROWS, _MOST_COLUMNS = 100, 256

#: Errors that Arrow raises at a damaged table. pyarrow itself decodes the names of columns.
REFUSALS = (pa.ArrowException, OSError, UnicodeDecodeError)


@dataclass(frozen=True)
class Table:
    """A table with columns, as its file or its library has it.

    `names` are those of all columns, of which the first `n_index` are named levels of an index, and may be other
    types than strings. `take` gets the positions of the columns that are read (left, right, and weights if these
    matter), and returns a schema of them, and batches of them in this order. `first` gets positions, and returns
    the `FURTHER_ROWS` first values of these columns. `frame` is Python code for a pandas frame of the table.
    """

    names: Sequence[Any]
    take: Callable[[tuple[int, ...]], tuple[pa.Schema, Iterable[pa.RecordBatch]]]
    first: Callable[[list[int]], Iterable[Iterable[object]]]
    frame: str
    n_index: int = 0

    @classmethod
    def of_arrow(
        cls,
        schema: pa.Schema,
        read: Callable[[list[int]], Iterable[pa.RecordBatch]],
        head: Callable[[list[int]], pa.RecordBatch | pa.Table],
        frame: str,
    ) -> Table:
        """A table with the types of Arrow. `read` and `head` get positions of columns, for all rows and the first."""
        order, n_index = index_first(schema)

        def take(wanted: tuple[int, ...]) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
            columns = [order[k] for k in wanted]
            return pa.schema([schema.field(k) for k in columns]), read(columns)

        def first(positions: list[int]) -> Iterator[list[object]]:
            fit = [order[k] for k in positions if _fit_for_cells(schema.types[order[k]])]
            for column in head(fit).columns if fit else ():
                column.validate(full=True)
                yield column.to_pylist()

        return cls([schema.names[k] for k in order], take, first, frame, n_index)


class TableStream(EdgeStream):
    """Edges of a table with typed columns.

    `found` is a table of which two columns are to be found, or batches with nothing but edges, which are consumed once.
    `unit` is a word for a row in messages.
    """

    #: The first values of the columns: the two that are read, and, where it matters, the others.
    first: Sequence[Sequence[object]] = ((), ())
    objection: str | None = None

    def __init__(
        self,
        source: str,
        format: str,
        options: IngestOptions,
        found: Table | Iterable[pa.RecordBatch],
        unit: str = "row",
    ):
        self.source, self.options, self.unit = source, options, unit
        if not isinstance(found, Table):
            self.reading, self.batches = Reading(format=format), found
            return
        if len(found.names) == 1 and is_list(found.take((0,))[0].types[0]):
            raise InputError(
                f"{source}: column {found.names[0]!r} holds lists, but there is no column of labels beside it; add one "
                "that numbers the rows (pandas: frame.reset_index())"
            )
        choice = choose(source, options, found.names, len(found.names), format, found.n_index)
        self.table, self.reading, self.wanted = found, choice.reading, choice.wanted
        self.is_named, self.objection = choice.is_named, choice.objection
        self.as_table = self.as_cells = f"in Python, give bq.from_table({found.frame})"
        try:
            schema, self.batches = found.take(choice.wanted)
        except REFUSALS as error:
            raise self.damaged(reason_of(error)) from error
        self.integers, self.kinds = integers_of(schema), kinds_of(schema, options.label_type)

    def damaged(self, reason: str) -> InputError:
        """The error for a table that Arrow cannot read."""
        return InputError(f"{self.source} cannot be read ({reason}); make it anew")

    def check_table(self, left: pa.Array, right: pa.Array, n_rows: int) -> None:
        """Refuse a table with a column per right vertex."""
        if self.reading.is_guess:
            refuse_cells(self, self.first, left, right, n_rows)

    def _look(self, left: pa.Array, right: pa.Array) -> None:
        """Look at the first rows, and refuse what is no list of edges, or may be another one."""
        columns, table = [_values(column) for column in (left, right)], self.table
        has_numbered_names = are_numbered(table.names)
        if self.objection or has_numbered_names or None not in map(has_edge, columns[1]):
            others = [k for k in range(len(table.names)) if k not in self.wanted]
            with suppress(*REFUSALS):
                columns += map(list, table.first(others[:_MOST_COLUMNS]))
        self.first = columns
        are_no_labels = any(pa.types.is_floating(column.type) for column in (left, right))
        refuse_marks(self, self.first, ("flags", "counts") if are_no_labels or self.objection else ())
        if self.objection:
            raise InputError(f"{self.source}: {self.objection}")
        words = [["" if value is None else str(value) for value in column] for column in columns]
        if has_numbered_names and are_shared(words):
            raise InputError(
                f"{self.source}: {len(words)} columns without names of their own may be the items of a basket, or the "
                "two sides and more; say left=0, right=1 if the first two are the sides, or give a row per item if "
                f"they are a basket: {table.frame}.melt(ignore_index=False).dropna().reset_index().iloc[:, [0, 2]]"
            )
        if pa.types.is_boolean(left.type) and pa.types.is_boolean(right.type):
            raise InputError(
                f"{self.source} has two columns of booleans, which are no labels; if each is a vertex, "
                f"{self.as_table}, or cast them to integers"
            )

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """Batches of edges. See `EdgeStream.chunks`."""
        return self.labelled(self.batches)

    def labelled(self, batches: Iterable[pa.RecordBatch], n_before: int = 0) -> Iterator[pa.RecordBatch]:
        """Batches of edges of columns that begin behind `n_before` rows. Each has at most `ROWS` rows."""
        try:
            for batch in batches:
                batch.validate()
                left, right, *weights = batch.columns
                for column, name in zip((left, right), self.reading.columns, strict=True):
                    self._refuse_structs(name, column.type)
                for part in slices(self.source, left, right, ROWS):
                    if weights:
                        part = self._heavy(part, weights[0], n_before)
                    if len(part.left):
                        yield self._labels(part, n_before)
                n_before += len(left)
        except REFUSALS as error:
            raise self.damaged(reason_of(error)) from error

    def _refuse_structs(self, name: str, kind: pa.DataType) -> None:
        has_lists = is_list(kind)
        kind = kind.value_type if has_lists else kind
        if pa.types.is_struct(kind) and kind.num_fields:
            remedy = column_of_field(name, kind.field(0).name, self.table.frame, has_lists)
            raise InputError(f"{self.source}: column {name!r} has structs, and labels are integers or text; {remedy}")

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
        if n_before + part.row(0) == 0 and self.reading.is_guess:
            self._look(left[:FURTHER_ROWS], right[:FURTHER_ROWS])
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


def _fit_for_cells(kind: pa.DataType) -> bool:
    """Whether a column of this type may have cells of a table: numbers, booleans or marks."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_text(kind)


def _values(column: pa.Array) -> list[object]:
    """The values of a column. There are none if some are not UTF-8, which is said of them later."""
    try:
        values: list[object] = column.to_pylist()
    except UnicodeDecodeError:
        return []
    return values


def reason_of(error: Exception) -> str:
    """The first line of Arrow's message."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
