"""Tables of a notebook. Nothing in them is code, whatever labels, names and paths hold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import pyarrow as pa

from bicliques.pipeline.rows.printable import printable

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
