"""Other programs that count maximal bicliques: how each is called, which file it reads, what its output says.

A program is called in a folder of its own, which has a file of the graph with ids from 0. {adjacency} is a file with a
line of right ids per left vertex, {edges} one with a line per edge, and {csr} one in the format of cuMBE. {threads} is
the number of cores that may be used, at least two, {min_left} and {min_right} are the fewest members of a side. The
seconds are by the program's own clock. If it has none, they are the processor seconds of the whole program.

AdaMBE, ParAdaMBE, ooMBEA, MBET and LCM were run like this. The entries of GMBE and cuMBE are taken from their sources.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import string
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import NamedTuple

import numpy as np

from benchmarks.runs import NO_BOUNDS, Bounds, Edges
from bicliques.schemas.errors import InputError, ResourceError

#: Number of lines of output that an error shows.
_LAST_LINES = 8


class Known(NamedTuple):
    """How a published program is called, what its output looks like, and where the program is."""

    arguments: str
    pattern: str
    where: str


_ADAMBE = "GitHub ISCS-ZJU/AdaMBE"
_FINDER = r"\b{}, (?P<seconds>[\d.]+), [\d.]+, (?P<count>\d+)"
KNOWN = {
    "AdaMBE": Known("-i {adjacency} -s 7", _FINDER.format("AdaMBEFinder"), f"{_ADAMBE}, bin/MBE_ALL; one thread"),
    # with one thread this program waits forever as soon as 960 tasks are queued
    "ParAdaMBE": Known(
        "-i {adjacency} -s 8 -t {threads}", _FINDER.format("ParAdaMBEFinder"), f"{_ADAMBE}, bin/MBE_ALL"
    ),
    "ooMBEA": Known("{adjacency}", _FINDER.format("ooMBEAFinder"), f"{_ADAMBE}, bin/mbbp, as it is packaged there"),
    "MBET": Known(
        "{edges} 1",
        r"\[Run-1\] cnt=(?P<count>\d+) , time: (?P<seconds>[\d.e+-]+)",
        "GitHub Haizs/MBET, any of its builds, such as MBETMC",
    ),
    "GMBE": Known(
        "-i {adjacency} -s 2 -t 1 -o 1 -f",
        r"Total processing time: (?P<seconds>[\d.]+) seconds\s+maximal nodes:(?P<count>\d+)",
        "GitHub ISCS-ZJU/GMBE, bin/MBE_GPU; a GPU",
    ),
    "cuMBE": Known(
        "{csr} cuMBE",
        r"maximal bicliques: (?P<count>\d+)[\s\S]*?runtime \(s\): (?P<seconds>[\d.e+-]+)",
        "GitHub NTUDDSNLab/cuMBE, bin/mbe; a GPU",
    ),
    "LCM": Known(
        "Cf -l {min_right} {adjacency} {min_left}",
        r"(?m)^(?P<count>\d+)(?P<seconds>)$",
        "LCM 5.3 by Takeaki Uno, lcm; closed item sets; it has no clock",
    ),
}


class TooSlowError(ResourceError):
    """A program was given up, because it took longer than it may."""


class UnreadableError(ResourceError):
    """A program said nothing that can be read. Lines of its output follow the sentence."""

    def __init__(self, sentence: str, output: str):
        super().__init__(sentence)
        self._output = output

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self._output}"


@dataclass(frozen=True)
class Rival:
    """Another program to compare with.

    Parameters
    ----------
    name, program : str
        Its name, and the path to call.
    arguments : str
        Its arguments, with {adjacency}, {edges} or {csr} for the file of the graph.
    pattern : Pattern
        Finds the groups ``seconds`` and ``count`` in its output. The former is empty if it has no clock.
    limit_s : float
        Seconds after which a run is given up.
    """

    name: str
    program: str
    arguments: str
    pattern: re.Pattern[str]
    limit_s: float

    @property
    def has_clock(self) -> bool:
        """Whether the program says how long it took."""
        return "(?P<seconds>)" not in self.pattern.pattern

    def prepare(self, edges: Edges, folder: Path, bounds: Bounds = NO_BOUNDS) -> list[str]:
        """Write the files that the program reads into `folder`. Returns the command that runs it."""
        for _, field, _, _ in string.Formatter().parse(self.arguments):
            if field in _FILES:
                suffix, lines = _FILES[field]
                with (folder / f"graph{suffix}").open("w") as out:
                    out.writelines(lines(edges))
        files = {field: f"graph{suffix}" for field, (suffix, _) in _FILES.items()}
        threads = str(max(2, len(os.sched_getaffinity(0))))
        values = files | {"threads": threads, "min_left": str(bounds.left), "min_right": str(bounds.right)}
        return [self.program, *(word.format(**values) for word in shlex.split(self.arguments))]

    def run(self, command: list[str], folder: Path) -> tuple[int, float]:
        """Run the program. Returns its count, and the seconds by its own clock, or those of the processor.

        Raises
        ------
        TooSlowError
            If the program takes longer than `limit_s`.
        ResourceError
            If the program fails, or its output has no count and seconds.
        """
        before = getrusage(RUSAGE_CHILDREN)
        try:
            ended = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, errors="replace", check=False, timeout=self.limit_s
            )
        except subprocess.TimeoutExpired:
            raise TooSlowError(f"{self.name} took more than {self.limit_s:g} s; give it more with --limit") from None
        except OSError as error:
            raise ResourceError(f"{self.name} does not start: {error.strerror}: {self.program}") from None
        found = self.pattern.search(ended.stdout) or self.pattern.search(ended.stderr)
        if ended.returncode or found is None:
            what = (
                f"ended with {ended.returncode}" if ended.returncode else f"said nothing like '{self.pattern.pattern}'"
            )
            raise UnreadableError(f"{self.name} {what}; the end of its output:", _end(ended.stdout + ended.stderr))
        after = getrusage(RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        try:
            return int(found["count"]), float(found["seconds"]) if self.has_clock else used
        except (TypeError, ValueError):
            said = f"{found['count']!r} as count and {found['seconds']!r} as seconds"
            raise ResourceError(f"{self.name} said {said}, by the pattern '{self.pattern.pattern}'") from None


def add_rival(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Add the options that name another program, or `several`. `rival_of` and `rivals_of` make a `Rival` from them."""
    what = "another program, on the same graphs in turns"
    if several:
        parser.add_argument("--rival", metavar="NAME=PROGRAM", action="append", default=[], help=f"{what}; may repeat")
    else:
        parser.add_argument("--rival", metavar="NAME=PROGRAM", help=what)
    parser.add_argument(
        "--arguments",
        metavar="TEXT",
        help="arguments of the rival, with {adjacency}, {edges} or {csr} for the graph's file",
    )
    parser.add_argument("--pattern", metavar="REGEX", help="finds the groups count and seconds in its output")
    parser.add_argument(
        "--limit", type=float, default=3600, metavar="S", help="seconds for one run of it (default: 3600)"
    )


def rival_of(words: argparse.Namespace) -> Rival | None:
    """The program that the options of `add_rival` name. None if they name none.

    Raises
    ------
    InputError
        Where `named` raises it.
    """
    return named(words.rival, words.arguments, words.pattern, words.limit) if words.rival else None


def rivals_of(words: argparse.Namespace) -> list[Rival]:
    """The programs that the options of `add_rival` name.

    Raises
    ------
    InputError
        Where `named` raises it.
    """
    return [named(word, words.arguments, words.pattern, words.limit) for word in words.rival]


def named(word: str, arguments: str | None, pattern: str | None, limit_s: float) -> Rival:
    """The program of ``NAME=PROGRAM``. `KNOWN` gives the arguments and the pattern that are None.

    Raises
    ------
    InputError
        If there is no such program, or it is not known how to call it or what its output looks like.
    """
    name, equals, program = word.partition("=")
    known = KNOWN.get(name)
    if not equals or not name or not program:
        raise InputError(f"--rival is NAME=PROGRAM, such as AdaMBE=bin/MBE_ALL, not {word!r}")
    if known is None and (arguments is None or pattern is None):
        raise InputError(
            f"nothing is known of a program {name}: give its --arguments and --pattern, or one of {', '.join(KNOWN)}"
        )
    path = Path(program).expanduser()
    found = str(path.absolute()) if path.is_file() else shutil.which(program)
    if found is None:
        raise InputError(f"there is no program {program} to compare with; give --rival {name}=PROGRAM")
    arguments = known.arguments if arguments is None else arguments  # type: ignore[union-attr]
    _check_arguments(arguments)
    return Rival(name, found, arguments, _compiled(known.pattern if pattern is None else pattern), limit_s)  # type: ignore[union-attr]


def _check_arguments(arguments: str) -> None:
    fields = {*_FILES, "threads", "min_left", "min_right"}
    try:
        words = shlex.split(arguments)
        used = {field for word in words for _, field, _, _ in string.Formatter().parse(word) if field is not None}
    except ValueError as error:
        raise InputError(f"--arguments '{arguments}' cannot be read: {error}") from None
    if used - fields or not used & set(_FILES):
        known = ", ".join(f"{{{field}}}" for field in sorted(fields))
        raise InputError(f"--arguments '{arguments}' must name a file of the graph, and nothing else, out of {known}")


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InputError(f"--pattern '{pattern}' is no regular expression: {error}") from None
    if not {"count", "seconds"} <= set(compiled.groupindex):
        raise InputError(f"--pattern '{pattern}' must have the groups (?P<count>...) and (?P<seconds>...)")
    return compiled


def _end(text: str) -> str:
    lines = text.strip().splitlines()[-_LAST_LINES:]
    return "\n".join(f"  {line[:200]}" for line in lines) or "  (nothing)"


def _starts(edges: Edges) -> np.ndarray:
    """The positions at which the edges of each left vertex begin, and the end of the last edge."""
    return np.searchsorted(edges.left, np.arange(edges.n_left + 1))


def _adjacency(edges: Edges) -> Iterator[str]:
    for start, stop in pairwise(_starts(edges)):
        yield " ".join(map(str, edges.right[start:stop])) + "\n"


def edge_list(edges: Edges) -> Iterator[str]:
    """A line per edge: its left and its right id."""
    for u, v in zip(edges.left, edges.right, strict=True):
        yield f"{u} {v}\n"


def _csr(edges: Edges) -> Iterator[str]:
    starts = _starts(edges)
    yield f"{edges.n_left} {edges.n_right} {len(edges.left)}\n"
    for start, stop in pairwise(starts):
        yield f"{start} {stop - start}\n"
    for v in edges.right:
        yield f"{v} 1\n"


#: The word that stands for a file in the arguments -> suffix and lines of the file.
_FILES: dict[str, tuple[str, Callable[[Edges], Iterator[str]]]] = {
    "adjacency": (".adj", _adjacency),
    "edges": (".txt", edge_list),
    "csr": (".bi", _csr),
}
