"""Puts the content of the page into one HTML file, which needs no other file."""

from __future__ import annotations

from importlib.resources import files

import jinja2
import numpy as np
from markupsafe import Markup

from pipeline.results.facts import search_words
from pipeline.results.report.content import Content
from pipeline.results.report.figures import degree_figure, size_figure, step_figure, timeline_figure
from pipeline.results.report.page_search import SHOWN, members_of, packed
from pipeline.results.report.svg import Figure, style
from pipeline.run.version import __version__
from schemas.sizes import SizeCounts

__all__ = ["Page"]

#: The groups of the facts of a run, in the order of the page, and the facts in each. The last has all others.
_GROUPS = {
    "What was found": ("bicliques", "only with", "fingerprint", "files"),
    "What was read": ("input", "BLAKE3 of the input", "stands for", "after reduction"),
    "How it was mined": (),
}


class Page:
    """The page before it has content: its template, compiled."""

    def __init__(self) -> None:
        environment = jinja2.Environment(
            autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        self._template = environment.from_string(_text("page.html"))

    def html_of(self, content: Content) -> str:
        """The page as HTML.

        Notes
        -----
        The pictures and lists have a bounded number of marks and rows.
        """
        members = members_of(content.top)
        return self._template.render(
            title=content.status.folder.absolute().name,
            lead=_lead(content),
            between=_between(content),
            largest=_largest(content.sizes),
            content=content,
            zip=zip,
            groups=_groups(content.facts),
            members=members,
            most_shown=SHOWN,
            search_data=packed(members),
            figures=_figures(content),
            style=Markup(_text("page.css")) + style(),
            behaviour=Markup(_text("page.js") + _text("plot.js")),
            version=__version__,
        )


def _figures(content: Content) -> dict[str, Figure]:
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
    which = "all of them" if content.search.largest is None else f"the largest by {content.search.by}"
    words += [which if content.status.state == "complete" else "so far"]
    words += [] if content.listing else ["counted and not listed"]
    gap = content.status.gap
    return ", ".join(words) + ("" if gap is None else f". By {content.search.by}: {gap}.")


def _between(content: Content) -> str:
    """Between whom the bicliques are: how many vertices the input has on each side, and what it calls them."""
    if not content.degrees:
        return ""
    sides = [
        f"{int(content.degrees[side].sum()):,} {side} vertices" + (f" ({name})" if name != side else "")
        for side, name in content.names.items()
    ]
    return f"Between {' and '.join(sides)}."


def _largest(sizes: SizeCounts | None) -> str:
    """How large the bicliques are: the one with most edges, and the one with the largest smaller side."""
    if sizes is None or not len(sizes):
        return ""
    left, right = sizes.n_left.astype(np.int64), sizes.n_right.astype(np.int64)
    ranks = ((left, left * right), (left, left * right, np.minimum(left, right)))  # the last key comes first
    edges, balance = (int(np.lexsort(keys)[-1]) for keys in ranks)
    words = f"The largest has {_size(left[edges], right[edges])}, {left[edges] * right[edges]:,} edges"
    return f"{words}. By the smaller side it has {_size(left[balance], right[balance])}."


def _size(left: int, right: int) -> str:
    return f"{left:,} left and {right:,} right member{'' if right == 1 else 's'}"


def _groups(facts: tuple[tuple[str, str], ...]) -> dict[str, list[tuple[str, str]]]:
    """The facts in groups. Groups without facts are left out."""
    group_of = {name: group for group, names in _GROUPS.items() for name in names}
    last = list(_GROUPS)[-1]
    groups: dict[str, list[tuple[str, str]]] = {group: [] for group in _GROUPS}
    for name, value in facts:
        groups[group_of.get(name, last)].append((name, value))
    return {group: own for group, own in groups.items() if own}


def _text(name: str) -> str:
    return files("pipeline.results.report").joinpath(name).read_text()
