"""The map of which tests run a line, made from the notes of `tests.mutants.covering`, and asked by a line of today."""

import ast
import difflib
import gzip
import json
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Container, Iterable
from functools import cache
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "mutants"
NOTES, MAP = FOLDER / "notes", FOLDER / "map.json.gz"
#: Tests that are kept for a line, and of them the cases of one function.
_MOST, _CASES = 40, 3


def make_map(notes: Path, root: Path = ROOT, to: Path = MAP):
    """Write the map. For each line it has the tests that run it.

    Those come first whose file and class are called as the file of the line is, then those which run little else.
    """
    told = {}
    for file in notes.glob("tests-*.json"):
        for name, own in json.loads(file.read_text()).items():
            told.setdefault(name, own)["compiled"] |= own["compiled"]
    tests = [name for name, own in told.items() if own.get("passed") and not {"failed", "skipped"} & own.keys()]
    number = {name: k for k, name in enumerate(tests)}
    runs = defaultdict(set)  # context -> its tests
    for name, k in number.items():
        for context in (name, *told[name]["shared"]):
            runs[context].add(k)
    lines = {}
    for database in notes.glob("lines*"):
        _read(database, root, runs, len(tests), lines)
    for context, own in told.items():
        for file, line in _compiled_lines(root, frozenset(own["compiled"])):
            _enlarged(lines, file, line, len(tests))[sorted(runs[context]), line] = True
    sizes = sum(found.sum(axis=1) for found in lines.values())
    groups = {}
    files = {}
    for file, found in sorted(lines.items()):
        near = [len(_words(file) & _words(name.rpartition("::")[0])) for name in tests]
        order = np.array(sorted(range(len(tests)), key=lambda k: (-near[k], sizes[k])), int)
        most = sorted(np.flatnonzero(found.any(axis=1)), key=lambda k: (-near[k], -int(found[k].sum())))
        kept = {"any": groups.setdefault(_some(most, tests, near), len(groups))}
        for line in np.flatnonzero(found.any(axis=0)):
            kept[str(line)] = groups.setdefault(_some(order[found[order, line]], tests, near), len(groups))
        files[file] = {"text": (root / file).read_text(), "lines": kept}
    known = {"tests": [[name, round(told[name]["seconds"], 2)] for name in tests], "groups": list(groups)}
    to.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(to, "wt") as stream:
        json.dump(known | {"files": files}, stream)


@cache
def _words(name: str) -> frozenset[str]:
    """The words in the name of a file, its folders, and a class."""
    return frozenset(map(str.lower, re.findall(r"[A-Z]?[a-z0-9]+", name)))


def _some(numbers: Iterable[int], tests: list[str], near: list[int]) -> tuple[int, ...]:
    """Of tests that are equally near a case of every function, then another one of each."""
    cases, kept = Counter[str](), []
    for k in numbers:
        function = tests[k].partition("[")[0]
        cases[function] += 1
        if cases[function] <= _CASES:
            kept.append((-near[k], cases[function], int(k)))
    return tuple(k for *_, k in sorted(kept, key=lambda one: one[:2])[:_MOST])


def _enlarged(lines: dict[str, np.ndarray], file: str, last: int, n_tests: int) -> np.ndarray:
    found = lines.setdefault(file, np.zeros((n_tests, 0), bool))
    if found.shape[1] <= last:
        lines[file] = np.pad(found, ((0, 0), (0, last + 1 - found.shape[1])))
    return lines[file]


def _read(database: Path, root: Path, runs: dict[str, set[int]], n_tests: int, lines: dict[str, np.ndarray]):
    """Add what a process has noted, in a database of `coverage`."""
    with sqlite3.connect(database) as opened:
        try:
            rows = opened.execute(
                "select file.path, context.context, numbits from line_bits join file on file.id = file_id "
                "join context on context.id = context_id"
            )
            for path, context, bits in rows:
                marked = np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little"))
                if runs.get(context) and len(marked):
                    file = str(Path(path).relative_to(root))
                    found = _enlarged(lines, file, int(marked[-1]), n_tests)
                    found[np.ix_(sorted(runs[context]), marked)] = True
        except sqlite3.DatabaseError:
            return  # of a process that was killed


@cache
def _functions(root: Path) -> dict[str, tuple[str, int, int, frozenset[str]]]:
    """Of each function of `kernels` and `schemas`, by its module and name: file, lines, and the names in it."""
    found = {}
    for path in [*root.glob("kernels/**/*.py"), *root.glob("schemas/*.py")]:
        file, tree = str(path.relative_to(root)), ast.parse(path.read_text())
        module = "bicliques." + file.removesuffix(".py").replace("/", ".")
        known = {node.name: f"{module}.{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom):
                known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                calls = frozenset(known[name] for name in names if name in known)
                found[known[node.name]] = file, node.lineno, node.end_lineno or node.lineno, calls
    return found


@cache
def _compiled_lines(root: Path, entries: frozenset[str]) -> list[tuple[str, int]]:
    """Lines of compiled functions, and of all that they call."""
    functions, waiting, reached = _functions(root), [*entries], set[str]()
    while waiting:
        name = waiting.pop()
        if name in functions and name not in reached:
            reached.add(name)
            waiting += functions[name][3]
    spans = (functions[name][:3] for name in reached)
    return [(file, line) for file, first, last in spans for line in range(first, last + 1)]


class Map:
    """Which tests run a line. Lines of today are looked up by those that they were when the map was made."""

    def __init__(self, file: Path, there: Container[str] | None = None):
        """`there` are the tests of today that can be run here, if that is known."""
        with gzip.open(file, "rt") as stream:
            known = json.load(stream)
        self.tests, self.groups, self.files = known["tests"], known["groups"], known["files"]
        self._there = there
        self._before = {}

    def tests_of(self, drawn, text, most_s):
        """The tests that run the line, else its statement, else some of its file, for so many seconds at most."""
        if drawn.file not in self.files:
            return ()
        lines = self.files[drawn.file]["lines"]
        before = self._lines_before(drawn.file, text)
        asked = (lines.get(str(before.get(line))) for line in (drawn.line, drawn.statement))
        group = next((found for found in asked if found is not None), lines["any"])
        known = [self.tests[k] for k in self.groups[group]]
        chosen, seconds = [], 0.0
        for name, own_s in [one for one in known if self._there is None or one[0] in self._there] or known:
            if not chosen or seconds + own_s <= most_s:
                chosen.append(name)
                seconds += own_s
        return tuple(chosen)

    def _lines_before(self, file: str, text: str) -> dict[int, int]:
        if file not in self._before:
            old, new = self.files[file]["text"].splitlines(), text.splitlines()
            found = {}
            for a, b, n in difflib.SequenceMatcher(None, old, new, False).get_matching_blocks():
                found |= {b + k + 1: a + k + 1 for k in range(n)}
            last = 0
            for line in range(1, len(new) + 1):  # a new line is run by those that run the line above it
                last = found.setdefault(line, last)
            self._before[file] = found
        return self._before[file]
