"""The pictures of a run's page as PNG images, for Prefect's image artifacts, which run no script.

Notes
-----
The page draws SVG, which needs a browser and the page's style sheet to become an image. So Matplotlib draws these
images.
"""

from __future__ import annotations

import base64
import io

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, StrMethodFormatter

from pipeline.results.binning import grid, round_numbers
from pipeline.results.report.content import Content
from pipeline.results.report.figures import BUSY, LEFT, RIGHT, WRITING
from pipeline.results.report.timeline import Timeline
from schemas.sizes import SizeCounts

__all__ = ["pictures_of"]

_NUMBER = StrMethodFormatter("{x:,.0f}")


def pictures_of(content: Content) -> dict[str, str]:
    """Every picture for which the run has numbers, by name: a ``data:`` address that holds a PNG."""
    drawn = {}
    if content.sizes is not None and len(content.sizes):
        drawn["sizes"] = _sizes(content.sizes)
    if content.degrees:
        drawn["degrees"] = _degrees(content.degrees)
    if content.steps:
        drawn["steps"] = _steps(content.steps)
    if content.timeline.lanes:
        drawn["time-line"] = _timeline(content.timeline)
    return {name: _address(figure) for name, figure in drawn.items()}


def _sizes(sizes: SizeCounts) -> Figure:
    figure, axes = _empty(4.4)
    cells = grid(sizes)
    most = int(cells.count.max())
    count = np.ma.masked_equal(cells.count.T, 0)
    mesh = axes.pcolormesh(cells.left - 0.5, cells.right - 0.5, count, norm=LogNorm(1, max(most, 2)))
    bar = figure.colorbar(mesh, label="bicliques", ticks=round_numbers(1, most), format=_NUMBER)
    bar.minorticks_off()
    x, y = cells.ends()
    _logarithmic(axes, x, y)
    axes.set(xlim=(x[0] - 0.5, x[1] + 0.5), ylim=(y[0] - 0.5, y[1] + 0.5))  # half a size to both sides
    axes.set(xlabel="left members", ylabel="right members")
    return figure


def _degrees(degrees: dict[str, np.ndarray]) -> Figure:
    figure, axes = _empty(3.4)
    for side, colour, line in (("left", LEFT, "-"), ("right", RIGHT, "--")):
        at_least = np.cumsum(degrees[side][::-1])[::-1]
        there = np.flatnonzero(degrees[side][1:]) + 1
        axes.plot(there, at_least[there], line, color=colour, marker=".", label=side)
    most = max(map(len, degrees.values())) - 1, max(int(own.sum()) for own in degrees.values())
    _logarithmic(axes, (1, most[0]), (1, most[1]))
    axes.set(xlabel="neighbours in the input", ylabel="vertices with at least so many")
    axes.legend(loc="upper right")
    return figure


def _steps(steps: tuple[tuple[str, float], ...]) -> Figure:
    figure, axes = _empty(0.8 + 0.3 * len(steps))
    axes.barh([name for name, _ in steps], [seconds for _, seconds in steps], color=LEFT)
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    return figure


def _timeline(times: Timeline) -> Figure:
    figure, axes = _empty(1.4 + 0.3 * len(times.lanes))
    for row, lane in enumerate(times.lanes):
        searching, writing = [], []
        for block in lane.blocks:
            length = block.stop - block.start
            written = length * block.writing / max(block.busy, 1e-9)
            searching.append((block.start, length - written))
            writing.append((block.stop - written, written))
        axes.broken_barh(searching, (row - 0.35, 0.7), color=BUSY, label="" if row else "searching")
        axes.broken_barh(writing, (row - 0.35, 0.7), color=WRITING, label="" if row else "writing")
    axes.set_yticks(range(len(times.lanes)), [lane.worker for lane in times.lanes])
    axes.set_xlim(0.0, max(times.seconds, 1e-3))
    axes.invert_yaxis()
    axes.set_xlabel("seconds of mining")
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


def _empty(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.0, height), layout="constrained")  # without pyplot, which keeps state between runs
    return figure, figure.add_subplot()


def _logarithmic(axes: Axes, x: tuple[int, int], y: tuple[int, int]) -> None:
    """Make both axes logarithmic, with marks at whole numbers between the ends `x` and `y`."""
    axes.set(xscale="log", yscale="log")
    for axis, ends in ((axes.xaxis, x), (axes.yaxis, y)):
        axis.set_ticks(round_numbers(*ends))
        axis.set_major_formatter(_NUMBER)
        axis.set_minor_locator(NullLocator())


def _address(figure: Figure) -> str:
    image = io.BytesIO()
    figure.savefig(image, format="png", dpi=110)
    return f"data:image/png;base64,{base64.b64encode(image.getvalue()).decode()}"
