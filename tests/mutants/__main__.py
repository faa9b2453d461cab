"""Make small errors on purpose, one at a time, and see whether the tests notice.

    python -m tests.mutants
    python -m tests.mutants parts-take-too-much pipeline/run/ledger.py
    python -m tests.mutants --list

Each mutant of the TOML files in tests/mutants is made in a temporary copy of the project, in which the tests that it
names are run. It is killed when one of them fails, and has survived when all pass: then a test is missing. Before
that the same tests are run without the change, and have to pass. One of a compiled function takes a minute or more.

    python -m tests.mutants.covering -n 3 --dist loadgroup -m "not exhaustive"
    python -m tests.mutants --drawn 100 --seed 1
    python -m tests.mutants --drawn 100 --changed main

The first of these makes a map of which tests run which lines. The others draw mutants, of all rooms by their size or of
the lines that differ from a commit, and run the tests that the map has for their lines.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.mutants.map import MAP
from tests.mutants.table import FOLDER, Mutant, load
from tests.support.known import FOLDERS

ROOT = FOLDER.parents[1]
say = partial(print, flush=True)
#: Where pytest says that nothing was run, or that its arguments are wrong; everything else but 0 is a failure.
_NOTHING_RUN = (4, 5)
TOO_LONG = "the time limit"


class Verdict(NamedTuple):
    """What the tests said of a mutant, and the first of them that failed."""

    what: str
    by: str = ""


def copy_of(root: Path, place: Path) -> Path:
    """The files of the project, new ones included, in a folder below `place`."""
    copy = place / "project"
    listed = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    found = subprocess.run(listed, capture_output=True, text=True, check=False)
    if found.returncode:  # what was brought to another machine is no repository there
        shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(".*", "build", "__pycache__"))
        return copy
    for name in filter(None, found.stdout.split("\0")):
        if (root / name).exists():  # links lead to the rooms
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name, follow_symlinks=False)
    return copy


def environment_of(copy: Path) -> dict[str, str]:
    """That of tests of the copy."""
    path = [str(copy), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "PYTHONPATH": os.pathsep.join(path),
        "PYTHONDONTWRITEBYTECODE": "1",  # a change of the same second and length would not be seen
        "NUMBA_CACHE_DIR": str(copy.parent / "machine-code"),
        "BICLIQUES_DATA": str(FOLDERS[-1]),
    }


def run_tests(copy: Path, tests: Sequence[str], limit_s: float) -> Verdict:
    """Run tests of the copy until one fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        ended = subprocess.run(
            command, cwd=copy, env=environment_of(copy), capture_output=True, text=True, check=False, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return Verdict("killed", f"{TOO_LONG} of {limit_s:g} s")
    if ended.returncode == 0 and re.search(r"\d passed", ended.stdout):
        return Verdict("survived")
    # an ERROR is also a file that cannot be imported; the names of some tests have spaces
    failed = re.search(r"(?m)^(?:FAILED|ERROR) (\S.*?)(?: - .*)?$", ended.stdout)
    if ended.returncode in (0, *_NOTHING_RUN) and not failed:
        return Verdict("unclear", "no test was run")
    return Verdict("killed", failed[1] if failed else f"exit code {ended.returncode}")


def judge(mutant, copy: Path, limit_s: float) -> Verdict:
    """Make the change, run the tests, and take it back."""
    file = copy / mutant.file
    text = file.read_text()
    file.write_text(mutant.applied(text))
    try:
        return run_tests(copy, mutant.tests, limit_s)
    finally:
        file.write_text(text)


def chosen(mutants: Sequence[Mutant], words: Sequence[str]) -> list[Mutant]:
    """Those with these names or of these files; without words all that are not equivalent.

    Raises
    ------
    SystemExit
        If a word is neither.
    """
    unknown = set(words) - {mutant.name for mutant in mutants} - {mutant.file for mutant in mutants}
    if unknown:
        raise SystemExit(f"no mutant has this name or file: {', '.join(sorted(unknown))}; --list shows all")
    by_name = [mutant for mutant in mutants if mutant.name in words]
    return by_name + [
        mutant
        for mutant in mutants
        if mutant not in by_name and not mutant.equivalent and (not words or mutant.file in words)
    ]


def main(arguments: Sequence[str] | None = None, root: Path = ROOT, folder: Path = FOLDER) -> int:
    """Judge, print a line each and the score; 1 when one has survived."""
    parser = argparse.ArgumentParser(
        "python -m tests.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", metavar="NAME|FILE", help="which (default: all that are not equivalent)")
    parser.add_argument("--list", action="store_true", help="print the table, and run nothing")
    parser.add_argument("--limit", type=float, metavar="S", help="of the tests of one mutant (900 s; 60 s if drawn)")
    drawn = parser.add_argument_group("of drawn mutants")
    drawn.add_argument("--drawn", type=int, metavar="N", help="draw so many instead, by the map of tests")
    drawn.add_argument("--seed", type=int, default=1, metavar="N", help="of what is drawn (1)")
    drawn.add_argument("--changed", metavar="COMMIT", help="draw in the lines that differ from this commit alone")
    drawn.add_argument("--jobs", type=int, default=1, metavar="N", help="mutants at a time (1)")
    drawn.add_argument("--map", type=Path, default=MAP, metavar="FILE", help="made by tests.mutants.covering")
    drawn.add_argument(
        "--record", type=Path, default=MAP.with_name("drawn.jsonl"), metavar="FILE", help="which is gone on with"
    )
    words = parser.parse_args(arguments)
    if words.drawn is not None:
        from tests.mutants.drawn import judge_drawn

        limit_s = words.limit or 60.0
        return judge_drawn(
            root, words.words, words.drawn, words.seed, words.jobs, limit_s, words.map, words.record, words.changed
        )
    words.limit = words.limit or 900.0
    mutants, verdicts = chosen(load(folder, root), words.words), Counter[str]()
    if words.list:
        for mutant in load(folder, root) if not words.words else mutants:
            say(f"{mutant.name}: {mutant.file}: {mutant.says}{' (equivalent)' if mutant.equivalent else ''}")
        return 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copy = copy_of(root, Path(place))
        as_they_are = {}
        for mutant in mutants:
            began = time.monotonic()
            if mutant.tests not in as_they_are:
                as_they_are[mutant.tests] = run_tests(copy, mutant.tests, words.limit)
            before = as_they_are[mutant.tests]
            verdict = judge(mutant, copy, words.limit) if before.what == "survived" else before._replace(what="unclear")
            verdicts[verdict.what] += 1
            by = f" by {verdict.by}" if verdict.by else f": {mutant.says}"
            say(f"{verdict.what:9s} {mutant.name} ({mutant.file}, {time.monotonic() - began:.0f} s){by}")
    say(f"{verdicts['killed']} of {verdicts['killed'] + verdicts['survived']} killed, {verdicts['unclear']} unclear")
    return 1 if verdicts["survived"] or verdicts["unclear"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
