"""Doubts about an input that can be read but looks odd: sentences for the log, the card and the facts of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.ingest.readers.base import EdgeStream, shorten
from pipeline.ingest.readers.columns import are_flags

__all__ = ["SLICE", "Variants", "duplicate_doubt", "flags_doubt", "form_doubt", "variants_of"]

#: If a side has more labels, or more bytes of labels, they are not compared. A million labels take half a second and
#: 140 bytes of memory each.
MOST_LABELS, MOST_BYTES = 1_000_000, 1 << 26
#: Labels that are handled at a time.
SLICE = 1 << 17

_BLANKS = (" ", "\t", "\N{NO-BREAK SPACE}")


@dataclass(frozen=True)
class Variants:
    """Labels that differ from another label of their side only in blanks and capitals.

    Parameters
    ----------
    count : int
        How many fewer labels there would be without blanks and capitals.
    example : (str, str)
        The first two labels in order that would be one, whatever the order of the input. Empty if there are none.
    """

    count: int
    example: tuple[str, str] = ("", "")

    def doubt(self, side: str) -> str | None:
        """The doubt in words, with the name of the side."""
        if self.count == 0:
            return None
        one, other = map(shorten, self.example)
        what = f"{self.count:,} {side} labels differ" if self.count > 1 else f"1 {side} label differs"
        return f"{what} from another one only in blanks or capitals, such as {one} and {other}; they are not merged"


def variants_of(labels: pa.Array) -> Variants | None:
    """Compare the distinct labels of a side without blanks and capitals. None when there are too many.

    Parameters
    ----------
    labels : Array
        int64, or large_string in any order.
    """
    if pa.types.is_integer(labels.type):
        return Variants(0)
    if len(labels) > MOST_LABELS or labels.nbytes > MOST_BYTES:
        return None
    keys = pa.chunked_array([_key(part) for part in _slices(labels)], labels.type)
    count = len(labels) - pc.count_distinct(keys).as_py()
    if count == 0:
        return Variants(0)
    counted = keys.value_counts()
    shared = min(counted.field("values").filter(pc.greater(counted.field("counts"), 1)).to_pylist())
    same = sorted(labels.filter(pc.equal(keys, shared).combine_chunks()).to_pylist())
    return Variants(count, (same[0], same[1]))


def _key(labels: pa.Array) -> pa.Array:
    labels = pc.utf8_lower(labels)
    for blank in _BLANKS:
        labels = pc.replace_substring(labels, blank, "")
    return labels


def _slices(labels: pa.Array) -> Iterator[pa.Array]:
    return (labels.slice(start, SLICE) for start in range(0, len(labels), SLICE))


def duplicate_doubt(stream: EdgeStream, duplicates: int, n_rows: int) -> str | None:
    """The doubt that more than half of the rows are duplicates. Mostly the wrong columns were read then."""
    if 2 * duplicates <= n_rows:
        return None
    said = f"{duplicates:,} of {n_rows:,} rows are duplicates"
    if not stream.guessed:
        return said
    left, right = stream.side_names
    return f"{said}; are {left} and {right} the columns you mean? name them with --left and --right"


def flags_doubt(stream: EdgeStream, left: pa.Array, right: pa.Array) -> str | None:
    """The doubt that two columns of 0 and 1 are right vertices. There are too few rows to refuse them (`refuse_flags`).

    Parameters
    ----------
    stream : EdgeStream
        Of a table.
    left, right : Array
        The distinct labels.
    """
    if not are_flags(left, right):
        return None
    names = " and ".join(stream.side_names)
    return (
        f"{names} have only 0 and 1, and are read as the left and the right ends of edges; if {names} are two right "
        f"vertices, and a row is a left one, {stream.as_frame.remedy()}"
    )


#: Forms that text labels rarely have on purpose, and what to say if all labels of a side have one.
_FORMS = (
    (r"^[0-9]+\.[0-9]+$", "floating-point numbers", "and are taken as text, digit for digit"),
    (
        r"(?s)^(\[.*\]|\(.*\)|\{.*\})$",
        "lists",
        "and each is taken as one label; give a row per member, or a column of lists in Parquet or Arrow",
    ),
)


def form_doubt(labels: pa.Array, side: str) -> str | None:
    """The doubt that all labels look like floating-point numbers, or like lists that were written as text.

    A table with types would refuse such numbers, and make an edge of each member of a list.
    """
    for form, what, how in _FORMS if not pa.types.is_integer(labels.type) else ():
        if all(pc.all(pc.match_substring_regex(part, form)).as_py() for part in _slices(labels)):
            return f"the {side} labels look like {what}, such as {shorten(labels[0].as_py())}, {how}"
    return None
