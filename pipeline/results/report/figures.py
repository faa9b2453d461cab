"""The pictures of the page, as Bokeh figures. The page sets the colours of text and lines, for light and dark mode."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColorBar, ColumnDataSource, CustomJSTickFormatter, FixedTicker, HoverTool, LogColorMapper, Span
from bokeh.palettes import Viridis256
from bokeh.plotting import figure

from pipeline.results.binning import grid, round_numbers
from pipeline.results.report.timeline import Timeline
from schemas.sizes import SizeCounts

__all__ = [
    "BUSY",
    "LEFT",
    "RIGHT",
    "WRITING",
    "degree_figure",
    "size_figure",
    "step_figure",
    "timeline_figure",
]

#: Colours of left and right, busy and writing. People with any colour vision can tell them apart, on white and on black
#: (Okabe and Ito).
LEFT, RIGHT, BUSY, WRITING = "#0072b2", "#e69f00", "#009e73", "#d55e00"
_PALETTE = Viridis256[40:]  # the first colours of Viridis cannot be seen on black
#: Largest number of points of a curve.
_MOST_POINTS = 300


def size_figure(sizes: SizeCounts, names: dict[str, str] | None = None) -> figure:
    """Heat map of the number of bicliques by both sizes, in bins. Both axes and the colours are logarithmic.

    `names` has what the input calls the sides "left" and "right".
    """
    cells = grid(sizes)
    rows, columns = np.nonzero(cells.count)
    x, y = cells.ends()
    count = cells.count[rows, columns]
    source = ColumnDataSource(
        {
            "x0": cells.left[rows] - 0.5,
            "x1": cells.left[rows + 1] - 0.5,
            "y0": cells.right[columns] - 0.5,
            "y1": cells.right[columns + 1] - 0.5,
            "left": _ranges(cells.left, rows),
            "right": _ranges(cells.right, columns),
            "count": count,
            "words": [f"{n:,}" for n in count],
        }
    )
    plot = _figure(
        height=440,
        x_axis_type="log",
        y_axis_type="log",
        x_range=_around(*x),
        y_range=_around(*y),
        x_axis_label=f"{_side('left', names)} members",
        y_axis_label=f"{_side('right', names)} members",
    )
    colours = LogColorMapper(palette=_PALETTE, low=1, high=max(int(count.max(initial=1)), 2))
    cell = plot.quad(
        left="x0",
        right="x1",
        bottom="y0",
        top="y1",
        source=source,
        fill_color={"field": "count", "transform": colours},
        line_color=None,
    )
    plot.add_tools(_hover([cell], [("left members", "@left"), ("right members", "@right"), ("bicliques", "@words")]))
    bar = ColorBar(
        color_mapper=colours,
        ticker=FixedTicker(ticks=round_numbers(1, int(count.max(initial=1)))),
        formatter=_numbers(),
        width=12,
        padding=6,
    )
    plot.add_layout(bar, "right")
    plot.grid.visible = False
    _number_axes(plot, x, y)
    return plot


def degree_figure(degrees: dict[str, np.ndarray], names: dict[str, str] | None = None) -> figure:
    """Number of vertices of each side that have at least so many neighbours. Both axes are logarithmic."""
    plot = _figure(
        height=320,
        x_axis_type="log",
        y_axis_type="log",
        x_axis_label="neighbours in the input",
        y_axis_label="vertices with at least so many",
    )
    for side, colour, dash in (("left", LEFT, "solid"), ("right", RIGHT, "dashed")):
        at_least = np.cumsum(degrees[side][::-1])[::-1]
        there = np.flatnonzero(degrees[side][1:]) + 1
        there = there[_spread(there)]
        data = {"x": there, "y": at_least[there], "words": [f"{n:,}" for n in at_least[there]]}
        source = ColumnDataSource(data)
        word = _side(side, names)
        plot.line("x", "y", source=source, color=colour, line_width=2, line_dash=dash, legend_label=word)
        points = plot.scatter("x", "y", source=source, color=colour, size=5, legend_label=word)
        plot.add_tools(_hover([points], [(side, "@words have at least @x")]))
    _legend_above(plot)
    least = min((int(np.flatnonzero(own)[0]) for own in degrees.values() if own.any()), default=1)
    most = max(map(len, degrees.values()))
    _number_axes(plot, (max(least, 1), most), (1, max(int(own.sum()) for own in degrees.values())))
    return plot


def _side(side: str, names: dict[str, str] | None) -> str:
    """A side, with the name that the input gives to it."""
    return side if names is None or names[side] == side else f"{side} ({names[side]})"


def step_figure(steps: tuple[tuple[str, float], ...]) -> figure:
    """One bar per step for its seconds, the first step on top."""
    names = [name for name, _ in steps]
    source = ColumnDataSource({"name": names, "seconds": [seconds for _, seconds in steps]})
    plot = _figure(height=60 + 34 * len(names), y_range=names[::-1], x_axis_label="seconds")
    bars = plot.hbar(y="name", right="seconds", height=0.6, source=source, color=LEFT)
    plot.x_range.start = 0
    plot.ygrid.visible = False
    plot.add_tools(_hover([bars], [("", "@name: @seconds{0.000} s")]))
    return plot


def timeline_figure(times: Timeline) -> figure:
    """One lane per worker. Bars are slices. In their second colour the search waited for output. Gaps are idle time."""
    numbers = [str(k) for k in range(1, len(times.lanes) + 1)]  # names of hosts are too long for a phone
    plot = _figure(
        height=90 + 26 * len(numbers),
        y_range=numbers[::-1],
        x_range=(0.0, max(times.seconds, 1e-3)),
        x_axis_label="seconds of mining",
        y_axis_label="worker",
    )
    columns: dict[str, list[object]] = {
        key: [] for key in ("lane", "start", "turn", "stop", "worker", "what", "rows", "rate", "busy", "writing")
    }
    for number, lane in zip(numbers, times.lanes, strict=True):
        for block in lane.blocks:
            what = f"{block.first:,}" if block.slices == 1 else f"{block.first:,} to {block.last:,} ({block.slices:,})"
            values = (
                number,
                block.start,
                block.stop - (block.stop - block.start) * block.writing / max(block.busy, 1e-9),
                block.stop,
                lane.worker,
                what,
                f"{block.rows:,}",
                f"{block.rows / max(block.busy, 1e-3):,.0f}",
                f"{block.busy:.3f}",
                f"{block.writing:.3f}",
            )
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
    source = ColumnDataSource(columns)
    parts = [
        plot.hbar(
            y="lane", left=a, right=b, height=0.7, source=source, color=colour, line_color=None, legend_label=name
        )
        for a, b, colour, name in (("start", "turn", BUSY, "searching"), ("turn", "stop", WRITING, "writing"))
    ]
    rows = [
        ("worker", "@worker"),
        ("slice", "@what"),
        ("bicliques", "@rows"),
        ("a second", "@rate"),
        ("seconds", "@busy, of them @writing writing"),
    ]
    plot.add_tools(_hover(parts, rows))
    for stretch in times.sessions[1:]:
        plot.add_layout(Span(location=stretch.start, dimension="height", line_dash="dashed", line_color="gray"))
    plot.ygrid.visible = False
    _legend_above(plot)
    return plot


def _figure(**options: Any) -> figure:
    plot = figure(sizing_mode="stretch_width", tools="pan,box_zoom,wheel_zoom,reset,save", min_width=250, **options)
    plot.toolbar.active_drag = None  # otherwise a finger on a picture could not scroll the page
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.background_fill_alpha = plot.border_fill_alpha = 0
    return plot


def _legend_above(plot: figure) -> None:
    """Put the legend outside the picture, where it covers nothing on a phone."""
    plot.add_layout(plot.legend[0], "above")
    plot.legend.orientation = "horizontal"
    plot.legend.border_line_color = None


def _hover(renderers: list[Any], rows: list[tuple[str, str]]) -> HoverTool:
    return HoverTool(renderers=renderers, tooltips=rows, attachment="vertical")


def _numbers() -> CustomJSTickFormatter:
    return CustomJSTickFormatter(code="return tick >= 1 ? tick.toLocaleString('en-US') : String(tick)")


def _around(smallest: int, largest: int) -> tuple[float, float]:
    """The range of a logarithmic axis on which each size is drawn from half a size below it to half a size above it."""
    return 0.98 * (smallest - 0.5), 1.02 * (largest + 0.5)


def _number_axes(plot: figure, x: tuple[int, int], y: tuple[int, int]) -> None:
    for axis, ends in ((plot.xaxis, x), (plot.yaxis, y)):
        axis.formatter, axis.ticker = _numbers(), FixedTicker(ticks=round_numbers(*ends))


def _ranges(edges: np.ndarray, bins: np.ndarray) -> list[str]:
    ends = edges[bins + 1] - 1
    return [f"{a:,}" if a == b else f"{a:,} to {b:,}" for a, b in zip(edges[bins], ends, strict=True)]


def _spread(values: np.ndarray) -> np.ndarray:
    """Positions of at most `_MOST_POINTS` of the ascending values, spread evenly by logarithm, with both ends."""
    if len(values) <= _MOST_POINTS:
        return np.arange(len(values))
    wanted = np.geomspace(values[0], values[-1], _MOST_POINTS)
    return np.unique(np.minimum(np.searchsorted(values, wanted * (1 - 1e-12)), len(values) - 1))
