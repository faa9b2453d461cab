"""Code that runs in a process of its own, so that its memory can be measured."""

import subprocess
import sys
from pathlib import Path

from tests.support.runs import ROOT

#: Reads the input that it is given: how many duplicates there were, and the MiB that it took more than a small one.
MEMORY = """
import pathlib, sys
import llvmlite.binding  # what a small input does not need
from bicliques.pipeline.ingest.step import ingest
from bicliques.schemas.options import IngestOptions
from tests.support.own_memory import OwnMemory
ingest("small.csv", IngestOptions(), pathlib.Path("."))
memory = OwnMemory()
before = memory.peak()
print(ingest(sys.argv[1], IngestOptions(), pathlib.Path(".")).duplicates, (memory.peak() - before) >> 20)
"""


def in_child(code: str, folder: Path, *arguments: str) -> str:
    """What the program says, in that folder; it must not fail."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
