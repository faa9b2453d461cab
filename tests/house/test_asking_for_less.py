"""The example of docs/asking-for-less.md runs as it stands, and its numbers are those that it gives."""

import re
import shlex
from pathlib import Path

import pytest

from tests.house.reader import printed
from tests.house.tree import ROOT

PAGE = (ROOT / "docs" / "asking-for-less.md").read_text()
MEMBERS = PAGE.partition("## With given members")[2].partition("\n## ")[0]
LARGEST = PAGE.partition("\n## The largest")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    return outputs(MEMBERS, tmp_path_factory.mktemp("reader"))


def outputs(section: str, folder: Path) -> dict[str, str]:
    """What each command of a section prints, and the program; one after the other, as a reader would run them."""
    (folder / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall(r"(?ms)^```(sh|python)\n(.*?)^```", section)
    typed = {}
    for language, text in blocks:
        if language == "python":
            typed["python"] = text
        else:
            typed |= {line: shlex.split(line)[1:] for line in text.splitlines()}
    return dict(zip(typed, printed(folder, list(typed.values())), strict=True))


def count_of(card: str) -> str:
    match = re.search(r"(?m)^bicliques: ([\d,]+|none: .*?)(?:, all of them)?$", card)
    assert match is not None, card
    return match[1]


@pytest.mark.exhaustive
def test_the_numbers_of_the_page_are_those_of_the_commands(said):
    whole, gimp, *_, two_left, two_right, none = [text for line, text in said.items() if line != "python"]
    assert f"It finds {count_of(gimp)} of the {count_of(whole)} bicliques" in MEMBERS
    counts = f"{count_of(two_left)}, {count_of(two_right)} and *{count_of(none)}*"
    assert f"They say {counts}." in " ".join(MEMBERS.split())
    assert "verified: 378 bicliques" in next(text for line, text in said.items() if "verify" in line)
    assert said["python"].splitlines()[0] == f"{count_of(two_right)} True"


@pytest.mark.exhaustive
def test_the_largest_of_the_page_are_those_of_the_commands(tmp_path):
    said = outputs(LARGEST, tmp_path)
    first, verified, last, program = said.values()
    sizes = [re.findall(r"(?m)^ *\d+ +([\d,]+) +([\d,]+) +[\d,]+  {", text) for text in (first, last)]
    assert len(sizes[0]) == 3
    assert "{} x {}, {} x {} and {} x {}".format(*(n for pair in sizes[0] for n in pair)) in LARGEST
    assert "and finds {} x {}.".format(*sizes[1][0]) in LARGEST
    assert "by counting, without a bound" in verified.partition("not proven")[0]
    assert 0 < int(program.splitlines()[-1]) <= int(sizes[1][0][0]), "the key of the fifth"
