"""A site of files: every link of a page leads to a page and a place that are there.

    python -m tests.site build/site

says which do not, and is what `make docs` runs. Links to other sites are not followed.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the places in it that can be linked to."""

    def __init__(self, text: str):
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and (name == "id" or (tag, name) == ("a", "name")):
                self.places.add(value)


def dead_links(folder: Path) -> list[str]:
    """Each link of a page of a folder that leads nowhere, behind the page that has it."""
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            target = (path.parent / unquote(to.path)).resolve() if to.path else path.resolve()
            place = unquote(to.fragment)
            found = target.is_file() and (not place or target not in pages or place in pages[target].places)
            dead += [] if found else [f"{path.relative_to(folder)}: {link}"]
    return dead


def main() -> int:
    """Print the dead links of a site."""
    folder = Path(sys.argv[1]).resolve()
    dead = dead_links(folder)
    sys.stdout.writelines(f"{line}\n" for line in [*dead, f"{len(dead)} dead links in {folder}"])
    return int(bool(dead))


if __name__ == "__main__":
    raise SystemExit(main())
