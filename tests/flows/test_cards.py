"""Text from files as Markdown: shown as it is, in its own cell."""

import pyarrow as pa
import pytest

from bicliques.flows import cards
from bicliques.flows.cards import plain


@pytest.mark.parametrize("text", ["a|b", "a\nb", "[x](http://y)", "<img src=x>", "`*_~#", "a\\|b", "&amp;"])
def test_no_label_changes_a_table(text):
    rows = pa.table({"n_left": [1], "n_right": [2], "left": [[text]], "right": [["b", text]]})
    *_, row = cards.table_of(rows).splitlines()
    assert row.replace("\\\\", "").replace("\\|", "").count("|") == 7
    shown = plain(text)
    assert "\n" not in shown
    assert f" {shown} | b, {shown} |" in row.replace("<br>", " ")
    shown = shown.replace("<wbr>", "")
    special = set("|[]()<>`*_~#&")
    assert all(before == "\\" for before, mark in zip(" " + shown, shown, strict=False) if mark in special)


def test_a_list_of_members_is_cut_between_two_of_them():
    """What is left of a label would look like another one, and so would a label with a comma in it."""
    left = [f"package {k} of some length" for k in range(7322)]
    rows = pa.table({"n_left": [7322], "n_right": [2], "left": [left], "right": [["milk, whole", "tea"]]})
    *_, row = cards.table_of(rows).splitlines()
    _, rank, n_left, n_right, n_edges, first, second, _ = (cell.strip() for cell in row.split("|"))
    assert (rank, n_left, n_right, n_edges) == ("1", "7,322", "2", "14,644")
    *members, more = first.replace("<br>", " ").split(", ")
    assert members == left[: len(members)]
    assert more == f"{7322 - len(members):,} more"
    assert second == "'milk, whole', tea"


def test_no_line_runs_out_of_the_frame():
    lists = pa.array([[f"a label of some length {k}" for k in range(50)]])
    rows = pa.table({"n_left": [50], "n_right": [50], "left": lists, "right": lists})
    *_, row = cards.table_of(rows).splitlines()
    assert "<br>" in row
    assert all(len(line.strip()) <= 30 for cell in row.split("|") for line in cell.split("<br>"))
    *_, fact = cards.facts_of(f"input: {'/deep' * 40}/x.csv").splitlines()
    assert all(len(line.strip()) <= 72 for cell in fact.split("|") for line in cell.split("<br>"))
