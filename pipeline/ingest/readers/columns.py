"""Finds the two columns of a table that are the left and right labels, and the names of the sides."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from bicliques.pipeline.ingest.readers.base import SIDES, shorten
from bicliques.pipeline.run.progress import number
from bicliques.schemas.errors import InputError, as_option, as_options
from bicliques.schemas.options import IngestOptions
from bicliques.schemas.reading import Reading

#: Pairs of names that are known as the two sides, at any position (docs/formats.md). Capitals do not matter, and "id"
#: may follow.
_PAIRS = [
    tuple(pair.split("/"))
    for pair in "left/right user/item user/movie user/film user/product customer/product customer/item author/paper "
    "actor/movie document/term document/word gene/condition package/tag source/target src/dst from/to row/column "
    "row/col u/v".split()
]

#: Columns that the rows of a run have, in whatever format.
_OF_ROWS = ("id", "left", "right", "n_left", "n_right")

#: Longest name of a side that is shown, and most names of columns that are not read.
_NAME, _NOT_READ = 60, 8

#: Column names that are recognised besides those of the known pairs. Capitals do not matter.
_USUAL_NAMES = frozenset(("tail", "head", "node1", "node2", "id"))

#: The name under which pandas stores a level of an index that has none.
_UNNAMED = re.compile(r"__index_level_\d+__$")


@dataclass(frozen=True)
class Choice:
    """The columns of a table that are read: positions of the left and of the right labels, and of weights if they
    matter.

    `is_named` is that of `EdgeStream`. `objection` says why the first two columns may not be the sides, and what to
    say, if nobody has named them.
    """

    columns: tuple[int, int]
    weight: int | None
    reading: Reading
    is_named: bool
    objection: str | None

    @property
    def wanted(self) -> tuple[int, ...]:
        """Positions of all columns that are read."""
        return self.columns if self.weight is None else (*self.columns, self.weight)


def choose(
    place: str, options: IngestOptions, names: Sequence[object] | None, n: int, format: str, n_index: int = 0
) -> Choice:
    """Choose the columns of a table, or refuse it. `place` is the file (and line) or the object, for the message.

    `names` are those of its `n` columns, if they have any; in a data frame they may be other types than strings.
    The first `n_index` ones are named levels of a pandas index.
    """
    columns = _find_columns(place, options, names, n)
    weight = _find_weight(place, options, names, n, columns)
    is_guess = options.left is None

    def shown(k: int) -> str:
        return str(names[k]) if names and str(names[k]).strip() else f"column {k}"

    others = [k for k in range(n) if k not in (*columns, weight)]
    more = len(others) - _NOT_READ
    reading = Reading(
        format=format,
        columns=side_names(names, columns),
        columns_why="the first two" if is_guess else "named",
        is_guess=is_guess,
        weight="" if weight is None else shown(weight),
        not_read=(*map(shown, others[:_NOT_READ]), *([f"{more:,} more columns"] if more > 0 else [])),
    )
    is_named = names is not None and all(is_usual(str(names[k])) for k in columns)
    objection = None
    if is_guess and names and n_index == 1 and n > len(columns) and not is_named:
        one, other = (f"left={names[left]!r}, right={names[right]!r}" for left, right in ((0, 1), (1, len(columns))))
        objection = (
            f"the index {names[0]!r} may be the left side, or only number the rows; say {one} if it is the left side, "
            f"or {other} if it numbers the rows"
        )
    return Choice(columns, weight, reading, is_named, objection)


def index_first(schema: pa.Schema) -> tuple[list[int], int]:
    """Positions of the columns of a stored table with the named levels of a pandas index first, and how many these are.

    pandas stores the levels of an index behind the columns, and says so in the metadata.
    """
    try:
        levels = (schema.pandas_metadata or {}).get("index_columns", ())
    except ValueError:  # the metadata is damaged
        levels = ()
    named = [level for level in levels if isinstance(level, str) and not _UNNAMED.match(level)]
    first = [schema.names.index(level) for level in named if schema.names.count(level) == 1]
    return [*first, *(k for k in range(len(schema)) if k not in first)], len(first)


def _find_columns(place: str, options: IngestOptions, names: Sequence[object] | None, n: int) -> tuple[int, int]:
    """Positions of the two label columns of a table. Parameters are those of `choose`."""
    if n < 2:
        raise InputError(f"{place}: {number(n, 'column')} where 2 are needed; give a table of edges")
    if options.left is None or options.right is None:
        _refuse_other_pair(place, names or ())
        return 0, 1
    left, right = (find_column(place, chosen, names, n) for chosen in (options.left, options.right))
    if left == right:
        raise InputError(f"{place}: {options.left!r} and {options.right!r} are the same column; name two columns")
    return left, right


def _find_weight(
    place: str, options: IngestOptions, names: Sequence[object] | None, n: int, columns: tuple[int, int]
) -> int | None:
    """Position of the column of weights. None if weights do not matter."""
    if options.min_weight is None:
        return None
    if options.weight is None:
        known = [k for k, name in enumerate(names or ()) if isinstance(name, str) and name.strip().lower() == "weight"]
        if len(known) != 1:
            raise InputError(
                f"{place}: {len(known)} columns are called weight; name the one for {as_option('min_weight')} in "
                f"{as_option('weight')} ({matrix_remedy(options.min_weight)})"
            )
        found = known[0]
    else:
        found = find_column(place, options.weight, names, n)
    if found in columns:
        raise InputError(
            f"{place}: the column of weights is one of the labels, too; name another one in {as_option('weight')}"
        )
    return found


def matrix_remedy(least: float) -> str:
    """How to give a table of weights with a column per vertex."""
    return f"a matrix of weights is given from Python as booleans: matrix >= {least:g}"


def find_column(place: str, chosen: str | int, names: Sequence[object] | None, n: int) -> int:
    """The position of a column. An integer is the name of a column if there is such a name, and else a position."""
    positions = [k for k, name in enumerate(names or ()) if name == chosen and not isinstance(name, bool)]
    if isinstance(chosen, int) and not positions:
        positions = [k for k, name in enumerate(names or ()) if str(name) == str(chosen)]
    if len(positions) == 1:
        return positions[0]
    if isinstance(chosen, int) and not positions:
        if 0 <= chosen < n:
            return chosen
        raise InputError(f"{place}: no column {chosen}; positions go from 0 to {n - 1}")
    shown, named = ", ".join(repr(name) for name in list(names or ())[:10]), shorten(str(chosen))
    problem = f"no column {named}" if not positions else f"{len(positions)} columns are called {named}"
    of, _, field = str(chosen).partition(".")
    path = f"; if {of!r} has fields, {column_of_field(of, field)}" if field and of in (names or ()) else ""
    raise InputError(
        f"{place}: {problem}; the columns are {shown}, so name one of them or give a position from 0{path}"
    )


def column_of_field(column: str, field: str, frame: str = "frame", has_lists: bool | None = None) -> str:
    """How to make a column of a field of structs, which may be in lists. None: nobody knows whether they are."""
    explode = "" if has_lists is False else f".explode({column!r})" + (" if it has lists" if has_lists is None else "")
    return (
        f"make a column of a field, such as {field!r}, and name it: frame = {frame}{explode}, then frame[{field!r}] = "
        f"frame[{column!r}].str[{field!r}] (pandas), or unnest in DuckDB"
    )


def _refuse_other_pair(place: str, names: Sequence[object]) -> None:
    if all(name in names for name in _OF_ROWS):
        raise InputError(
            f"{place}: these are bicliques of a run, and not edges; name the run, or what it was mined from, or join "
            f"them to their left vertices with {as_option('label_type', 'string')} and "
            f"{options_of(names, *(list(names).index(name) for name in _OF_ROWS[:2]))}"
        )
    words = [_word(name) if isinstance(name, str) else "" for name in names]
    if any(set(words[:2]) == set(pair) for pair in _PAIRS):
        return
    for pair in _PAIRS:
        if set(pair) <= set(words):
            known = [words.index(word) for word in pair]
            first, sides = (" and ".join(repr(names[k]) for k in places) for places in ((0, 1), known))
            raise InputError(
                f"{place}: the first two columns are {first}, but {sides} look like the two sides; give "
                f"{options_of(names, *known)}, or {options_of(names, 0, 1)} for the first two"
            )


def _word(name: str) -> str:
    return re.sub(r"[ _.-]*id$", "", name.strip().lower())


def is_usual(name: str) -> bool:
    """Whether a name is one that columns of labels usually have."""
    name = name.strip().lower()
    return name in _USUAL_NAMES or name.endswith("_id") or any(_word(name) in pair for pair in _PAIRS)


def options_of(names: Sequence[object] | None, left: int, right: int) -> str:
    """The options for two columns: by name, or by position where names are not unique, or are digits themselves."""
    return as_options(*(as_option(side, _named(names, k)) for side, k in zip(SIDES, (left, right), strict=True)))


def _named(names: Sequence[object] | None, place: int) -> str | int:
    name = str(names[place]) if names else ""
    return place if not names or names.count(names[place]) > 1 or name.isdecimal() else name


def side_names(names: Sequence[object] | None, columns: tuple[int, int]) -> tuple[str, str]:
    """The names of the two columns on one line, not too long. Without names they are "left" and "right"."""
    left, right = (_shown(names[k]) if names else "" for k in columns)
    return left or SIDES[0], right or SIDES[1]


def _shown(name: object) -> str:
    text = " ".join(name.split()) if isinstance(name, str) else ""
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return text if len(text) <= _NAME else text[: _NAME - 3] + "..."
