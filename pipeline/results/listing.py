"""Bicliques as lines of text, cut between two labels to the width of a terminal, or as JSON, in full."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Sequence

import pyarrow as pa

from bicliques.pipeline.rows.printable import pairs_of

#: Columns of a table when the width is not known, and the fewest columns of a side.
_WIDTH, _LEAST_ROOM = 120, 12
#: The fewest columns of the beginning of a label, three of them dots.
_LEAST_LABEL = 6
#: Headings and formats of the columns that some tables have.
_MORE = {
    "surprise": ("bits", "{:,.1f}"),
    "new_edges": ("new", "{:,}"),
    "covered": ("covered", "{:.1%}"),
    "community": ("community", "{}"),
    "missing": ("missing", "{:,}"),
    "id": ("id", "{}"),
}


def top_table(rows: pa.Table, width: int | None = _WIDTH, ids: bool = False) -> str:
    """Bicliques, one per line, in lines of `width` columns. None shows all members in lines of any length.

    A list that does not fit is cut between two labels, and ends with the number of labels that follow. Columns that
    only some tables have follow the number of edges, or of pairs, and then come `ids` if they are asked for.
    """
    if len(rows) == 0:
        return "no bicliques"
    more = [name for name in _MORE if name in rows.column_names and (name != "id" or ids)]
    cells = [("#", "left", "right", pairs_of(rows.schema), *(_MORE[name][0] for name in more))]
    for k in range(len(rows)):
        n_left, n_right = rows["n_left"][k].as_py(), rows["n_right"][k].as_py()
        others = (_MORE[name][1].format(rows[name][k].as_py()) for name in more)
        cells.append((str(k + 1), f"{n_left:,}", f"{n_right:,}", f"{n_left * n_right:,}", *others))
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [" ".join(text.rjust(w) for text, w in zip(row, widths, strict=True)) for row in cells]
    room = None if width is None else max(width - len(lines[0]) - len("  {} x {}"), 2 * _LEAST_ROOM)
    members = (_members(rows["left"][k].values, rows["right"][k].values, room) for k in range(len(rows)))
    return "\n".join(
        [f"{lines[0]}  members", *(f"{line}  {text}" for line, text in zip(lines[1:], members, strict=True))]
    )


def width() -> int:
    """Columns to fill. If stdout is no terminal and ``$COLUMNS`` is not set, these are 120."""
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def _members(left: pa.Array, right: pa.Array, room: int | None) -> str:
    """Both sides in so many columns. Each side gets half of them, and the columns that the other side leaves free."""
    if room is None:
        sides = [", ".join(map(listed, labels.to_pylist())) for labels in (left, right)]
    else:
        first = cut(left, room // 2)
        second = cut(right, room - columns_of(first))
        sides = [cut(left, room - columns_of(second)), second]
    return f"{{{sides[0]}}} x {{{sides[1]}}}"


def cut(labels: pa.Array, room: int) -> str:
    """The labels that fit, and how many more there are. If not even the first one fits, its beginning.

    Where so little room is left that nothing of a label would be seen, the text is a few columns longer than `room`.
    """
    if len(labels) < room and columns_of(whole := ", ".join(map(listed, labels.to_pylist()))) <= room:
        return whole
    text = ""
    for k, rest in enumerate(range(len(labels) - 1, -1, -1)):
        longer = f"{text}, {listed(labels[k].as_py())}" if text else listed(labels[k].as_py())
        more = f", {rest:,} more" if rest else ""
        if columns_of(longer + more) > room:
            if text:
                return f"{text}, {rest + 1:,} more"
            return f"{beginning(longer, max(room - len(more), _LEAST_LABEL))}{more}"
        text = longer
    return text


def shortened(label: object, width: int | None) -> str:
    """A label as a part of a line of `width` columns, of which it takes at most half. None: all of it."""
    text = shown(label)
    return text if width is None or columns_of(text) <= width // 2 else beginning(text, width // 2)


def beginning(text: str, columns: int) -> str:
    """As much of a text as fits, with three dots for the rest."""
    text = text[:columns]
    while text and columns_of(text) > columns - 3:
        text = text[:-1]
    return f"{text}..."


def shown(label: object) -> str:
    """A label without characters that break a line or move the cursor, which text from a file may contain."""
    text = str(label)
    return text if text.isprintable() else repr(text)


def listed(label: object) -> str:
    """A label between others, in quotes if it would be taken for two: ``{'milk, whole', tea}``."""
    text = shown(label)
    return repr(text) if ", " in text and text == str(label) else text


def columns_of(text: str) -> int:
    """The columns that a terminal needs for a text."""
    if text.isascii():
        return len(text)
    return len(text) + sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Columns of text; `sides` says where each is aligned, as "<" or ">". Nothing follows the last column."""
    widths = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_padded, row, widths, sides)).rstrip() for row in rows]


def _padded(text: str, columns: int, side: str) -> str:
    blanks = " " * (columns - columns_of(text))
    return f"{blanks}{text}" if side == ">" else f"{text}{blanks}"
