"""The matrix of one biclique as SVG: its vertices, their edges, and strips of what overlaps it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from bicliques.pipeline.results.explanation import Explanation
from bicliques.pipeline.results.listing import beginning, columns_of, shortened
from bicliques.pipeline.results.svg import element
from bicliques.pipeline.run.progress import number

#: Width and height of a cell, size of letters, and mean width of a letter, in units. A unit is a pixel at first.
_CELL, _FONT, _LETTER = 15, 11, 6.3
#: Most columns of a label.
_LETTERS = 24
#: Room between the parts of the picture and around it.
_GAP = 8
#: Colours as of the page: edges of the biclique, other edges of vertices that nearly belong, and overlapping bicliques.
#: People with any colour vision can tell them apart (Okabe and Ito).
_STYLE = Markup("""
.biclique { font: 11px system-ui, sans-serif; max-width: 100%; height: auto; color: #1b1f24; background: #ffffff; }
.biclique text { fill: currentColor; } .biclique .end { text-anchor: end; } .biclique .middle { text-anchor: middle; }
.biclique .faint { fill-opacity: .65; } .biclique .own { fill: #0072b2; } .biclique .near { fill: #e69f00; }
.biclique .other { fill: #8a949e; } .biclique .in { fill: #009e73; }
.biclique .ground { fill: currentColor; fill-opacity: .07; }
.biclique .hole { stroke: #d55e00; stroke-width: 1.6; fill: none; }
@media (prefers-color-scheme: dark) {
.biclique { color: #e6e9ed; background: #14171b; } .biclique .own { fill: #56b4e9; }
.biclique .hole { stroke: #ff8a3d; }
}
""")


class Line(NamedTuple):
    """A row or a column of the matrix: a vertex.

    Parameters
    ----------
    id : int
        Dense id.
    label : str
        Its label, on one line.
    words : str
        What is said of it.
    is_member : bool
        Otherwise it nearly belongs.
    overlaps : list of bool
        In which of the overlapping bicliques it is.
    """

    id: int
    label: str
    words: str
    is_member: bool
    overlaps: list[bool]


def drawn(found: Explanation, rows: list[Line], columns: list[Line], joined: np.ndarray) -> Markup:
    """The picture of an explanation.

    Parameters
    ----------
    rows, columns : list of Line
        The left and the right vertices to draw, the members first.
    joined : ndarray, shape (rows, columns), bool
        Which of them are joined.
    """
    n = found.overlapping.num_rows
    left, top = _room(rows) + 2 * _GAP, _room(columns) + 3 * _GAP + 2 * _FONT
    x = _places(columns, left)
    y = _places(rows, top)
    right, bottom = x[-1] + _CELL + _GAP, y[-1] + _CELL + _GAP
    cells = _cells(rows, columns, joined, x, y)
    legend = _legend(found, {name for name, one in cells.items() if one}, bottom + n * _CELL + 3 * _GAP, left)
    width = max(right + n * _CELL, left + 520) + _GAP
    height = bottom + n * _CELL + 3 * _GAP + len(legend) * (_FONT + 6) + _GAP
    parts = [
        _title(found, rows, columns),
        *(_name(line, left - _GAP, at, False) for line, at in zip(rows, y, strict=True)),
        *(_name(line, at, top - _GAP, True) for line, at in zip(columns, x, strict=True)),
        *(element("path", class_=name, d="".join(one)) for name, one in cells.items() if one),
        *_strips(rows, columns, n, (x, y), (right, bottom)),
        *legend,
    ]
    size = {"width": round(width), "height": round(height), "viewBox": f"0 0 {round(width)} {round(height)}"}
    more = {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": _words(found, rows, columns)}
    return element("svg", element("style", _STYLE), *parts, class_="biclique", **size, **more)


def _room(lines: list[Line]) -> float:
    """Room for the labels of rows or columns."""
    return _LETTER * max(min(columns_of(line.label), _LETTERS) for line in lines)


def _places(lines: list[Line], start: float) -> list[float]:
    """Where each row or column begins. There is a gap before those that nearly belong."""
    return [start + k * _CELL + (0 if line.is_member else _GAP) for k, line in enumerate(lines)]


def _name(line: Line, x: float, y: float, is_column: bool) -> Markup:
    text = line.label if columns_of(line.label) <= _LETTERS else beginning(line.label, _LETTERS)
    where: dict[str, object] = {"x": x, "y": y + _CELL / 2, "dy": ".35em", "class_": "end"}
    if is_column:
        middle = x + _CELL / 2
        where = {"x": middle, "y": y, "dy": ".35em", "transform": f"rotate(-90 {middle:g} {y:g})"}
    return element("text", element("title", line.words), text, **where)


def _cells(
    rows: list[Line], columns: list[Line], joined: np.ndarray, x: list[float], y: list[float]
) -> dict[str, list[str]]:
    """The edges, by what they are, and the holes: what a member, or a vertex that nearly belongs, misses."""
    squares: dict[str, list[str]] = {"ground": [], "other": [], "near": [], "own": [], "hole": []}
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            members = row.is_member + column.is_member
            if joined[i, j]:
                squares[("other", "near", "own")[members]].append(_square(x[j], y[i]))
            else:
                squares["ground"].append(_square(x[j], y[i]))
                if members:
                    squares["hole"].append(f"M{x[j] + 4:g} {y[i] + 4:g}l7 7m0 -7l-7 7")
    return squares


def _square(x: float, y: float) -> str:
    return f"M{x + 1:g} {y + 1:g}h{_CELL - 2}v{_CELL - 2}h-{_CELL - 2}z"


def _strips(
    rows: list[Line],
    columns: list[Line],
    n: int,
    places: tuple[list[float], list[float]],
    corner: tuple[float, float],
) -> list[Markup]:
    """Beside each row and below each column, the overlapping bicliques that the vertex is in, by their numbers."""
    (x, y), (right, bottom) = places, corner
    there: list[str] = []
    absent: list[str] = []
    numbers = []
    for k in range(n):
        across, down = right + k * _CELL, bottom + k * _CELL
        for line, at in zip(rows, y, strict=True):
            (there if line.overlaps[k] else absent).append(_square(across, at))
        for line, at in zip(columns, x, strict=True):
            (there if line.overlaps[k] else absent).append(_square(at, down))
        numbers.append(element("text", k + 1, x=across + _CELL / 2, y=y[0] - 4.0, class_="middle"))
        numbers.append(element("text", k + 1, x=x[0] - _GAP, y=down + _CELL / 2, dy=".35em", class_="end"))
    paths = [element("path", class_=name, d="".join(one)) for name, one in (("ground", absent), ("in", there)) if one]
    return [*paths, *numbers]


def _title(found: Explanation, rows: list[Line], columns: list[Line]) -> Markup:
    lines = [
        f"{found.kind} {found.biclique.id}",
        " x ".join(
            f"{_shown_of(lines, len(members))} {shortened(name, 60)}"
            for lines, members, name in zip((rows, columns), found.biclique, found.names, strict=True)
        ),
    ]
    first, second = (
        element("text", text, x=_GAP, y=float(_GAP + _FONT + k * (_FONT + 4)), font_weight=weight)
        for k, (text, weight) in enumerate(zip(lines, (600, None), strict=True))
    )
    return first + second


def _shown_of(lines: list[Line], n: int) -> str:
    drawn = sum(line.is_member for line in lines)
    return f"{n:,}" if drawn == n else f"{drawn:,} of {n:,}"


def _legend(found: Explanation, cells: set[str], y: float, x: float) -> list[Markup]:
    """What the colours are, and which the overlapping bicliques are."""
    signs = [
        ("own", f"edge of the {found.kind}"),
        ("near", f"edge of a vertex that misses at most {found.missing:,}"),
        ("hole", "what it misses" if found.holes is None else "missing pair"),
        ("other", "edge between two of those"),
    ]
    signs = [sign for sign in signs if sign[0] in cells]
    signs += [("in", "is in an overlapping one:")] if found.overlapping.num_rows else []
    lines = []
    for k, (name, words) in enumerate(signs):
        at = y + k * (_FONT + 6)
        mark = f"M{x + 4:g} {at + 4:g}l7 7m0 -7l-7 7" if name == "hole" else _square(x, at)
        lines.append(
            element("path", class_=name, d=mark)
            + element("text", words, x=x + _CELL + _GAP, y=at + _CELL / 2, dy=".35em")
        )
    table = found.overlapping.select(["share", "n_left", "n_right", "id"]).to_pylist()
    for k, row in enumerate(table):
        words = f"{k + 1}: {row['share']:.0%} of the edges; {row['n_left']:,} x {row['n_right']:,}, id {row['id']}"
        at = y + (len(signs) + k) * (_FONT + 6)
        lines.append(element("text", words, x=x + _CELL + _GAP, y=at + _CELL / 2, dy=".35em", class_="faint"))
    return lines


def _words(found: Explanation, rows: list[Line], columns: list[Line]) -> str:
    """What is drawn, for people who do not see it."""
    n_left, n_right = map(len, found.biclique)
    near = [
        f"{sum(not line.is_member for line in lines)} {side}" for lines, side in ((rows, "left"), (columns, "right"))
    ]
    others = number(found.overlapping.num_rows, "biclique that overlaps", "bicliques that overlap")
    holes = "" if found.holes is None else f" with {number(found.n_holes, 'missing pair')}"
    return (
        f"Matrix of the {n_left:,} left and {n_right:,} right members of a {found.kind}{holes}, {near[0]} and "
        f"{near[1]} vertices that nearly belong, and {others} it."
    )
