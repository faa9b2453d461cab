"""Text from files as Markdown that shows it as it is.

Prefect's page takes what it shows of an artifact for Markdown: descriptions, and Markdown artifacts. So a label would
be a link, a picture or a line of HTML there, or would end the cell that it is in.

Of a table artifact the first version of the page takes every cell for Markdown, and the second version none. No text is
shown alike by both: the second shows backslashes, and both show references such as ``&#42;``. So text from files is in
tables of Markdown artifacts, which both show as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap

from bicliques.pipeline.results.listing import shortened, shown

#: What begins something in Markdown.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|&~=-])|(:(?=//)|(?<=\bwww)\.|@)", re.IGNORECASE)
#: Columns of a text in a table of rows, of which so many are in a line.
_TEXT_WIDTH, _LINE_WIDTH = 80, 40
#: What begins a list at the beginning of a line.
_NUMBERED = re.compile(r"^(\d+)\.")


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
    line = _SPECIAL.sub(
        lambda found: f"\\{found[0]}" if found[1] else f"<wbr>\\{found[0]}", " ".join(shown(text).split())
    )
    return _NUMBERED.sub(r"\1\\.", line)


def table(names: Sequence[str], rows: Iterable[Sequence[object]], width: int) -> str:
    """A Markdown table. Cells are broken into lines of at most `width` characters, because Prefect's page does not."""
    lines = [names, ["---"] * len(names)]
    cells = [["<br>".join(map(plain, wrap(str(cell), width, break_on_hyphens=False))) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *cells])


def table_of_rows(rows: Sequence[Mapping[str, object]]) -> str:
    """A Markdown table of rows with the same names, of which there is at least one. A long text is cut."""
    cells = [[shortened(str(value), _TEXT_WIDTH) for value in row.values()] for row in rows]
    return table(list(rows[0]), cells, _LINE_WIDTH)
