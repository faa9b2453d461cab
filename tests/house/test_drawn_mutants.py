"""The tool that draws small errors: where it draws, that a change is one, and which tests it takes for a line."""

import ast
import gzip
import json
import sqlite3
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.mutants import __main__ as tool
from tests.mutants import drawn as judging
from tests.mutants.drawing import Drawn, draw, places, room_of
from tests.mutants.map import Map, make_map

CODE = '''"""A text with 1 < 2."""

LIMIT = 40


def larger(a: int, b: int = 0, *, some: bool = True) -> int:
    """The larger one."""
    if a is not None and not b <= a:
        notify("ä", a, key=b, stacklevel=2)
        b += 1
    for k in sorted(range(b)):
        if k % 2:
            continue
        raise ValueError(f"{k + 1} is odd")
    return max(a, b) if some else a.copy()
'''


def test_what_is_drawn_of_a_file():
    found = {(one.kind, one.line, one.says) for one in places("schemas/x.py", CODE)}
    assert found == {
        ("constant", 8, "0 -> 1"),
        ("constant", 8, "0 -> (-1)"),
        ("constant", 8, "True -> False"),
        ("condition", 10, "a is not None and not b <= a -> ((not b <= a))"),
        ("condition", 10, "a is not None and not b <= a -> ((a is not None))"),
        ("condition", 10, "a is not None and not b <= a -> True"),
        ("condition", 10, "a is not None and not b <= a -> False"),
        ("condition", 10, "not b <= a -> (b <= a)"),
        ("operator", 10, "is not -> is"),
        ("operator", 10, "<= -> <"),
        ("call", 11, 'notify("ä", a, key=b, stacklevel=2) -> pass'),
        ("argument", 11, 'notify("ä", a, key=b, stacklevel=2) -> notify(a, "ä", key=b, stacklevel=2)'),
        ("argument", 11, 'notify("ä", a, key=b, stacklevel=2) -> notify("ä", a, stacklevel=2)'),
        ("operator", 12, "+ -> -"),
        ("constant", 12, "1 -> 2"),
        ("constant", 12, "1 -> (0)"),
        ("argument", 13, "sorted(range(b)) -> (range(b))"),
        ("condition", 14, "k % 2 -> True"),
        ("condition", 14, "k % 2 -> False"),
        ("operator", 14, "% -> //"),
        ("constant", 14, "2 -> 3"),
        ("constant", 14, "2 -> (1)"),
        ("condition", 15, "continue -> break"),
        ("condition", 17, "some -> True"),
        ("condition", 17, "some -> False"),
        ("argument", 17, "max(a, b) -> min(a, b)"),
        ("call", 17, "a.copy() -> a"),
    }


def test_each_drawn_change_means_something_else():
    drawn = draw({"schemas/x.py": CODE}, 1000, 1)
    assert len(drawn) > 20
    meanings = [ast.dump(ast.parse(one.applied(CODE))) for one in [*drawn]]
    assert ast.dump(ast.parse(CODE)) not in meanings
    assert len({one.name for one in drawn}) == len(drawn)


def test_rooms_are_drawn_from_by_size_and_a_seed_draws_the_same_again():
    texts = {"pipeline/run/a.py": CODE * 3, "pipeline/run/b.py": CODE * 3, "kernels/cpu/c.py": CODE * 2}
    drawn = draw(texts, 40, 7)
    assert Counter(room_of(one.file) for one in drawn) == {"pipeline/run": 30, "kernels/cpu": 10}
    assert {one.kind for one in drawn} == {"operator", "condition", "constant", "argument", "call"}
    assert draw(texts, 40, 7) == drawn != draw(texts, 40, 8)
    assert {one.line for one in draw(texts, 40, 7, {"kernels/cpu/c.py": {10, 14}})} == {10, 14}


@pytest.fixture
def known(tmp_path):
    """A map of which `test_a` runs line 10, `test_b` lines 10 and 11, and all tests of the fixture line 12."""
    root, notes = tmp_path / "root", tmp_path / "notes"
    (root / "schemas").mkdir(parents=True)
    (root / "schemas" / "x.py").write_text(CODE)
    notes.mkdir()
    tests = {
        name: {"seconds": 1.0, "shared": ["tests::whole"] if name[-1] in "bc" else [], "compiled": {}, "passed": True}
        for name in ("tests/t.py::test_a", "tests/t.py::test_b", "tests/t.py::test_c", "tests/t.py::test_d")
    }
    tests["tests/t.py::test_d"]["failed"] = True
    (notes / "tests-1.json").write_text(json.dumps(tests))
    with sqlite3.connect(notes / "lines.1") as database:
        database.execute("create table file (id, path)")
        database.execute("create table context (id, context)")
        database.execute("create table line_bits (file_id, context_id, numbits)")
        database.execute("insert into file values (1, ?)", (str(root / "schemas" / "x.py"),))
        lines = {"tests/t.py::test_a": [10], "tests/t.py::test_b": [10, 11], "tests::whole": [12], tests_d: [11]}
        for k, (context, some) in enumerate(lines.items()):
            database.execute("insert into context values (?, ?)", (k, context))
            bits = sum(1 << line for line in some).to_bytes(2, "little")
            database.execute("insert into line_bits values (1, ?, ?)", (k, bits))
    make_map(notes, root, tmp_path / "map.json.gz")
    return tmp_path / "map.json.gz"


tests_d = "tests/t.py::test_d"


def asked(
    known: Path, line: int, text: str = CODE, statement: int = 0, most_s: float = 9, there: set[str] | None = None
) -> list[str]:
    drawn = Drawn("operator", "schemas/x.py", line, statement, 0, 0, "", "")
    return [test[-1] for test in Map(known, there).tests_of(drawn, text, most_s)]


def test_the_tests_of_a_line_are_those_that_run_it(known):
    assert asked(known, 10) == ["a", "b"], "the one that runs less is the first"
    assert asked(known, 11) == ["b"], "one that failed says nothing"
    assert asked(known, 12) == ["c", "b"], "both have the fixture"
    assert asked(known, 17, statement=11) == ["b"], "a line that nobody notes belongs to its statement"
    assert sorted(asked(known, 5)) == ["a", "b", "c"], "what is run at the import concerns all of the file"
    assert asked(known, 10, most_s=1) == ["a"]
    assert asked(known, 10, most_s=1, there={"tests/t.py::test_b"}) == ["b"], "pytest does not find the other one"
    assert asked(known, 10, there=set()) == ["a", "b"], "they cannot be run, which is said when they are"
    assert Map(known).tests_of(Drawn("call", "schemas/y.py", 1, 1, 0, 0, "", ""), "", 9) == ()


def test_tests_that_are_called_as_the_file_come_first(tmp_path):
    (tmp_path / "kernels" / "cpu").mkdir(parents=True)
    (tmp_path / "kernels" / "cpu" / "open_hub.py").write_text("def part(x):\n    return x\n")
    near = ["tests/kernels/test_open_hub.py::test_a[1]", "tests/kernels/test_open_hub.py::test_b"]
    names = ["tests/house/t.py::test_hub", "tests/kernels/test_engines.py::TestCpuEngine::test_a", near[0]]
    names += ["tests/kernels/test_open_hub.py::test_a[2]", near[1]]
    called = {"seconds": 1.0, "shared": [], "passed": True, "compiled": {"bicliques.kernels.cpu.open_hub.part": True}}
    (tmp_path / "tests-1.json").write_text(json.dumps(dict.fromkeys(names, called)))
    make_map(tmp_path, tmp_path, tmp_path / "map.json.gz")
    drawn = Drawn("operator", "kernels/cpu/open_hub.py", 2, 2, 0, 0, "", "")
    chosen = Map(tmp_path / "map.json.gz").tests_of(drawn, "def part(x):\n    return x\n", 9)
    assert chosen == (*near, names[3], names[1], names[0]), "a case of each function, then other cases"


def test_a_line_is_found_again_after_the_file_has_changed(known):
    moved = CODE.replace("LIMIT = 40\n", "LIMIT = 40\nMORE = 50\n").replace(
        "        b += 1\n", "        c = 1\n        b += 1\n"
    )
    assert asked(known, 12, moved) == ["b"]
    assert asked(known, 13, moved) == ["b"], "a new line is run by those that run the line above it"
    assert asked(known, 14, moved) == ["c", "b"]


def test_compiled_functions_are_run_by_those_that_call_their_entry(tmp_path):
    root, notes = tmp_path / "root", tmp_path / "notes"
    (root / "kernels").mkdir(parents=True)
    (root / "kernels" / "a.py").write_text(
        "from bicliques.kernels.b import part\n\ndef entry(x):\n    return part(x)\n"
    )
    (root / "kernels" / "b.py").write_text("def part(x):\n    return x\n\ndef other(x):\n    return x\n")
    notes.mkdir()
    told = {
        "tests/t.py::test_a": {
            "seconds": 1.0,
            "shared": [],
            "compiled": {"bicliques.kernels.a.entry": True},
            "passed": True,
        }
    }
    (notes / "tests-1.json").write_text(json.dumps(told))
    make_map(notes, root, tmp_path / "map.json.gz")
    with gzip.open(tmp_path / "map.json.gz", "rt") as stream:
        files = json.load(stream)["files"]
    assert {file: sorted(found["lines"]) for file, found in files.items()} == {
        "kernels/a.py": ["3", "4", "any"],
        "kernels/b.py": ["1", "2", "any"],
    }


class Copies:
    """Of `judging._Copies` what judging asks; tests in `broken` fail without a mutant, too."""

    def __init__(self, place: Path, broken: Sequence[str] = (), seconds: float = 1.0):
        self.free = judging.queue.SimpleQueue[Path]()
        self.free.put(place)
        self.broken, self._fail, self._seconds = set[str](), broken, seconds

    def fails(self, test: str, limit_s: float) -> bool:
        self.broken |= {test} & {*self._fail}
        return test in self.broken

    def seconds(self, tests: Sequence[str], limit_s: float) -> float:
        return self._seconds


def judged(patch: pytest.MonkeyPatch, copies: Copies, *verdicts: tool.Verdict) -> tuple[tool.Verdict, list[list[str]]]:
    asked, said = [], iter(verdicts)
    drawn = Drawn("call", "flows/x.py", 1, 1, 0, 0, "", "", ("tests/a.py::one", "tests/a.py::two"))
    patch.setattr(tool, "judge", lambda mutant, copy, limit_s: (asked.append([*mutant.tests[2:]]), next(said))[1])
    return judging._judge(drawn, copies, 60.0), asked


def test_a_test_that_fails_without_the_mutant_kills_nothing(tmp_path, monkeypatch):
    one, survived = tool.Verdict("killed", "tests/a.py::one"), tool.Verdict("survived")
    assert judged(monkeypatch, Copies(tmp_path), one) == (one, [["tests/a.py::one", "tests/a.py::two"]])
    broken = Copies(tmp_path, ["tests/a.py::one"])
    assert judged(monkeypatch, broken, one, survived) == (
        survived,
        [["tests/a.py::one", "tests/a.py::two"], ["tests/a.py::two"]],
    )
    assert judged(monkeypatch, broken, survived) == (survived, [["tests/a.py::two"]]), "it is known from now on"
    both = Copies(tmp_path, ["tests/a.py"])
    assert judged(monkeypatch, both, tool.Verdict("killed", "tests/a.py"))[0].what == "unclear"


def test_what_takes_too_long_is_killed_if_it_is_quick_without_the_mutant(tmp_path, monkeypatch):
    late = tool.Verdict("killed", f"{tool.TOO_LONG} of 60 s")
    assert judged(monkeypatch, Copies(tmp_path), late)[0] == late
    assert judged(monkeypatch, Copies(tmp_path, seconds=31.0), late)[0].what == "unclear"


def test_ctrl_c_ends_with_the_mutants_that_are_judged_now(tmp_path, monkeypatch):
    ended, begun = threading.Event(), list[str]()

    class Pool(ThreadPoolExecutor):
        def shutdown(self, *arguments, **words: bool):
            super().shutdown(wait=False, cancel_futures=words.get("cancel_futures", False))
            ended.set()
            super().shutdown()

    def interrupted(drawn: Drawn, copies, limit_s: float) -> tool.Verdict:
        begun.append(drawn.name)
        if len(begun) == 1:
            raise KeyboardInterrupt
        assert ended.wait(60)
        return tool.Verdict("survived")

    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "x.py").write_text(CODE)
    monkeypatch.setattr(judging, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(judging, "_judge", interrupted)
    monkeypatch.setattr(judging, "_Copies", lambda *_: SimpleNamespace(collected=set))
    monkeypatch.setattr(judging, "Map", lambda *_: SimpleNamespace(tests_of=lambda *_: ()))
    with pytest.raises(KeyboardInterrupt):
        judging.judge_drawn(tmp_path, (), 9, 1, 1, 60.0, tmp_path / "map", tmp_path / "record")
    assert 1 <= len(begun) <= 2


def test_the_lines_that_a_commit_has_not(tmp_path):
    (tmp_path / "schemas").mkdir()
    file = tmp_path / "schemas" / "x.py"
    file.write_text(CODE)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "first"]):
        subprocess.run([*git, *words], check=True)
    file.write_text(CODE.replace("LIMIT = 40\n", "LIMIT = 41\n").replace("        b += 1\n", "        b += 1\n" * 3))
    assert judging.changed_lines(tmp_path, "HEAD") == {"schemas/x.py": {5, 13, 14}}


def test_the_score_is_told_per_room(capsys):
    done = [
        {"name": f"pipeline/run/a.py:{k}:", "kind": "call", "what": what, "by": ""}
        for k, what in enumerate(["killed", "killed", "survived", "unclear"])
    ]
    assert judging.score(done) == 1
    assert capsys.readouterr().out.splitlines()[0] == " 67 % pipeline/run: 2 of 3 killed, 1 unclear"
    assert judging.score(done[:2]) == 0
