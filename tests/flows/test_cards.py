"""Text from files as Markdown: shown as it is, in its own cell."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flows import cards
from flows.markdown import plain


@pytest.mark.parametrize("text", ["a|b", "a\nb", "[x](http://y)", "<img src=x>", "`*_~#", "a\\|b", "&amp;"])
def test_no_label_changes_a_table(text: str) -> None:
    rows = pa.table({"n_left": [1], "n_right": [2], "left": [[text]], "right": [["b", text]]})
    *_, row = cards.table_of(rows).splitlines()
    assert row.replace("\\\\", "").replace("\\|", "").count("|") == 7
    shown = plain(text)
    assert "\n" not in shown
    assert f" {shown} | b, {shown} |" in row.replace("<br>", " ")
    special = set("|[]()<>`*_~#&")
    assert all(before == "\\" for before, mark in zip(" " + shown, shown, strict=False) if mark in special)


def test_no_line_runs_out_of_the_frame() -> None:
    lists = pa.array([[f"a label of some length {k}" for k in range(50)]])
    rows = pa.table({"n_left": [50], "n_right": [50], "left": lists, "right": lists})
    *_, row = cards.table_of(rows).splitlines()
    assert "<br>" in row
    assert all(len(line.strip()) <= 30 for cell in row.split("|") for line in cell.split("<br>"))
    *_, fact = cards.facts_of(f"input: {'/deep' * 40}/x.csv").splitlines()
    assert all(len(line.strip()) <= 72 for cell in fact.split("|") for line in cell.split("<br>"))
