"""What a notebook shows, and labels that would harm it if they were taken for code."""

from html.parser import HTMLParser
from typing import Any

#: Labels with quotes, a tag, a formula, a comma, a reference, and more letters than are shown; and some plain ones.
HOSTILE = ['a"b', "<script>alert(1)</script>", "=HYPERLINK(1)", "l,1", "ü\t&amp;", "x" * 100, *"cdefghij"]


class Cells(HTMLParser):
    """Notes the tags and the texts of a piece of HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)
