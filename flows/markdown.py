"""Text from files as Markdown that shows it as it is.

Prefect's page takes what it shows of an artifact for Markdown: descriptions, and in tables every cell that is text. So
a label would be a link, a picture or a line of HTML there, or would end the cell that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import wrap

from pipeline.results.listing import shortened, shown

__all__ = ["cell_of", "plain", "table"]

#: What begins something in Markdown, or a formula in a spreadsheet that a table is copied to.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|&~=-])|(:(?=//)|(?<=\bwww)\.|@)", re.IGNORECASE)
#: Columns of a line of a table artifact. A cell may take half of them, and would push others from the page with more.
_LINE_WIDTH = 80
#: What begins a list at the beginning of a line.
_NUMBERED = re.compile(r"^(\d+)\.")
#: Wide letters that begin a formula, too, and before which Markdown takes no backslash.
_WIDE = ("\uff1d", "\uff0b", "\uff0d", "\uff20")


def plain(text: object) -> str:
    r"""Markdown that shows a text on one line. What breaks a line or turns its direction is shown as an escape.

    Notes
    -----
    The second version of Prefect's page looks for addresses in what is left when backslashes are taken away. It finds
    none where a tag is, and ``<wbr>`` shows nothing.

    Examples
    --------
    >>> print(plain("see <b> at http://x"))
    see \<b\> at http<wbr>\://x
    """
    return _escaped(text, "<wbr>")


def cell_of(value: object) -> object:
    """A cell of a table artifact. Numbers stay numbers. A long text is cut, because Prefect's page breaks none.

    There are no tags in it, because the second version of Prefect's page takes no cell for Markdown.
    """
    if not isinstance(value, str):
        return value
    text = shortened(value, _LINE_WIDTH)
    return _escaped(repr(text) if text.startswith(_WIDE) else text)


def _escaped(text: object, before_links: str = "") -> str:
    line = _SPECIAL.sub(
        lambda found: f"\\{found[0]}" if found[1] else f"{before_links}\\{found[0]}", " ".join(shown(text).split())
    )
    return _NUMBERED.sub(r"\1\\.", line)


def table(names: Sequence[str], rows: Iterable[Sequence[object]], width: int) -> str:
    """A Markdown table. Cells are broken into lines of at most `width` characters, because Prefect's page does not."""
    lines = [names, ["---"] * len(names)]
    cells = [["<br>".join(map(plain, wrap(str(cell), width, break_on_hyphens=False))) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *cells])
