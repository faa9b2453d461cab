"""Doubts about an input that can be read but looks odd: sentences for the log, the card and the facts of a run.

`DOUBTS` is the list of all but those that readers find themselves (`EdgeStream.reading`, `EdgeStream.late_doubts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from unicodedata import normalize

import pyarrow as pa
import pyarrow.compute as pc

from bicliques.pipeline.ingest.readers.base import EdgeStream, shorten
from bicliques.pipeline.ingest.readers.cells import cells_of
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import InputError, as_option
from bicliques.schemas.reading import Doubt, Reading

#: If a side has more labels, or more bytes of labels, they are not looked at. To compare a million takes half a second,
#: and 140 bytes of memory each. A spreadsheet has no more rows.
MOST_LABELS, MOST_BYTES = 1_000_000, 1 << 26
#: Labels that are handled at a time.
SLICE = 1 << 17

#: Characters that nobody sees, or sees as a blank: those of ASCII, and the others.
_BLANKS = (" ", "\t")
_MORE_BLANKS = ("\N{NO-BREAK SPACE}", "\N{SOFT HYPHEN}", *"\u200b\u200c\u200d\u2060\ufeff")
#: From so many edges on it is odd if every vertex of a side has one edge only.
_SOME_EDGES = 10


@dataclass(frozen=True)
class Seen:
    """An input that has been read, or a part of it.

    Parameters
    ----------
    labels : (Array, Array)
        The distinct labels of each side, int64, or large_string in any order.
    n_rows, duplicates : int
        Edges that were read, and how many of them had occurred before.
    is_file, is_chosen : bool
        Whether it is read from a file, and whether the two columns are named.
    """

    stream: EdgeStream
    labels: tuple[pa.Array, pa.Array]
    n_rows: int
    duplicates: int
    is_file: bool
    is_chosen: bool

    @cached_property
    def variants(self) -> tuple[Variants | None, ...]:
        """See `variants_of`."""
        return tuple(map(variants_of, self.labels))


def read_as(seen: Seen) -> Reading:
    """What an input was taken for, once it is read, with every doubt about it."""
    stream, (left, right) = seen.stream, ("integers" if _is_integer(labels) else "text" for labels in seen.labels)
    found = (doubt for find in DOUBTS for doubt in find(seen))
    doubts = (*stream.reading.doubts, *stream.late_doubts, *found)
    return replace(stream.reading, labels=(left, right), doubts=doubts)


def refuse_doubts(source: str, notes: Iterable[str]) -> None:
    """Refuse an input with doubts, for ``--strict``."""
    if texts := "; ".join(notes):
        raise InputError(
            f"{source} is doubtful: {texts}; mend it, or leave {as_option('strict')} out if it is as it should be"
        )


@dataclass(frozen=True)
class Variants:
    """Labels that differ from another label of their side only in blanks, capitals, or how Unicode writes them.

    Parameters
    ----------
    count : int
        How many fewer labels there would be without these differences.
    example : (str, str)
        The first two labels in order that would be one, whatever the order of the input. Empty if there are none.
    """

    count: int
    example: tuple[str, str] = ("", "")

    def doubt(self, side: str) -> str | None:
        """The doubt in words, with the name of the side."""
        if self.count == 0:
            return None
        one, other = self.example
        how = "blanks or capitals" if (one + other).isascii() else "blanks, capitals or their form in Unicode"
        is_same = normalize("NFC", one) == normalize("NFC", other)  # then a terminal shows no difference
        one, other = (ascii(label) if is_same else shorten(label) for label in self.example)
        what = f"{self.count:,} {side} labels differ" if self.count > 1 else f"1 {side} label differs"
        return f"{what} from another one only in {how}, such as {one} and {other}; they are not merged"


def variants_of(labels: pa.Array) -> Variants | None:
    """Compare the distinct labels of a side without these differences. None when there are too many.

    Parameters
    ----------
    labels : Array
        int64, or large_string in any order.
    """
    if _is_integer(labels):
        return Variants(0)
    if _are_too_many(labels):
        return None
    keys = pa.chunked_array([_key(part) for part in _slices(labels)], labels.type)
    count = len(labels) - pc.count_distinct(keys).as_py()
    if count == 0:
        return Variants(0)
    counted = keys.value_counts()
    shared = min(counted.field("values").filter(pc.greater(counted.field("counts"), 1)).to_pylist())
    same = sorted(labels.filter(pc.equal(keys, shared).combine_chunks()).to_pylist())
    return Variants(count, (same[0], same[1]))


def _is_integer(labels: pa.Array) -> bool:
    return bool(pa.types.is_integer(labels.type))


def _are_too_many(labels: pa.Array) -> bool:
    return len(labels) > MOST_LABELS or labels.nbytes > MOST_BYTES


def _key(labels: pa.Array) -> pa.Array:
    is_ascii = pc.all(pc.string_is_ascii(labels)).as_py()
    labels = pc.utf8_lower(labels if is_ascii else pc.utf8_normalize(labels, "NFC"))
    for blank in _BLANKS if is_ascii else (*_BLANKS, *_MORE_BLANKS):
        labels = pc.replace_substring(labels, blank, "")
    return labels


def _slices(labels: pa.Array) -> Iterator[pa.Array]:
    return (labels.slice(start, SLICE) for start in range(0, len(labels), SLICE))


def _duplicates(seen: Seen) -> Iterator[Doubt]:
    """More than half of the rows are duplicates. Mostly the wrong columns were read then."""
    if 2 * seen.duplicates > seen.n_rows:
        said = f"{seen.duplicates:,} of {seen.n_rows:,} rows are duplicates{_are_these_meant(seen)}"
        yield Doubt("duplicates", said)


def _are_these_meant(seen: Seen) -> str:
    left, right = seen.stream.side_names
    which = f"; are {left} and {right} the columns you mean? the options left and right name others"
    return which if seen.stream.reading.is_guess else ""


def _flags(seen: Seen) -> Iterator[Doubt]:
    """Two columns of 0 and 1 may be right vertices. There are too few rows to refuse them (`cells.refuse_cells`)."""
    stream = seen.stream
    # matrices and graphs say what they are
    is_guess = (seen.is_file or stream.reading.is_guess) and not stream.left_is_counted and not seen.is_chosen
    if not is_guess or max(map(len, seen.labels)) > 2 or cells_of([s.to_pylist() for s in seen.labels]) != "flags":
        return
    names = " and ".join(stream.side_names)
    said = f"{names} have only 0 and 1, and are read as the left and the right ends of edges; if {names} are two right "
    yield Doubt("flags", f"{said}vertices, and a row is a left one, {stream.as_cells}")


def _variants(seen: Seen) -> Iterator[Doubt]:
    """Labels of a side may be the same."""
    for side, variants in zip(seen.stream.side_names, seen.variants, strict=True):
        if variants is not None and (said := variants.doubt(side)):
            yield Doubt("variants", said)


#: Forms that text labels rarely have on purpose: the kind of the doubt, the form, whether all labels of a side must
#: have it, and what they look like. A table with types would refuse floating-point numbers, and make an edge of each
#: member of a list. Spreadsheets write 1,23E+12 with a point or a comma. Some scripts need other invisible characters.
_FORMS = (
    ("form", r"^[0-9]+\.[0-9]+$", True, "floating-point numbers", "and are taken as text, digit for digit"),
    (
        "form",
        r"(?s)^(\[.*\]|\(.*\)|\{.*\})$",
        True,
        "lists",
        "and each is taken as one label; give a row per member, or a column of lists in Parquet or Arrow",
    ),
    (
        "rounded numbers",
        r"^[+-]?[0-9]([.,][0-9]+)?[eE]\+[0-9]{2,}$",
        False,
        "long numbers as spreadsheets shorten them",
        "so digits are lost; export that column as text",
    ),
    ("invisible characters", "[\u200b\u2060\ufeff]", False, "other text", "because nobody sees a character inside"),
    ("comments", "^[#%]", False, "comments", "and make edges; remove these lines if they are comments"),
)


#: What most labels of most inputs do not match, so that one look is enough for them.
_SOME = "|".join(form for _, form, all_must, _, _ in _FORMS if not all_must)


def _forms(seen: Seen) -> Iterator[Doubt]:
    """Labels look like something that is no label."""
    has_lines = seen.is_file and seen.stream.reading.format not in ("parquet", "arrow")
    for k, (side, labels) in enumerate(zip(seen.stream.side_names, seen.labels, strict=True)):
        if _is_integer(labels) or _are_too_many(labels):
            continue
        some = _like(_slices(labels), _SOME, labels.type)
        for kind, form, all_must, what, how in _FORMS:
            if kind == "comments" and (k or not has_lines):  # only the beginning of a line makes a comment
                continue
            if all_must and not len(_like([labels[:1]], form, labels.type)):
                continue
            found = _like(_slices(labels) if all_must else some.chunks, form, labels.type)
            if len(found) == len(labels) or (len(found) and not all_must):
                which = f"the {side} labels look"
                if not all_must:
                    which = number(len(found), f"{side} label looks", f"{side} labels look")
                first = shorten(pc.min_max(found)["min"].as_py())
                yield Doubt(kind, f"{which} like {what}, such as {first}, {how}")


def _like(parts: Iterable[pa.Array], form: str, dtype: pa.DataType) -> pa.ChunkedArray:
    """The labels with a form."""
    return pa.chunked_array([part.filter(pc.match_substring_regex(part, form)) for part in parts], dtype)


def _complete(seen: Seen) -> Iterator[Doubt]:
    """Everything is connected, as in a list of all pairs in which a weight of 0 says that there is no edge."""
    reading, (n_left, n_right) = seen.stream.reading, map(len, seen.labels)
    is_complete = min(n_left, n_right) > 1 and seen.n_rows - seen.duplicates == n_left * n_right
    if is_complete and reading.not_read and not reading.weight:
        left, right = seen.stream.side_names
        has_names = seen.stream.reading.format not in ("snap", "konect", "matrix-market")
        column = f"{reading.not_read[0].removeprefix('column ')!r} in the option weight, and " if has_names else ""
        yield Doubt(
            "complete graph",
            f"every {left} label is connected with every {right} label; if a weight of 0 among what is not read "
            f"({', '.join(reading.not_read)}) says that there is no edge, name {column}the smallest weight of an edge "
            "in the option min_weight",
        )


def _lone(seen: Seen) -> Iterator[Doubt]:
    """A side has one vertex, or only vertices with one edge. Mostly another column was meant."""
    n_edges, fewest = seen.n_rows - seen.duplicates, min(map(len, seen.labels))
    for side, labels in zip(seen.stream.side_names, seen.labels, strict=True):
        if len(labels) == 1 < n_edges:
            said = f"there is only one {side} label, {shorten(str(labels[0]))}"
            yield Doubt("one vertex", f"{said}{_are_these_meant(seen)}")
        elif n_edges == len(labels) >= _SOME_EDGES and fewest > 1:
            said = f"every {side} label is in one edge only, and there are {n_edges:,} edges"
            yield Doubt("one edge each", f"{said}{_are_these_meant(seen)}")


#: What is looked for in every input, besides what its reader finds.
DOUBTS: tuple[Callable[[Seen], Iterable[Doubt]], ...] = (_duplicates, _flags, _variants, _forms, _complete, _lone)
