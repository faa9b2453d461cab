"""The pictures of the page, by their elements: every number has its mark, at the place that the axis says."""

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np
import pytest

from bicliques.pipeline.results import svg
from bicliques.pipeline.results.report import figures
from bicliques.pipeline.results.report.figures import (
    BUSY,
    LEFT,
    RIGHT,
    WIDTH,
    WRITING,
    Bins,
    Linear,
    Logarithmic,
    cells_of,
    colour_of,
    degree_figure,
    linear_numbers,
    size_figure,
    step_figure,
    timeline_figure,
)
from bicliques.pipeline.results.report.timeline import Block, Lane, Stretch, Timeline
from bicliques.pipeline.results.svg import Figure, element, number, style
from bicliques.schemas.dtypes import MAX_VERTICES
from bicliques.schemas.sizes import SizeCounts

HOSTILE = "</text></svg><script>alert(1)</script>\n\"'&\x00\x1b\ud800]]>"
NAMES = {"left": HOSTILE, "right": "-->" + HOSTILE}
BLOCK = Block(start=0.0, stop=4.0, busy=4.0, writing=1.0, slices=1, rows=1234, first=7, last=7)
TIMES = Timeline(
    (Stretch(0.0, 6.0, "time_limit"), Stretch(6.0, 10.0, "complete")),
    (Lane("host:1", (BLOCK, Block(6.0, 10.0, 3.0, 0.0, 3, 9, 8, 10)), 0.9), Lane(HOSTILE, (BLOCK,), 0.4)),
)


def sizes_of(seed: int, left: int, right: int, n: int = 400) -> SizeCounts:
    draw = np.random.default_rng(seed)
    sides = [np.maximum(1, draw.geometric(3 / most, n) % most + 1) for most in (left, right)]
    return SizeCounts.of(*sides, 10 ** draw.integers(0, 6, n))


def parsed(figure: Figure) -> Element:
    """The picture as a reader of XML sees it, without the name space."""
    tree = ElementTree.fromstring(figure.svg)
    for node in tree.iter():
        node.tag = node.tag.partition("}")[2]
    return tree


def of_class(tree: Element, *names: str) -> Iterator[Element]:
    return (node for node in tree.iter() if set(names) <= set(node.get("class", "").split()))


def ticks(tree: Element, axis: str) -> dict[str, float]:
    """The numbers at an axis, and where they are."""
    [group] = of_class(tree, axis)
    texts = [text for text in group.iter("text") if text.get("class") != "title"]
    return {str(text.text): float(text.attrib["x" if axis == "axis-x" else "y"]) for text in texts}


def title(tree: Element, axis: str) -> str:
    [group] = of_class(tree, axis)
    [text] = of_class(group, "title")
    return str(text.text)


def map_of(tree: Element) -> tuple[float, float, float]:
    """Left and upper end of the heat map, and the side of a cell, in units."""
    [cells] = of_class(tree, "cells")
    found = re.fullmatch(r"translate\((\S+) (\S+)\) scale\((\S+)\)", cells.attrib["transform"])
    return float(found[1]), float(found[2]), float(found[3])


PICTURES = {
    "sizes": lambda names: size_figure(sizes_of(1, 5000, 40), names),
    "one size": lambda names: size_figure(SizeCounts.of(np.array([1]), np.array([1])), names),
    "no size": lambda names: size_figure(SizeCounts.empty(), names),
    "huge": lambda names: size_figure(
        SizeCounts.of(np.array([1, 2**30]), np.array([2**30, 1]), np.array([1, 2**60])), names
    ),
    "degrees": lambda names: degree_figure({"left": np.array([3, 2, 1]), "right": np.bincount([1, 7, 900])}, names),
    "no degrees": lambda names: degree_figure({"left": np.array([0]), "right": np.array([4])}, names),
    "steps": lambda _: step_figure((("ingest", 0.125), (HOSTILE, 2.0))),
    "no time": lambda _: step_figure((("ingest", 0.0),)),
    "timeline": lambda _: timeline_figure(TIMES),
}


@pytest.mark.parametrize("what", PICTURES)
def test_every_picture_is_well_formed_whatever_the_names_are(what):
    figure = PICTURES[what](NAMES)
    tree = parsed(figure)
    assert tree.tag == "svg"
    assert tree.get("role") == "img"
    assert len(tree.attrib["aria-label"]) > 20
    assert {node.tag for node in tree.iter()} <= {"svg", "g", "path", "rect", "circle", "text", "title"}
    assert not re.search(r"nan|inf[^ok]", figure.svg)
    width, height = map(float, tree.attrib["viewBox"].split()[2:])
    for node in tree.iter("text"):
        assert 0 <= float(node.attrib["x"]) <= width
        assert 0 <= float(node.attrib["y"]) <= height
    if what in ("sizes", "degrees", "timeline"):
        assert "</svg><script>" in "".join(tree.itertext()), "the beginning of the name is there, as text"


@pytest.mark.parametrize("what", PICTURES)
def test_numbers_of_an_axis_are_within_it_and_do_not_touch(what):
    tree = parsed(PICTURES[what](None))
    for axis, size in (("axis-x", 0.6), ("axis-y", 1.1)):
        for group in of_class(tree, axis):
            texts = [text for text in group.iter("text") if text.get("class") != "title"]
            for narrow, font in ((True, figures.FONT), (False, 9.0)):
                shown = [t for t in texts if not narrow or "wide" not in t.get("class", "")]
                ends = []
                for text in shown:
                    at = float(text.attrib["x" if axis == "axis-x" else "y"])
                    half = font * size * (len(str(text.text)) if axis == "axis-x" else 1) / 2
                    ends.append((at - half, at + half))
                assert shown
                assert all(a[1] <= b[0] for a, b in itertools.pairwise(sorted(ends)))
                if axis == "axis-x":
                    assert max(end for _, end in ends) <= WIDTH
                else:
                    longest = max(len(str(text.text)) for text in shown) * font * 0.6
                    assert all(float(text.attrib["x"]) - longest >= 0 for text in shown)


@pytest.mark.parametrize(("left", "right"), [(3, 4), (16, 16), (40, 900), (90_000, 12), (300_000, 300_000)])
def test_every_size_that_is_there_has_its_square_cell(left, right):
    sizes = sizes_of(left, left, right)
    tree, grid = parsed(size_figure(sizes)), cells_of(sizes)
    [cells] = of_class(tree, "cells")
    told = {}
    for rect in cells:
        assert (rect.get("width"), rect.get("height")) == ("1", "1"), "a square, because both are scaled alike"
        told[int(rect.attrib["x"]), int(rect.attrib["y"])] = str(rect[0].text)
    assert len(told) == len(cells), "no cell hides another"
    wanted = {}
    rows = grid.count.shape[1]
    for a, b, count in zip(sizes.n_left.tolist(), sizes.n_right.tolist(), sizes.count.tolist(), strict=True):
        spot = (sum(a >= grid.left) - 1, rows - sum(b >= grid.right))
        wanted[spot] = wanted.get(spot, 0) + count
    assert {spot: words.rpartition(" ")[2] for spot, words in told.items()} == {k: f"{n:,}" for k, n in wanted.items()}
    for (column, row), words in told.items():
        first, last = int(grid.left[column]), int(grid.left[column + 1]) - 1
        assert words.startswith(f"left members {first:,}" + ("" if first == last else f" to {last:,}") + "\n")
        first, last = int(grid.right[rows - 1 - row]), int(grid.right[rows - row]) - 1
        assert f"\nright members {first:,}" + ("" if first == last else f" to {last:,}") + "\n" in words
    assert max(grid.count.shape) <= 64


@pytest.mark.parametrize(("most", "edges"), [(2**19 - 1, 2**38), (MAX_VERTICES, 2**41 - 1)])
def test_there_are_never_more_cells_than_the_page_has_room_for(most, edges):
    """Bicliques of all sizes that fewer than 2**41 edges allow, the smallest of each cell of the coarsest bins."""
    starts = 2 ** np.arange(most.bit_length())
    pairs = np.array([(a, b) for a in starts.tolist() for b in starts.tolist() if a * b <= edges])
    between = np.array([(a + a // 2, b) for a, b in pairs.tolist() if (a + a // 2) * b <= edges])
    both = np.concatenate([pairs, between])
    grid = cells_of(SizeCounts.of(both[:, 0], both[:, 1]))
    assert max(grid.count.shape) <= 64
    assert 300 < np.count_nonzero(grid.count) <= 800
    assert grid.count.sum() == len(both)


def test_numbers_are_written_beside_their_cells():
    sizes = sizes_of(5, 2000, 30)
    tree, grid = parsed(size_figure(sizes)), cells_of(sizes)
    left, top, side = map_of(tree)
    for text, x in ticks(tree, "axis-x").items():
        column = sum(int(text.replace(",", "")) >= grid.left) - 1
        assert left + column * side <= x <= left + (column + 1) * side
    for text, y in ticks(tree, "axis-y").items():
        row = grid.count.shape[1] - sum(int(text.replace(",", "")) >= grid.right)
        assert top + row * side <= y <= top + (row + 1) * side
    assert len(ticks(tree, "axis-x")) >= 3


def test_a_picture_of_large_bicliques_only_has_no_empty_corner():
    grid = cells_of(SizeCounts.of(np.array([20, 40]), np.array([1000, 3000]), np.array([2, 3])))
    assert grid.left[0] == 20
    assert grid.left[-1] > 40 >= grid.left[-2]
    assert (grid.count.any(axis=1)[[0, -1]].all(), grid.count.any(axis=0)[[0, -1]].all()) == (True, True)


def test_colours_are_logarithmic_and_brighter_for_more():
    assert colour_of(1, 1000) == "#453781"
    assert colour_of(1000, 1000) == "#fde725"
    assert colour_of(100, 10_000) == "#20a386", "the middle of Viridis from its first sixth on"

    def light(colour: str) -> float:
        red, green, blue = bytes.fromhex(colour[1:])
        return 0.299 * red + 0.587 * green + 0.114 * blue

    lights = [light(colour_of(10**k, 10**9)) for k in range(10)]
    assert all(a < b for a, b in itertools.pairwise(lights)), "also without any colour vision"


def test_the_legend_says_what_the_colours_mean():
    sizes = SizeCounts.of(np.array([1, 2, 3]), np.array([1, 1, 1]), np.array([1, 100, 10_000]))
    tree = parsed(size_figure(sizes))
    [bar] = of_class(tree, "colours")
    steps = [(float(step.attrib["x"]), step.attrib["fill"]) for step in bar.iter("rect")]
    at = {str(text.text): float(text.attrib["x"]) for text in bar.iter("text")}
    assert at.pop("bicliques") > max(at.values())
    assert at["100"] == pytest.approx((at["1"] + at["10,000"]) / 2, abs=0.1), "logarithmic"
    [cells] = of_class(tree, "cells")
    for rect, count in zip(cells, ("1", "100", "10,000"), strict=True):
        near = min(steps, key=lambda step: abs(step[0] - at[count]))[1]
        apart = zip(bytes.fromhex(near[1:]), bytes.fromhex(rect.attrib["fill"][1:]), strict=True)
        assert max(abs(a - b) for a, b in apart) < 16


def test_scales():
    assert [Linear(0, 10, 50, 250)(value) for value in (0, 5, 10)] == [50, 150, 250]
    logarithmic = Logarithmic(1, 1000, 0, 300)
    assert [logarithmic(value) for value in (1, 10, 100, 1000)] == pytest.approx([0, 100, 200, 300])
    bins = Bins([1, 2, 3, 4, 8], 0, 40)
    assert [bins(value) for value in (1, 2, 3)] == [5, 15, 25], "the middle of a bin for one size"
    assert 30 < bins(4) < bins(5) < bins(7) < 40


@pytest.mark.parametrize("high", [1e-3, 0.05, 0.21, 1.0, 9.99, 39.4, 86_400.0])
def test_numbers_of_a_linear_axis(high):
    found = linear_numbers(high)
    assert found[0] == 0
    assert 4 <= len(found) <= 12
    assert found[-1] <= high * (1 + 1e-6)
    assert high - found[-1] < found[1]


def test_curves_have_the_numbers_of_the_degrees():
    degrees = {"left": np.array([3, 2, 0, 1]), "right": np.bincount([1, 10, 100])}
    tree = parsed(degree_figure(degrees, {"left": "user", "right": "film"}))
    titles = [str(circle[0].text) for circle in tree.iter("circle")]
    assert titles == [
        *("left: 3 have at least 1", "left: 1 have at least 3"),
        *("right: 3 have at least 1", "right: 2 have at least 10", "right: 1 have at least 100"),
    ]
    x, y = ticks(tree, "axis-x"), ticks(tree, "axis-y")
    last = list(tree.iter("circle"))[-1]
    assert (float(last.attrib["cx"]), float(last.attrib["cy"])) == (x["100"], y["1"])
    assert x["10"] - x["1"] == pytest.approx(x["100"] - x["10"], abs=0.2)
    assert y["2"] - y["4"] == pytest.approx(y["1"] - y["2"], abs=0.2)
    legend = [text.text for group in of_class(tree, "legend") for text in group.iter("text")]
    assert legend == ["left (user)", "right (film)"]
    assert max(float(t.attrib["y"]) for g in of_class(tree, "legend") for t in g.iter("text")) < min(
        float(circle.attrib["cy"]) for circle in tree.iter("circle")
    ), "no legend covers a curve"


def test_a_curve_of_many_degrees_has_few_points_and_both_ends():
    many = np.ones(5000, np.int64)
    circles = list(parsed(degree_figure({"left": many, "right": many})).iter("circle"))
    assert 200 < len(circles) <= 400
    titles = [str(circle[0].text) for circle in circles]
    assert {"left: 4,999 have at least 1", "left: 1 have at least 4,999"} <= set(titles)


def test_pictures_say_what_the_sides_are_called():
    names = {"left": "user", "right": "film"}
    tree = parsed(size_figure(SizeCounts.of(np.array([2]), np.array([1])), names))
    assert (title(tree, "axis-x"), title(tree, "axis-y")) == ("left (user) members", "right (film) members")
    plain = parsed(size_figure(SizeCounts.of(np.array([2]), np.array([1])), {"left": "left", "right": "right"}))
    assert title(plain, "axis-x") == "left members"


def test_texts_that_touch_on_a_phone_are_shown_where_letters_are_smaller():
    for room in (0.5, 1.1, 3.0):
        places = [figures.FONT * room * 0.9 * k for k in range(5)]
        assert figures._that_fit(places, [room] * 5) == [(0, ""), (1, " wide"), (2, ""), (3, " wide"), (4, "")]
        places = [9.0 * room * 0.9 * k for k in range(3)]
        assert figures._that_fit(places, [room] * 3) == [(0, ""), (2, " wide")], "too close for a wide screen, too"


def test_bars_are_as_long_as_their_steps():
    tree = parsed(step_figure((("ingest", 1.0), ("mine", 4.0))))
    short, long = (float(bar.attrib["width"]) for bar in of_class(tree, "left"))
    assert long == pytest.approx(4 * short, rel=0.01)
    x = ticks(tree, "axis-x")
    assert x["1"] - x["0"] == pytest.approx(short, abs=0.2)
    assert [group[0].text for group in next(of_class(tree, "marks"))] == ["ingest: 1.000 s", "mine: 4.000 s"]
    assert {"1.00 s", "4.00 s"} <= {text.text for text in tree.iter("text")}


def test_the_timeline_shows_searching_writing_idle_and_sessions():
    tree = parsed(timeline_figure(TIMES))
    [marks] = of_class(tree, "marks")
    assert len(marks) == 3
    assert str(marks[0][0].text).splitlines() == [
        *("worker host:1", "slice 7", "bicliques 1,234, 308 per second"),
        "seconds 4.000, of them 1.000 writing",
    ]
    assert "slice 8 to 10 (3)\n" in str(marks[1][0].text)
    x = ticks(tree, "axis-x")
    busy, writing = marks[0].findall("rect")
    unit = x["2"] / 2 - x["0"] / 2
    assert float(busy.attrib["width"]) == pytest.approx(3 * unit, abs=0.2)
    assert float(writing.attrib["width"]) == pytest.approx(unit, abs=0.2)
    assert [rect.get("class") for rect in marks[1].findall("rect")] == ["busy"]
    [words] = of_class(tree, "axis-y")
    lanes = [float(text.attrib["y"]) for text in words]
    assert lanes[0] < lanes[1]
    for mark, lane in zip(marks, (lanes[0], lanes[0], lanes[1]), strict=True):
        for rect in mark.findall("rect"):
            high = float(rect.attrib["height"])
            assert float(rect.attrib["y"]) + high / 2 == pytest.approx(lane, abs=0.2), "beside the number of its worker"
            assert 0 < high < lanes[1] - lanes[0]
    assert [float(rect.attrib["x"]) for rect in marks[0].findall("rect")] == pytest.approx(
        [x["0"], x["0"] + 3 * unit], abs=0.2
    )
    assert float(marks[1][1].attrib["x"]) == pytest.approx(x["6"], abs=0.2)
    [line] = of_class(tree, "resumed")
    assert float(line.attrib["d"][1:].split()[0]) == pytest.approx(x["6"], abs=0.2)


def test_colours_of_the_style_sheet_are_those_of_the_other_pictures():
    assert all(colour in style() for colour in (LEFT, RIGHT, BUSY, WRITING))


def test_a_notebook_shows_a_picture_by_itself():
    figure = size_figure(sizes_of(1, 30, 30), NAMES)
    html = figure._repr_html_()
    assert html.startswith("<style>")
    assert figure.svg in html
    assert "<script" not in html
    assert html.count("</style>") == html.count("</svg>") == 1


@pytest.mark.parametrize("hostile", [HOSTILE, "<", "&amp;", '"', "'", "]]>", "\ud800", "\x00\x08\x0b\x7f\x80\uffff"])
def test_an_element_keeps_text_and_values_as_they_are(hostile):
    text = element("text", hostile, element("title", hostile), x=1.26, stroke_width=2, class_=hostile, y=None)
    tree = ElementTree.fromstring(text)
    kept = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f]", lambda control: chr(0x2400 + ord(control[0])), hostile)
    kept = re.sub("[\x80-\x9f\ud800-\udfff\ufffe\uffff]", "\ufffd", kept.replace("\x7f", "\u2421"))
    assert tree.text == tree[0].text == kept
    assert tree.attrib == {"x": "1.3", "stroke-width": "2", "class": kept.replace("\n", " ")}


def test_numbers_are_short():
    assert [number(x) for x in (0.0, -0.01, 1.04, 12.96, 1e6, -3.25)] == ["0", "0", "1", "13", "1000000", "-3.2"]
    assert math.isclose(float(number(599.97)), 600)


def test_the_rooms_of_the_style_sheet_and_of_the_axes_agree():
    """The axes leave room for the letters that the style sheet draws."""
    fonts = [float(size) for size in re.findall(r"font(?:-size)?: ([\d.]+)px", style())]
    assert (min(fonts), max(fonts)) == (9.0, figures.FONT)
    assert (Path(svg.__file__).parent / "plot.css").read_text() == style()
