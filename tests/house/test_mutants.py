"""The table of small errors does not rot: each still can be made, and the tool that makes them tells who noticed."""

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
from tests.mutants.table import Mutant, load

_text = cache(Path.read_text)


def _bare(text: str) -> str:
    """Code without what may mean nothing: comments, spaces and parentheses."""
    return re.sub(r"#.*|[\s()]", "", text)


@pytest.fixture(scope="module")
def mutants():
    """They are read once, and not by each process that collects tests."""
    return load()


def test_each_mutant_can_still_be_made(mutants):
    """When the code changes, change the old text with it, or drop the entry where it says nothing any more."""
    wrong = {mutant.name: reason for mutant in mutants if (reason := why_not(mutant))}
    assert wrong == {}


def why_not(mutant: Mutant) -> str | None:
    """Why a mutant cannot be made, or cannot be noticed."""
    if not mutant.file:
        return "the old text is in no file, or in several: then name one"
    text = _text(ROOT / mutant.file)
    if (n := text.count(mutant.old)) != 1:
        return f"the old text is {n} times in {mutant.file}"
    if mutant.file.endswith(".py"):
        changed = ast.parse(mutant.applied(text))
        if _bare(mutant.old) == _bare(mutant.new) and ast.dump(changed) == ast.dump(ast.parse(text)):
            return f"for Python {mutant.file} stays what it was"
    files = [word.partition("::")[0] for word in mutant.tests if word.startswith("tests/")]
    if not files or not all((ROOT / file).exists() for file in files):
        return f"of its tests {files} one is not there"
    return None if Path(mutant.file).parts[0] in LAYERS else f"{mutant.file} is not shipped"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"file": ""}, "in no file, or in several"),
        ({"old": "not there"}, "the old text is 0 times in pipeline/run/lock.py"),
        ({"new": "(fcntl.LOCK_NB | kind) "}, None),
        ({"new": "( kind | fcntl.LOCK_NB )"}, "for Python pipeline/run/lock.py stays what it was"),
        ({"tests": ("tests/pipeline/run/test_gone.py",)}, "one is not there"),
        ({"tests": ("-k", "lock")}, "one is not there"),
        ({"file": "setup.py", "old": "setup(", "new": "no_setup("}, "setup.py is not shipped"),
    ],
    ids=str,
)
def test_a_mutant_that_says_nothing_any_more_is_named(change, reason):
    old = {"file": "pipeline/run/lock.py", "old": "kind | fcntl.LOCK_NB", "new": "kind"}
    told = why_not(Mutant(**{"name": "m", "says": "", "tests": ("tests/pipeline/run/test_lock.py",)} | old | change))
    assert (told is None) if reason is None else reason in str(told)


def test_the_words_that_choose_tests_of_a_mutant_are_names(mutants):
    """Otherwise no test would be chosen. Names of inherited tests and of their cases stand beside the file."""
    for mutant in mutants:
        if "-k" in mutant.tests:
            files = [ROOT / word for word in mutant.tests if word.startswith("tests/")]
            text = " ".join(_text(path) for file in files for path in (file, *file.parent.glob("suite*.py"))).lower()
            words = re.findall(r"\w+", mutant.tests[mutant.tests.index("-k") + 1].lower())
            unknown = [word for word in words if word not in ("and", "or", "not") and word not in text]
            assert unknown == [], mutant.name


def test_mutants_have_names_of_their_own(mutants):
    names = [mutant.name for mutant in mutants]
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
def project(tmp_path):
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


def test_the_tool_tells_what_was_noticed(project, capsys, monkeypatch):
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


def test_the_tool_runs_those_that_are_named(project, capsys, monkeypatch):
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


@pytest.mark.exhaustive
def test_the_tool_runs_the_tests_of_a_copy(project):
    copy = tool.copy_of(project, project.parent / "place")
    (copy / "code_of_mine.py").write_text(CODE.replace("a > b", "a < b"))
    assert tool.run_tests(copy, ["test_code.py"], 60) == tool.Verdict("killed", "test_code.py::test_larger")
    (copy / "test_words.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('x', ['a b'])\ndef test(x): assert not x\n"
    )
    assert tool.run_tests(copy, ["test_words.py"], 60) == tool.Verdict("killed", "test_words.py::test[a b]")
    (copy / "code_of_mine.py").write_text("nothing_of_this_name()\n")
    assert tool.run_tests(copy, ["test_code.py::test_larger"], 60) == tool.Verdict("killed", "test_code.py")
    assert tool.run_tests(project, ["test_code.py::test_smaller"], 60) == tool.Verdict("unclear", "no test was run")
