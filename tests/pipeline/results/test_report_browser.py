"""The page in a real browser: nothing asked of the network, no errors, tooltips, light, dark, a phone, paper."""

import base64
import itertools

import pyarrow as pa
import pytest

import bicliques as bq
from tests.support.runs import OWN


def colour(page, selector: str, x: float, y: float) -> tuple[int, ...]:
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


def ink(page) -> str:
    return str(page.locator("#degrees .plot text").first.evaluate("(text) => getComputedStyle(text).fill"))


def touch(one: dict[str, float], other: dict[str, float]) -> bool:
    """Whether two boxes lie over each other by more than their empty margins."""
    across = min(a["x"] + a["width"] for a in (one, other)) - max(one["x"], other["x"])
    down = min(a["y"] + a["height"] for a in (one, other)) - max(one["y"], other["y"])
    return across > 1 and down > 4


def test_the_page_opens_with_all_pictures(visit):
    page = visit()
    assert page.title() == "packages: maximal bicliques"
    assert "All 56,688 groups of packages that share tags" in page.inner_text("header")
    for section in SAID:
        assert page.locator(f"#{section} svg[role=application]").count() == 1
        assert page.locator(f"#{section} svg").bounding_box()["height"] > 80
        assert len(page.locator(f"#{section} svg").get_attribute("aria-label")) > 40
    colours = "(members) => members.map((member) => getComputedStyle(member).borderLeftColor)"
    assert set(page.eval_on_selector_all(".members a.left", colours)) == {"rgb(0, 114, 178)"}
    assert set(page.eval_on_selector_all(".members a.right", colours)) == {"rgb(184, 116, 0)"}


def hover(page, section: str) -> str:
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
    "overlap": ("number",),
    "degrees": ("have at least",),
    "steps": (" s",),
    "workers": ("worker", "slice", "bicliques", "per second", "writing"),
}


def test_tooltips(visit):
    page = visit()
    for section, said in SAID.items():
        text = hover(page, section)
        assert all(word in text for word in said), (section, text)
        assert page.locator(f"#{section} .on title").count() == 0, "the browser would show the same text again"
        page.mouse.move(2, 2)
        assert page.locator(".tip:visible").count() == 0, section


@pytest.mark.first(1)
@pytest.mark.parametrize("width", [390, 1280])
def test_tooltips_by_keyboard(visit, width):
    page = visit(width)
    for section in SAID:
        check_keys(page, section, width)


def check_keys(page, section: str, width: int):
    """Arrows lead through a picture; Escape and Tab lead out of it."""
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
    assert all(word in text for word in SAID[section] for text in seen), (section, seen)
    assert seen[0] == seen[2], f"{section}: there and back"
    assert (seen[0] == seen[1]) == (page.locator(f"#{section} .marks > *").count() == 1)
    page.keyboard.press("Escape")
    assert page.locator(".tip:visible").count() == page.locator(".on").count() == 0
    page.keyboard.press(arrow)
    page.keyboard.press("Tab")
    assert page.locator(".tip:visible").count() == 0, "the focus is elsewhere"


def test_a_pointer_at_rest_does_not_disturb_the_keys(visit):
    page = visit()
    box = page.locator("#sizes .cells").bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + box["height"] - 60)
    page.mouse.move(box["x"] + 32, box["y"] + box["height"] - 60)
    page.focus("#sizes .plot")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    text = page.locator(".tip:visible").inner_text()
    for down in (40, -80, 40):
        page.evaluate("(down) => scrollBy(0, down)", down)
        page.evaluate("new Promise((done) => setTimeout(done, 150))")  # until the browser looks what is below it
        assert page.locator(".tip:visible").inner_text() == text
    page.mouse.move(box["x"] + 90, box["y"] + box["height"] - 60)
    assert page.locator(".tip:visible").inner_text() != text


@pytest.mark.exhaustive
def test_tooltips_at_the_edges_stay_on_the_screen(visit):
    page = visit(390)
    marks = page.locator("#sizes .cells rect")
    for mark, to_the_top in itertools.product((marks.first, marks.last), (False, True)):
        mark.evaluate("(mark, top) => mark.scrollIntoView(top)", to_the_top)
        mark.hover()
        box = page.locator(".tip:visible").evaluate("(tip) => tip.getBoundingClientRect().toJSON()")
        assert 0 <= box["left"] <= box["right"] <= 390
        assert 0 <= box["top"] <= box["bottom"] <= 900
        assert box["height"] < 80, "three lines, of which none is broken"
        page.mouse.move(2, 600)


def test_the_cells_of_the_heat_map_are_squares(visit):
    for width in (390, 1280):
        box = visit(width).locator("#sizes .cells rect").first.bounding_box()
        assert box["width"] == pytest.approx(box["height"], rel=0.01)
        assert box["width"] > 3


@pytest.mark.values
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_screen_in_light_and_dark(visit, scheme, width):
    page = visit(width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page can be moved sideways"
    hidden = "(lists) => lists.filter((list) => list.scrollWidth > list.clientWidth).map((list) => list.textContent)"
    assert page.eval_on_selector_all(".scroll, #list, pre", hidden) == [], "columns are out of sight"
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


@pytest.mark.exhaustive
def test_the_page_follows_a_change_of_light_and_dark(visit):
    page = visit(scheme="light")
    assert ink(page) == INK["light"]
    page.emulate_media(color_scheme="dark")
    assert ink(page) == INK["dark"]


def test_print_shows_all_rows_dark_on_white(visit):
    page = visit(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert ink(page) == "rgb(0, 0, 0)"
    assert min(colour(page, "#degrees", 600, 8)) == 255
    lists = "(lists) => lists.filter((list) => list.scrollHeight > list.clientHeight + 1).length"
    assert page.eval_on_selector_all(".scroll", lists) == 0, "a sheet of paper does not scroll"
    assert page.locator(".controls:visible, nav:visible, .copy:visible").count() == 0
    assert page.locator(".plot:visible").count() == 5
    page.wait_for_function("document.querySelectorAll('#list tbody tr').length === 68")  # nor has it a next page
    assert page.locator("#list summary:visible").first.inner_text() == "3,487 more", "or none is missed"
    page.emulate_media(media="screen")
    page.wait_for_function("document.querySelectorAll('#list tbody tr').length === 10")


def test_a_browser_that_cannot_unpack_the_labels_says_so(browser, page_file):
    context = browser.new_context()
    page = context.new_page()
    page.add_init_script("delete window.DecompressionStream")
    page.goto(page_file.as_uri())
    assert "need a newer browser" in page.inner_text("#told")
    assert page.is_disabled("#search")
    assert "bicliques" in hover(page, "sizes")
    context.close()


def test_without_scripts_the_page_still_says_everything_but_the_search(browser, page_file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())
    assert "need JavaScript" in page.inner_text("#top")
    assert page.locator("#list tbody tr").count() == 10
    assert page.locator("#list .members .label").count() > 70
    assert not page.locator("#degrees").is_visible(), "what operators ask is folded"
    page.click("nav >> text=How it ran")
    assert page.locator("#degrees").is_visible()
    assert page.locator("#sizes rect title").count() > 100
    context.close()


@pytest.mark.exhaustive
def test_short_bars_do_not_cut_numbers(visit):
    """A bar has a place of its own, beside the number."""
    page = visit()
    for row in page.locator("#participation tbody tr").all():
        bar, number = row.locator(".bar i").bounding_box(), row.locator(".bar + .n").bounding_box()
        assert bar["x"] + bar["width"] <= number["x"] + 1


@pytest.mark.parametrize(
    "what", [*(pytest.param(what, marks=pytest.mark.exhaustive) for what in ("none", "one", "counted")), "not complete"]
)
def test_odd_runs_open_without_complaint(visit, tmp_path, what):
    options = {
        "none": {"min_left": 9},
        "one": {"min_left": 2},
        "counted": {"count_only": True, "sizes": True},
        "not complete": {"max_results": 1},
    }[what]
    table = pa.table({"l": [1, 2, 3, 3], "r": ["<i>", "<i>", "$$x$$", "<i>"]})
    bq.mine(table, tmp_path / "out", **OWN, **options)
    page = visit(file=bq.report(tmp_path / "out"))
    assert page.locator("section").count() == {"none": 4, "one": 8, "counted": 7, "not complete": 8}[what]
    assert page.locator(".plot").count() == {"none": 2, "one": 4, "counted": 4, "not complete": 4}[what]
    assert page.locator("nav a").count() == page.locator("main > section").count() + 1
    assert page.locator("i:not([class])").count() == 0, "a label became an element"
