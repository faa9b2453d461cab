"""Puts the content of the page into one HTML file, which needs no other file.

Its bicliques are packed for the script of the page, so that the page stays small, and no label can end an element.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import groupby
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from bicliques.pipeline import __version__
from bicliques.pipeline.remote.urls import place_of
from bicliques.pipeline.results.report.content import Content
from bicliques.pipeline.results.report.figures import degree_figure, size_figure, step_figure, timeline_figure
from bicliques.pipeline.results.report.listed import DISTINCT, SIDES, TOP, Listed, only_used
from bicliques.pipeline.results.svg import Figure, shortened, style
from bicliques.pipeline.rows.printable import is_kept, printable
from bicliques.pipeline.run.progress import number
from bicliques.schemas.search import search_words

#: The groups of the facts of a run, in the order of the page, and the facts in each. The last has all others.
_GROUPS = {
    "What was found": ("bicliques", "only with", "fingerprint", "files"),
    "What was read": ("input", "BLAKE3 of the input", "stands for", "after reduction"),
    "How it was mined": (),
}
#: The parts of the page, and what the links to them say.
_PARTS = {
    "before": "Since the run before",
    "sizes": "Sizes",
    "holes": "Holes",
    "top": "Groups",
    "overlap": "How much they overlap",
    "communities": "Communities",
    "participation": "Who takes part most",
    "degrees": "How it ran",  # the first part of those that are folded: a browser unfolds them for a link into them
}
#: The lists of the page, and their names.
_CHOICES = {
    "surprise": "most surprising",
    "edges": "largest",
    "balance": "most balanced",
    "all": "all on this page",
}
#: The parts of the script of the page. Later ones use earlier ones.
_SCRIPTS = ("place", "output", "matrix", "plot", "list")
#: Letters that are shown of a label before the script of the page runs.
_MOST_LETTERS = 200
#: Most lines of the table of holes.
_MOST_HOLES = 20
#: Bytes that the page may have. Long lists of members are cut for it, but so much room is left to the bicliques anyway.
_MOST_BYTES, _LEAST_ROOM = 398_000, 100_000


class Page:
    """The page before it has content: its template, compiled."""

    def __init__(self) -> None:
        self._template = _template()

    def html_of(self, content: Content) -> str:
        """The page as HTML.

        Notes
        -----
        The pictures and lists have a bounded number of marks and rows.
        """
        listed = content.listed
        start = self._template.render(
            title=_folder(content, ()).rpartition("/")[2],
            lead=_lead(content),
            answers=_answers(content),
            parts={part: words for part, words in _PARTS.items() if _is_there(part, content)},
            content=content,
            participants=_taking_part(content),
            sides=_sides(content),
            groups=_groups(content.facts),
            stored=_stored(content) if listed else "",
            edges=_edges(content),
            holes=_holes(content.holes or {}),
            choices={by: words for by, words in _CHOICES.items() if listed and by in (*listed.lists, "all")},
            columns={"": "#", "left": content.names["left"], "right": content.names["right"], "edges": _edges(content)},
            static=list(_first(listed)) if listed else [],
            lines=_lines(content),
            most_letters=_MOST_LETTERS,
            most_shown=SHOWN,
            few=FEW,
            figures=_figures(content),
            style=Markup(_text("page.css")) + style(),
            version=__version__,
        )
        script = "".join(_text(f"{name}.js") for name in _SCRIPTS)
        end = f'<script>"use strict";\n{script}</script>\n</body>\n</html>\n'
        if listed is None:
            return start + end
        more: dict[str, Any] = {"names": content.names, "folder": _folder(content), "sides": _sides(content)}
        more |= {"count": content.status.count, "shown": dict(zip(_sides(content), (SHOWN, FEW), strict=True))}
        more |= {"distinct": round(100 * DISTINCT), "largest": TOP, "edges": _edges(content)}
        room = max(_MOST_BYTES - len(start.encode("utf-8", "replace")) - len(end), _LEAST_ROOM)
        made = packed(listed, more, room)
        return f'{start}<script type="text/plain" id="labels">{made}</script>\n{end}'


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_as_text
    )
    environment.filters |= {"number": number, "shortened": shortened}
    environment.tests["kept"] = is_kept
    return environment.from_string(_text("page.html"))


def _as_text(value: object) -> object:
    """What is inserted into the template, without characters that HTML does not allow. Markup stays as it is."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _is_there(part: str, content: Content) -> bool:
    if part in ("before", "communities", "holes"):
        return bool(getattr(content, part))
    if part == "overlap":
        return content.listed is not None
    return not content.none or part not in ("sizes", "top", "participation")


def _folder(content: Content, names: tuple[str, ...] = ("bicliques",)) -> str:
    """The folder of the run, or one in it, as people write it."""
    place = content.status.folder
    if isinstance(place, str):
        return "/".join((place_of(place), *names))
    return str(place.absolute().joinpath(*names))


def _lines(content: Content) -> dict[str, str]:
    """Lines that read all bicliques. The script of the page writes others for what is chosen."""
    folder = _folder(content)
    files = f"{folder}/*.parquet".replace("'", "''")
    return {
        "duckdb": f"SELECT * FROM read_parquet('{files}')\nORDER BY n_left::BIGINT * n_right DESC LIMIT 100;",
        "pandas": f"import pandas as pd\n\nbicliques = pd.read_parquet({json.dumps(folder, ensure_ascii=False)})",
    }


def _stored(content: Content) -> str:
    """Which bicliques are on the page."""
    assert content.listed is not None
    n, count, listed = len(content.listed.rows), content.status.count, content.listed
    if n == count:
        return f"All {n:,} are on this page.{_scored(listed, count)}" if n > 1 else "It is on this page."
    each = [f"the {np.count_nonzero(own <= TOP):,} {_CHOICES[by]}" for by, own in listed.numbers.items()]
    largest = np.unique(np.concatenate([own[listed.numbers[by] <= TOP] for by, own in listed.lists.items()]))
    behind, others = listed.n_ranked - len(largest), n - listed.n_ranked
    each += [number(behind, "distinct one behind them", "distinct ones behind them")] if behind else []
    each += [number(others, "other", "others") + " of all sizes"] if others else []
    told = f"{', '.join(each[:-1])}{',' * (len(each) > 2)} and {each[-1]}"
    return f"{n:,} of {count:,} are on this page: {told}.{_scored(listed, count)}"


def _scored(listed: Listed, count: int) -> str:
    """What the most surprising ones are, and of how many, if not of all."""
    if "surprise" not in listed.lists:
        return ""
    among = f" The most surprising ones are those of a sample of {listed.scored:,}."
    return " A group is surprising if it is unlikely, given how frequent its members are." + among * (
        listed.scored < count
    )


def _first(listed: Listed) -> Iterator[tuple[int, int, int, dict[str, list[str]]]]:
    """The first distinct rows, for a browser without JavaScript: number, sizes, and the first members of each side."""
    by, order = next(iter(listed.lists.items()))
    for k in np.flatnonzero(listed.repeats[by] < 0)[:PAGE].tolist():
        row = int(order[k])
        yield int(listed.numbers[by][k]), *listed.sizes(row), {side: listed.first(row, side, SHOWN) for side in SIDES}


def _sides(content: Content) -> tuple[str, str]:
    """The side that says what a group is about, and the other one. It has fewer vertices: tags, of many packages."""
    n = {side: int(own.sum()) for side, own in content.degrees.items()}
    return ("left", "right") if n and n["left"] < n["right"] else ("right", "left")


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


def _edges(content: Content) -> str:
    """What the product of the sizes of a row counts."""
    return "edges" if content.search.near is None else "pairs"


def _what(content: Content) -> str:
    return "maximal biclique" if content.search.near is None else "maximal near-biclique"


def _holes(counts: dict[int, int]) -> list[tuple[str, int]]:
    """How many rows have how many holes. The last line of many has all that follow."""
    lines = [(f"{missing:,}", n) for missing, n in counts.items()]
    if len(lines) > _MOST_HOLES:
        lines = [*lines[: _MOST_HOLES - 1], ("more", sum(n for _, n in lines[_MOST_HOLES - 1 :]))]
    return lines


def _lead(content: Content) -> str:
    search, count = content.search, content.status.count
    wanted = search_words(search)
    if content.none:
        return f"No {_what(content)}{f' with {wanted}' if wanted else ''}: {content.none}"
    gap, complete = content.status.gap, content.status.state == "complete"
    if search.largest is not None:
        which = f"The {count:,} largest groups by {search.by}" if complete else f"{number(count, 'group')} so far"
    elif complete:
        which = f"All {count:,} groups" if count > 1 else "The only group"
    else:
        which = f"{number(count, 'group')} so far"
    least = [f"at least {n:,} " if n > 1 else "" for n in (search.min_left, search.min_right)]
    left, right = (f"{bound}{many(content.names[side])}" for bound, side in zip(least, SIDES, strict=True))
    more = search_words(replace(search, min_left=1, min_right=1))
    words = f"{which} of {left} that share {right}" + (f", with {more}" if more else "")
    words += "" if content.listing else ", counted and not listed"
    return words + ("" if gap is None else f". By {search.by}: {gap}.")


def many(name: str) -> str:
    """What the input calls a vertex of a side, in the plural. A name that may be no English word stays as it is."""
    if name in SIDES:
        return f"{name} members"
    if not re.fullmatch("[a-z_ ]{2,}[a-rt-wyz]", name):
        return name
    if re.search("(ch|sh|z)$", name):
        return f"{name}es"
    return re.sub("(?<![aeiou])y$", "ie", name) + "s"


def _taking_part(content: Content) -> dict[str, list[tuple[list[str], int, int]]]:
    """For each side the labels that are in most bicliques, with their numbers. Those with equal ones are together."""
    return {
        side: [
            ([one.label for one in own], *key) for key, own in groupby(rows, lambda one: (one.bicliques, one.degree))
        ]
        for side, rows in content.participants.items()
    }


def _answers(content: Content) -> list[tuple[str, tuple[int, int], str]]:
    """Between whom the bicliques are, and how large they are: what, the numbers of both sides, and more words."""
    answers = []
    if content.degrees:
        n_left, n_right = (int(content.degrees[side].sum()) for side in SIDES)
        answers.append(("between", (n_left, n_right), ""))
    if content.sizes is None or not len(content.sizes):
        return answers
    left, right = content.sizes.n_left.astype(np.int64), content.sizes.n_right.astype(np.int64)
    ranks = ((left, left * right), (left, left * right, np.minimum(left, right)))  # the last key comes first
    edges, balance = (int(np.lexsort(keys)[-1]) for keys in ranks)
    for what, at in ((f"most {_edges(content)}", edges), ("most balanced", balance)):
        answers.append(
            (what, (int(left[at]), int(right[at])), f": {number(int(left[at] * right[at]), _edges(content)[:-1])}")
        )
    return answers


def _groups(facts: tuple[tuple[str, str], ...]) -> dict[str, list[tuple[str, str]]]:
    """The facts in groups. Groups without facts are left out."""
    group_of = {name: group for group, names in _GROUPS.items() for name in names}
    last = list(_GROUPS)[-1]
    groups: dict[str, list[tuple[str, str]]] = {group: [] for group in _GROUPS}
    for name, value in facts:
        groups[group_of.get(name, last)].append((name, value))
    return {group: own for group, own in groups.items() if own}


def _text(name: str) -> str:
    return files("bicliques.pipeline.results.report").joinpath(name).read_text()


#: Number of members of a side that are shown at once, and that are shown when the list is unfolded.
SHOWN, UNFOLDED = 12, 200
#: The same of the side that only says who they are.
FEW = 4
#: Number of bicliques that are shown at once.
PAGE = 10
#: Of zlib. Level 6 takes twice as long and saves two percent, level 9 ten times as long and four percent. So that
#: is for pages which would have to be cut otherwise, although they are nearly short enough.
_LEVEL, _LAST_LEVEL, _NEARLY = 5, 9, 1.05
#: So that the letter which says how many letters two labels have in common needs no escape in JSON.
_MOST_COMMON = ord("[") - ord("0")
#: The last letter that JavaScript does not count as two.
_LAST_OF_ONE_UNIT = 0xFFFF


def packed(listed: Listed, more: dict[str, Any], room: int) -> Markup:
    """The bicliques as JSON, compressed by zlib, in base64.

    Parameters
    ----------
    more : dict
        Other entries of the object.
    room : int
        Largest length of the result. Long lists of members are cut until it is kept, or until nothing is left of them.

    Returns
    -------
    Markup
        An object with the entries of `more` and these: ``n``, ``numeric``, ``lists``, ``numbers``, ``looked``,
        ``repeats`` and ``most`` as `Listed` has them; ``ids`` as text; the numbers `PAGE` and `UNFOLDED`;
        ``shares`` of the rows of the rankings in percent, rounded down, if members are cut, because the script cannot
        find out then; ``labels`` and ``members``. The first letter of a label says how many letters it has in common
        with the one before (`_folded`). Members are a list per side and row. The first number of it is a row above, or
        -1. The others are the positions of the members that the row has and the one above has not, or the other way
        round. Each is given as the difference to the one before.
    """
    data: dict[str, Any] = more | {
        "n": {side: listed.rows[f"n_{side}"].to_pylist() for side in listed.labels},
        "ids": [str(each) for each in listed.ids],
        "numeric": listed.numeric,
        "lists": {by: own.tolist() for by, own in listed.lists.items()},
        "numbers": {by: own.tolist() for by, own in listed.numbers.items()},
        "looked": listed.looked_at,
        "repeats": {by: own.tolist() for by, own in listed.repeats.items()},
        "page": PAGE,
        "unfolded": UNFOLDED,
    }
    alike = {side: _most_alike(common) for side, common in listed.common.items()}
    longest = max((len(own) for rows in listed.members.values() for own in rows), default=0)
    most = longest
    while True:
        data["most"] = listed.most if most == longest else most
        data["shares"] = [] if data["most"] is None else _percents(listed)
        data["labels"], data["members"] = {}, {}
        for side in listed.labels:
            data["labels"][side], data["members"][side] = _cut(listed, side, most, alike[side])
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        raw = text.encode("utf-8", "replace")
        made = base64.b64encode(zlib.compress(raw, _LEVEL)).decode()
        if room < len(made) <= _NEARLY * room:
            made = base64.b64encode(zlib.compress(raw, _LAST_LEVEL)).decode()
        if len(made) <= room or most == 0:
            return Markup(made)
        most = min(int(most * min(room / len(made), 0.9)), most - 1)


def _percents(listed: Listed) -> list[list[int]]:
    n = listed.n_ranked
    percents: list[list[int]] = np.floor(100 * listed.shares[:n, :n] + 1e-9).astype(int).tolist()
    return percents


def _most_alike(common: np.ndarray) -> np.ndarray:
    """For each row the one above it from which it differs least, or -1 if it differs more than it is long."""
    length = np.diag(common)
    differ = length[:, None] + length[None, :] - 2 * common
    differ[np.triu_indices(len(differ))] = np.inf
    if not len(differ):
        return np.zeros(0, np.int64)
    found: np.ndarray = np.where(differ.min(axis=1) < length, differ.argmin(axis=1), -1)
    return found


def _cut(listed: Listed, side: str, most: int, alike: np.ndarray) -> tuple[list[str], list[list[int]]]:
    """The labels of the first `most` members of all rows, and the rows, packed."""
    rows, labels = listed.members[side], listed.labels[side]
    if most < max(map(len, rows), default=0):
        labels, rows = only_used(labels, [own[:most] for own in rows])
    differences = [
        own if above < 0 else np.setxor1d(own, rows[above], assume_unique=True)
        for own, above in zip(rows, alike.tolist(), strict=True)
    ]
    numbers = [
        [above, *np.diff(own, prepend=0).tolist()] for own, above in zip(differences, alike.tolist(), strict=True)
    ]
    return _folded(labels), numbers


def _folded(labels: list[str]) -> list[str]:
    """The labels without what they have in common with the one before. Its length comes first, as a letter from "0" on.

    A letter that JavaScript counts as two ends the common part.
    """
    if not labels:
        return []
    letters = np.array(labels, f"U{_MOST_COMMON}").view(np.uint32).reshape(len(labels), -1)
    is_common = np.zeros((len(labels), letters.shape[1] + 1), bool)  # the last column stays, and ends every common part
    is_common[1:, :-1] = (letters[1:] == letters[:-1]) & (letters[1:] > 0) & (letters[1:] <= _LAST_OF_ONE_UNIT)
    common = is_common.argmin(axis=1).tolist()
    return [chr(ord("0") + k) + label[k:] for label, k in zip(labels, common, strict=True)]
