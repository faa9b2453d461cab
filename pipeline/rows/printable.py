"""What people see of rows in a notebook, and of characters that HTML and SVG do not allow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

import pyarrow as pa

#: A table shows so many members of a side, and so many letters of a label.
_MEMBERS_SHOWN, _LETTERS_SHOWN = 8, 40


def html_table(above: Sequence[str], titles: Sequence[str] = (), rows: Iterable[Sequence[str | pa.Array]] = ()) -> str:
    """Lines of text, the first of them bold, and a table, as HTML. Of an array of labels the first ones are shown."""
    lines = [f"<tr>{''.join(f'<th>{_text(title)}</th>' for title in titles)}</tr>"]
    for row in rows:
        cells = (_text(cell if isinstance(cell, str) else some(cell)) for cell in row)
        lines.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    first, *others = map(_text, above)
    told = f"<p>{'<br>'.join([f'<b>{first}</b>', *others])}</p>"
    return f"{told}<table>{''.join(lines)}</table>" if len(lines) > 1 else told


def _text(text: str) -> str:
    return escape(printable(text))


def some(members: pa.Array) -> str:
    """The first members of a side, with their number if there are more."""
    shown = [str(member) for member in members[:_MEMBERS_SHOWN].to_pylist()]
    cut = [label if len(label) <= _LETTERS_SHOWN else f"{label[: _LETTERS_SHOWN - 1]}…" for label in shown]
    more = f" and {len(members) - len(cut):,} more" if len(members) > len(cut) else ""
    return ", ".join(cut) + more


#: What XML 1.0 allows in no document, not even as a reference; and DEL and the controls behind it, which are errors in
#: HTML. The script of the page of a run has the same characters (``CONTROLS`` in ``place.js``).
_FORBIDDEN = "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
#: The pictures of the 32 controls of ASCII begin here. DEL has one of its own, and what has none is U+FFFD.
_PICTURES, _PICTURE_OF_DEL, _NO_PICTURE = 0x2400, "\u2421", "\ufffd"


def printable(text: str) -> str:
    """A text as HTML and SVG may hold it: a control has its picture in its place, as ``␀`` that of NUL."""
    return re.sub(_FORBIDDEN, lambda found: _picture(found[0]), text)


def is_kept(text: str) -> bool:
    """Whether a browser reads a text as it is. It takes a carriage return for a new line."""
    return "\r" not in text and not re.search(_FORBIDDEN, text)


def _picture(mark: str) -> str:
    if mark < " ":
        return chr(_PICTURES + ord(mark))
    return _PICTURE_OF_DEL if mark == "\x7f" else _NO_PICTURE


def pairs_of(rows: pa.Schema) -> str:
    """What the product of the two sizes of a row is: edges, or pairs if some of them may be no edges."""
    return "pairs" if "missing" in rows.names else "edges"
