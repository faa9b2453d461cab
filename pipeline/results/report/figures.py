"""The pictures of the page: what is drawn of the results, on which axes and in which colours. `svg` writes the text."""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from bicliques.pipeline.results.binning import Grid, cells_of, round_numbers
from bicliques.pipeline.results.report.timeline import Block, Timeline
from bicliques.pipeline.results.svg import Figure, element, shortened
from bicliques.pipeline.run.progress import number
from bicliques.schemas.sizes import SizeCounts

#: Width of every picture, and the largest size of its letters, in units.
WIDTH, FONT = 600, 19.5
#: Size of letters on a wide screen, in units, and the width and height of a letter as parts of its size.
_WIDE_FONT, _LETTER_WIDTH, _LETTER_HEIGHT = 9.0, 0.6, 1.1
#: Thirteen colours of Viridis from its first sixth to its end, evenly apart. People with any colour vision can tell
#: them apart. The colours before them cannot be seen on black. (Stéfan van der Walt and Nathaniel Smith, 2015; CC0.)
_VIRIDIS = "453781 3e4c8a 355f8d 2d718e 26828e 20928c 20a386 2eb37c 4cc26c 73d056 a0da39 d0e11c fde725"
_STOPS = tuple(tuple(bytes.fromhex(colour)) for colour in _VIRIDIS.split())
#: Number of steps in which a bar of colours is drawn.
_STEPS = 48

#: Where a number is drawn, in units.
Place = Callable[[float], float]


@dataclass(frozen=True)
class Box:
    """The part of a picture in which data is drawn, in units from its left upper corner."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True)
class Linear:
    """Draws numbers from `low` to `high` evenly between the units `start` and `stop`."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The unit at which `value` is drawn."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


@dataclass(frozen=True)
class Logarithmic:
    """As `Linear`, with equal distances between numbers of equal ratio. All numbers must be above 0."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The unit at which `value` is drawn."""
        return self.start + math.log(value / self.low) / math.log(self.high / self.low) * (self.stop - self.start)


@dataclass(frozen=True)
class Bins:
    """Draws sizes in bins of equal width, evenly inside each. A bin for one size has this size at its middle.

    Parameters
    ----------
    edges : sequence of int
        First size of every bin, and the first size beyond the last one.
    start, stop : float
        Where the first bin begins, and where the last one ends, in units.
    """

    edges: Sequence[int]
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The unit at which `value` is drawn."""
        k = min(max(bisect.bisect_right(self.edges, value) - 1, 0), len(self.edges) - 2)
        inside = (value + 0.5 - self.edges[k]) / (self.edges[k + 1] - self.edges[k])
        return self.start + (k + inside) * (self.stop - self.start) / (len(self.edges) - 1)


def drawn(height: float, words: str, *parts: Markup) -> Figure:
    """A picture of so many units, and what it shows in words, for people who do not see it.

    The script of the page makes every child of a ``g`` with the class ``marks`` speak when it is pointed at.
    """
    box = f"0 0 {WIDTH} {math.ceil(height)}"
    more = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": box, "aria-label": words}
    return Figure(element("svg", *parts, class_="plot", role="img", **more))


def axis_below(box: Box, place: Place, numbers: Sequence[float], title: str) -> Markup:
    """A horizontal axis below a box, with its title."""
    texts = [_written(value) for value in numbers]
    parts = [element("path", class_="axis", d=f"M{box.left:g} {box.bottom:g}H{box.right:g}")]
    rooms = [(len(text) + 1) * _LETTER_WIDTH for text in texts]
    for k, only in _that_fit([place(value) for value in numbers], rooms):
        x = place(numbers[k])
        parts.append(element("path", class_="tick", d=f"M{x:.1f} {box.bottom:g}v4"))
        parts.append(element("text", texts[k], x=x, y=box.bottom, dy="1.4em", class_=f"middle{only}"))
    parts.append(element("text", title, x=box.left, y=box.bottom, dy="2.8em", class_="title"))
    return element("g", *parts, class_="axis-x")


def axis_left(box: Box, place: Place, numbers: Sequence[float], title: str) -> Markup:
    """A vertical axis at the left of a box, with its title above."""
    parts = [element("path", class_="axis", d=f"M{box.left:g} {box.top:g}V{box.bottom:g}")]
    for k, only in _that_fit([place(value) for value in numbers], [_LETTER_HEIGHT] * len(numbers)):
        y = place(numbers[k])
        parts.append(element("path", class_="tick", d=f"M{box.left:g} {y:.1f}h-4"))
        parts.append(element("text", _written(numbers[k]), x=box.left - 6, y=y, dy=".35em", class_=f"end{only}"))
    parts.append(element("text", title, x=0, y=box.top, dy="-.7em", class_="title"))
    return element("g", *parts, class_="axis-y")


def words_left(left: float, places: Sequence[float], words: Sequence[str]) -> Markup:
    """A word at the left of each row of a picture."""
    fit = _that_fit(places, [_LETTER_HEIGHT] * len(words))
    texts = [element("text", words[k], x=left - 6, y=places[k], dy=".35em", class_=f"end{only}") for k, only in fit]
    return element("g", *texts, class_="axis-y")


def grid_lines(box: Box, x: Sequence[float] = (), y: Sequence[float] = ()) -> Markup:
    """Faint lines through a box, at units across and down."""
    lines = [f"M{at:.1f} {box.top:g}V{box.bottom:g}" for at in x] + [
        f"M{box.left:g} {at:.1f}H{box.right:g}" for at in y
    ]
    return element("path", class_="grid", d="".join(lines))


def colour_bar(box: Box, most: int, numbers: Sequence[int], title: str) -> Markup:
    """The colours from 1 to `most`, with numbers below and the title at the right."""
    place, parts = Logarithmic(1, max(most, 2), box.left, box.right), []
    width = (box.right - box.left) / _STEPS
    for k in range(_STEPS):
        colour = _mixed((k + 0.5) / _STEPS)
        more = {"y": box.top, "width": width + 0.3, "height": box.bottom - box.top, "fill": colour}
        parts.append(element("rect", x=box.left + k * width, **more))
    texts = [_written(value) for value in numbers]
    for k, only in _that_fit([place(value) for value in numbers], [(len(t) + 1) * _LETTER_WIDTH for t in texts]):
        parts.append(element("text", texts[k], x=place(numbers[k]), y=box.bottom, dy="1.1em", class_=f"middle{only}"))
    parts.append(element("text", title, x=box.right + 12, y=(box.top + box.bottom) / 2, dy=".35em"))
    return element("g", *parts, class_="colours")


def colour_of(count: int, most: int) -> str:
    """The colour of a count from 1 to `most`, as #rrggbb: the brighter, the more. The scale is logarithmic."""
    return _mixed(math.log(count) / math.log(max(most, 2)))


def linear_numbers(high: float, fewest: int = 4) -> list[float]:
    """Round numbers from 0 to `high`, evenly apart: at least so many, and at most about twice as many."""
    step = 10.0 ** math.floor(math.log10(high))
    apart = next(step / part for part in (1, 2, 5, 10, 20, 50) if high * part / step >= fewest)
    return [k * apart for k in range(int(high / apart + 1e-9) + 1)]


def room_for(texts: Sequence[str]) -> float:
    """Room at the left of an axis for the longest of these texts, in units."""
    return 14 + FONT * _LETTER_WIDTH * max(map(len, texts), default=0)


def _mixed(share: float) -> str:
    """The colour at a share from 0 to 1 of the way through all colours."""
    at = min(max(share, 0.0), 1.0) * (len(_STOPS) - 1)
    k = min(int(at), len(_STOPS) - 2)
    return "#" + "".join(f"{round(a + (at - k) * (b - a)):02x}" for a, b in zip(_STOPS[k], _STOPS[k + 1], strict=True))


def _that_fit(places: Sequence[float], rooms: Sequence[float]) -> list[tuple[int, str]]:
    """Positions of the texts that do not touch each other, and a class that says which fit on a wide screen only.

    `rooms` has the length of each text along the axis, as a multiple of the size of its letters.
    """
    narrow = _apart(places, [FONT * room for room in rooms], [])
    wide = _apart(places, [_WIDE_FONT * room for room in rooms], narrow)
    return [(k, "" if k in narrow else " wide") for k in wide]


def _apart(places: Sequence[float], lengths: Sequence[float], taken: Sequence[int]) -> list[int]:
    """The texts in `taken`, and others: from the first one on, each text that touches none of those found so far."""
    found = list(taken)
    for k in range(len(places)):
        if all(abs(places[k] - places[j]) >= (lengths[k] + lengths[j]) / 2 for j in found):
            found.append(k)
    return sorted(found)


def _written(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.10g}"


#: Colours of left and right, busy and writing. People with any colour vision can tell them apart, on white and on black
#: (Okabe and Ito). The style sheet has them, too, and for dark mode a brighter one for the left side.
LEFT, RIGHT, BUSY, WRITING = "#0072b2", "#e69f00", "#009e73", "#d55e00"
#: Largest size of a cell of the heat map, and largest height of all of them, in units.
_LARGEST_CELL, _MAP_HEIGHT = 26, 330
#: Largest number of points of a curve.
_MOST_POINTS = 200
#: Height of a bar with the space around it, and the largest height of all lanes of the timeline, in units.
_BAR, _LANES_HEIGHT = 26, 900
#: Room below a picture for the numbers of its axis and its title, and above it for the title of the other axis.
_BELOW, _ABOVE = 58, 30
#: Room at the right of a picture, because half of the last number stands to the right of its axis.
_RIGHT = 36


def size_figure(sizes: SizeCounts, names: dict[str, str] | None = None) -> Figure:
    """Heat map of the number of bicliques by both sizes, in square bins. The colours are logarithmic.

    `names` has what the input calls the sides "left" and "right". A notebook shows the figure.
    """
    cells = cells_of(sizes)
    x_ends, y_ends = cells.ends()
    x_numbers, y_numbers = round_numbers(*x_ends), round_numbers(*y_ends)
    most, (columns, rows) = int(cells.count.max(initial=1)), cells.count.shape
    left = room_for([f"{value:,}" for value in y_numbers])
    side = min((WIDTH - _RIGHT - left) / columns, _MAP_HEIGHT / rows, _LARGEST_CELL)
    top = 40 + _ABOVE
    box = Box(left, top, left + columns * side, top + rows * side)
    titles = [f"{_side(name, names)} members" for name in ("left", "right")]
    spots = [
        _cell(cells, k, rows - 1 - m, (k, m), colour_of(int(cells.count[k, m]), most))
        for k, m in np.argwhere(cells.count).tolist()
    ]
    map_ = element("g", *spots, class_="cells marks", transform=f"translate({left:g} {top:g}) scale({side:.4g})")
    x, y = Bins(cells.left.tolist(), box.left, box.right), Bins(cells.right.tolist(), box.bottom, box.top)
    words = (
        f"Heat map of {number(sizes.total, 'biclique')} in {number(len(spots), 'cell')}: {titles[0]} from "
        f"{x_ends[0]:,} to {x_ends[1]:,}, {titles[1]} from {y_ends[0]:,} to {y_ends[1]:,}. {_fullest(cells)}"
    )
    return drawn(
        box.bottom + _BELOW,
        words,
        colour_bar(Box(left, 4, left + 240, 14), most, round_numbers(1, most), "bicliques"),
        map_,
        axis_below(box, x, x_numbers, titles[0]),
        axis_left(box, y, y_numbers, titles[1]),
    )


def _cell(cells: Grid, column: int, row: int, bins: tuple[int, int], colour: str) -> Markup:
    """A cell, one unit wide and high, with what is in it in words, and in numbers for the script of the page."""
    words = (
        f"left members {_range(cells.left, bins[0])}\nright members {_range(cells.right, bins[1])}\n"
        f"bicliques {cells.count[bins]:,}"
    )
    ends = ((edges[k], edges[k + 1] - 1) for edges, k in zip((cells.left, cells.right), bins, strict=True))
    data = {"data_cell": ".".join(f"{first}-{last}" for first, last in ends), "data_n": int(cells.count[bins])}
    return element("rect", element("title", words), x=column, y=row, width=1, height=1, fill=colour, **data)


def _fullest(cells: Grid) -> str:
    """The cell with most bicliques, in words."""
    if not cells.count.any():
        return "There is none."
    k, m = divmod(int(cells.count.argmax()), cells.count.shape[1])
    sides = f"{_range(cells.left, k)} left and {_range(cells.right, m)} right members"
    return f"The fullest cell has {cells.count[k, m]:,}, with {sides}."


def degree_figure(degrees: dict[str, np.ndarray], names: dict[str, str] | None = None) -> Figure:
    """Number of vertices of each side that have at least so many neighbours. Both axes are logarithmic."""
    least = max(min((int(np.flatnonzero(own)[0]) for own in degrees.values() if own.any()), default=1), 1)
    most = max(*(len(own) - 1 for own in degrees.values()), least + 1)
    tallest = max(*(int(own.sum()) for own in degrees.values()), 2)
    x_numbers, y_numbers = round_numbers(least, most), round_numbers(1, tallest)
    top = 2 * 22 + _ABOVE
    box = Box(room_for([f"{value:,}" for value in y_numbers]), top, WIDTH - _RIGHT, top + 190)
    x, y = Logarithmic(least, most, box.left + 6, box.right), Logarithmic(1, tallest, box.bottom - 6, box.top)
    parts, words = [grid_lines(box, [x(value) for value in x_numbers], [y(value) for value in y_numbers])], []
    for k, side in enumerate(("left", "right")):
        at_least = np.cumsum(degrees[side][::-1])[::-1]
        there = np.flatnonzero(degrees[side][1:]) + 1
        there = there[_spread(there)].tolist()
        points = [(n, int(at_least[n])) for n in there]
        line = "M" + "L".join(f"{x(n):.1f} {y(count):.1f}" for n, count in points) if points else None
        dots = [
            element("circle", element("title", f"{side}: {count:,} have at least {n:,}"), cx=x(n), cy=y(count), r=1.7)
            for n, count in points
        ]
        parts.append(element("g", element("path", d=line), element("g", *dots, class_="marks"), class_=f"curve {side}"))
        parts.append(_legend(box.left, 11 + 22 * k, f"line {side}", _side(side, names)))
        if points:
            who = number(points[0][1], "vertex has", "vertices have")
            words.append(f"On the {side} side, {who} neighbours, at most {there[-1]:,}.")
    return drawn(
        box.bottom + _BELOW,
        " ".join(["Curves of the number of vertices with at least so many neighbours.", *words]),
        *parts,
        axis_below(box, x, x_numbers, "neighbours in the input"),
        axis_left(box, y, y_numbers, "vertices with at least so many"),
    )


def step_figure(steps: tuple[tuple[str, float], ...]) -> Figure:
    """One bar per step for its seconds, the first step on top."""
    names = [shortened(name, 12) for name, _ in steps]
    box = Box(room_for(names), 4, WIDTH - _RIGHT, 4 + _BAR * len(steps))
    longest = max(*(seconds for _, seconds in steps), 1e-3)
    x = Linear(0.0, longest, box.left, box.right - 70)  # the rest is for the seconds beside the longest bar
    places = [box.top + (k + 0.5) * _BAR for k in range(len(steps))]
    rows = []
    for (name, seconds), middle in zip(steps, places, strict=True):
        bar = element("rect", x=box.left, y=middle - 8, width=x(seconds) - box.left, height=16.0, class_="left")
        all_of_it = element("rect", x=0.0, y=middle - _BAR / 2, width=float(WIDTH), height=float(_BAR), class_="room")
        said = element("text", f"{seconds:.2f} s", x=x(seconds) + 5, y=middle, dy=".35em")
        rows.append(element("g", element("title", f"{name}: {seconds:.3f} s"), all_of_it, bar, said))
    numbers = linear_numbers(longest)
    return drawn(
        box.bottom + _BELOW,
        "Bars of the seconds of each step: " + ", ".join(f"{name} {seconds:.2f}" for name, seconds in steps) + ".",
        grid_lines(box, [x(value) for value in numbers]),
        element("g", *rows, class_="marks"),
        axis_below(box, x, numbers, "seconds"),
        words_left(box.left, places, names),
    )


def timeline_figure(times: Timeline) -> Figure:
    """One lane per worker. Bars are slices. In their second colour the search waited for output. Gaps are idle time."""
    lanes = times.lanes
    numbers = [f"{k:,}" for k in range(1, len(lanes) + 1)]  # names of hosts are too long for a phone
    high = min(max(_LANES_HEIGHT / max(len(lanes), 1), 10.0), float(_BAR))
    top = 24 + _ABOVE
    box = Box(room_for(numbers), top, WIDTH - _RIGHT, top + high * len(lanes))
    x = Linear(0.0, max(times.seconds, 1e-3), box.left, box.right)
    places = [box.top + (k + 0.5) * high for k in range(len(lanes))]
    blocks = [
        _block(block, lane.worker, x, middle, 0.7 * high)
        for lane, middle in zip(lanes, places, strict=True)
        for block in lane.blocks
    ]
    ticks = linear_numbers(x.high)
    resumed = "".join(f"M{x(stretch.start):.1f} {box.top:g}V{box.bottom:g}" for stretch in times.sessions[1:])
    return drawn(
        box.bottom + _BELOW,
        f"Timeline of {number(len(lanes), 'worker')} over {times.seconds:,.2f} seconds of mining. A table has its "
        "numbers.",
        _legend(box.left, 12, "busy", "searching"),
        _legend(box.left + 200, 12, "writing", "writing"),
        grid_lines(box, [x(value) for value in ticks]),
        element("g", *blocks, class_="marks"),
        *([element("path", class_="resumed", d=resumed)] if resumed else []),
        axis_below(box, x, ticks, "seconds of mining"),
        words_left(box.left, places, numbers),
        element("text", "worker", x=0, y=box.top, dy="-.7em", class_="title"),
    )


def _block(block: Block, worker: str, x: Linear, middle: float, high: float) -> Markup:
    what = f"{block.first:,}" if block.slices == 1 else f"{block.first:,} to {block.last:,} ({block.slices:,})"
    words = (
        f"worker {worker}\nslice {what}\n"
        f"bicliques {block.rows:,}, {block.rows / max(block.busy, 1e-3):,.0f} per second\n"
        f"seconds {block.busy:.3f}, of them {block.writing:.3f} writing"
    )
    turn = block.stop - (block.stop - block.start) * block.writing / max(block.busy, 1e-9)
    bars = [
        element("rect", x=x(a), y=middle - high / 2, width=x(b) - x(a), height=high, class_=name)
        for a, b, name in ((block.start, turn, "busy"), (turn, block.stop, "writing"))
        if b > a
    ]
    return element("g", element("title", words), *bars)


def _legend(x: float, y: float, name: str, words: str) -> Markup:
    """A short line or a square in a colour, and what it stands for."""
    if name.startswith("line "):
        sign, room = (
            element("g", element("path", d=f"M{x:g} {y:g}h30"), class_=f"curve {name.removeprefix('line ')}"),
            36,
        )
    else:
        sign, room = element("rect", x=x, y=y - 6, width=12, height=12, class_=name), 18
    return element("g", sign, element("text", words, x=x + room, y=y, dy=".35em"), class_="legend")


def _side(side: str, names: dict[str, str] | None) -> str:
    """A side, with the name that the input gives to it."""
    return side if names is None or names[side] == side else f"{side} ({shortened(names[side])})"


def _range(edges: np.ndarray, k: int) -> str:
    first, last = int(edges[k]), int(edges[k + 1]) - 1
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _spread(values: np.ndarray) -> np.ndarray:
    """Positions of at most `_MOST_POINTS` of the ascending values, spread evenly by logarithm, with both ends."""
    if len(values) <= _MOST_POINTS:
        return np.arange(len(values))
    wanted = np.geomspace(values[0], values[-1], _MOST_POINTS)
    return np.unique(np.minimum(np.searchsorted(values, wanted * (1 - 1e-12)), len(values) - 1))
