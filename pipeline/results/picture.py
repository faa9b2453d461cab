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

from bicliques.pipeline.results.edges import blocks_of
from bicliques.pipeline.results.explanation import Explanation
from bicliques.pipeline.results.interesting import refuse_target
from bicliques.pipeline.results.listing import beginning, columns_of, shown
from bicliques.pipeline.results.matrix import Line, drawn
from bicliques.pipeline.run.files import whole_file
from bicliques.pipeline.run.labels import ids_of
from bicliques.pipeline.run.opened import Run
from bicliques.pipeline.run.progress import number, size
from bicliques.schemas.errors import InputError, ResourceError
from bicliques.schemas.search import Side
from bicliques.schemas.values import local_path

#: No edge, and the colours of `pipeline.results.matrix`: between vertices that nearly belong, of one of these, own.
_COLOURS = ("#f0f1f2", "#8a949e", "#e69f00", "#0072b2")
_HOLE = "#d55e00"
#: Inches of a cell; and of the labels and the title, which stand around the matrix. Most letters of a label.
_CELL, _AROUND, _LETTERS = 0.2, 2.2, 24
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

    Raises
    ------
    InputError
        If the name ends neither in ``.svg`` nor in ``.png``, or there is no such folder.
    ResourceError
        If it ends in ``.png``, and Matplotlib is not installed.
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
    the overlapping bicliques that they are in. The edges between the vertices that are drawn are read once.

    Raises
    ------
    IncompleteError
        If the edge table is missing or damaged.
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
        height, width = (_AROUND + _CELL * len(lines) for lines in matrix.lines)
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
