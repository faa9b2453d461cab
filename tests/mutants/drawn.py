"""Judge errors that a tool draws, by the tests that run their lines; see CONTRIBUTING."""

import itertools
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path

from bicliques.kernels.compiled.jit import _SOURCES
from tests.mutants import __main__ as tool
from tests.mutants.drawing import ROOMS, Drawn, draw, room_of
from tests.mutants.map import Map

#: Seconds that the tests of a mutant took when the map was made, and their limit beside that of compiling.
_TESTS_S, _COMPILING_S = 60.0, 120.0
#: A mutant has so many cores of its own: tests with a thread per core would be in the way of other mutants.
_CORES = 2
#: The map is of the suite as `make test` runs it, with few random examples.
_AS_IN_THE_SUITE = ("-m", "not exhaustive")
#: Tests that fail without a mutant are left out, so many times for one mutant.
_TRIES = 4
_COMPILE = """
import tests.conftest as suite
for what in suite._COMPILE:
    exec(f"{suite._IMPORTS}; {what}")
from bicliques.kernels.compiled.jit import code_folder
print(code_folder())
"""


def changed_lines(root: Path, commit: str) -> dict[str, set[int]]:
    """The lines that the working tree has and a commit has not, by file."""
    said = subprocess.run(
        ["git", "-C", str(root), "diff", "-U0", commit, "--", *ROOMS], capture_output=True, text=True, check=True
    ).stdout
    lines = defaultdict(set)
    file = ""
    for line in said.splitlines():
        if line.startswith("+++ "):
            file = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ \S+ \+(\d+)(?:,(\d+))? @@", line):
            lines[file] |= set(range(int(found[1]), int(found[1]) + int(found[2] or 1)))
    return lines


class _Copies:
    """Copies of the project with machine code. Each is used by one mutant at a time, and one is never changed."""

    def __init__(self, root: Path, place: Path, n: int):
        self.free = queue.SimpleQueue()
        self.clean = tool.copy_of(root, place / "clean")
        warm = self._code(self.clean)
        for k in range(n):
            copy = tool.copy_of(root, place / str(k))
            self.free.put(copy)
            own = self._code(copy, "\n".join(_COMPILE.splitlines()[-2:]))
            shutil.copytree(warm, own, dirs_exist_ok=True)
        self.broken, self._whole = set[str](), set[str]()

    @staticmethod
    def _code(copy: Path, program: str = _COMPILE) -> Path:
        said = subprocess.run(
            [sys.executable, "-c", program], cwd=copy, env=tool.environment_of(copy), capture_output=True, text=True
        )
        if said.returncode:
            raise SystemExit(f"the compiled functions cannot be compiled: {said.stderr[-500:]}")
        return Path(said.stdout.splitlines()[-1])

    def collected(self) -> set[str]:
        """The tests that pytest finds here. A file that cannot be imported has none."""
        words = ["--collect-only", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", *_AS_IN_THE_SUITE]
        said = subprocess.run(
            [sys.executable, "-m", "pytest", *words, "tests"],
            cwd=self.clean,
            env=tool.environment_of(self.clean),
            capture_output=True,
            text=True,
        )
        return {line for line in said.stdout.splitlines() if "::" in line}

    def fails(self, test: str, limit_s: float) -> bool:
        """Whether a test, or a file of tests, fails without a mutant; then it is `broken` from now on."""
        if test not in self.broken | self._whole:
            passes = tool.run_tests(self.clean, [*_AS_IN_THE_SUITE, test], limit_s).what == "survived"
            (self._whole if passes else self.broken).add(test)
        return test in self.broken

    def seconds(self, tests: Sequence[str], limit_s: float) -> float:
        """How long tests take without a mutant."""
        began = time.monotonic()
        tool.run_tests(self.clean, [*_AS_IN_THE_SUITE, *tests], limit_s)
        return time.monotonic() - began


def _judge(drawn: Drawn, copies: _Copies, limit_s: float) -> tool.Verdict:
    """Killed is what a test notices that passes without it. What takes too long takes less without it."""
    if not drawn.tests:
        return tool.Verdict("survived", "no test runs it")
    if any(Path(drawn.file).match(pattern) for pattern in _SOURCES):
        limit_s += _COMPILING_S
    copy = copies.free.get()
    try:
        for _ in range(_TRIES):
            whole = (test for test in drawn.tests if not {test, test.partition("::")[0]} & copies.broken)
            drawn = replace(drawn, tests=tuple(whole))
            if not drawn.tests:
                break
            verdict = tool.judge(replace(drawn, tests=(*_AS_IN_THE_SUITE, *drawn.tests)), copy, limit_s)
            if verdict.by.startswith(tool.TOO_LONG) and copies.seconds(drawn.tests, limit_s) > limit_s / 2:
                return tool.Verdict("unclear", "the tests take too long without it, too")
            if not verdict.by.startswith("tests/") or not copies.fails(verdict.by, limit_s):
                return verdict
        return tool.Verdict("unclear", "its tests fail without it, too, or cannot be run here")
    finally:
        copies.free.put(copy)


def judge_drawn(
    root: Path,
    below: Sequence[str],
    n: int,
    seed: int,
    jobs: int,
    limit_s: float,
    known: Path,
    record: Path,
    commit: str | None = None,
) -> int:
    """Draw in the rooms or files `below`, judge, print a line each and the score per room; 1 when one has survived.

    What `record` has already is not judged again, so a run that was cut off can go on. Each line of it is a mutant.
    """
    texts = {str(file.relative_to(root)): file.read_text() for room in ROOMS for file in (root / room).rglob("*.py")}
    texts = {file: text for file, text in texts.items() if not below or file.startswith(tuple(below))}
    drawn = draw(texts, n, seed, changed_lines(root, commit) if commit else None)
    done = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    names = {one["name"] for one in done}
    cores = itertools.cycle(sorted(os.sched_getaffinity(0)))

    def take_cores():
        """Keep this thread, and so all processes that it starts, on some cores."""
        os.sched_setaffinity(0, set(itertools.islice(cores, _CORES)))

    with tempfile.TemporaryDirectory(prefix="mutants-") as place, ThreadPoolExecutor(jobs, "", take_cores) as pool:
        copies = _Copies(root, Path(place), jobs)
        tests = Map(known, copies.collected())

        def timed(one: Drawn) -> tuple[Drawn, tool.Verdict, float]:
            began = time.monotonic()
            one = replace(one, tests=tests.tests_of(one, texts[one.file], _TESTS_S))
            return one, _judge(one, copies, limit_s), time.monotonic() - began

        waiting = [pool.submit(timed, one) for one in drawn if one.name not in names]
        try:
            with record.open("a") as stream:
                for ended in as_completed(waiting):
                    one, verdict, seconds = ended.result()
                    told = {"name": one.name, "kind": one.kind, "what": verdict.what, "by": verdict.by}
                    done.append(told | {"tests": len(one.tests), "seconds": round(seconds, 1)})
                    stream.write(json.dumps(done[-1]) + "\n")
                    stream.flush()
                    tool.say(f"{verdict.what:9s} {one.name} ({seconds:.0f} s) {verdict.by}")
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # or Ctrl-C would wait until all are judged
    wanted = {one.name for one in drawn}
    return score([one for one in done if one["name"] in wanted])


def score(done: Sequence[dict[str, str]]) -> int:
    """Print how many of each room were killed, and of each kind; 1 when one has survived."""
    for of in (lambda one: room_of(one["name"].partition(":")[0]), lambda one: one["kind"], lambda one: "all"):
        counts = defaultdict(Counter)
        for one in done:
            counts[of(one)][one["what"]] += 1
        for name, found in sorted(counts.items()):
            judged = found["killed"] + found["survived"]
            share = f"{100 * found['killed'] / judged:3.0f} %" if judged else "    "
            tool.say(f"{share} {name}: {found['killed']} of {judged} killed, {found['unclear']} unclear")
    return int(any(one["what"] == "survived" for one in done))
