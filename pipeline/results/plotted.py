"""The matrix of one biclique on axes of Matplotlib, where that is installed, and as PNG."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bicliques.pipeline.results.listing import beginning, columns_of
from bicliques.schemas.errors import ResourceError

if TYPE_CHECKING:
    from bicliques.pipeline.results.matrix import Line

#: No edge, and the colours of `pipeline.results.matrix`: between vertices that nearly belong, of one of these, own.
_COLOURS = ("#f0f1f2", "#8a949e", "#e69f00", "#0072b2")
_HOLE = "#d55e00"
#: Inches of a cell; and of the labels and the title, which stand around the matrix. Most letters of a label.
_CELL, _AROUND, _LETTERS = 0.2, 2.2, 24


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
