"""The table of small errors does not rot: each still can be made, and the tool that makes them tells who noticed."""

from __future__ import annotations

import ast
import re
import runpy
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.house.tree import LAYERS, ROOT
from tests.mutants import __main__ as tool
from tests.mutants.table import load

MUTANTS = load()
_text = cache(Path.read_text)


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_the_mutants_of_a_file_can_still_be_made(file: str) -> None:
    """When the code changes, change the old text with it, or drop the entry where it says nothing any more."""
    mutants = {mutant.name: mutant for mutant in MUTANTS if mutant.file == file}
    assert file, f"the old text is in no file, or in several: then name one. So it is with {sorted(mutants)}"
    assert Path(file).parts[0] in LAYERS
    text = (ROOT / file).read_text()
    changed = {name: mutant.applied(text) for name, mutant in mutants.items()}
    if file.endswith(".py"):
        meaning = ast.dump(ast.parse(text))
        assert [name for name, other in changed.items() if ast.dump(ast.parse(other)) == meaning] == []
    for name, mutant in mutants.items():
        files = [ROOT / word.partition("::")[0] for word in mutant.tests if word.startswith("tests/")]
        assert files, name
        assert [file for file in files if not file.exists()] == [], name


def test_the_words_that_choose_tests_of_a_mutant_are_names() -> None:
    """Otherwise no test would be chosen. Names of inherited tests and of their cases stand beside the file."""
    for mutant in MUTANTS:
        if "-k" in mutant.tests:
            files = [ROOT / word for word in mutant.tests if word.startswith("tests/")]
            text = " ".join(_text(path) for file in files for path in (file, *file.parent.glob("suite*.py"))).lower()
            words = re.findall(r"\w+", mutant.tests[mutant.tests.index("-k") + 1].lower())
            unknown = [word for word in words if word not in ("and", "or", "not") and word not in text]
            assert unknown == [], mutant.name


def test_mutants_have_names_of_their_own() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert [name for name in names if names.count(name) > 1] == []
    assert len(names) > 50


CODE = "def larger(a, b):\n    return a if a > b else b\n"
TESTS = "from code_of_mine import larger\n\n\ndef test_larger():\n    assert larger(1, 2) == 2\n"
TABLE = """
[[mutant]]
name = "smaller"
file = "code_of_mine.py"
old = "a > b"
new = "a < b"
tests = ["test_code.py"]
says = "the smaller one is taken"

[[mutant]]
name = "never-the-first"
file = "code_of_mine.py"
old = "a if a > b else b"
new = "b"
tests = ["test_code.py"]
says = "the second one is taken"

[[mutant]]
name = "nobody-looks"
file = "code_of_mine.py"
old = "a > b"
new = "a < b"
tests = ["broken"]
says = "the smaller one is taken"

[[mutant]]
name = "of-two-equal-ones"
file = "code_of_mine.py"
old = "a > b"
new = "a >= b"
tests = ["test_code.py"]
says = "the other one of two that are equal is taken"
equivalent = "they are equal"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A function, a test of it, and beside them a table."""
    root = tmp_path / "project"
    root.mkdir()
    for name, text in (("code_of_mine.py", CODE), ("test_code.py", TESTS), ("pytest.ini", "[pytest]\n")):
        (root / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    (tmp_path / "table.toml").write_text(TABLE)
    return root


def in_this_process(copy: Path, tests: Sequence[str], limit_s: float) -> tool.Verdict:
    """What `run_tests` does of the test above, without a process of its own."""
    larger = runpy.run_path(str(copy / "code_of_mine.py"))["larger"]
    passed = larger(1, 2) == 2 and tests != ("broken",)
    return tool.Verdict("survived") if passed else tool.Verdict("killed", "test_code.py::test_larger")


def test_the_tool_tells_what_was_noticed(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "run_tests", in_this_process)
    assert tool.main([], project, project.parent) == 1
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in said[:-1]] == [
        ["killed", "smaller"],
        ["survived", "never-the-first"],
        ["unclear", "nobody-looks"],
    ]
    assert said[0].endswith("by test_code.py::test_larger")
    assert said[1].endswith(": the second one is taken")
    assert said[-1] == "1 of 2 killed, 1 unclear"
    assert (project / "code_of_mine.py").read_text() == CODE


def test_the_tool_runs_those_that_are_named(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "run_tests", in_this_process)
    assert tool.main(["smaller"], project, project.parent) == 0
    assert tool.main(["of-two-equal-ones"], project, project.parent) == 1
    assert tool.main(["--list"], project, project.parent) == 0
    said = capsys.readouterr().out
    assert "1 of 1 killed, 0 unclear\n" in said
    assert "0 of 1 killed, 0 unclear\n" in said
    assert "of-two-equal-ones: code_of_mine.py: the other one of two that are equal is taken (equivalent)\n" in said
    with pytest.raises(SystemExit, match="no mutant has this name or file: larger"):
        tool.main(["larger"], project, project.parent)


def test_the_tool_runs_the_tests_of_a_copy(project: Path) -> None:
    copy = tool.copy_of(project, project.parent / "place")
    (copy / "code_of_mine.py").write_text(CODE.replace("a > b", "a < b"))
    assert tool.run_tests(copy, ["test_code.py"], 60) == tool.Verdict("killed", "test_code.py::test_larger")
    (copy / "code_of_mine.py").write_text("nothing_of_this_name()\n")
    assert tool.run_tests(copy, ["test_code.py::test_larger"], 60) == tool.Verdict("killed", "test_code.py")
    assert tool.run_tests(project, ["test_code.py::test_smaller"], 60) == tool.Verdict("unclear", "no test was run")
