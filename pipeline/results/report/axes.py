"""Axes of the pictures: where a number is drawn, which numbers are written, and the scale of colours.

All pictures are `WIDTH` units wide. The style sheet writes with 9 units on a wide screen and with up to `FONT` units on
a phone, where a unit is smaller. A number for which only the wide screen has room has the class ``wide``.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bicliques.pipeline.results.svg import Figure, element

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
