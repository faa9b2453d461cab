"""The list of the page of a run, as a browser shows it and as it should be."""

from typing import Any

from bicliques.pipeline.results.report.listed import Listed

#: Selects the rows that are shown.
ROWS = "#list tbody tr"


def numbers(page: Any) -> list[int]:
    """The numbers of the rows that are shown."""
    return [int(text.replace(",", "")) for text in page.locator(f"{ROWS} td:first-child").all_inner_texts()]


def distinct(known: Listed, by: str = "surprise") -> list[int]:
    """The numbers of the rows that repeat no better one."""
    return known.numbers[by][known.repeats[by] < 0].tolist()


def row_of(known: Listed, number: int, by: str = "surprise") -> int:
    """The row that has a number in a list."""
    return int(known.lists[by][known.numbers[by].tolist().index(number)])
