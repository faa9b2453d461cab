"""The list of the page in a real browser: search, order, pages, and what is chosen in the pictures."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import bicliques as bq
from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.results.report.listed import Listed
from bicliques.pipeline.run.opened import Run
from tests.support.page_list import ROWS, distinct, numbers, row_of
from tests.support.runs import OWN, random_edges, write_edges

pytestmark = pytest.mark.exhaustive


def having(known: Listed, by: str, words: str) -> list[int]:
    """The numbers of the distinct ones that have a label with these words, as the run itself says."""
    rows = known.rows.take(known.lists[by]).to_pylist()
    found = []
    for number in distinct(known, by):
        labels = [*rows[number - 1]["left"], *rows[number - 1]["right"]]
        found += [number] if any(words.lower() in label.lower() for label in labels) else []
    return found


def test_distinct_ones_are_listed_first_and_a_switch_shows_all(visit, known):
    page, wanted = visit(), distinct(known)
    assert numbers(page) == wanted[:10]
    left_out = 100 - len(wanted)
    assert page.inner_text("#told") == (
        f"{len(wanted)} of the 100 most surprising. {left_out} left out: a better one has more than 80 % of the edges "
        "of each."
    )
    assert f"{len(known.ids)} of 56,688 are on this page" in page.inner_text("#top")
    page.uncheck("#distinct")
    assert numbers(page) == list(range(1, 11))
    assert page.inner_text("#told") == "100 of the 100 most surprising."
    [repeats] = [k for k in range(10) if k + 1 not in wanted][:1]
    other = int(known.repeats["surprise"][repeats])
    share = int(100 * known.shares[row_of(known, repeats + 1), other])
    better = known.lists["surprise"].tolist().index(other) + 1
    assert share >= 80
    row = page.locator(ROWS).nth(repeats)
    assert row.locator(".repeats").inner_text() == f"{share} % of its edges are in number {better}"
    page.check("input[value=all]")
    assert page.inner_text("#told") == f"{len(known.ids)} of the {len(known.ids)} bicliques on this page."
    page.check("#distinct")
    assert page.inner_text("#told").endswith("left out: one before it has more than 80 % of the edges of each.")


def test_the_search_looks_at_all_members_and_says_so(visit, known):
    page = visit()
    for words in ("IMPLEMENTED-in::perl", "pcsc-tools", "yelp"):  # the last two are in long lists, behind what is shown
        wanted = having(known, "surprise", words)
        assert 0 < len(wanted) < 68
        page.fill("#search", words)
        assert page.inner_text("#told").startswith(f"{words}: {len(wanted)} of 68 distinct among the 100 most")
        fit = sum(words.lower() in label.lower() for label in page.locator("#participation .label").all_inner_texts())
        assert page.inner_text("#told").endswith(
            "All their members were looked at. The lines for DuckDB and pandas below the list look at all 56,688. "
            f"Of the 40 who take part most, {fit} fit{'s' if fit == 1 else ''}."
        )
        assert page.locator("#participation .hit").count() == fit
        assert numbers(page) == wanted[:10]
    page.check("input[value=balance]")
    assert numbers(page) == having(known, "balance", "yelp")[:10]
    page.fill("#search", "nothing is called so")
    assert "nothing is called so: 0 of " in page.inner_text("#told")
    assert numbers(page) == []
    page.fill("#search", "")
    assert numbers(page) == distinct(known, "balance")[:10]


def test_the_search_names_members_that_are_not_shown(visit, known):
    page = visit()
    page.fill("#search", "pcsc-tools")
    first = page.locator(ROWS).first
    assert first.locator(".found").inner_text().split() == ["also", "with", "pcsc-tools"]
    one = row_of(known, 1)
    folded = known.first(one, "left", 40)[-1]
    page.fill("#search", folded)
    assert first.locator(".found .hit").first.inner_text() == folded
    page.fill("#search", "a")
    assert first.locator(".found .hit").count() == 5
    hits = [label for label in known.first(one, "left", 10**9)[4:] if "a" in label]
    assert first.locator(".found").inner_text().endswith(f"and {len(hits) - 5:,} more that fit")
    first.locator("summary").click()
    first.locator("details .hit").first.wait_for()
    page.fill("#search", "")
    assert page.locator(".found:visible, .hit:visible, .members details[open]").count() == 0


def test_a_list_unfolds_and_says_what_is_not_shown(visit, known):
    page = visit()
    members = page.locator(f"{ROWS} .members.left").first
    shown = members.locator(":scope > a").all_text_contents()
    members.locator("summary").click()
    members.locator("em").wait_for()
    assert [*shown, *members.locator("details a").all_text_contents()] == known.first(row_of(known, 1), "left", 200)
    assert members.locator("em").text_content() == f"and {known.sizes(row_of(known, 1))[0] - 200:,} that are not shown"
    for _ in range(2):
        members.locator("summary").click()
    assert members.locator("details a").count() == 196, "it is filled once"


def test_order_and_pages(visit, known):
    page, wanted = visit(), distinct(known)
    page.click("text=Next")
    assert numbers(page) == wanted[10:20]
    assert page.inner_text("#range") == "11 to 20 of 68"
    for _ in range(5):
        page.click("text=Next")
    assert numbers(page) == wanted[60:]
    assert page.is_disabled("#on")
    page.click("text=Previous")
    assert numbers(page) == wanted[50:60]
    n_right = [known.sizes(row_of(known, number))[1] for number in wanted]
    page.click("th >> text=tag")
    order = sorted(range(68), key=lambda k: -n_right[k])
    assert numbers(page) == [wanted[k] for k in order[:10]], "the order begins with the first page"
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("tag")
    page.click("th >> text=tag")
    order.sort(key=lambda k: n_right[k])
    assert n_right[order[0]] == 1
    assert [known.sizes(row_of(known, number))[1] for number in numbers(page)] == [n_right[k] for k in order[:10]]
    page.click("th >> text=#")
    assert numbers(page) == wanted[:10]


def test_a_link_opens_the_same_view(visit):
    page = visit()
    page.check("input[value=balance]")
    page.uncheck("#distinct")
    page.click("th >> text=package")
    page.fill("#search", "e")
    page.click("text=Next")
    place = page.evaluate("location.hash")
    assert place == "#by=balance&repeats=1&sort=-left&page=2&find=e"
    other = visit(place=place)
    assert numbers(other) == numbers(page)
    assert other.inner_text("#told") == page.inner_text("#told")
    assert (other.input_value("#search"), other.is_checked("#distinct")) == ("e", False)
    assert other.is_checked("input[value=balance]")
    page.go_back()
    page.wait_for_function("!location.hash.includes('page')")
    assert page.inner_text("#range").startswith("1 to 10")
    page.click("nav >> text=How it ran")
    assert page.inner_text("#range").startswith("1 to 10"), "the view stays"


@pytest.mark.parametrize(
    "place", ["#by=__proto__", "#page=1e99", "#sort=name&cell=x&label=y", "#page=-3", "#=&&%", "#x=1"]
)
def test_places_that_nobody_made_show_the_start(visit, known, place):
    page = visit(place=place)
    assert numbers(page) == (distinct(known)[60:] if "1e99" in place else distinct(known)[:10])


@pytest.mark.parametrize(
    ("asked", "n", "chip", "missing"),
    [
        ("{0}", 1, "this one", ""),
        ("{0},{1}", 2, "the two that were chosen", ""),
        ("{0},{1},{2}, {0}", 3, "the 3 that were chosen", ""),
        ("abc,def", 0, "0 of 2 in the address", "the ids abc, def"),
        ("{0},7", 1, "1 of 2 in the address", "the id 7"),
        ("1,2,3,4,5,6," + "x" * 30, 0, "0 of 7 in the address", "the ids 1, 2, 3, 4, 5 and 2 more"),
        ("x" * 30, 0, "0 of 1 in the address", f"the id {'x' * 19}\u2026"),
    ],
)
def test_ids_in_the_address_are_found_or_named(visit, known, asked, n, chip, missing):
    page = visit(place=f"#by=all&repeats=1&ids={asked.format(*known.ids)}")
    assert len(numbers(page)) == n
    assert page.inner_text("#filters") == f"{chip} \u00d7"
    told = f"{n} of the {len(known.ids)} bicliques on this page."
    if missing:
        told += f" No biclique of this list has {missing}. The command bicliques explain finds every id of the run."
    assert page.inner_text("#told") == told


def test_no_id_in_the_address_chooses_nothing(visit, known):
    page = visit(place="#ids=%20,,")
    assert numbers(page) == distinct(known)[:10]
    assert page.locator("#filters button").count() == 0
    assert "left out" in page.inner_text("#told")


def is_in(size: tuple[int, int], cell: str) -> bool:
    ends = [tuple(map(int, part.split("-"))) for part in cell.split(".")]
    return all(first <= n <= last for n, (first, last) in zip(size, ends, strict=True))


def test_a_cell_lists_its_bicliques_and_says_how_many_there_are(visit, known, page_file):
    page = visit()
    frame = bq.open_run(page_file.parent).to_pandas()
    cells = page.eval_on_selector_all("#sizes [data-cell]", "(marks) => marks.map((mark) => mark.dataset.cell)")
    for size in ((11, 11), (4, 5), (2800, 1)):
        [cell] = [cell for cell in cells if is_in(size, cell)]
        page.locator(f"[data-cell='{cell}']").click()
        count = sum(is_in(pair, cell) for pair in zip(frame.n_left, frame.n_right, strict=True))
        there = [k + 1 for k in range(len(known.ids)) if is_in(known.sizes(k), cell)]
        assert numbers(page) == there[:10]
        assert page.inner_text("#told") == (
            f"{count:,} bicliques have these sizes. {len(there)} of the {len(known.ids)} bicliques on this page."
            + " The lines for DuckDB and pandas below the list find all of these sizes." * (len(there) < count)
        )
        assert len(there) > 0
        assert page.locator("#filters button").count() == 1
        assert len(duckdb.sql(page.inner_text("#duckdb")).fetchall()) == min(count, 100)
    assert all(any(is_in(known.sizes(k), cell) for k in range(len(known.ids))) for cell in cells)
    page.fill("#search", "r")
    assert "of these sizes" not in page.inner_text("#told"), "the lines below ask for the words, too"
    page.fill("#search", "")
    left, right = (part.split("-") for part in cell.split("."))
    assert page.inner_text("#filters") == f"{int(left[0]):,} to {int(left[1]):,} package \u00d7 {right[0]} tag \u00d7"
    page.click("#filters button")
    assert page.locator("#filters button").count() == 0
    assert numbers(page) == distinct(known)[:10]
    wide = "#sizes .cells > :nth-child(1)"
    page.focus("#sizes .plot")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    assert f"cell={page.get_attribute(wide, 'data-cell')}" in page.evaluate("location.hash")
    assert page.evaluate("document.activeElement.id") == "told", "whoever came by keyboard goes on there"


@pytest.mark.parametrize("width", [390, 1280])
def test_what_a_screen_reader_finds(visit, width):
    page = visit(width)
    tree = page.locator("main").aria_snapshot()
    for words in (
        *('heading "Groups" [level=2]', 'searchbox "Search these"', 'radio "most surprising" [checked]'),
        *('checkbox "only distinct ones" [checked]', 'button "Download as CSV"', 'table "Groups"'),
        *(
            'columnheader "number"',
            'columnheader "tag"',
            'group "7,519 package"',
            'link "389-ds-base-dev"',
            'group "Pages of the list"',
        ),
        *('application "Heat map of 56,688 bicliques', 'application "Matrix of 50 bicliques', 'status: "68 of the 100'),
    ):
        assert words in tree, words
    assert page.locator("header").aria_snapshot().count("link") == 5


def test_labels_lead_to_their_groups(visit, known, page_file):
    page = visit()
    page.click("#participation >> text=role::program")
    page.wait_for_function("location.hash.includes('label')")
    rows = known.rows.to_pylist()
    there = [k + 1 for k, row in enumerate(rows) if "role::program" in row["right"]]
    assert numbers(page) == there[:10]
    assert page.inner_text("#filters") == "with role::program (tag) \u00d7"
    assert page.locator(".hit").first.inner_text() == "role::program"
    frame = bq.open_run(page_file.parent).to_pandas()
    found = duckdb.sql(page.inner_text("#duckdb").replace("LIMIT 100", "")).fetchall()
    assert len(found) == sum("role::program" in members for members in frame.right) == 50_475
    page.locator(f"{ROWS} .members.left a").first.click()
    page.wait_for_function("location.hash.includes('left')")
    assert page.locator(f"{ROWS}").count() > 0


def test_squares_of_the_matrix_say_how_much_two_overlap(visit, known):
    page, wanted = visit(), distinct(known)[:50]
    rows = [row_of(known, number) for number in wanted]
    shares = np.floor(100 * known.shares[np.ix_(rows, rows)] + 1e-9).astype(int)
    assert page.locator("#matrix .own").count() == 50
    pairs = int(np.count_nonzero(np.triu(shares + shares.T, 1)))
    assert f"Matrix of 50 bicliques. Of 1,225 pairs, {pairs} have 1 % of the edges" in page.inner_text("#compared")
    off = shares - 1000 * np.eye(50, dtype=int)
    assert f"At most, {off.max()} % of the edges of number" in page.inner_text("#compared")
    assert page.inner_text("#compared").endswith("The matrix has the first 50 of the 68 in the list.")
    mark = page.locator("#matrix .share").first
    i, j = int(mark.get_attribute("y")), int(mark.get_attribute("x"))
    assert mark.text_content().startswith(f"{shares[i, j]} % of the edges of number {wanted[i]} (")
    mark.click()
    assert sorted(numbers(page)) == sorted([wanted[i], wanted[j]])
    assert page.inner_text("#told") == f"2 of the {len(known.ids)} bicliques on this page."
    assert page.inner_text("#compared").startswith("Matrix of 2 bicliques. Of 1 pair, 1 has 1 % of the edges")
    page.locator(f"{ROWS} td:first-child a").first.click()
    page.wait_for_function("!location.hash.includes('%2C')")
    assert len(numbers(page)) == 1
    assert "nothing to compare" in page.inner_text("#compared")


@pytest.fixture(scope="module")
def alike(tmp_path_factory):
    """A run whose largest are nearly the same."""
    folder = tmp_path_factory.mktemp("alike")
    source = write_edges(folder / "g.parquet", random_edges(200, 14, 0.8, 11))
    return bq.mine(source, folder / "out", **OWN).path


def test_distinct_ones_behind_the_largest_are_listed_with_their_numbers(visit, alike):
    page, found = visit(file=alike / "report.html", place="#by=edges"), content_of(Run.at(alike)).listed
    looked_at, wanted = found.looked_at["edges"], distinct(found, "edges")
    assert (len(wanted), wanted[-1]) == (50, looked_at)
    assert page.inner_text("#told").startswith(f"50 of the {looked_at} largest. {looked_at - 50} left out: ")
    behind = found.n_ranked - len({row for by, own in found.lists.items() for row in own[found.numbers[by] <= 100]})
    assert f"{behind} distinct ones behind them" in page.inner_text("#top")
    for _ in range(4):
        page.click("text=Next")
    assert numbers(page) == wanted[40:]
    page.uncheck("#distinct")
    assert page.inner_text("#told") == "100 of the 100 largest."
    page.evaluate("location.hash = '#by=edges&repeats=1&page=10'")
    page.wait_for_function("document.querySelector('#range').textContent.startsWith('91 ')")
    assert numbers(page) == list(range(91, 101))


def test_shares_of_lists_that_are_cut_are_those_of_the_whole_lists(visit, monkeypatch, tmp_path):
    left, right = random_edges(2000, 12, 0.7, 3).T
    draw = np.random.default_rng(3)
    names = np.array([bytes(draw.integers(97, 123, 40, np.uint8)).decode() for _ in range(2000)])
    table = pa.table({"user": names[left], "film": right})
    monkeypatch.setattr("bicliques.pipeline.results.report.page._MOST_BYTES", 0)
    run = bq.mine(table, tmp_path / "out", **OWN).path
    found = content_of(Run.at(run)).listed
    page = visit(file=run / "report.html", place="#by=all&repeats=1")
    most = page.evaluate("unpacked(document.querySelector('#labels').textContent).then((data) => data.most)")
    assert 10 < most < 1000
    assert page.inner_text("#files").endswith(
        f"Of each side they have at most the first {most} members, because the page has no room for more."
    )
    label = found.labels["left"][-1]
    with_label = visit(file=run / "report.html", place=f"#by=all&repeats=1&label=left:{label}")
    assert with_label.inner_text("#told").endswith(f" The first {most} members of each side were looked at.")
    shares = np.floor(100 * found.shares + 1e-9).astype(int)
    marks = page.eval_on_selector_all(
        "#matrix .share",
        "(marks) => marks.map((mark) => [+mark.getAttribute('y'), +mark.getAttribute('x'), mark.textContent])",
    )
    assert len(marks) > 2000
    assert all(words.startswith(f"{shares[i, j] or 'less than 1'} % of") for i, j, words in marks)
    last = visit(file=run / "report.html", place=f"#by=all&repeats=1&ids={found.ids[0]},{found.ids[-1]}")
    assert last.locator("#matrix .own").count() == 2
    assert last.inner_text("#compared").endswith(
        "Of 1 pair it is not known, because the page has no room for all members."
    )
    repeats = np.flatnonzero(found.repeats["all"] >= 0)
    for k, known in ((repeats[0], True), (repeats[-1], False)):
        other = found.repeats["all"][k]
        one = visit(file=run / "report.html", place=f"#by=all&repeats=1&ids={found.ids[k]}")
        share = f"{shares[k, other]} %" if known else "most"
        assert one.inner_text(".repeats") == f"{share} of its edges are in number {other + 1}"


def test_it_works_without_a_mouse(visit, known):
    page = visit()
    page.focus("nav a:last-child")
    for _ in range(2):  # the picture before it takes a key, too
        page.keyboard.press("Tab")
    page.keyboard.type("perl")
    assert page.input_value("#search") == "perl"
    page.fill("#search", "")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.is_checked("input[value=balance]")
    assert numbers(page) == distinct(known, "balance")[:10]
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert not page.is_checked("#distinct")
    page.focus(f"{ROWS} .label")
    page.keyboard.press("ArrowRight")
    text = page.evaluate("document.activeElement.textContent")
    assert text == known.first(int(known.lists["balance"][0]), "right", 2)[1]
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelector('#filters').textContent")  # the hash changes before the list does
    assert page.inner_text("#filters").startswith(f"with {text} (tag)")
    assert page.evaluate("document.activeElement.id") == "told"
