"""What can be read but looks odd is read as it is, and doubted in a sentence of its own kind."""

import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from bicliques.pipeline.ingest import doubts
from bicliques.pipeline.ingest.readers.base import EdgeStream
from bicliques.schemas.reading import Doubt, Reading
from tests.support.inputs import read_edges

STREAM: Any = SimpleNamespace(
    side_names=("user", "item"), format="csv", left_is_counted=False, reading=Reading(format="csv")
)


def test_lists_in_text_are_doubted(tmp_path: Path) -> None:
    """As pandas writes them to CSV, and Dask makes of them."""
    frame = pd.DataFrame({"user": ["ann", "bob"], "item": [["x", "y"], ["x"]]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    (note,) = read_edges(tmp_path / "x.csv", tmp_path)[1].notes
    assert note == (
        """the item labels look like lists, such as "['x', 'y']", and each is taken as one label; give a row per """
        "member, or a column of lists in Parquet or Arrow"
    )
    for labels, n in ((["[x]", "(a)\n(b)"], 1), (["[x]", "y"], 0)):
        seen = doubts.Seen(STREAM, (pa.array(labels, pa.large_string()), pa.array([1, 2])), 2, 0, True, False)
        assert len([doubt for find in doubts.DOUBTS for doubt in find(seen)]) == n
    assert read_edges(frame, tmp_path)[1].notes == ()


PAIRS = "".join(f"u{k % 5},i{k}\n" for k in range(12))

#: For every kind of doubt: a file with it, words of the sentence, and a file that is almost the same without it.
CASES: dict[str, tuple[str, str, str]] = {
    "duplicates": (
        "user,item\n" + "a,x\na,x\nb,y\nb,x\n" * 2,
        "5 of 8 rows are duplicates; are user and item the columns you mean? the options left and right name others",
        "user,item\na,x\na,x\nb,y\nb,x\n",
    ),
    "flags": ("user,item\n0,1\n1,0\n", "user and item have only 0 and 1", "user,item\n0,1\n1,2\n"),
    "variants": (
        "user,item\ncaf\u00e9,x\ncafe\u0301,y\nbob,x\n",
        "1 user label differs from another one only in blanks, capitals or their form in Unicode, such as "
        "'cafe\\u0301' and 'caf\\xe9'; they are not merged",
        "user,item\ncaf\u00e9,x\ncafe,y\nbob,x\n",
    ),
    "invisible characters": (
        "user,item\nann,x\nbob\ufeff,y\n",
        r"1 user label looks like other text, such as 'bob\ufeff', because nobody sees a character inside",
        "user,item\nann,x\nbob\u200d,y\n",  # which some scripts need
    ),
    "form": (
        "user,item\n1.5,x\n2.5,y\n",
        "the user labels look like floating-point numbers, such as '1.5', and are taken as text, digit for digit",
        "user,item\n1.5,x\n2,y\n",
    ),
    "rounded numbers": (
        'user,item\nann,x1\nbob,1.23457E+12\ncy,"1,2E+15"\n',
        "2 item labels look like long numbers as spreadsheets shorten them, such as '1,2E+15', so digits are lost",
        "user,item\nann,x1\nbob,1.23E\n",
    ),
    "comments": (
        "user,item\nann,x\n#bob,y\n",
        "1 user label looks like comments, such as '#bob', and make edges; remove these lines if they are comments",
        "user,item\nann,#x\nbob,y\n",
    ),
    "complete graph": (
        "user,item,year,stars\na,x,1,0\na,y,2,1\nb,x,1,1\nb,y,2,0\n",
        "every user label is connected with every item label; if a weight of 0 among what is not read (year, stars) "
        "says that there is no edge, name 'year' in the option weight, and the smallest weight of an edge in "
        "the option min_weight",
        "user,item\na,x\na,y\nb,x\nb,y\n",
    ),
    "one edge each": (
        f"user,item\n{PAIRS}",
        "every item label is in one edge only, and there are 12 edges; are user and item the columns you mean?",
        f"user,item\n{PAIRS}u1,i2\n",
    ),
}


def read(tmp_path: Path, text: str, name: str = "x.csv", **options: Any) -> list[tuple[str, str]]:
    """The doubts about a file, as pairs of kind and text."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    summary = read_edges(tmp_path / name, tmp_path / "out", **options)[1]
    assert summary.notes == tuple(doubt.text for doubt in summary.reading.doubts)
    return [(doubt.kind, doubt.text) for doubt in summary.reading.doubts]


def test_every_kind_of_doubt_has_a_case() -> None:
    """As the file says them, where ``Doubt(`` is followed by the kind, and a row of `_FORMS` begins with it."""
    said = re.findall(r'Doubt\(\s*"([a-z ]+)"', inspect.getsource(doubts))
    assert {*said, *(kind for kind, *_ in doubts._FORMS)} == {*CASES, "one vertex"}


@pytest.mark.parametrize("kind", CASES)
def test_what_is_odd_is_doubted(tmp_path: Path, kind: str) -> None:
    doubtful, words, fine = CASES[kind]
    [(found, text)] = read(tmp_path, doubtful)
    assert found == kind
    assert text.startswith(words)
    assert read(tmp_path, fine) == []


def test_a_side_of_one_vertex_is_doubted_and_an_edge_alone_is_not(tmp_path: Path) -> None:
    [(kind, text)] = read(tmp_path, "user,item\na,x\na,y\n")
    assert (kind, text.partition(";")[0]) == ("one vertex", "there is only one user label, 'a'")
    assert read(tmp_path, "user,item\na,x\n") == []


def test_weights_of_zero_are_doubted_in_formats_with_a_weight(tmp_path: Path) -> None:
    """As in a list of all pairs. The advice, followed literally, gives the edges."""
    pairs = "1 1 0\n1 2 1\n2 1 1\n2 2 0\n"
    [(kind, text)] = read(tmp_path, pairs, "x.el")
    assert kind == "complete graph"
    assert "if a weight of 0 among what is not read (weight)" in text
    assert "name the smallest weight of an edge" in text
    assert read(tmp_path, pairs, "x.el", min_weight=1) == []
    assert read(tmp_path, CASES["complete graph"][0], weight="stars", min_weight=0) == []


@pytest.mark.parametrize("letter", ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u00a0"])
def test_labels_that_differ_in_what_nobody_sees_are_variants(letter: str) -> None:
    labels = pa.array(["ann", f"an{letter}n", "bob"], pa.large_string())
    found = doubts.variants_of(labels)
    assert found is not None
    assert found.count == 1
    assert letter not in str(found.doubt("user")), "it is escaped, because a terminal shows no difference"


def test_doubts_of_the_reader_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    late = property(lambda stream: [Doubt("late", "a line was odd")])
    monkeypatch.setattr("bicliques.pipeline.ingest.readers.delimited.Delimited.late_doubts", late)
    assert read(tmp_path, CASES["flags"][0])[0] == ("late", "a line was odd")
    assert EdgeStream.late_doubts.__get__(object()) == []


def test_doubts_are_the_same_in_any_order_of_labels() -> None:
    """A GPU has them in another order than a CPU, and their facts of a run are compared."""
    for names in (["1E+12", "#b", "2E+12", "#a"], ["#a", "2E+12", "#b", "1E+12"]):
        seen = doubts.Seen(STREAM, (pa.array(names, pa.large_string()), pa.array([1, 2])), 9, 0, True, False)
        rounded, signs = (doubt.text for find in doubts.DOUBTS for doubt in find(seen))
        assert ["'1E+12'" in rounded, "'#a'" in signs] == [True, True]
