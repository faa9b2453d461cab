"""Writes SVG as text. Whatever users chose, such as names of columns and of hosts, stays text."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files

from markupsafe import Markup, escape

from bicliques.pipeline.rows.printable import printable


@dataclass(frozen=True)
class Figure:
    """A picture: one ``svg`` element, which takes its colours from the page around it.

    Notes
    -----
    Jinja2 inserts it as it is. A notebook shows it with the style sheet that the page of a run has, too.
    """

    svg: Markup

    def __html__(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return Markup("<style>{}</style>{}").format(style(), self.svg)


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """An element with its attributes and children, which are escaped unless they are `Markup`.

    Parameters
    ----------
    *children : object
        Text, numbers and other elements; text as `pipeline.rows.printable.printable`.
    **attributes : object
        Values by name. ``class_`` stands for ``class`` and ``stroke_width`` for ``stroke-width``. None leaves an
        attribute out. A float is rounded to a tenth.

    Returns
    -------
    Markup

    Examples
    --------
    >>> from bicliques.pipeline.results.svg import element
    >>> print(element("text", "a < b", x=1.25, class_="left"))
    <text x="1.2" class="left">a &lt; b</text>
    """
    said = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(map(_text, children))
    return Markup(f"<{tag}{said}>{inside}</{tag}>" if inside else f"<{tag}{said}/>")


def number(value: float) -> str:
    """A number in tenths, as short as it can be: a tenth of a unit of a picture cannot be seen."""
    return f"{round(value, 1) + 0.0:.10g}"  # + 0.0, because there is no -0 in a picture


def shortened(text: str, most: int = 28) -> str:
    """The beginning of a text that would not fit."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def style() -> Markup:
    """The style sheet of all pictures."""
    return Markup(files("bicliques.pipeline.results").joinpath("plot.css").read_text())


def _text(value: object) -> str:
    if isinstance(value, Markup):
        return value
    if isinstance(value, float):
        return number(value)
    if isinstance(value, int):
        return str(value)  # most of a picture is numbers, and these need no search for what has to be escaped
    return escape(printable(str(value)))
