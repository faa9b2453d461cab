"""What leaves the page in a real browser: files, and lines for DuckDB and pandas, also where labels are hostile."""

import csv
import io
import re
from pathlib import Path
from urllib.parse import quote_plus

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

import bicliques as bq
from tests.support.page_list import ROWS, distinct, row_of
from tests.support.runs import OWN


def run_pandas(lines: str) -> pd.DataFrame:
    names = {}
    exec(lines, names)
    found = names["bicliques"]
    assert isinstance(found, pd.DataFrame)
    return found


@pytest.mark.parametrize(
    "place",
    [
        "",
        *(
            pytest.param(place, marks=pytest.mark.exhaustive)
            for place in ("#cell=3-4.5-9", "#label=left%3Ayelp", "#find=gnome")
        ),
        "#cell=1-99.2-9&label=right%3Arole%3A%3Aprogram&find=perl",
    ],
)
def test_the_lines_for_duckdb_and_pandas_find_the_same(visit, place, page_file):
    page = visit(place=place)
    frame = bq.open_run(page_file.parent).to_pandas()
    wanted = frame
    if "cell=3" in place:
        wanted = frame[frame.n_left.between(3, 4) & frame.n_right.between(5, 9)]
    elif "yelp" in place:
        wanted = frame[["yelp" in row for row in frame.left]]
    elif place:
        words = "gnome" if "gnome" in place else "perl"
        labels = frame.left.map(lambda row: any(words in label for label in row))
        wanted = frame[labels | frame.right.map(lambda row: any(words in label for label in row))]
        if "cell" in place:
            wanted = wanted[wanted.n_left.between(1, 99) & wanted.n_right.between(2, 9)]
            wanted = wanted[["role::program" in row for row in wanted.right]]
    assert len(wanted) > 0
    assert len(run_pandas(page.text_content("#pandas"))) == len(wanted)
    assert len(duckdb.sql(page.text_content("#duckdb").replace("LIMIT 100", "")).fetchall()) == len(wanted)


def test_lines_are_copied(visit):
    page = visit()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("[data-of=pandas]")
    page.wait_for_function("document.querySelector('[data-of=pandas]').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == page.text_content("#pandas")
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('no')); }")
    page.click("[data-of=duckdb]")
    page.wait_for_function("document.querySelector('[data-of=duckdb]').textContent.startsWith('Selected')")
    assert page.evaluate("getSelection().toString()").strip() == page.text_content("#duckdb").strip()


def saved(page, selector: str) -> list[list[str]]:
    with page.expect_download() as waiting:
        page.locator(selector).first.click()
    text = Path(waiting.value.path()).read_bytes().decode("utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_the_list_and_a_group_are_files(visit, known):
    page, wanted = visit(), distinct(known)
    head, *lines = saved(page, "#csv")
    assert head == ["number", "id", "edges", "side", "label"]
    expected = []
    for number in wanted:  # all pages
        row = row_of(known, number)
        n_left, n_right = known.sizes(row)
        start = [str(number), str(known.ids[row]), str(n_left * n_right)]
        for side, name in (("left", "package"), ("right", "tag")):
            expected += [[*start, name, label] for label in known.first(row, side, n_left + n_right)]
    assert lines == expected
    assert saved(page, f"{ROWS} .tools button") == [head, *(line for line in expected if line[0] == "1")]


EVIL = [
    *("</script><script>document.title = 'run'</script>", "<img src=x onerror=\"document.title = 'run'\">", "\u2028"),
    *(
        '=HYPERLINK("http://x.invalid")',
        "+1",
        "-1",
        "@SUM(1)",
        "\t=1",
        "a;=1+1",
        "a\r\n=2",
        "'quoted'",
        '"',
        ",",
        "\\",
        "a\nb",
    ),
    *("\u202egnp", "🌟", "javascript:alert(1)", "-- ", "'); DROP TABLE x; --", "\\u0041", "#by=balance", "%"),
    *("\x00", "nul\x00's", "\x01\x1f", "del\x7f", "\x85", "\ufffe", "a\rb"),
]


#: What a spreadsheet takes for the beginning of a formula.
FORMULA = re.compile("(?:^|(?<=[;\t\r\n]))(?=[=+@\t\r-])")


def test_labels_that_are_programs_do_not_run(visit, tmp_path):
    names = ["=side", "<b>right"]
    table = pa.table({names[0]: [*EVIL, *EVIL, "one"], names[1]: [*["x"] * len(EVIL), *["'); --"] * len(EVIL), "x"]})
    results = bq.mine(table, tmp_path / "it's <b>", **OWN)
    page = visit(file=results.path / "report.html")
    page.fill("#search", "<img src=x")
    assert page.inner_text("#told").startswith("<img src=x: 1 of 1 distinct among the 2 most surprising. 1 left out:")
    page.fill("#search", "")
    page.check("input[value=all]")
    page.uncheck("#distinct")
    page.locator(f"{ROWS} summary").first.click()
    page.locator(f"{ROWS} details a").last.wait_for()
    shown = page.locator(f"{ROWS} .members.left").first.locator("a").all_text_contents()
    assert set(shown) == set(EVIL), "the text, which can be copied, is the label"
    nul = page.locator(f"{ROWS} .members.left a").get_by_text("nul").first
    assert nul.locator(".control").evaluate("(mark) => getComputedStyle(mark, '::before').content") == '"\u2400"'
    nul.evaluate("(label) => getSelection().selectAllChildren(label)")
    assert page.evaluate("getSelection().toString()") == "nul\x00's"
    page.fill("#search", "l\x00'")
    assert page.locator(f"{ROWS} .hit").all_text_contents()[:1] == ["nul\x00's"]
    page.fill("#search", "")
    _, *lines = saved(page, "#csv")
    for line in lines:
        assert not any(re.match(r"[=+@\t\r]", cell) for cell in line)
    labels = {line[4] for line in lines if line[3] == "'=side"}
    assert labels == {FORMULA.sub("'", text) for text in (*EVIL, "one")}
    assert {'\'=HYPERLINK("http://x.invalid")', "'+1", "'-1", "'@SUM(1)", "'\t'=1", "a;'=1+1", "a\r\n'=2"} <= labels
    program = "(text) => { location.hash = new URLSearchParams({ by: 'all', repeats: '1', label: `left:${text}` }); }"
    for text in EVIL:
        page.evaluate(program, text)
        page.wait_for_function("(text) => document.querySelector('#filters').textContent.includes(text)", arg=text)
        assert page.locator(ROWS).count() >= 1
        assert len(run_pandas(page.text_content("#pandas"))) == page.locator(ROWS).count()
        assert len(duckdb.sql(page.text_content("#duckdb")).fetchall()) == page.locator(ROWS).count()
    for each in page.locator("#participation td:first-child").first.locator("xpath=../..").locator("a").all():
        assert each.text_content() in {*EVIL, "one"}, "also where the text of the page has a picture"
        assert f"label=left%3A{quote_plus(each.text_content(), safe='*')}" in each.get_attribute("href")
    assert page.title() == "it's <b>: maximal bicliques"
    assert page.locator("main img, main b").count() == 0
