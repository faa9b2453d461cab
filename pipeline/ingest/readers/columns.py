"""Finds the two columns of a table that are the left and right labels, and the names of the sides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pipeline.ingest.readers.base import SIDES, EdgeStream, shorten
from pipeline.process import shell
from pipeline.run.progress import number
from schemas.errors import InputError
from schemas.options import IngestOptions

__all__ = [
    "Flags",
    "are_flags",
    "find_columns",
    "find_weight",
    "is_side",
    "matrix_remedy",
    "refuse_crossed",
    "refuse_flags",
    "side_names",
]

#: Pairs of names that are known as the two sides, at any position (docs/formats.md). Capitals do not matter, and "id"
#: may follow.
_PAIRS = (
    ("left", "right"),
    ("user", "item"),
    ("user", "movie"),
    ("user", "film"),
    ("user", "product"),
    ("customer", "product"),
    ("customer", "item"),
    ("author", "paper"),
    ("actor", "movie"),
    ("document", "term"),
    ("document", "word"),
    ("gene", "condition"),
    ("package", "tag"),
    ("source", "target"),
    ("src", "dst"),
    ("from", "to"),
    ("row", "column"),
    ("row", "col"),
    ("u", "v"),
)

#: Columns that the rows of a run have, in whatever format.
_OF_ROWS = ("id", "left", "right", "n_left", "n_right")

#: Longest name of a side that is shown.
_NAME = 60

#: Rows from which on two columns of 0 and 1 cannot be different edges.
_MOST_EDGES = 4

#: Values of a column that tell whether it has only 0 and 1.
_LOOKED_AT = 100

#: How 0 and 1 are written.
_FLAGS = {"0": "0", "1": "1", "0.0": "0", "1.0": "1", "false": "0", "true": "1"}


def find_columns(place: str, options: IngestOptions, names: Sequence[object] | None, n: int) -> tuple[int, int]:
    """Positions of the two label columns of a table.

    Parameters
    ----------
    place : str
        The file (and line) or the object, for the message.
    names : sequence or None
        The columns' names, if they have any. Names in a data frame may be other types than strings.
    n : int
        Number of columns.

    Raises
    ------
    InputError
        A column does not exist, its name occurs twice, or both options mean the same column. Or no column is named,
        and two columns that are known as the two sides are not the first two.
    """
    if n < 2:
        raise InputError(f"{place}: {number(n, 'column')} where 2 are needed; give a table of edges")
    if options.left is None or options.right is None:
        _refuse_other_pair(place, names or ())
        return 0, 1
    left, right = (_find_column(place, chosen, names, n) for chosen in (options.left, options.right))
    if left == right:
        raise InputError(f"{place}: {options.left!r} and {options.right!r} are the same column; name two columns")
    return left, right


def find_weight(
    place: str, options: IngestOptions, names: Sequence[object] | None, n: int, columns: tuple[int, int]
) -> int | None:
    """Position of the column of weights. None if weights do not matter. Other parameters as of `find_columns`.

    Raises
    ------
    InputError
        There is no such column, or it holds labels.
    """
    if options.min_weight is None:
        return None
    if options.weight is None:
        known = [k for k, name in enumerate(names or ()) if isinstance(name, str) and name.strip().lower() == "weight"]
        if len(known) != 1:
            raise InputError(
                f"{place}: {len(known)} columns are called weight; name the one for --min-weight in --weight "
                f"({matrix_remedy(options.min_weight)})"
            )
        found = known[0]
    else:
        found = _find_column(place, options.weight, names, n)
    if found in columns:
        raise InputError(f"{place}: the column of weights is one of the labels, too; name another one in --weight")
    return found


def matrix_remedy(least: float) -> str:
    """How to give a table of weights with a column per vertex."""
    return f"a matrix of weights is given from Python as booleans: matrix >= {least:g}"


def _find_column(place: str, chosen: str | int, names: Sequence[object] | None, n: int) -> int:
    if isinstance(chosen, int):
        if 0 <= chosen < n:
            return chosen
        raise InputError(f"{place}: no column {chosen}; positions go from 0 to {n - 1}")
    positions = [k for k, name in enumerate(names or ()) if name == chosen]
    if len(positions) == 1:
        return positions[0]
    shown, named = ", ".join(repr(name) for name in list(names or ())[:10]), shorten(chosen)
    problem = f"no column {named}" if not positions else f"{len(positions)} columns are called {named}"
    raise InputError(f"{place}: {problem}; the columns are {shown}, so name one of them or give a position from 0")


def _refuse_other_pair(place: str, names: Sequence[object]) -> None:
    if all(name in names for name in _OF_ROWS):
        raise InputError(
            f"{place}: these are bicliques of a run, and not edges; name the run, or what it was mined from, or join "
            f"them to their left vertices with --label-type string and "
            f"{_options(names, [list(names).index(name) for name in _OF_ROWS[:2]])}"
        )
    words = [_word(name) if isinstance(name, str) else "" for name in names]
    if any(set(words[:2]) == set(pair) for pair in _PAIRS):
        return
    for pair in _PAIRS:
        if set(pair) <= set(words):
            known = [words.index(word) for word in pair]
            first, sides = (" and ".join(repr(names[k]) for k in places) for places in ((0, 1), known))
            raise InputError(
                f"{place}: the first two columns are {first}, but {sides} look like the two sides; "
                f"give {_options(names, known)}, or {_options(names, (0, 1))} for the first two"
            )


def _word(name: str) -> str:
    return re.sub(r"[ _.-]*id$", "", name.strip().lower())


def is_side(name: str) -> bool:
    """Whether a name is one of those that are known of a side."""
    return any(_word(name) in pair for pair in _PAIRS)


def _options(names: Sequence[object], places: Iterable[int]) -> str:
    """The options as on the command line, where digits are a position."""
    left, right = (
        shell.word(str(names[k])) if names.count(names[k]) == 1 and not str(names[k]).isdecimal() else str(k)
        for k in places
    )
    return f"--left {left} --right {right}"


def side_names(names: Sequence[object] | None, columns: tuple[int, int]) -> tuple[str, str]:
    """The names of the two columns on one line, not too long. Without names they are "left" and "right"."""
    left, right = (_shown(names[k]) if names else "" for k in columns)
    return left or SIDES[0], right or SIDES[1]


def _shown(name: object) -> str:
    text = " ".join(name.split()) if isinstance(name, str) else ""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= _NAME else text[: _NAME - 3] + "..."


@dataclass(frozen=True)
class Flags:
    """Columns that have only 0 and 1 in their first rows.

    Parameters
    ----------
    columns : int
        Number of such columns.
    seen : frozenset of str
        Which of "0" and "1" they have.
    """

    columns: int = 0
    seen: frozenset[str] = frozenset()

    @classmethod
    def among(cls, columns: Iterable[Iterable[object]]) -> Flags:
        """The flags among some columns, each given by the values of its first rows."""
        found = [seen for column in columns if (seen := _flags(column))]
        return cls(len(found), frozenset().union(*found))


def _flags(values: Iterable[object]) -> frozenset[str]:
    """Which of 0 and 1 are among the values. Nothing if there are other values."""
    seen = set()
    for value in values:
        flag = _FLAGS.get(str(value).strip().lower())
        if flag is None:
            return frozenset()
        seen.add(flag)
    return frozenset(seen)


def refuse_crossed(stream: EdgeStream, labels: pa.Array, first: pa.Array, further: Callable[[], Flags]) -> None:
    """Refuse a table of 0 and 1 with a column per vertex, which is no list of edges.

    Parameters
    ----------
    stream : EdgeStream
    labels : Array
        The distinct values of a column that was read.
    first : Array
        Values of the first column. If they are not 0 and 1, they label the rows.
    further : callable
        It returns the flags among the other columns. It is called if the labels are flags themselves.

    Raises
    ------
    InputError
    """
    seen = _flags(labels.to_pylist()) if len(labels) <= 2 else frozenset()
    if not seen:
        return
    others = further()
    if others.columns and len(seen | others.seen) == 2:
        has_row_labels = not _flags(first[:_LOOKED_AT].to_pylist())
        raise InputError(
            f"{stream.source}: this looks like a table with a column per vertex, not like a list of edges: only 0 and "
            f"1 are in one of the two columns read, and in {others.columns} more; "
            f"{stream.as_frame.remedy(has_row_labels)}, or name two columns with --left and --right"
        )


def are_flags(*sides: pa.Array) -> bool:
    """Whether the distinct labels of some sides are 0 and 1, however they are written, and nothing else."""
    if any(len(labels) > 2 for labels in sides):
        return False
    seen = [_flags(labels.to_pylist()) for labels in sides]
    return all(seen) and len(frozenset().union(*seen)) == 2


def refuse_flags(stream: EdgeStream, left: pa.Array, right: pa.Array, n_rows: int) -> None:
    """Refuse two columns that only have 0 and 1, in more rows than there are such edges.

    Raises
    ------
    InputError
    """
    if n_rows > _MOST_EDGES and are_flags(left, right):
        raise InputError(
            f"{stream.source}: this looks like a table of 0 and 1 with a column per vertex, not like a list of edges: "
            f"both columns read have nothing else in {n_rows:,} rows; {stream.as_frame.remedy()}, or name two columns"
        )
