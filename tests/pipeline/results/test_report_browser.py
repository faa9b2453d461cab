"""The page in a real browser: nothing asked of the network, no errors, search, tooltips, light, dark, a phone."""

from __future__ import annotations

import base64
import itertools
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pipeline
from pipeline.cli.demo import demo_source

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")

#: Where a browser may be, besides playwright's own: the first that is there is used.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("browser") / "packages"
    pipeline.mine(demo_source(), out, workers=0, progress=False)
    return out / "report.html"


class Chromium:
    """A browser that is started again when it has crashed: seen once in some hundred starts, whatever the page."""

    def __init__(self, playwright: Any, path: str | None):
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._launch = lambda: playwright.chromium.launch(executable_path=path, args=[*OPTIONS, *sandbox])
        self._opened = self._launch()

    @property
    def is_there(self) -> bool:
        return bool(self._opened.is_connected())

    def new_context(self, **options: Any) -> Any:
        if not self.is_there:
            self._opened = self._launch()
        return self._opened.new_context(**options)

    def close(self) -> None:
        self._opened.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    with sync_api.sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no browser is installed: apt-get install chromium, or playwright install chromium")
        opened = Chromium(playwright, found)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Chromium, page_file: Path) -> Iterator[Any]:
    """Opens the page; afterwards, nothing was complained of and nothing was fetched."""
    complaints: list[str] = []
    contexts: list[Any] = []

    def note(message: Any) -> None:
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def open_page(width: int = 1280, scheme: str = "light", file: Path = page_file) -> Any:
        try:
            return open_once(width, scheme, file)
        except sync_api.Error:
            if browser.is_there:
                raise
            contexts.clear()
            return open_once(width, scheme, file)

    def open_once(width: int, scheme: str, file: Path) -> Any:
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}))
        page = contexts[-1].new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else complaints.append(r.url))
        page.goto(file.as_uri())
        page.wait_for_function("!document.querySelector('#search:disabled')")  # the labels are unpacked
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def colour(page: Any, selector: str, x: float, y: float) -> tuple[int, ...]:
    """What is painted at a point of a picture, as (red, green, blue)."""
    box = page.locator(selector).bounding_box()
    clip = {"x": box["x"] + x, "y": box["y"] + y, "width": 1, "height": 1}
    data = page.screenshot(clip=clip, full_page=True)
    program = """async (data) => {
        const image = new Image(); image.src = "data:image/png;base64," + data; await image.decode();
        const canvas = document.createElement("canvas"); const pen = canvas.getContext("2d");
        pen.drawImage(image, 0, 0); return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3); }"""
    return tuple(page.evaluate(program, base64.b64encode(data).decode()))


#: What the text of a picture is painted with.
INK = {"light": "rgb(27, 31, 36)", "dark": "rgb(230, 233, 237)"}


def ink(page: Any) -> str:
    return str(page.locator("#degrees .plot text").first.evaluate("(text) => getComputedStyle(text).fill"))


def touch(one: dict[str, float], other: dict[str, float]) -> bool:
    """Whether two boxes lie over each other by more than their empty margins."""
    across = min(a["x"] + a["width"] for a in (one, other)) - max(one["x"], other["x"])
    down = min(a["y"] + a["height"] for a in (one, other)) - max(one["y"], other["y"])
    return across > 1 and down > 4


def test_the_page_opens_with_all_pictures(visit: Any) -> None:
    page = visit()
    assert page.title() == "packages: maximal bicliques"
    assert "56,688 maximal bicliques, all of them" in page.inner_text("header")
    for section in ("sizes", "degrees", "steps", "workers"):
        assert page.locator(f"#{section} svg[role=img]").count() == 1
        assert page.locator(f"#{section} svg[role=img]").bounding_box()["height"] > 80
        assert len(page.locator(f"#{section} svg[role=img]").get_attribute("aria-label")) > 40
    colours = "(members) => members.map((member) => getComputedStyle(member).borderLeftColor)"
    assert set(page.eval_on_selector_all(".members.left b", colours)) == {"rgb(0, 114, 178)"}
    assert set(page.eval_on_selector_all(".members.right b", colours)) == {"rgb(184, 116, 0)"}


def verdict(label: str, hits: int) -> str:
    return f"{label}: {hits} of 50 bicliques on this page"


def holding(results: pipeline.Results, by: Any, label: str) -> list[bool]:
    """Of the 50 largest, which have the label, as the run itself says."""
    rows = results.top(50, by).to_pylist()
    return [any(label in str(member).lower() for side in ("left", "right") for member in row[side]) for row in rows]


def test_search_finds_labels_and_counts_them(visit: Any, page_file: Path) -> None:
    page, results = visit(), pipeline.open_run(page_file.parent)
    rows = "#top [data-by=edges] tbody tr"
    assert page.locator(f"{rows}:visible").count() == 50
    for label in ("IMPLEMENTED-in::perl", "pcsc-tools", "yelp"):  # the last two are in long lists, behind what is shown
        expected = holding(results, "edges", label.lower())
        assert 0 < sum(expected) < 50
        page.fill("#search", label)
        assert page.inner_text("#hits") == verdict(label, sum(expected))
        assert [row.is_visible() for row in page.locator(rows).all()] == expected
    assert "pcsc" in str(results.top(50)["left"].to_pylist())
    page.check("input[value=balance]")
    assert page.locator("#top [data-by=balance] tbody tr:visible").count() == sum(holding(results, "balance", "yelp"))
    page.fill("#search", "nothing is called so")
    assert page.inner_text("#hits") == verdict("nothing is called so", 0)
    page.fill("#search", "")
    assert page.inner_text("#hits") == ""
    assert page.locator("#top [data-by=balance] tbody tr:visible").count() == 50


def test_search_names_members_that_are_not_shown(visit: Any) -> None:
    page = visit()
    page.fill("#search", "pcsc-tools")
    named = page.locator("#top [data-by=edges] .found:visible")
    assert named.count() > 0
    assert all(text == "also with pcsc-tools" for text in (" ".join(t.split()) for t in named.all_inner_texts()))
    page.fill("#search", "a")
    assert " more that fit" in page.locator("#top [data-by=edges] .found:visible").first.inner_text()
    page.fill("#search", "")
    assert page.locator("#top .found:visible").count() == 0


def test_search_unfolds_what_it_finds(visit: Any) -> None:
    page = visit()
    first = page.locator("#top [data-by=edges] details").first
    first.locator("summary").click()
    folded = first.locator("b").last.text_content()
    first.locator("summary").click()
    assert page.locator("#top details[open]").count() == 0
    page.fill("#search", folded)
    assert page.locator("#top [data-by=edges] details[open] .hit:visible").count() > 0


def test_a_list_unfolds_and_says_what_is_not_on_the_page(visit: Any, page_file: Path) -> None:
    page, [row] = visit(), pipeline.open_run(page_file.parent).top(1).to_pylist()
    first = page.locator("#top [data-by=edges] details").first
    shown = page.locator("#top [data-by=edges] .members.left").first.locator(":scope > b").all_text_contents()
    first.locator("summary").click()
    first.locator("em").wait_for()
    assert [*shown, *first.locator("b").all_text_contents()] == sorted(row["left"])[:200]
    assert first.locator("em").text_content() == f"and {row['n_left'] - 200:,} that are not on this page"
    for _ in range(2):
        first.locator("summary").click()
    assert first.locator("b").count() == 188, "it is filled once"


def test_it_works_without_a_mouse(visit: Any) -> None:
    page = visit()
    for _ in range(2):  # the picture before it takes a key, too
        page.keyboard.press("Tab")
    page.keyboard.type("perl")
    assert page.input_value("#search") == "perl"
    page.fill("#search", "")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.is_checked("input[value=balance]")
    assert page.locator("#top [data-by=balance]").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.locator("#top [data-by=balance] details[open]").count() == 1
    page.keyboard.press("End")
    page.wait_for_function("document.querySelector('[data-by=balance]').scrollTop > 300")


def hover(page: Any, section: str) -> str:
    """Moves over a picture until a tooltip shows; its text."""
    figure = page.locator(f"#{section} .plot")
    figure.scroll_into_view_if_needed()
    box = figure.bounding_box()
    for down in range(2, 19):
        for across in range(2, 19):
            page.mouse.move(box["x"] + box["width"] * across / 20, box["y"] + box["height"] * down / 20)
            tooltip = page.locator(".tip:visible")
            if tooltip.count():
                return str(tooltip.inner_text())
    raise AssertionError(f"no tooltip in {section}")


SAID = {
    "sizes": ("left members", "right members", "bicliques"),
    "degrees": ("have at least",),
    "steps": (" s",),
    "workers": ("worker", "slice", "bicliques", "per second", "writing"),
}


@pytest.mark.parametrize("section", SAID)
def test_tooltips(visit: Any, section: str) -> None:
    page = visit()
    text = hover(page, section)
    assert all(word in text for word in SAID[section]), text
    assert page.locator(f"#{section} .on title").count() == 0, "the browser would show the same text again"
    page.mouse.move(2, 2)
    assert page.locator(".tip:visible").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("section", SAID)
def test_tooltips_by_keyboard(visit: Any, section: str, width: int) -> None:
    page = visit(width)
    page.locator(f"#{section} .plot").focus()
    assert page.locator(".tip:visible").count() == 0
    seen, arrow = [], "ArrowDown" if section == "steps" else "ArrowRight"
    for key in (arrow, arrow, "ArrowUp" if section == "steps" else "ArrowLeft"):
        page.keyboard.press(key)
        seen.append(page.locator(".tip:visible").inner_text())
        assert page.locator(".on").count() == 1
        tip, mark = page.locator(".tip").bounding_box(), page.locator(".on").bounding_box()
        assert 0 <= tip["x"] <= tip["x"] + tip["width"] <= width
        assert tip["y"] + tip["height"] <= mark["y"] + 1 or tip["y"] >= mark["y"] + mark["height"] - 1, "beside it"
    assert all(word in text for word in SAID[section] for text in seen)
    assert seen[0] == seen[2], "there and back"
    assert (seen[0] == seen[1]) == (page.locator(f"#{section} .marks > *").count() == 1)
    page.keyboard.press("Escape")
    assert page.locator(".tip:visible").count() == page.locator(".on").count() == 0
    page.keyboard.press(arrow)
    page.keyboard.press("Tab")
    assert page.locator(".tip:visible").count() == 0, "the focus is elsewhere"


@pytest.mark.parametrize("place", ["first", "last"])
def test_tooltips_at_the_edges_stay_on_the_screen(visit: Any, place: str) -> None:
    page = visit(390)
    mark = getattr(page.locator("#sizes .cells rect"), place)
    for to_the_top in (False, True):
        mark.evaluate("(mark, top) => mark.scrollIntoView(top)", to_the_top)
        mark.hover()
        box = page.locator(".tip:visible").evaluate("(tip) => tip.getBoundingClientRect().toJSON()")
        assert 0 <= box["left"] <= box["right"] <= 390
        assert 0 <= box["top"] <= box["bottom"] <= 900
        assert box["height"] < 80, "three lines, of which none is broken"
        page.mouse.move(2, 600)


def test_the_cells_of_the_heat_map_are_squares(visit: Any) -> None:
    for width in (390, 1280):
        box = visit(width).locator("#sizes .cells rect").first.bounding_box()
        assert box["width"] == pytest.approx(box["height"], rel=0.01)
        assert box["width"] > 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_screen_in_light_and_dark(visit: Any, scheme: str, width: int) -> None:
    page = visit(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page can be moved sideways"
    hidden = "(lists) => lists.filter((list) => list.scrollWidth > list.clientWidth).map((list) => list.textContent)"
    assert page.eval_on_selector_all(".scroll:not([hidden])", hidden) == [], "columns are out of sight"
    background = colour(page, "#degrees", 8, 8)
    assert (min(background) > 200) == (scheme == "light")
    assert (max(background) < 60) == (scheme == "dark")
    assert ink(page) == INK[scheme]
    for section in SAID:
        letters = f"#{section} .plot text" + ("" if width > 700 else ":not(.wide)")
        boxes = [text.bounding_box() for text in page.locator(letters).all()]
        assert all(box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes), "a text is cut off"
        assert all(9 <= box["height"] <= 30 for box in boxes), "letters cannot be read"
        assert not any(map(touch, *zip(*itertools.combinations(boxes, 2), strict=True))), "a text covers another"
    for text in page.locator("#sizes .plot .wide").all():
        assert text.is_visible() == (width > 700), "there is no room for it on a phone"
    assert page.locator("#sizes .plot .wide").count() > 0


def test_the_page_follows_a_change_of_light_and_dark(visit: Any) -> None:
    page = visit(scheme="light")
    assert ink(page) == INK["light"]
    page.emulate_media(color_scheme="dark")
    assert ink(page) == INK["dark"]


def test_print_shows_all_rows_dark_on_white(visit: Any) -> None:
    page = visit(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert ink(page) == "rgb(0, 0, 0)"
    assert min(colour(page, "#degrees", 600, 8)) == 255
    lists = "(lists) => lists.filter((list) => list.scrollHeight > list.clientHeight + 1).length"
    assert page.eval_on_selector_all(".scroll:not([hidden])", lists) == 0, "a sheet of paper does not scroll"
    assert not page.locator(".controls").is_visible()
    assert page.locator(".plot:visible").count() == 4
    assert page.locator("#top [data-by=edges] summary:visible").first.inner_text() == "7,507 more", "or none is missed"


def test_a_browser_that_cannot_unpack_the_labels_says_so(browser: Chromium, page_file: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(page_file.as_uri())
    assert "need a newer browser" in page.inner_text("#hits")
    assert page.is_disabled("#search")
    assert "bicliques" in hover(page, "sizes")
    context.close()


def test_without_scripts_the_page_still_says_everything_but_the_search(browser: Chromium, page_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert "need JavaScript" in page.inner_text("#top")
    assert page.locator("#top [data-by=edges] tbody tr").count() == 50
    assert page.locator("#sizes rect title").count() > 100
    context.close()


def test_labels_that_are_programs_are_searched_and_do_not_run(visit: Any, tmp_path: Path) -> None:
    program = "document.title = 'run'"
    evil = [f"</script><script>{program}</script>", f'<img src=x onerror="{program}">', "\u2028"]
    pipeline.mine(pa.table({"l": evil, "r": ["x", "x", "x"]}), tmp_path / "out", workers=0, progress=False)
    page = visit(file=tmp_path / "out" / "report.html")
    page.fill("#search", "<img src=x")
    assert page.inner_text("#hits") == "<img src=x: 1 of 1 bicliques on this page"
    assert page.title() == "out: maximal bicliques"
    assert page.locator("main img").count() == 0


def test_short_bars_do_not_cut_numbers(visit: Any) -> None:
    """A bar has a place of its own, beside the number."""
    page = visit()
    for row in page.locator("#participation tbody tr").all():
        bar, number = row.locator(".bar i").bounding_box(), row.locator(".bar + .n").bounding_box()
        assert bar["x"] + bar["width"] <= number["x"] + 1


@pytest.mark.parametrize("what", ["none", "one", "counted", "not complete"])
def test_odd_runs_open_without_complaint(visit: Any, tmp_path: Path, what: str) -> None:
    options: dict[str, Any] = {
        "none": {"min_left": 9},
        "one": {"min_left": 2},
        "counted": {"count_only": True, "sizes": True},
        "not complete": {"max_results": 1},
    }[what]
    table = pa.table({"l": [1, 2, 3, 3], "r": ["<i>", "<i>", "$$x$$", "<i>"]})
    pipeline.mine(table, tmp_path / "out", workers=0, progress=False, **options)
    page = visit(file=pipeline.report(tmp_path / "out"))
    assert page.locator("section").count() == (4 if what == "none" else 7)
    assert page.locator(".plot").count() == {"none": 2, "one": 4, "counted": 4, "not complete": 4}[what]
    assert page.locator("i:not([class])").count() == 0, "a label became an element"
