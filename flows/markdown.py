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
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|&~=@-]|:(?=//)|(?<=\bwww)\.)", re.IGNORECASE)
#: Columns of a line of a table artifact. A cell may take half of them, and would push others from the page with more.
_LINE_WIDTH = 80
#: What begins a list at the beginning of a line.
_NUMBERED = re.compile(r"^(\d+)\.")
#: Wide letters that begin a formula, too. Markdown has no other way to write them.
_WIDE = {ord(letter): f"&#{ord(letter)};" for letter in "\uff1d\uff0b\uff0d\uff20"}


def plain(text: object) -> str:
    r"""Markdown that shows a text on one line. What breaks a line or turns its direction is shown as an escape.

    Examples
    --------
    >>> print(plain("see <b> at http://x"))
    see \<b\> at http\://x
    """
    line = _SPECIAL.sub(r"\\\1", " ".join(shown(text).split()))
    return _NUMBERED.sub(r"\1\\.", line).translate(_WIDE)


def cell_of(value: object) -> object:
    """A cell of a table artifact. Numbers stay numbers. A long text is cut, because Prefect's page breaks none."""
    return plain(shortened(value, _LINE_WIDTH)) if isinstance(value, str) else value


def table(names: Sequence[str], rows: Iterable[Sequence[object]], width: int) -> str:
    """A Markdown table. Cells are broken into lines of at most `width` characters, because Prefect's page does not."""
    lines = [names, ["---"] * len(names)]
    cells = [["<br>".join(map(plain, wrap(str(cell), width, break_on_hyphens=False))) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *cells])
