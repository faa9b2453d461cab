"""Puts the content of the page into one HTML file, which needs no other file."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import jinja2
import pyarrow as pa
from bokeh.embed import components
from bokeh.resources import Resources
from markupsafe import Markup

from pipeline.results.facts import search_words
from pipeline.results.report.content import Content
from pipeline.results.report.figures import degree_figure, size_figure, step_figure, timeline_figure
from pipeline.results.report.page_search import search_data
from pipeline.run.version import __version__

__all__ = ["html_of"]

#: Number of members of a side that are shown at once, and of those that can be unfolded.
_SHOWN, _FOLDED = 12, 188


@dataclass(frozen=True)
class _Members:
    shown: list[str]
    folded: list[str]
    missing: int


def html_of(content: Content) -> str:
    """The page as HTML.

    Notes
    -----
    The plotting library takes 1.3 MB of it. The pictures and lists have a bounded number of marks and rows.
    """
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    plots = _figures(content)
    script, divisions = components(plots) if plots else ("", {})
    return environment.from_string(_text("page.html")).render(
        title=content.status.folder.absolute().name,
        lead=_lead(content),
        sides=_sides(content.names),
        content=content,
        top={by: [_row(row) for row in _rows(table)] for by, table in content.top.items()},
        search_data=search_data(content.top),
        figures={name: Markup(division) for name, division in divisions.items()},
        plots=Markup(script),
        library=Markup(Resources(mode="inline", components=["bokeh"]).render() if plots else ""),
        style=Markup(_text("page.css")),
        behaviour=Markup(_text("page.js")),
        version=__version__,
    )


def _figures(content: Content) -> dict[str, Any]:
    plots = {}
    if content.sizes is not None and len(content.sizes):
        plots["sizes"] = size_figure(content.sizes, content.names)
    if content.degrees:
        plots["degrees"] = degree_figure(content.degrees, content.names)
    if content.steps:
        plots["steps"] = step_figure(content.steps)
    if content.timeline.lanes:
        plots["timeline"] = timeline_figure(content.timeline)
    return plots


def _lead(content: Content) -> str:
    wanted = search_words(content.search)
    if content.none:
        return f"No maximal biclique{f' with {wanted}' if wanted else ''}: {content.none}"
    words = [f"{content.status.count:,} maximal biclique{'' if content.status.count == 1 else 's'}"]
    words += [f"with {wanted}"] if wanted else []
    words += ["all of them" if content.status.state == "complete" else "so far"]
    words += [] if content.listing else ["counted and not listed"]
    return ", ".join(words)


def _sides(names: dict[str, str]) -> str:
    """What the input calls each side. Empty if it has no names for them."""
    if names == {"left": "left", "right": "right"}:
        return ""
    return f"left: {names['left']}, right: {names['right']}"


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of `table`. Long lists are cut before they become Python objects, to save time and memory."""
    rows = []
    for k in range(len(table)):
        row = {name: table[name][k].as_py() for name in ("n_left", "n_right")}
        rows.append(row | {side: table[side][k].values[: _SHOWN + _FOLDED].to_pylist() for side in ("left", "right")})
    return rows


def _row(row: dict[str, Any]) -> dict[str, Any]:
    cut = {}
    for side in ("left", "right"):
        labels = sorted(row[side])
        missing = row[f"n_{side}"] - len(labels)
        cut[side] = _Members([str(x) for x in labels[:_SHOWN]], [str(x) for x in labels[_SHOWN:]], missing)
    return row | cut


def _text(name: str) -> str:
    return files("pipeline.results.report").joinpath(name).read_text()
