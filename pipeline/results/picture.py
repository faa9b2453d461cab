"""Draws one biclique as a matrix of its edges, with the vertices that nearly belong and what overlaps it."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from markupsafe import Markup

from bicliques.pipeline.results.edges import blocks_of
from bicliques.pipeline.results.explanation import Explanation
from bicliques.pipeline.results.interesting import refuse_target
from bicliques.pipeline.results.listing import beginning, columns_of, shortened, shown
from bicliques.pipeline.results.svg import element
from bicliques.pipeline.run.files import whole_file
from bicliques.pipeline.run.labels import ids_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import number, size
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.search import Side
from bicliques.schemas.values import local_path

#: No edge, and the colours of `pipeline.results.picture`: between vertices that nearly belong, of one of these, own.
_COLOURS = ("#f0f1f2", "#8a949e", "#e69f00", "#0072b2")
_HOLE = "#d55e00"
#: Inches of a cell; and of the labels and the title, which stand around the matrix. Most letters of a label.
_INCHES, _AROUND = 0.2, 2.2
#: Most members of a side that are drawn.
_MEMBERS = 30


class Matrix(NamedTuple):
    """What is drawn of a biclique.

    Parameters
    ----------
    names : (str, str)
        What the input calls the two sides.
    lines : (list of Line, list of Line)
        The left and the right vertices, the members first.
    joined : ndarray, shape (left, right), bool
        Which of them are joined.
    """

    title: str
    names: tuple[str, str]
    lines: tuple[list[Line], list[Line]]
    joined: np.ndarray


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, which needs no other file. `Results.plot` returns it, and a notebook shows it.

    Parameters
    ----------
    svg : str
        The source of the picture.
    matrix : Matrix
        What is drawn, without what overlaps it.
    """

    svg: str
    matrix: Matrix = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"<picture of a biclique, SVG of {size(len(self.svg.encode()))}>"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def on(self, axes: Any = None) -> Any:
        """Draw the matrix with Matplotlib. What overlaps the biclique is in the picture as SVG alone.

        Parameters
        ----------
        axes : matplotlib.axes.Axes or None
            Where. None: on axes of a new figure, whose size is that of the matrix.

        Returns
        -------
        Axes
            With a picture that can be given other colours.

        Raises
        ------
        ResourceError
            If Matplotlib is not installed.
        """
        return on_axes(self.matrix, axes)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file. A file of this name is replaced.

        Parameters
        ----------
        path : path
            It ends in ``.svg``, or where Matplotlib is in ``.png``: see `on`.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            If the name ends in something else, or there is no such folder.
        ResourceError
            If the file cannot be written, or Matplotlib is not installed.
        """
        target = picture_file(path)
        content = self.svg.encode() if target.suffix.lower() == ".svg" else as_png(self.matrix)
        with whole_file(target) as file:
            file.write(content)
        return target


def picture_file(path: str | os.PathLike[str]) -> Path:
    """A file for a picture.

    Raises `ResourceError` if it ends in ``.png``, and Matplotlib is not installed.
    """
    target = local_path(path)
    if target.suffix.lower() not in (".svg", ".png"):
        raise InputError(
            f"{target} cannot be written, because the picture is SVG or PNG; name a file that ends in .svg or .png"
        )
    if target.suffix.lower() == ".png":
        refuse_without_matplotlib()
    refuse_target(target)
    return target


def picture_of(run: Run, found: Explanation) -> Picture:
    """Draw an explanation of a biclique of a run.

    Up to 30 members of each side are drawn: those of missing pairs, and others that are evenly chosen in the order of
    the overlapping bicliques that they are in. The edges between the vertices that are drawn are read once. Raises
    `IncompleteError` if the edge table is missing or damaged.
    """
    rows, columns = _lines(run, found, "left"), _lines(run, found, "right")
    ids = [np.array([line.id for line in lines], np.int32) for lines in (rows, columns)]
    (joined,) = blocks_of(run, [(ids[0], ids[1])])
    title = f"biclique {found.biclique.id}, {' x '.join(f'{len(side):,}' for side in found.biclique)}"
    return Picture(str(drawn(found, rows, columns, joined)), Matrix(title, found.names, (rows, columns), joined))


def _lines(run: Run, found: Explanation, side: Side) -> list[Line]:
    members, near = found.members[side], found.near[side]
    where = _overlaps(found, side, members["label"])
    # the first overlapping biclique divides the members, the second one divides both parts, and so on
    order = np.lexsort((members["degree"].to_numpy(), *(~where.T[::-1])))
    if len(order) > _MEMBERS:
        is_end = np.zeros(len(order), bool)
        if found.holes is not None:
            ends = found.holes["label"] if side == "left" else pc.list_flatten(found.holes["missing"])
            is_end = pc.is_in(members["label"], value_set=ends).to_numpy()[order]
        kept, others = np.flatnonzero(is_end)[:_MEMBERS], np.flatnonzero(~is_end)
        some = np.linspace(0, len(others) - 1, min(_MEMBERS - len(kept), len(others))).round().astype(int)
        order = order[np.sort(np.concatenate([kept, others[some]]))]
    return [
        *_of(run, side, members.take(pa.array(order)), where[order], True),
        *_of(run, side, near, _overlaps(found, side, near["label"]), False),
    ]


def _overlaps(found: Explanation, side: Side, labels: pa.ChunkedArray) -> np.ndarray:
    """Which of these vertices are in which of the overlapping bicliques, shape (vertices, bicliques), bool."""
    lists = found.overlapping[side]
    columns = [pc.is_in(labels, value_set=own.values).to_numpy() for own in lists]
    return np.column_stack([np.zeros((len(labels), 0), bool), *columns]).astype(bool)


def _of(run: Run, side: Side, table: pa.Table, where: np.ndarray, are_members: bool) -> list[Line]:
    k, labels = int(side == "right"), table["label"].combine_chunks()
    ids = labels.to_numpy() if run.tables is None else ids_of(labels, run.tables[k])
    lines = []
    for at, (id, row) in enumerate(zip(ids.tolist(), table.to_pylist(), strict=True)):
        words = f"{shown(row['label'])}\n{number(row['degree'], 'neighbour')}"
        if not are_members:
            words += f"\nmisses {', '.join(map(shown, row['missing']))}"
        lines.append(Line(id, shown(row["label"]), words, are_members, where[at].tolist()))
    return lines


def refuse_without_matplotlib() -> None:
    """Raise a ResourceError if Matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise ResourceError(
            "a picture as PNG or on axes needs Matplotlib, which is not installed "
            "(pip install 'bicliques[plot]'); save it as SVG, which needs nothing"
        )


def on_axes(matrix: Matrix, axes: Any = None) -> Any:
    """Draw a matrix on axes, or on those of a new figure, and return them."""
    refuse_without_matplotlib()
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    if axes is None:
        height, width = (_AROUND + _INCHES * len(lines) for lines in matrix.lines)
        axes = Figure(figsize=(width, height), layout="constrained").add_subplot()
    of_members = [np.array([line.is_member for line in lines], int) for lines in matrix.lines]
    members = of_members[0][:, None] + of_members[1]
    axes.imshow(np.where(matrix.joined, members + 1, 0), cmap=ListedColormap(_COLOURS), vmin=-0.5, vmax=3.5)
    y, x = np.nonzero(~matrix.joined & (members == 1))
    axes.scatter(x, y, marker="x", color=_HOLE)
    for axis, lines, name in zip((axes.yaxis, axes.xaxis), matrix.lines, matrix.names, strict=True):
        axis.set_ticks(range(len(lines)), [_plain(line.label) for line in lines])
        axis.set_label_text(_plain(name))
    axes.tick_params(axis="x", rotation=90)
    axes.set_title(matrix.title)
    return axes


def _plain(label: str) -> str:
    """The beginning of a label. Matplotlib would take what is between two dollars for a formula."""
    return (label if columns_of(label) <= _LETTERS else beginning(label, _LETTERS)).replace("$", r"\$")


def as_png(matrix: Matrix) -> bytes:
    """A matrix as PNG."""
    content = io.BytesIO()
    on_axes(matrix).figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


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
