"""Commands that are carried out in forks of a process that has loaded everything; see `tests/faults/sweeper.py`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.runs import ROOT, environment


class Sweeper:
    """A process that carries out commands in forks of itself, with the shim if that is preloaded."""

    def __init__(self, process: subprocess.Popen[str]):
        self.process = process

    def run(
        self,
        place: Path,
        words: list[str],
        kind: str = "look",
        how: str = "count",
        at: int = 0,
        error: int = 0,
        watched: Path | None = None,
        killed_at: int = 0,
    ) -> int:
        """The exit code of a command. For `watched` and `killed_at` see `tests.faults.watching`: it writes ``seen``."""
        for name in ("out", "err", "calls"):
            (place / name).unlink(missing_ok=True)
        below, scratch = place / "below", place / "below" / "scratch"
        scratch.mkdir(parents=True, exist_ok=True)
        job = {"place": str(place), "below": str(below), "scratch": str(scratch), "words": words}
        job |= {
            "kind": kind,
            "how": how,
            "at": at,
            "errno": error,
            "watched": str(watched or ""),
            "killed_at": killed_at,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(job), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())


@contextmanager
def sweeping(variables: dict[str, str] | None = None) -> Iterator[Sweeper]:
    """Such a process, with these variables in its environment."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.sweeper"],
        cwd=ROOT,
        env=environment() | (variables or {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield Sweeper(process)
        assert process.stdin is not None
        process.stdin.close()
