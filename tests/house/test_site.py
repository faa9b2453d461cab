"""The site of the documentation has every public name, and its dead links are found. `make docs` makes it."""

import re

import bicliques as bq
from tests.house.tree import ROOT
from tests.site import dead_links


def test_every_public_name_is_on_a_page_of_the_reference():
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "python").glob("*.md"))
    named = re.findall(r"(?m)^\.\. auto(?:function|class):: bicliques\.(\w+)$", pages)
    assert sorted(named) == sorted({*bq.__all__, "MaximalBicliques"} - {"__version__"})


def test_links_that_lead_nowhere_are_found(tmp_path):
    """To a page, to a place in the page or in another one, and a picture. No link out of the site is followed."""
    (tmp_path / "sub").mkdir()
    good = '<a href="sub/b.html#there">b</a> <a href="#here">up</a> <a href="https://example.com/x">x</a>'
    bad = '<a href="c.html">c</a> <a href="sub/b.html#here">b</a> <a href="#there">up</a> <img src="d.png">'
    (tmp_path / "a.html").write_text(f'<h1 id="here">A</h1> {good} {bad}')
    (tmp_path / "sub" / "b.html").write_text('<h1 id="there">B</h1> <a href="../a.html#here">a</a>')
    assert dead_links(tmp_path) == ["a.html: c.html", "a.html: sub/b.html#here", "a.html: #there", "a.html: d.png"]
