"""The tutorial runs from its first cell to its last in an empty folder, and shows what is stored with it."""

import json
import re
import subprocess
import sys

import pytest

from tests.support.runs import ROOT, environment
from tests.tutorial import TUTORIAL, code_cells, digest_of

STORED = json.loads(TUTORIAL.read_text())
REMEDY = "run make tutorial, and look at what it shows now"


def texts(notebook, kind: str) -> list[str]:
    """What the cells show in one form; "text" is what they print."""
    shown = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    found = [each["text"] if kind == "text" else each["data"][kind] for each in shown if kind in each.get("data", each)]
    return ["".join(text) for text in found]


@pytest.mark.exhaustive
def test_it_shows_what_is_stored(tmp_path):
    """Ids, counts, tables and the picture to the letter, in whatever order the rows were found."""
    done, empty = tmp_path / "done.ipynb", tmp_path / "empty"
    empty.mkdir()
    ended = subprocess.run(
        [sys.executable, "-m", "tests.tutorial", "--output", str(done)],
        cwd=ROOT,
        env=environment() | {"IPYTHONDIR": str(tmp_path), "TMPDIR": str(empty), "JUPYTER_PLATFORM_DIRS": "1"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    for now, before in zip(code_cells(json.loads(done.read_text())), code_cells(STORED), strict=True):
        assert now["outputs"] == before["outputs"], REMEDY
    assert list(empty.iterdir()) == []


def test_the_outputs_are_those_of_this_code():
    assert STORED["metadata"]["digest"] == digest_of(STORED), REMEDY


def test_every_cell_has_run_once_and_in_order():
    assert [cell["execution_count"] for cell in code_cells(STORED)] == [*range(1, len(code_cells(STORED)) + 1)]
    assert sum(not cell["outputs"] for cell in code_cells(STORED)) == 1, "only the one that removes the folder"
    kinds = {output["output_type"] for cell in code_cells(STORED) for output in cell["outputs"]}
    assert kinds == {"stream", "execute_result"}, "no error, and nothing on stderr"
    assert {output.get("name", "stdout") for cell in code_cells(STORED) for output in cell["outputs"]} == {"stdout"}


def test_text_tables_and_a_picture_are_stored():
    assert "253 maximal bicliques" in texts(STORED, "text/html")[1]
    [picture] = texts(STORED, "image/svg+xml")
    assert picture.startswith("<svg")
    assert picture.count("biclique -6489966397121717306") == 1
    assert sum("<table" in text for text in texts(STORED, "text/html")) >= 6


#: What is of a machine or of a moment: folders of a user or for a while, addresses in memory, dates, times.
OF_A_MACHINE = re.compile(
    r"(?:^|[\s'\"(])/(?!/)\w|\b0x[0-9a-f]{6}|\b20\d\d-\d\d-\d\d|\b\d+:\d\d|\d m?s\b|\bseconds?\b|localhost"
)


def test_nothing_in_the_outputs_is_of_a_machine_or_a_moment():
    for kind in ("text", "text/plain", "text/html", "image/svg+xml"):
        for text in texts(STORED, kind):
            found = OF_A_MACHINE.search(text)
            assert found is None, text[max(found.start() - 40, 0) : found.end() + 40]
    assert STORED["metadata"].keys() == {"digest", "kernelspec", "language_info"}
    assert STORED["metadata"]["language_info"] == {"name": "python"}
    assert all(map(OF_A_MACHINE.search, ("in /home/x/OUT", "'/tmp/y'", "0x7f00aa00", "2026-11-25", "0.3 s", "12:30")))


def test_the_numbers_of_the_story_are_those_that_it_shows():
    """The text between the cells names some; this holds them when the code changes."""
    printed, tables = "".join(texts(STORED, "text")), texts(STORED, "text/plain")
    assert "117 groups are gone, 224 are new, 136 are unchanged" in printed  # nearly half of 253
    assert "gone\njoined by Dana\n" in printed
    assert "2.4%" in printed
    assert "13.6%" in printed  # nearly six times
    kinds = next(text for text in tables if "kinds" in text)
    assert kinds.count("Tara") == 3
    assert kinds.count("film noir, silent") == kinds.count("animation, silent") == 1
    near = next(text for text in tables if "misses" in text)
    assert (near.count("not seen"), len(near.splitlines()) - 1) == (7, 11)
    assert "<td>40%</td><td>10</td><td>29</td><td>Nora</td>" in texts(STORED, "text/html")[4]
