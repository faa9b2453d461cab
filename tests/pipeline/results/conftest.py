"""A browser, for the tests of the page."""

import os
import shutil
from pathlib import Path

import pytest

import bicliques as bq
from bicliques.pipeline.cli.about import demo_source
from bicliques.pipeline.results.report.content import content_of
from bicliques.pipeline.run.opened import Run

#: Where a browser may be, besides playwright's own: the first that is there is used.
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-sync"]
#: Addresses that are no request to a network.
OWN = ("file:", "data:", "blob:")


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    out = tmp_path_factory.mktemp("browser") / "packages"
    bq.mine(demo_source(), out, workers=0, progress=False)
    return out / "report.html"


@pytest.fixture(scope="session")
def known(page_file):
    found = content_of(Run.at(page_file.parent)).listed
    assert found is not None
    return found


class Chromium:
    """A browser that is started again when it has crashed: seen once in some hundred starts, whatever the page."""

    def __init__(self, playwright, path: str | None):
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._launch = lambda: playwright.chromium.launch(executable_path=path, args=[*OPTIONS, *sandbox])
        self._opened = self._launch()

    @property
    def is_there(self) -> bool:
        return bool(self._opened.is_connected())

    def new_context(self, **options):
        if not self.is_there:
            self._opened = self._launch()
        return self._opened.new_context(**options)

    def close(self):
        self._opened.close()


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    with sync_api.sync_playwright() as playwright:
        if found is None and not Path(playwright.chromium.executable_path).exists():
            pytest.skip("no browser is installed: apt-get install chromium, or playwright install chromium")
        opened = Chromium(playwright, found)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser, page_file):
    """Opens the page; afterwards, nothing was complained of and nothing was fetched."""
    from playwright.sync_api import Error

    complaints = []
    contexts = []

    def note(message):
        if message.type in ("error", "warning"):
            complaints.append(message.text)

    def open_page(width: int = 1280, scheme: str = "light", file: Path = page_file, place: str = ""):
        try:
            return open_once(width, scheme, file, place)
        except Error:
            if browser.is_there:
                raise
            contexts.clear()
            return open_once(width, scheme, file, place)

    def open_once(width: int, scheme: str, file: Path, place: str):
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}))
        page = contexts[-1].new_page()
        page.on("console", note)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(OWN) else complaints.append(request.url))
        page.goto(file.as_uri() + place)
        page.wait_for_function("!document.querySelector('#search:disabled')")  # the labels are unpacked
        page.evaluate("document.querySelector('#run').open = true")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
